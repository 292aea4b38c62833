//! The program as others see it: started, fed, listened to, ended.
//!
//! `rig` starts it, `pty` at a terminal; `people` is about what a person types and reads, `terminals` about what a terminal
//! shows, `hosts` about frames on stdin and stdout, `endings` about signals and closed pipes, `homes` about home folders,
//! `projects` about what a project brings along, `sessions` about looking back, `transcripts` about what is kept, `tapes`
//! about recordings, `debugging` about what `--debug` tells, `mcp` about MCP servers and being one, `logins` about logging in to
//! them.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "this is all tests")]

mod debugging;
mod endings;
mod homes;
mod hosts;
mod logins;
mod mcp;
mod people;
mod projects;
mod pty;
mod rig;
mod sessions;
mod tapes;
mod terminals;
mod transcripts;
