//! Notes on stderr. They never block for long and never fail: a slow reader loses notes and sees how many.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes that a pipe which is ready accepts without blocking.
const WRITE_CHUNK: usize = 4096;

/// Time to wait for a slow reader; none after a lost note.
const WRITE_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

static LOST_NOTES: AtomicUsize = AtomicUsize::new(0);

/// Prints a note with the name of the program.
pub(crate) fn print_note(text: &str) {
    print_line(&format!("whimbrel: {text}"));
}

/// Prints a line as it is.
pub(crate) fn print_line(text: &str) {
    let missed = LOST_NOTES.swap(0, Ordering::Relaxed);
    let before = if missed > 0 {
        format!("whimbrel: {missed} notes were lost before this one.\n")
    } else {
        String::new()
    };
    let patience = if missed > 0 { NO_WAIT } else { WRITE_TIMEOUT };
    if write_with_timeout(format!("{before}{text}\n").as_bytes(), &patience).is_err() {
        LOST_NOTES.fetch_add(missed + 1, Ordering::Relaxed);
    }
}

fn write_with_timeout(text: &[u8], patience: &Timespec) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    for piece in text.chunks(WRITE_CHUNK) {
        let ready = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(patience))?;
        if ready == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stderr.write_all(piece)?;
    }
    Ok(())
}
