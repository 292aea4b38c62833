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
//! - [`environment`]: variables and directories; [`arg_list`], [`suggest`]: what the command lines share
//! - [`debug`]: the debug log
//! - [`shutdown`]: signals, early ends and the exit code

mod arg_list;
mod debug;
mod demo;
mod environment;
mod explain;
mod flags;
mod local_host;
mod mcp;
mod no_key;
mod print;
mod prompt;
mod run;
mod session;
mod sessions;
mod shutdown;
mod stdio;
mod suggest;
mod terminal;
mod terminal_ui;

fn main() {
    // Not a return: the thread that reads stdin may never end.
    std::process::exit(run::main());
}
