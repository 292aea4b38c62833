//! What can go wrong for a caller, sorted by what the caller can do about it.

use whimbrel_wire::WireError;
use whimbrel_wire::control::ControlError;

/// A failure of the SDK or of the engine behind it. A model's failure is not one: it is a result frame with `is_error`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no tokio runtime to run in.
    #[error("there is no tokio runtime here: call this inside one, for example below #[tokio::main]")]
    NoRuntime,
    /// The engine process could not be started.
    #[error("the engine {program} cannot be started: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The engine process ended with a failure.
    #[error("the engine ended with {status}{}", stderr_suffix(.stderr))]
    Engine {
        /// Its exit status.
        status: std::process::ExitStatus,
        /// The end of what it wrote to its standard error.
        stderr: String,
    },
    /// The engine in this process panicked: a mistake in it, or in a model that was added to it.
    #[cfg(feature = "in-process")]
    #[error("the engine panicked, and the session with it: {0}")]
    Panicked(String),
    /// The engine wrote something that is not a frame.
    #[error("the engine wrote a line that cannot be read: {0}")]
    Wire(#[from] WireError),
    /// The engine refused a control request, or the options that the session was to begin with.
    #[error("the engine refused: {0}")]
    Refused(String),
    /// The engine's answer to a control request does not fit.
    #[error("the engine's answer does not fit: {0}")]
    Misfit(String),
    /// A script for a scripted model cannot be used.
    #[cfg(feature = "in-process")]
    #[error("{0}")]
    Script(#[from] whimbrel_models::ModelError),
    /// Something was to be said after the input was finished.
    #[error("the input is finished: say everything before finish_input, or open another session")]
    InputFinished,
    /// The session is over.
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
