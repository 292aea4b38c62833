//! What is known of files at each prompt. Pure: no disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::files::FileStamp;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum CheckpointRecord {
    /// A prompt came.
    Prompt {
        /// Its id.
        id: String,
    },
    /// A file as it was when the last prompt came.
    File {
        /// The path as the call named it.
        path: PathBuf,
        /// Where that really is, every link followed.
        place: PathBuf,
        /// How it was.
        state: FileState,
    },
}

/// How a file was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "was", rename_all = "kebab-case")]
pub(super) enum FileState {
    /// It was not there.
    Missing {
        /// The folder that was, where that is not the file's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        above: Option<PathBuf>,
    },
    /// There is a copy.
    Kept {
        /// The name of the copy: the hash of the bytes.
        hash: String,
        /// How many bytes it has.
        size: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// There is no copy.
    NotKept {
        /// The reason, in words.
        why: String,
        /// How many bytes it had.
        size: u64,
        /// When it had been changed last, in nanoseconds since 1970.
        modified: u64,
    },
}

/// The nanoseconds since 1970 of a change.
pub(super) fn modified_nanos(stamp: FileStamp) -> u64 {
    stamp
        .modified
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// A file and how it was at some prompt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileVersion {
    /// The path as the call named it.
    pub(super) path: PathBuf,
    /// Where it really is.
    pub(super) real_path: PathBuf,
    /// How it was.
    pub(super) state: FileState,
}

/// All prompts of a session, and what is known of files at each.
#[derive(Debug, Default)]
pub(super) struct FileHistory {
    prompts: Vec<String>,
    files: BTreeMap<PathBuf, FileTrack>,
}

#[derive(Debug)]
struct FileTrack {
    path: PathBuf,
    /// The number of the prompt, and how the file was then; ascending.
    states: Vec<(usize, FileState)>,
}

impl FileHistory {
    /// Takes a record in. A file before the first prompt belongs to nothing and is left out.
    pub(super) fn apply(&mut self, record: CheckpointRecord) {
        match record {
            CheckpointRecord::Prompt { id } => self.prompts.push(id),
            CheckpointRecord::File { path, place, state } => {
                let Some(prompt) = self.prompts.len().checked_sub(1) else { return };
                let track = self.files.entry(place).or_insert_with(|| FileTrack { path, states: Vec::new() });
                track.states.push((prompt, state));
            }
        }
    }

    /// Whether a prompt has come yet.
    pub(super) fn has_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// The last known state of a file.
    pub(super) fn last_state(&self, place: &Path) -> Option<&FileState> {
        self.files.get(place).and_then(|track| track.states.last()).map(|(_, state)| state)
    }

    /// Every file that is watched, with its last known state.
    pub(super) fn latest_versions(&self) -> Vec<FileVersion> {
        self.select_versions(|states| states.last())
    }

    /// How the files were when a prompt came; none if there was no such prompt. Of a file that was first changed after a
    /// later prompt, its first known state is the one that it had here, too.
    pub(super) fn versions_at(&self, prompt: &str) -> Option<Vec<FileVersion>> {
        let number = self.prompts.iter().rposition(|id| id == prompt)?;
        Some(self.select_versions(|states| {
            states.iter().rev().find(|(prompt, _)| *prompt <= number).or_else(|| states.first())
        }))
    }

    fn select_versions<'a>(&'a self, choose: impl Fn(&'a [(usize, FileState)]) -> Option<&'a (usize, FileState)>) -> Vec<FileVersion> {
        let picked = |(place, track): (&PathBuf, &'a FileTrack)| {
            let (_, state) = choose(&track.states)?;
            Some(FileVersion { path: track.path.clone(), real_path: place.clone(), state: state.clone() })
        };
        self.files.iter().filter_map(picked).collect()
    }

    /// How many bytes the copies take, each counted once.
    pub(super) fn stored_bytes(&self) -> u64 {
        let states = self.files.values().flat_map(|track| &track.states);
        let copies: BTreeMap<&str, u64> = states
            .filter_map(|(_, state)| match state {
                FileState::Kept { hash, size, .. } => Some((hash.as_str(), *size)),
                FileState::Missing { .. } | FileState::NotKept { .. } => None,
            })
            .collect();
        copies.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_state(hash: &str) -> FileState {
        FileState::Kept { hash: hash.into(), size: 1, mode: 0o644 }
    }

    #[test]
    fn a_file_is_what_it_was_at_the_prompt_or_else_when_it_was_first_known() {
        let mut history = FileHistory::default();
        let prompt = |id: &str| CheckpointRecord::Prompt { id: id.into() };
        let file = |name: &str, state| CheckpointRecord::File { path: name.into(), place: name.into(), state };
        history.apply(file("/early", FileState::Missing { above: None }));
        for record in [
            prompt("one"),
            file("/a", kept_state("v0")),
            prompt("two"),
            file("/a", kept_state("v1")),
            prompt("three"),
            file("/b", FileState::Missing { above: None }),
            prompt("two"),
            file("/b", kept_state("w1")),
        ] {
            history.apply(record);
        }
        let at = |id: &str| {
            history.versions_at(id).map(|files| {
                files
                    .into_iter()
                    .map(|past| (past.real_path.display().to_string(), past.state))
                    .collect::<Vec<_>>()
            })
        };
        let two = |a, b| Some(vec![("/a".to_owned(), a), ("/b".to_owned(), b)]);
        assert_eq!(at("one"), two(kept_state("v0"), FileState::Missing { above: None }));
        assert_eq!(at("three"), two(kept_state("v1"), FileState::Missing { above: None }));
        assert_eq!(at("two"), two(kept_state("v1"), kept_state("w1")), "of two prompts with one id the later counts");
        assert_eq!(at("never"), None);
        assert_eq!(history.stored_bytes(), 3);
    }

    #[test]
    fn records_read_as_they_were_written() {
        let lines = [
            (CheckpointRecord::Prompt { id: "u".into() }, r#"{"type":"prompt","id":"u"}"#),
            (
                CheckpointRecord::File {
                    path: "/l/a".into(),
                    place: "/r/a".into(),
                    state: FileState::Missing { above: None },
                },
                r#"{"type":"file","path":"/l/a","place":"/r/a","state":{"was":"missing"}}"#,
            ),
            (
                CheckpointRecord::File { path: "/a".into(), place: "/a".into(), state: kept_state("00") },
                r#"{"type":"file","path":"/a","place":"/a","state":{"was":"kept","hash":"00","size":1,"mode":420}}"#,
            ),
        ];
        for (record, line) in lines {
            assert_eq!(serde_json::to_string(&record).unwrap(), line);
            assert_eq!(serde_json::from_str::<CheckpointRecord>(line).unwrap(), record);
        }
        // An internally tagged type keeps such a number only if nothing on the way cuts it.
        let state = FileState::NotKept { why: "w".into(), size: 1, modified: 1_900_000_000_123_456_789 };
        let record = CheckpointRecord::File { path: "/a".into(), place: "/a".into(), state };
        assert_eq!(serde_json::from_str::<CheckpointRecord>(&serde_json::to_string(&record).unwrap()).unwrap(), record);
    }
}
