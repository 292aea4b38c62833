//! Tests of the built program from outside.
//!
//! `harness` starts it, `pty` on a terminal. `command_line` tests arguments and text output, `completions` those of
//! shells, `terminal` terminal
//! output, `tmux` the interactive terminal in tmux, `demo_picture` the picture in the README, `permission_samples` the samples in docs/permissions.md,
//! `host_protocol` frames on stdin and stdout, `shutdown` signals and closed pipes, `home_dirs` home directories,
//! `project_trust` settings of a project, `sessions` stored sessions, `transcripts` transcript files, `recordings`
//! record and replay, `sandbox` sessions with a sandbox, `debug_log` the output of `--debug`, `inspection` the subcommands `doctor`, `auth`, `agents` and
//! `config`, `mcp` MCP servers and our tools as one, `mcp_login` OAuth logins, `plugins` marketplaces and installed
//! plugins, `worktrees` sessions in a git worktree, `setup_hooks` hooks that prepare a project.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "this is all tests")]

mod command_line;
mod completions;
mod debug_log;
mod demo_picture;
mod harness;
mod home_dirs;
mod host_protocol;
mod inspection;
mod mcp;
mod mcp_login;
mod permission_samples;
mod plugins;
mod project_trust;
mod pty;
mod recordings;
mod sandbox;
mod sessions;
mod setup_hooks;
mod shutdown;
mod terminal;
mod tmux;
mod transcripts;
mod worktrees;
