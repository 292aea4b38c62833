//! Whether a transcript can be written, and what the host should know about that.

use std::io;

/// How writing goes: the first failure is news at once, and so is the end of failing.
#[derive(Debug, Default)]
pub(super) struct WriteHealth {
    failing: bool,
    notice: Option<TranscriptNotice>,
    lock_state: LockState,
}

/// Whether others are kept from writing there too.
#[derive(Debug, Default)]
enum LockState {
    #[default]
    Locked,
    /// They are not, and the host does not know.
    Unreported(io::Error),
    /// They are not, and the host has been told once.
    Reported,
}

/// What the host should know about a transcript.
#[derive(Debug)]
pub enum TranscriptNotice {
    /// It cannot be written.
    WriteFailed(io::Error),
    /// Somebody had taken it away, and it was written anew.
    Rewritten,
    /// It cannot be locked, so others may write there too.
    Unlocked(io::Error),
    /// It could not be written, and is complete again.
    Recovered,
    /// It could not be written, can be again, and lacks so many lines for good.
    RecoveredWithGap(usize),
}

impl WriteHealth {
    /// Notes how a write went, and how many lines were given up meanwhile.
    pub(super) fn record_write(&mut self, written: &io::Result<()>, given_up: usize) {
        match (written, self.failing) {
            (Err(error), false) => {
                self.failing = true;
                self.notice = Some(TranscriptNotice::WriteFailed(clone_error(error)));
            }
            (Ok(()), true) => {
                self.failing = false;
                self.notice = match (given_up, &self.notice) {
                    (0, None) => Some(TranscriptNotice::Recovered),
                    // A host that has not heard of the failure need not hear of its end.
                    (0, Some(_)) => None,
                    (count, _) => Some(TranscriptNotice::RecoveredWithGap(count)),
                };
            }
            (Err(_), true) | (Ok(()), false) => {}
        }
    }

    /// It was taken away and written anew.
    pub(super) fn record_rewrite(&mut self) {
        self.failing = false;
        self.notice = Some(TranscriptNotice::Rewritten);
    }

    /// It has become worse: the host hears of it though it knows of the failure.
    pub(super) fn record_loss(&mut self, error: io::Error) {
        self.failing = true;
        self.notice = Some(TranscriptNotice::WriteFailed(error));
    }

    /// It cannot be locked.
    pub(super) fn record_unlocked(&mut self, error: io::Error) {
        if matches!(self.lock_state, LockState::Locked) {
            self.lock_state = LockState::Unreported(error);
        }
    }

    /// What the host does not know yet.
    pub(super) fn take_notice(&mut self) -> Option<TranscriptNotice> {
        if let Some(news) = self.notice.take() {
            return Some(news);
        }
        match std::mem::take(&mut self.lock_state) {
            LockState::Locked => None,
            LockState::Unreported(error) => {
                self.lock_state = LockState::Reported;
                Some(TranscriptNotice::Unlocked(error))
            }
            LockState::Reported => {
                self.lock_state = LockState::Reported;
                None
            }
        }
    }
}

/// The same error once more.
fn clone_error(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
