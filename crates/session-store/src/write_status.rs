//! Tracks whether a transcript can be written, and the notices about that for the host.

use std::io;

/// Write status of a transcript. The first failure and the recovery each produce one notice.
#[derive(Debug, Default)]
pub(super) struct WriteStatus {
    failing: bool,
    notice: Option<TranscriptNotice>,
    lock_warning: LockWarning,
}

#[derive(Debug, Default)]
enum LockWarning {
    #[default]
    Locked,
    /// Not locked, and not reported yet.
    Unreported(io::Error),
    /// Not locked, reported.
    Reported,
}

/// A change of a transcript's write status, for the host.
#[derive(Debug)]
pub enum TranscriptNotice {
    /// The transcript cannot be written.
    WriteFailed(io::Error),
    /// Another process had removed or replaced the transcript; it was written again.
    Rewritten,
    /// The transcript cannot be locked, so other processes may write to it.
    Unlocked(io::Error),
    /// Writing works again; no line is missing.
    Recovered,
    /// Writing works again, but this number of lines was dropped.
    RecoveredWithGap(usize),
    /// Another engine has continued the session; nothing more is written.
    Conflict,
}

impl WriteStatus {
    /// Records the result of a write and the number of lines dropped since the last success.
    pub(super) fn record_write(&mut self, written: &io::Result<()>, dropped: usize) {
        match (written, self.failing) {
            (Err(error), false) => {
                self.failing = true;
                self.notice = Some(TranscriptNotice::WriteFailed(clone_error(error)));
            }
            (Ok(()), true) => {
                self.failing = false;
                self.notice = match (dropped, &self.notice) {
                    (0, None) => Some(TranscriptNotice::Recovered),
                    // If the failure was not reported yet, neither is the recovery.
                    (0, Some(_)) => None,
                    (count, _) => Some(TranscriptNotice::RecoveredWithGap(count)),
                };
            }
            (Err(_), true) | (Ok(()), false) => {}
        }
    }

    /// Records that a removed or replaced file was written again.
    pub(super) fn record_rewrite(&mut self) {
        self.failing = false;
        self.notice = Some(TranscriptNotice::Rewritten);
    }

    /// Records that another engine has continued the session.
    pub(super) fn record_conflict(&mut self) {
        self.notice = Some(TranscriptNotice::Conflict);
    }

    /// Records a loss that is reported even if a failure was reported before.
    pub(super) fn record_loss(&mut self, error: io::Error) {
        self.failing = true;
        self.notice = Some(TranscriptNotice::WriteFailed(error));
    }

    /// Records that the transcript cannot be locked; reported once.
    pub(super) fn record_unlocked(&mut self, error: io::Error) {
        if matches!(self.lock_warning, LockWarning::Locked) {
            self.lock_warning = LockWarning::Unreported(error);
        }
    }

    pub(super) fn take_notice(&mut self) -> Option<TranscriptNotice> {
        if let Some(notice) = self.notice.take() {
            return Some(notice);
        }
        match std::mem::take(&mut self.lock_warning) {
            LockWarning::Locked => None,
            LockWarning::Unreported(error) => {
                self.lock_warning = LockWarning::Reported;
                Some(TranscriptNotice::Unlocked(error))
            }
            LockWarning::Reported => {
                self.lock_warning = LockWarning::Reported;
                None
            }
        }
    }
}

/// Copies an error; `io::Error` is not `Clone`.
fn clone_error(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
