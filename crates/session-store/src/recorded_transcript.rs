//! The transcript of a running session, read back to rewind its conversation or to run calls that never started.

use std::io::Cursor;
use std::path::PathBuf;

use crate::append_file;
use crate::load::rewind::{RewindError, RewindPlan, plan_rewind};
use crate::load::{LoadError, LoadedConversation, load_with_open_calls};
use crate::resumed_session::join_lines;
use crate::store::StoreError;
use crate::store_writer::StoreWriter;

/// Where the transcript is read from. Reading blocks.
#[derive(Debug)]
pub enum RecordedTranscript {
    File(PathBuf),
    Lines(Vec<u8>),
}

impl RecordedTranscript {
    /// Loads the lines of a session from its store.
    pub async fn from_store(store_writer: &StoreWriter, session: &str) -> Result<Self, StoreError> {
        let lines = store_writer.load_session(session).await?.unwrap_or_default();
        Ok(Self::Lines(join_lines(&lines)))
    }

    /// Plans to go back to before a prompt or an earlier rewind; `current` is the last entry now.
    pub fn plan_rewind(&self, target: &str, current: Option<&str>) -> Result<RewindPlan, RewindError> {
        match self {
            Self::File(path) => plan_rewind(append_file::open_for_reading(path)?, target, current),
            Self::Lines(text) => plan_rewind(Cursor::new(text), target, current),
        }
    }

    /// Loads the conversation with the calls of its last reply that never started.
    pub fn load_with_open_calls(&self) -> Result<LoadedConversation, LoadError> {
        match self {
            Self::File(path) => load_with_open_calls(append_file::open_for_reading(path)?),
            Self::Lines(text) => load_with_open_calls(Cursor::new(text)),
        }
    }
}
