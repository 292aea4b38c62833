//! Why a session could not be opened.

use std::path::PathBuf;

use crate::error::Error;

/// Why a session could not be opened. Options are named as the methods and fields of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The session to resume does not exist.
    #[error("there is no session {session}: it was deleted, or it is stored elsewhere")]
    NoSuchSession {
        /// Its id.
        session: String,
    },
    /// The id of the new session is in use.
    #[error("the session {session} exists already: resume it, or choose another id")]
    SessionExists {
        /// Its id.
        session: String,
    },
    /// Another engine holds the session to resume.
    #[error("the session {session} is {holder}: wait until that engine ends, or fork the session")]
    SessionBusy {
        /// Its id.
        session: String,
        /// What is known of the engine that holds it.
        holder: String,
    },
    /// The working directory does not exist.
    #[error("the working directory {} does not exist", .0.display())]
    NoSuchDirectory(PathBuf),
    /// An option has an invalid value.
    #[error("the option {option} {reason}")]
    InvalidOption {
        /// The option.
        option: String,
        /// What is wrong with its value.
        reason: String,
    },
    /// An option makes sense only together with another one.
    #[error("the option {option} requires {required}: {reason}")]
    MissingOption {
        /// The option that was given.
        option: String,
        /// The option that is missing.
        required: String,
        /// Why it is required.
        reason: String,
    },
    /// A setting, an environment variable or another part of the configuration is invalid or not supported.
    #[error("{0}")]
    Configuration(String),
    /// The engine process rejected its options.
    #[error("the engine rejected the session: {0}")]
    Rejected(String),
    /// The engine could not be started or reached.
    #[error(transparent)]
    Engine(Box<Error>),
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        match error {
            Error::Open(error) => error,
            Error::Config(text) => Self::Configuration(text),
            Error::Rejected(text) => Self::from_rejection(text),
            error => Self::Engine(Box::new(error)),
        }
    }
}

/// What all engines say of an unknown session, before its id.
const UNKNOWN_SESSION: &str = "No conversation found with session ID: ";

impl OpenError {
    /// Reads the text with which an engine process rejects a session.
    pub(crate) fn from_rejection(text: String) -> Self {
        match text.strip_prefix(UNKNOWN_SESSION) {
            Some(session) => Self::NoSuchSession { session: session.trim().to_owned() },
            None => Self::Rejected(text),
        }
    }
}

#[cfg(feature = "in-process")]
impl From<whimbrel_engine::setup::SetupError> for OpenError {
    fn from(error: whimbrel_engine::setup::SetupError) -> Self {
        use whimbrel_engine::setup::SetupError;
        // The texts of the engine are sentences of their own.
        let without_period = |text: &str| text.trim_end_matches('.').to_owned();
        match error {
            SetupError::NoSuchSession { session } => Self::NoSuchSession { session },
            SetupError::SessionExists { session, .. } => Self::SessionExists { session },
            SetupError::Busy { session, busy } => Self::SessionBusy { session, holder: busy.to_string() },
            SetupError::NoSuchDirectory(dir) => Self::NoSuchDirectory(dir),
            SetupError::InvalidOption { option, reason } => {
                Self::InvalidOption { option: option.to_owned(), reason: without_period(&reason) }
            }
            SetupError::MissingOption { option, required, reason } => Self::MissingOption {
                option: option.to_owned(),
                required: required.to_owned(),
                reason: without_period(reason),
            },
            SetupError::Unsupported(text) | SetupError::Invalid(text) => Self::Configuration(text),
            error @ SetupError::SandboxUnavailable(_) => Self::Configuration(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_session_is_recognized_in_a_rejection() {
        let error = OpenError::from_rejection("No conversation found with session ID: s1".into());
        assert!(matches!(error, OpenError::NoSuchSession { session } if session == "s1"));
        assert!(
            matches!(OpenError::from_rejection("else".into()), OpenError::Rejected(text) if text == "else")
        );
    }
}
