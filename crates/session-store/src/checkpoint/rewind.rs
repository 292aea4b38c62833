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
    /// Restores the files to their state at a prompt; `None` for an unknown prompt.
    pub fn rewind(&self, prompt: &str, mode: RewindMode) -> Option<RewindReport> {
        let mut guard = self.lock();
        let state = self.state(&mut guard);
        let files = state.history.versions_at(prompt)?;
        let deadline = clock::monotonic() + DIFF_TIMEOUT;
        let mut report = RewindReport::default();
        for version in &files {
            if is_behind_symlink(&version.real_path) {
                report.skipped_links += 1;
                continue;
            }
            match self.restore_file(version, mode, deadline, &mut report) {
                Ok(()) => {}
                Err(reason) => report.failures.push(format!("{}: {reason}", version.path.display())),
            }
            state.last_seen.remove(&version.real_path);
        }
        if mode == RewindMode::Restore {
            files.iter().for_each(remove_created_dirs);
        }
        Some(report)
    }

    /// Restores one file. The error is a reason for the user.
    fn restore_file(
        &self,
        version: &FileVersion,
        mode: RewindMode,
        deadline: Instant,
        report: &mut RewindReport,
    ) -> Result<(), String> {
        let real_path = &version.real_path;
        let found = match files::file_kind(real_path)
            .map_err(|error| format!("its metadata cannot be read: {error}"))?
        {
            FileKind::Missing => None,
            FileKind::File(stamp) => Some(stamp),
            FileKind::Directory | FileKind::Pipe | FileKind::Socket | FileKind::Device => {
                return Err("it is not a regular file now. Move it away".into());
            }
        };
        // A file too large to compare cannot equal a saved one, so it counts as changed.
        let now =
            found.and_then(|_| files::read(real_path, blobs::MAX_FILE_SIZE).ok()).map(|(bytes, _)| bytes);
        let step = self.plan_restore(&version.state, found, now.as_deref())?;
        if mode == RewindMode::Restore {
            apply_step(&step, real_path).map_err(|error| format!("it cannot be written: {error}"))?;
        }
        let then = match &step {
            RestoreStep::Nothing => return Ok(()),
            RestoreStep::Remove => &[],
            RestoreStep::Create { bytes, .. } | RestoreStep::Replace { bytes } => bytes.as_slice(),
        };
        let (insertions, deletions) = count_changed_lines(now.as_deref().unwrap_or_default(), then, deadline);
        report.insertions += insertions;
        report.deletions += deletions;
        report.changed.push(version.path.clone());
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
            (FileState::NotSaved { size, modified, .. }, Some(stamp))
                if (*size, *modified) == (stamp.size, modified_nanos(stamp)) =>
            {
                RestoreStep::Nothing
            }
            (FileState::NotSaved { reason, .. }, _) => return Err(format!("it was not saved: {reason}")),
            (FileState::Saved { hash, mode, .. }, found) => {
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
fn is_behind_symlink(real_path: &Path) -> bool {
    files::link_target(real_path).is_some() || paths::resolve_links(real_path) != real_path
}

/// Removes the directories created for a file that is gone, if they are empty. Runs last, because files created later
/// may have been in them.
fn remove_created_dirs(version: &FileVersion) {
    if let FileState::Missing { existing_ancestor: Some(above) } = &version.state
        && matches!(files::file_kind(&version.real_path), Ok(FileKind::Missing))
        && !is_behind_symlink(&version.real_path)
    {
        files::remove_empty_dirs(&version.real_path, above);
    }
}

fn apply_step(step: &RestoreStep, real_path: &Path) -> std::io::Result<()> {
    match step {
        RestoreStep::Nothing => Ok(()),
        RestoreStep::Remove => files::remove_file(real_path),
        RestoreStep::Create { bytes, mode } => files::create_with_mode(real_path, bytes, *mode).map(drop),
        RestoreStep::Replace { bytes } => {
            files::FileHandle::for_real_path(real_path)?.replace(bytes).map(drop)
        }
    }
}

/// Counts inserted and deleted lines.
fn count_changed_lines(from: &[u8], to: &[u8], deadline: Instant) -> (usize, usize) {
    let lines = |bytes| <[u8]>::split_inclusive(bytes, |byte| *byte == b'\n').collect::<Vec<_>>();
    let (from, to) = (lines(from), lines(to));
    let changes = text_diff::diff_ops(&from, &to, deadline);
    let changes = changes.iter().filter(|change| change.tag() != DiffTag::Equal);
    changes.fold((0, 0), |(insertions, deletions), change| {
        (insertions + change.new_range().len(), deletions + change.old_range().len())
    })
}
