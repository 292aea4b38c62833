//! State of tracked files at each prompt. Pure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use whimbrel_os::files::FileStamp;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum CheckpointRecord {
    /// A prompt was submitted.
    Prompt { id: String },
    /// State of a file at the last prompt.
    File {
        /// The path as the tool call named it.
        path: PathBuf,
        /// The path with all symlinks resolved.
        #[serde(rename = "place")]
        real_path: PathBuf,
        state: FileState,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "was", rename_all = "kebab-case")]
pub(super) enum FileState {
    /// The file did not exist.
    Missing {
        /// The nearest existing directory, if it is not the parent of the file.
        #[serde(rename = "above", default, skip_serializing_if = "Option::is_none")]
        existing_ancestor: Option<PathBuf>,
    },
    /// The content is saved.
    #[serde(rename = "kept")]
    Saved {
        /// Hash of the content, which names the copy.
        hash: String,
        /// Size in bytes.
        size: u64,
        /// Permission bits.
        mode: u32,
    },
    /// The content is not saved.
    #[serde(rename = "not-kept")]
    NotSaved {
        /// Reason for the user.
        #[serde(rename = "why")]
        reason: String,
        /// Size in bytes.
        size: u64,
        /// Modification time in nanoseconds since 1970.
        modified: u64,
    },
}

/// Modification time in nanoseconds since 1970.
pub(super) fn modified_nanos(stamp: FileStamp) -> u64 {
    stamp
        .modified
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// State of a file at one prompt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileVersion {
    /// The path as the tool call named it.
    pub(super) path: PathBuf,
    /// The path with all symlinks resolved.
    pub(super) real_path: PathBuf,
    pub(super) state: FileState,
}

/// All prompts of a session and the file states recorded at each.
#[derive(Debug, Default)]
pub(super) struct FileHistory {
    prompts: Vec<String>,
    files: BTreeMap<PathBuf, FileTrack>,
}

#[derive(Debug)]
struct FileTrack {
    path: PathBuf,
    /// Prompt number and state, ascending.
    states: Vec<(usize, FileState)>,
}

impl FileHistory {
    /// Applies a record. File records before the first prompt are ignored.
    pub(super) fn apply(&mut self, record: CheckpointRecord) {
        match record {
            CheckpointRecord::Prompt { id } => self.prompts.push(id),
            CheckpointRecord::File { path, real_path: place, state } => {
                let Some(prompt) = self.prompts.len().checked_sub(1) else { return };
                let file = self.files.entry(place).or_insert_with(|| FileTrack { path, states: Vec::new() });
                file.states.push((prompt, state));
            }
        }
    }

    pub(super) fn has_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    pub(super) fn last_state(&self, real_path: &Path) -> Option<&FileState> {
        self.files.get(real_path).and_then(|file| file.states.last()).map(|(_, state)| state)
    }

    /// All tracked files with their last states.
    pub(super) fn latest_versions(&self) -> Vec<FileVersion> {
        self.select_versions(|states| states.last())
    }

    /// File states at a prompt; `None` for an unknown prompt. A file first recorded at a later prompt has its first
    /// recorded state.
    pub(super) fn versions_at(&self, prompt: &str) -> Option<Vec<FileVersion>> {
        let number = self.prompts.iter().rposition(|id| id == prompt)?;
        Some(self.select_versions(|states| {
            states.iter().rev().find(|(prompt, _)| *prompt <= number).or_else(|| states.first())
        }))
    }

    fn select_versions<'a>(
        &'a self,
        select: impl Fn(&'a [(usize, FileState)]) -> Option<&'a (usize, FileState)>,
    ) -> Vec<FileVersion> {
        let to_version = |(real_path, file): (&PathBuf, &'a FileTrack)| {
            let (_, state) = select(&file.states)?;
            Some(FileVersion { path: file.path.clone(), real_path: real_path.clone(), state: state.clone() })
        };
        self.files.iter().filter_map(to_version).collect()
    }

    /// Bytes of all saved contents, each counted once.
    pub(super) fn stored_bytes(&self) -> u64 {
        let states = self.files.values().flat_map(|file| &file.states);
        let copies: BTreeMap<&str, u64> = states
            .filter_map(|(_, state)| match state {
                FileState::Saved { hash, size, .. } => Some((hash.as_str(), *size)),
                FileState::Missing { .. } | FileState::NotSaved { .. } => None,
            })
            .collect();
        copies.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved_state(hash: &str) -> FileState {
        FileState::Saved { hash: hash.into(), size: 1, mode: 0o644 }
    }

    #[test]
    fn state_at_prompt_falls_back_to_first_recorded_state() {
        let mut history = FileHistory::default();
        let prompt = |id: &str| CheckpointRecord::Prompt { id: id.into() };
        let file =
            |name: &str, state| CheckpointRecord::File { path: name.into(), real_path: name.into(), state };
        history.apply(file("/early", FileState::Missing { existing_ancestor: None }));
        for record in [
            prompt("one"),
            file("/a", saved_state("v0")),
            prompt("two"),
            file("/a", saved_state("v1")),
            prompt("three"),
            file("/b", FileState::Missing { existing_ancestor: None }),
            prompt("two"),
            file("/b", saved_state("w1")),
        ] {
            history.apply(record);
        }
        let at = |id: &str| {
            history.versions_at(id).map(|files| {
                files
                    .into_iter()
                    .map(|version| (version.real_path.display().to_string(), version.state))
                    .collect::<Vec<_>>()
            })
        };
        let two = |a, b| Some(vec![("/a".to_owned(), a), ("/b".to_owned(), b)]);
        assert_eq!(at("one"), two(saved_state("v0"), FileState::Missing { existing_ancestor: None }));
        assert_eq!(at("three"), two(saved_state("v1"), FileState::Missing { existing_ancestor: None }));
        assert_eq!(
            at("two"),
            two(saved_state("v1"), saved_state("w1")),
            "of two prompts with one id the later counts"
        );
        assert_eq!(at("never"), None);
        assert_eq!(history.stored_bytes(), 3);
    }

    #[test]
    fn records_round_trip() {
        let lines = [
            (CheckpointRecord::Prompt { id: "u".into() }, r#"{"type":"prompt","id":"u"}"#),
            (
                CheckpointRecord::File {
                    path: "/l/a".into(),
                    real_path: "/r/a".into(),
                    state: FileState::Missing { existing_ancestor: None },
                },
                r#"{"type":"file","path":"/l/a","place":"/r/a","state":{"was":"missing"}}"#,
            ),
            (
                CheckpointRecord::File {
                    path: "/a/b/c".into(),
                    real_path: "/a/b/c".into(),
                    state: FileState::Missing { existing_ancestor: Some("/a".into()) },
                },
                r#"{"type":"file","path":"/a/b/c","place":"/a/b/c","state":{"was":"missing","above":"/a"}}"#,
            ),
            (
                CheckpointRecord::File {
                    path: "/a".into(),
                    real_path: "/a".into(),
                    state: FileState::NotSaved { reason: "w".into(), size: 1, modified: 2 },
                },
                r#"{"type":"file","path":"/a","place":"/a","state":{"was":"not-kept","why":"w","size":1,"modified":2}}"#,
            ),
            (
                CheckpointRecord::File {
                    path: "/a".into(),
                    real_path: "/a".into(),
                    state: saved_state("00"),
                },
                r#"{"type":"file","path":"/a","place":"/a","state":{"was":"kept","hash":"00","size":1,"mode":420}}"#,
            ),
        ];
        for (record, line) in lines {
            assert_eq!(serde_json::to_string(&record).unwrap(), line);
            assert_eq!(serde_json::from_str::<CheckpointRecord>(line).unwrap(), record);
        }
        // Internally tagged enums can lose precision in large numbers.
        let state = FileState::NotSaved { reason: "w".into(), size: 1, modified: 1_900_000_000_123_456_789 };
        let record = CheckpointRecord::File { path: "/a".into(), real_path: "/a".into(), state };
        assert_eq!(
            serde_json::from_str::<CheckpointRecord>(&serde_json::to_string(&record).unwrap()).unwrap(),
            record
        );
    }
}
