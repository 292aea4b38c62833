//! The program as others see it: started, fed, listened to, ended.
//!
//! `rig` starts it, `pty` at a terminal; `people` is about what a person types and reads, `terminals` about what a terminal
//! shows, `hosts` about frames on stdin and stdout, `endings` about signals and closed pipes, `homes` about home folders,
//! `projects` about what a project brings along, `sessions` about looking back, `transcripts` about what is kept, `tapes`
//! about recordings, `debugging` about what `--debug` tells, `mcp` about MCP servers and being one, `logins` about logging in to
//! them.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "this is all tests")]

mod debug_log;
mod shutdown;
mod home_dirs;
mod host_protocol;
mod mcp_login;
mod mcp;
mod command_line;
mod project_trust;
mod pty;
mod harness;
mod sessions;
mod recordings;
mod terminal;
mod transcripts;
