//! Restores files to their state at a prompt. Each file is replaced atomically; after a kill in between, the same
//! request restores the rest.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use similar::DiffTag;
use whimbrel_os::clock;
use whimbrel_os::files::{self, FileKind, FileStamp};
use whimbrel_os::links as paths;

use crate::checkpoint::history::{FileState, FileVersion, modified_nanos};
use crate::checkpoint::{Checkpoints, blobs};
use crate::text_diff;

/// Time limit for diffing all files; after it the rest of a file counts as changed.
const DIFF_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindMode {
    /// Report what would change.
    DryRun,
    /// Change the files.
    Restore,
}

/// Result of a rewind, or of its dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindReport {
    /// Changed files, as the tool calls named them.
    pub changed: Vec<PathBuf>,
    /// Lines restored.
    pub insertions: usize,
    /// Lines removed.
    pub deletions: usize,
    /// Files skipped because their path now contains a symlink.
    pub skipped_links: usize,
    /// Files that cannot be restored, with the reason.
    pub failures: Vec<String>,
}

/// Change needed to restore a file.
enum RestoreStep {
    Nothing,
    Remove,
    Create { bytes: Vec<u8>, mode: u32 },
    Replace { bytes: Vec<u8> },
}

impl Checkpoints {
    /// Restores the files to their state at a prompt; none for an unknown prompt.
    pub fn rewind(&self, prompt: &str, wish: RewindMode) -> Option<RewindReport> {
        let mut guard = self.lock();
        let book = self.state(&mut guard);
        let files = book.history.versions_at(prompt)?;
        let deadline = clock::monotonic() + DIFF_TIMEOUT;
        let mut rewound = RewindReport::default();
        for past in &files {
            if is_behind_symlink(&past.real_path) {
                rewound.skipped_links += 1;
                continue;
            }
            match self.restore_file(past, wish, deadline, &mut rewound) {
                Ok(()) => {}
                Err(why) => rewound.failures.push(format!("{}: {why}", past.path.display())),
            }
            book.last_seen.remove(&past.real_path);
        }
        if wish == RewindMode::Restore {
            files.iter().for_each(remove_created_dirs);
        }
        Some(rewound)
    }

    /// Restores one file. The error is a reason for the user.
    fn restore_file(
        &self,
        past: &FileVersion,
        wish: RewindMode,
        deadline: Instant,
        rewound: &mut RewindReport,
    ) -> Result<(), String> {
        let place = &past.real_path;
        let found =
            match files::file_kind(place).map_err(|error| format!("it cannot be looked at: {error}"))? {
                FileKind::Missing => None,
                FileKind::File(stamp) => Some(stamp),
                FileKind::Directory | FileKind::Pipe | FileKind::Socket | FileKind::Device => {
                    return Err("something that is no file stands there now. Move it away".into());
                }
            };
        // A file too large to compare cannot equal a saved one, so it counts as changed.
        let now = found.and_then(|_| files::read(place, blobs::MAX_FILE_SIZE).ok()).map(|(bytes, _)| bytes);
        let step = self.plan_restore(&past.state, found, now.as_deref())?;
        if wish == RewindMode::Restore {
            apply_step(&step, place).map_err(|error| format!("it cannot be written: {error}"))?;
        }
        let then = match &step {
            RestoreStep::Nothing => return Ok(()),
            RestoreStep::Remove => &[],
            RestoreStep::Create { bytes, .. } | RestoreStep::Replace { bytes } => bytes.as_slice(),
        };
        let (insertions, deletions) = count_changed_lines(now.as_deref().unwrap_or_default(), then, deadline);
        rewound.insertions += insertions;
        rewound.deletions += deletions;
        rewound.changed.push(past.path.clone());
        Ok(())
    }

    /// Decides how to get from the current to the recorded state.
    fn plan_restore(
        &self,
        then: &FileState,
        found: Option<FileStamp>,
        now: Option<&[u8]>,
    ) -> Result<RestoreStep, String> {
        Ok(match (then, found) {
            (FileState::Missing { .. }, None) => RestoreStep::Nothing,
            (FileState::Missing { .. }, Some(_)) => RestoreStep::Remove,
            (FileState::NotKept { size, modified, .. }, Some(stamp))
                if (*size, *modified) == (stamp.size, modified_nanos(stamp)) =>
            {
                RestoreStep::Nothing
            }
            (FileState::NotKept { why, .. }, _) => return Err(format!("no copy was kept: {why}")),
            (FileState::Kept { hash, mode, .. }, found) => {
                if now.is_some_and(|now| blake3::hash(now).to_hex().as_str() == hash) {
                    return Ok(RestoreStep::Nothing);
                }
                let bytes = blobs::read_blob(&self.dir, hash)
                    .map_err(|error| format!("its copy cannot be read: {error}"))?;
                match found {
                    Some(_) => RestoreStep::Replace { bytes },
                    None => RestoreStep::Create { bytes, mode: *mode },
                }
            }
        })
    }
}

/// Checks for a symlink at the path or above it: the file behind it is not the one that was changed.
fn is_behind_symlink(place: &Path) -> bool {
    files::link_target(place).is_some() || paths::resolve_links(place) != place
}

/// Removes the directories created for a file that is gone, if they are empty. Runs last, because files created later
/// may have been in them.
fn remove_created_dirs(past: &FileVersion) {
    if let FileState::Missing { above: Some(above) } = &past.state
        && matches!(files::file_kind(&past.real_path), Ok(FileKind::Missing))
        && !is_behind_symlink(&past.real_path)
    {
        files::remove_empty_dirs(&past.real_path, above);
    }
}

fn apply_step(step: &RestoreStep, place: &Path) -> std::io::Result<()> {
    match step {
        RestoreStep::Nothing => Ok(()),
        RestoreStep::Remove => files::remove_file(place),
        RestoreStep::Create { bytes, mode } => files::create_with_mode(place, bytes, *mode).map(drop),
        RestoreStep::Replace { bytes } => files::FileHandle::for_real_path(place)?.replace(bytes).map(drop),
    }
}

/// Counts inserted and deleted lines.
fn count_changed_lines(from: &[u8], to: &[u8], deadline: Instant) -> (usize, usize) {
    let lines = |bytes| <[u8]>::split_inclusive(bytes, |byte| *byte == b'\n').collect::<Vec<_>>();
    let (from, to) = (lines(from), lines(to));
    let changes = text_diff::diff_ops(&from, &to, deadline);
    let changes = changes.iter().filter(|change| change.tag() != DiffTag::Equal);
    changes.fold((0, 0), |(came, went), change| {
        (came + change.new_range().len(), went + change.old_range().len())
    })
}
