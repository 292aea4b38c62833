//! The `whimbrel` program: a drop-in for the executable that the official agent SDKs start, and a tool for users.
//!
//! It holds no agent logic: it parses the command line, links the host with the engine and shows the output.
//!
//! Modules:
//! - [`flags`]: the command line, one table
//! - [`run`]: the program from start to end; [`session`]: an engine that serves one session on this thread
//! - [`stdio`]: the wire over stdin and stdout
//! - [`prompt`], [`print`]: one prompt, one answer; [`local_host`]: the host side within this process
//! - [`terminal_ui`]: output for a user; [`terminal`]: detection of a terminal; [`no_key`]: help without a configured
//!   model
//! - [`demo`]: a scripted run that needs no key; [`sessions`]: stored sessions; [`explain`]: permission decisions
//! - [`mcp`]: configured MCP servers, and our own tools as a server
//! - [`home_dir`]: the user's home directory
//! - [`debug`]: the debug log
//! - [`exit`], [`signals`]: shutdown and exit code

mod debug;
mod demo;
mod exit;
mod explain;
mod flags;
mod home_dir;
mod local_host;
mod mcp;
mod no_key;
mod print;
mod prompt;
mod run;
mod session;
mod sessions;
mod signals;
mod stdio;
mod terminal;
mod terminal_ui;

fn main() {
    // Not a return: the thread that reads stdin may never end.
    std::process::exit(run::main());
}
