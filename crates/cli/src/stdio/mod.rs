//! The wire over stdin and stdout: one thread reads lines, one writes them, one detects a closed stdout. Notes for the
//! user go to stderr.
//!
//! The threads block; the engine between them does not. The reader is not joined at the end, because it may block in a
//! read for ever: the program calls `exit` once the writer has written everything.

mod reader;
mod writer;

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;
use whimbrel_transport::link;
use whimbrel_wire::Frame;

use crate::exit_code::FAILURE;
use crate::shutdown::Shutdown;
pub(crate) use reader::MalformedLinePolicy;
pub(crate) use writer::watch_stdout;

/// Bytes of a note that a pipe which is ready accepts without blocking.
const MAX_WRITE_BYTES: usize = 4096;

/// Time to wait for a slow reader of stderr; none after a lost note.
const WRITE_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

static LOST_NOTES: AtomicUsize = AtomicUsize::new(0);

/// Starts a thread that reads frames from stdin for the engine until the input ends.
pub(crate) fn spawn_reader(
    sender: mpsc::Sender<link::IncomingFrame>,
    on_malformed: MalformedLinePolicy,
    shutdown: Shutdown,
) -> io::Result<()> {
    let read = move || {
        reader::read_frames(io::stdin().lock(), &sender, on_malformed, &shutdown);
    };
    Builder::new().name("stdin".into()).spawn(read).map(drop)
}

/// Starts a thread that writes the engine's frames to stdout. Join it before exiting.
pub(crate) fn spawn_writer(
    receiver: mpsc::Receiver<Frame>,
    shutdown: Shutdown,
) -> io::Result<JoinHandle<()>> {
    Builder::new()
        .name("stdout".into())
        .spawn(move || writer::write_frames(receiver, io::stdout().lock(), &shutdown))
}

/// Prints a text. A closed pipe is not an error; any other failed write is.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints an error and returns the exit code of a failure.
pub(crate) fn report_error(text: &str) -> i32 {
    print_note(text);
    FAILURE
}

/// Prints a note with the name of the program to stderr. Notes never block for long and never fail: a slow reader
/// loses notes and sees how many.
pub(crate) fn print_note(text: &str) {
    print_line(&format!("whimbrel: {text}"));
}

/// Prints a line unchanged to stderr.
pub(crate) fn print_line(text: &str) {
    let lost = LOST_NOTES.swap(0, Ordering::Relaxed);
    let notice =
        if lost > 0 { format!("whimbrel: {lost} earlier notes were lost.\n") } else { String::new() };
    let timeout = if lost > 0 { NO_WAIT } else { WRITE_TIMEOUT };
    if write_with_timeout(format!("{notice}{text}\n").as_bytes(), &timeout).is_err() {
        LOST_NOTES.fetch_add(lost + 1, Ordering::Relaxed);
    }
}

fn write_with_timeout(text: &[u8], timeout: &Timespec) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    for chunk in text.chunks(MAX_WRITE_BYTES) {
        let ready = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(timeout))?;
        if ready == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stderr.write_all(chunk)?;
    }
    Ok(())
}
