//! A transport is a pair of channels. Stdio, a Rust caller and a web socket differ only in who holds the other end.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::{Frame, WireError};

/// How many frames may wait in one direction. A slow reader slows the sender down; nothing is dropped.
const CHANNEL_CAPACITY: usize = 128;

/// A line of the host: a frame, or what could not be read as one. Room for many is set aside, and errors are rare.
pub type IncomingFrame = Result<Frame, Box<WireError>>;

/// The engine's end.
#[derive(Debug)]
pub struct Link {
    /// What the host says. Closed means: the input is finished, and nobody answers questions any more. That is not a
    /// reason to stop.
    pub incoming: mpsc::Receiver<IncomingFrame>,
    /// Fires when the input is finished, though questions can still be answered.
    pub finished: CancellationToken,
    /// What the engine says. Closed means: the host is gone.
    pub outgoing: mpsc::Sender<Frame>,
    /// Fires when everything is to stop now.
    pub stop: CancellationToken,
}

/// The host's end.
#[derive(Debug)]
pub struct HostEnd {
    /// Lines for the engine. Dropping it finishes the input too.
    pub sender: mpsc::Sender<IncomingFrame>,
    /// Fire it when no further prompt will come. Everything sent before still counts.
    pub finished: CancellationToken,
    /// Frames of the engine. It ends when the run has ended.
    pub receiver: mpsc::Receiver<Frame>,
    /// Fire it to stop everything now.
    pub stop: CancellationToken,
}

/// Makes both ends.
pub fn pair() -> (Link, HostEnd) {
    let (sender, incoming) = mpsc::channel(CHANNEL_CAPACITY);
    let (outgoing, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    let stop = CancellationToken::new();
    let finished = CancellationToken::new();
    let link = Link { incoming, outgoing, finished: finished.clone(), stop: stop.clone() };
    (link, HostEnd { sender, receiver, finished, stop })
}
