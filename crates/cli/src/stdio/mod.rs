//! The wire over stdin and stdout: one thread reads lines, one writes them, one watches whether somebody reads, and notes
//! for a person go to stderr.
//!
//! The threads block; the engine between them does not. Nothing waits for the reader at the end: it may sit in a read for
//! ever, so the program leaves with `exit` once the writer has written everything.

mod hangup;
mod line_reader;
mod stderr;
mod reader;
mod writer;

use std::io::{self, Write};
use std::thread::{Builder, JoinHandle};

use tokio::sync::mpsc;
use whimbrel_engine::link;
use whimbrel_wire::Frame;

use crate::exit::Shutdown;

pub(crate) use hangup::watch_stdout;
pub(crate) use stderr::{print_line, print_note};
pub(crate) use reader::MalformedLinePolicy;

/// Reads frames from stdin for the engine until the input ends.
pub(crate) fn spawn_reader(sender: mpsc::Sender<link::IncomingFrame>, on_malformed: MalformedLinePolicy, cut: Shutdown) -> io::Result<()> {
    let read = move || {
        reader::read_frames(io::stdin().lock(), &sender, on_malformed, &cut);
    };
    Builder::new().name("stdin".into()).spawn(read).map(drop)
}

/// Writes the engine's frames to stdout until there are no more. Join it before leaving.
pub(crate) fn spawn_writer(receiver: mpsc::Receiver<Frame>, cut: Shutdown) -> io::Result<JoinHandle<()>> {
    Builder::new().name("stdout".into()).spawn(move || writer::write_frames(receiver, io::stdout().lock(), &cut))
}

/// Prints a text as it is. That nobody reads it is no reason to fail; that it could not be written is.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
