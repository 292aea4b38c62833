//! The `whimbrel` program: a drop-in for the executable that the official agent SDKs start, and a tool for people.
//!
//! It has no logic of an agent: it reads the command line, makes a link to the engine and shows what comes out.
//!
//! The rooms:
//! - [`flags`]: the command line, one table
//! - [`run`]: the program from start to end; [`session`]: an engine served on this thread
//! - [`stdio`]: the wire over stdin and stdout
//! - [`prompt`], [`print`]: one prompt, one answer; [`host`]: the host's side within this process
//! - [`human`]: the same told to a person; [`terminal`]: whether there is one; [`welcome`]: when no model is set up
//! - [`demo`]: a scripted run that needs nothing; [`sessions`]: what was done before
//! - [`mcp`]: MCP servers for people, and our tools as one
//! - [`home`]: where the user's files are
//! - [`debug`]: what is done, for whoever follows it
//! - [`exit`], [`signals`]: how it ends

mod debug;
mod demo;
mod exit;
mod explain;
mod flags;
mod home_dir;
mod local_host;
mod terminal_ui;
mod mcp;
mod print;
mod prompt;
mod run;
mod session;
mod sessions;
mod signals;
mod stdio;
mod terminal;
mod no_key;

fn main() {
    // Not a return: the thread that reads stdin may never end.
    std::process::exit(run::main());
}
