//! The `whimbrel` program: a drop-in for the executable that the official agent SDKs start, and a tool for users.
//!
//! It holds no agent logic: it parses the command line, links the host with the engine and shows the output.
//!
//! Modules:
//! - [`flags`]: the command line, one table
//! - [`run`]: the program from start to end; [`serve_session`]: an engine that serves one session on this thread
//! - [`stdio`]: the wire over stdin and stdout
//! - [`read_prompt`], [`one_prompt`]: one prompt, one answer; [`in_process_host`]: the host side within this process
//! - [`terminal_ui`]: output for a user; [`terminal`]: detection of a terminal; [`missing_key`]: help without a
//!   configured model
//! - [`demo`]: a scripted run that needs no key; [`sessions`]: stored sessions; [`explain_permission`]: why a call is
//!   allowed or not
//! - [`mcp`]: configured MCP servers, and our own tools as a server; [`plugin`]: plugins from marketplaces
//! - [`rewind_files`]: files as they were at a prompt; [`init_only`]: hooks that prepare a project; [`config`]: settings files; [`agents`]: agent definitions;
//!   [`doctor`]: the setup and what is wrong with it; [`auth`], [`credentials`]: the key of the model and its source
//! - [`acp`]: an agent for editors
//! - [`kimi`]: the engine under a host of the Kimi Agent SDK
//! - [`official`]: flags and subcommands of the official program; [`subcommands`]: those of this program
//! - `serve`: sessions in the browser
//! - [`sandbox`]: confined commands, for users; the launcher of confined commands is this program, too
//! - [`completions`]: completions for shells; [`man_page`]: the man page; [`value_hint`]: what a shell can suggest
//! - [`environment`]: variables and directories; [`arg_list`], [`suggest`]: what the command lines share
//! - [`debug_log`]: the debug log
//! - [`caller`]: who started the program; [`shutdown`]: signals and early ends; [`exit_code`]

mod acp;
mod agents;
mod arg_list;
mod auth;
mod caller;
mod completions;
mod config;
mod credentials;
mod debug_log;
mod demo;
mod doctor;
mod environment;
mod exit_code;
mod explain_permission;
mod flags;
mod in_process_host;
mod init_only;
#[cfg(feature = "terminal")]
mod interactive;
mod kimi;
mod man_page;
mod mcp;
mod missing_key;
mod official;
mod one_prompt;
mod plugin;
mod read_prompt;
mod rewind_files;
mod run;
mod sandbox;
#[cfg(feature = "serve")]
mod serve;
mod serve_session;
mod sessions;
mod shutdown;
mod stdio;
mod subcommands;
mod suggest;
mod terminal;
mod terminal_ui;
mod value_hint;

fn main() {
    // Before anything else: the launcher must have one thread, and starts with every confined command.
    #[cfg(target_os = "linux")]
    whimbrel_sandbox::launcher::run_if_requested();
    // Not a return: the thread that reads stdin may never end.
    std::process::exit(run::main());
}
