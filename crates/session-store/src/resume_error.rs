//! Errors of resuming and forking a session.

use std::io;
use std::path::PathBuf;

use crate::load::LoadError;
use crate::lock::BusyError;
use crate::store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// Another process holds the session.
    #[error("{0}")]
    Busy(#[from] BusyError),
    /// The transcript cannot be loaded.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// The transcript cannot be copied.
    #[error("The session cannot be copied to {0}: {1}.")]
    Copy(PathBuf, io::Error),
    /// The session has no messages.
    #[error("The session {0} has no messages, so there is nothing to copy.")]
    Empty(String),
    /// The title of the fork is invalid.
    #[error("{0}")]
    Title(io::Error),
    /// Error of the session store.
    #[error("{0}")]
    Store(#[from] StoreError),
}
