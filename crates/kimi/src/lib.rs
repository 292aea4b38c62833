//! Whimbrel under a host of the Kimi Agent SDK: the Kimi wire, on the Rust SDK. One process serves one session.
//!
//! Frames of the engine become events, requests of the client become calls of the SDK. There is no agent logic here.
//!
//! Modules:
//! - the process: [`KimiServer`] here, `stdio` (lines on stdin and stdout), `command_line`, `setup` (what it serves),
//!   `info` (what `whimbrel info` prints)
//! - the wire: `json_rpc` (lines), `versions` (which client knows which event), `user_input`, `slash_commands`
//! - the session: `server` (the task that owns it), `open_session` (options of the engine), `callbacks`,
//!   `client_requests` (requests without an answer), `external_tools`, `hooks`
//! - translation, pure: `translate` (frames to events), `tools` (names, shapes and results of tools), `tool_names`
//! - the model: `model_choice` (which one), `model_layer` (it reads and writes Kimi's tools)
//! - files: `share_dir`, `wire_log`, `context_log`, `config_file`, `agent_file`, `mcp_config`
//! - `ids`: random ids

mod agent_file;
mod callbacks;
mod client_requests;
mod command_line;
mod config_file;
mod context_log;
mod external_tools;
mod hooks;
mod ids;
mod info;
mod json_rpc;
mod mcp_config;
mod model_choice;
mod model_layer;
mod open_session;
mod server;
mod setup;
mod share_dir;
mod slash_commands;
mod stdio;
mod tool_names;
mod tools;
mod translate;
mod user_input;
mod versions;
mod wire_log;

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use whimbrel::Environment;

use command_line::CommandLine;
use server::Server;
use setup::Setup;

pub use info::info_line;

/// How long the last lines may take to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a process does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A wrong command line, or a wrong file that it names.
    #[error("{0}")]
    Usage(String),
    /// The standard streams cannot be used.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A process that can serve: its command line and the files that it names have been read.
pub struct KimiServer(Setup);

impl KimiServer {
    /// Reads the command line, without the name of the program. `warn` gets what is left out.
    pub fn new(
        args: &[String],
        environment: &Environment,
        cwd: &Path,
        warn: impl FnMut(&str),
    ) -> Result<Self, StartError> {
        let resolve = || Setup::resolve(CommandLine::parse(args)?, environment, cwd, warn);
        resolve().map(Self).map_err(|error| StartError::Usage(error.to_string()))
    }

    /// Serves the client on stdin and stdout until it closes the input or `stop` fires. Must be called inside a tokio
    /// runtime.
    pub async fn serve_stdio(self, stop: CancellationToken) -> Result<(), StartError> {
        let lines = stdio::read_lines(io::stdin())?;
        let writer = stdio::write_lines(io::stdout())?;
        Server::new(self.0, lines, writer.lines, stop.clone()).run().await;
        // What was answered is written before the process ends, unless it is to stop or the client does not read.
        let _ = stop.run_until_cancelled(timeout(WRITE_TIMEOUT, writer.done)).await;
        Ok(())
    }
}
