//! Errors of the SDK, by what the caller can do about them.

mod open_error;
mod turn_error;

use whimbrel_wire::WireError;
use whimbrel_wire::control::ControlError;

pub use open_error::OpenError;
pub use turn_error::{ApiError, TurnError};

/// Error of the SDK or of the engine behind it. A failing model is not one: it gives a result frame with `is_error`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Called outside a tokio runtime.
    #[error("not inside a tokio runtime: call this from an async function, for example below #[tokio::main]")]
    NoRuntime,
    /// The session could not be opened.
    #[error(transparent)]
    Open(OpenError),
    /// The runtime has no timers. Tokio reports that by a panic, which is caught and printed; a program that is built with
    /// `panic = "abort"` ends with that message instead.
    #[error("the tokio runtime has no timers: build it with Builder::enable_all, or at least enable_time")]
    NoTimer,
    /// The engine process could not be started.
    #[error("cannot start the engine {program}: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// The I/O error.
        #[source]
        source: std::io::Error,
    },
    /// The engine process exited with an error.
    #[error("the engine exited with {status}{}", stderr_suffix(.stderr))]
    Engine {
        /// Its exit status.
        status: std::process::ExitStatus,
        /// End of its standard error.
        stderr: String,
    },
    /// The engine in this process panicked: a bug in it, or in a model that was added to it.
    #[cfg(feature = "in-process")]
    #[error("the engine panicked and the session has ended: {0}")]
    Panicked(String),
    /// The engine wrote a line that is not a frame.
    #[error("the engine wrote an invalid line: {0}")]
    Wire(#[from] WireError),
    /// The agent is configured in a way that cannot work; the text names the remedy. No session was started.
    #[error("{0}")]
    Config(String),
    /// The engine rejected a control request, or the options of the session.
    #[error("rejected: {0}")]
    Rejected(String),
    /// The engine's reply to a control request has the wrong type.
    #[error("the engine's reply is invalid: {0}")]
    InvalidReply(String),
    /// The script of a scripted model is invalid.
    #[cfg(feature = "in-process")]
    #[error("{0}")]
    Script(#[from] whimbrel_models::ModelError),
    /// A prompt was sent after the input was finished.
    #[error("the input is finished: send all prompts before finish_input, or open another session")]
    InputFinished,
    /// The session has ended.
    #[error("the session has ended")]
    SessionEnded,
}

fn stderr_suffix(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {}", stderr.trim_end()) }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<ControlError> for Error {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Rejected { error, .. } => Self::Rejected(error),
            other => Self::InvalidReply(other.to_string()),
        }
    }
}
