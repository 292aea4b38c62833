//! Errors of the SDK, by what the caller can do about them.

use whimbrel_wire::WireError;
use whimbrel_wire::control::ControlError;

/// Error of the SDK or of the engine behind it. A failing model is not one: it gives a result frame with `is_error`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Called outside a tokio runtime.
    #[error("there is no tokio runtime here: call this inside one, for example below #[tokio::main]")]
    NoRuntime,
    /// The engine process could not be started.
    #[error("the engine {program} cannot be started: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// The I/O error.
        #[source]
        source: std::io::Error,
    },
    /// The engine process exited with an error.
    #[error("the engine ended with {status}{}", stderr_suffix(.stderr))]
    Engine {
        /// Its exit status.
        status: std::process::ExitStatus,
        /// End of its standard error.
        stderr: String,
    },
    /// The engine in this process panicked: a bug in it, or in a model that was added to it.
    #[cfg(feature = "in-process")]
    #[error("the engine panicked, and the session with it: {0}")]
    Panicked(String),
    /// The engine wrote a line that is not a frame.
    #[error("the engine wrote a line that cannot be read: {0}")]
    Wire(#[from] WireError),
    /// The engine rejected a control request, or the options of the session.
    #[error("the engine refused: {0}")]
    Refused(String),
    /// The engine's reply to a control request has the wrong type.
    #[error("the engine's answer does not fit: {0}")]
    Misfit(String),
    /// The script of a scripted model is invalid.
    #[cfg(feature = "in-process")]
    #[error("{0}")]
    Script(#[from] whimbrel_models::ModelError),
    /// A prompt was sent after the input was finished.
    #[error("the input is finished: say everything before finish_input, or open another session")]
    InputFinished,
    /// The session has ended.
    #[error("the session is over")]
    Over,
}

fn stderr_suffix(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {}", stderr.trim_end()) }
}

impl From<ControlError> for Error {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Rejected { error, .. } => Self::Refused(error),
            other => Self::Misfit(other.to_string()),
        }
    }
}
