//! The wire over stdin and stdout: one thread reads lines, one writes them, one detects a closed stdout. Notes for the
//! user go to stderr.
//!
//! The threads block; the engine between them does not. The reader is not joined at the end, because it may block in a
//! read for ever: the program calls `exit` once the writer has written everything.

mod hangup;
mod line_reader;
mod reader;
mod stderr;
mod writer;

use std::io::{self, Write};
use std::thread::{Builder, JoinHandle};

use tokio::sync::mpsc;
use whimbrel_transport::link;
use whimbrel_wire::Frame;

use crate::exit::Shutdown;
pub(crate) use hangup::watch_stdout;
pub(crate) use reader::MalformedLinePolicy;
pub(crate) use stderr::{print_line, print_note};

/// Starts a thread that reads frames from stdin for the engine until the input ends.
pub(crate) fn spawn_reader(
    sender: mpsc::Sender<link::IncomingFrame>,
    on_malformed: MalformedLinePolicy,
    cut: Shutdown,
) -> io::Result<()> {
    let read = move || {
        reader::read_frames(io::stdin().lock(), &sender, on_malformed, &cut);
    };
    Builder::new().name("stdin".into()).spawn(read).map(drop)
}

/// Starts a thread that writes the engine's frames to stdout. Join it before exiting.
pub(crate) fn spawn_writer(receiver: mpsc::Receiver<Frame>, cut: Shutdown) -> io::Result<JoinHandle<()>> {
    Builder::new()
        .name("stdout".into())
        .spawn(move || writer::write_frames(receiver, io::stdout().lock(), &cut))
}

/// Prints a text. A closed pipe is not an error; any other failed write is.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
