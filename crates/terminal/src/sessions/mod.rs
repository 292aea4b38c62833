//! Stored sessions for the resume picker, and the end of one that is resumed.

mod replay;

use whimbrel::store::SessionSummary;

pub(crate) use replay::{prompts, split_items};

/// A stored session as the picker shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredSession {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) folder: String,
    pub(crate) branch: String,
    /// Time of the last change, in milliseconds since 1970.
    pub(crate) modified_ms: u64,
    pub(crate) bytes: u64,
    pub(crate) first_prompt: String,
}

impl From<SessionSummary> for StoredSession {
    fn from(summary: SessionSummary) -> Self {
        Self {
            id: summary.session_id,
            title: summary.summary,
            folder: summary.cwd.unwrap_or_default(),
            branch: summary.git_branch.unwrap_or_default(),
            modified_ms: summary.last_modified,
            bytes: summary.file_size.unwrap_or_default(),
            first_prompt: summary.first_prompt.unwrap_or_default(),
        }
    }
}

/// A prompt of the session, to which one can go back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedPrompt {
    pub(crate) uuid: String,
    pub(crate) text: String,
}

/// How long ago a time was, in a few letters.
pub(crate) fn age(modified_ms: u64, now_ms: u64) -> String {
    let minutes = now_ms.saturating_sub(modified_ms) / 60_000;
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes} min"),
        60..1440 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1440),
    }
}

/// A size in a few letters.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KB", bytes / 1024),
        _ => format!("{} MB", bytes / 1_048_576),
    }
}
