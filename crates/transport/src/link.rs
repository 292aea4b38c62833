//! Transport between host and engine: a pair of channels. Stdio and an in-process caller differ only in who holds
//! the host's end.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::{Frame, WireError};

/// Capacity of each channel. A slow reader slows the sender down; nothing is dropped.
const CHANNEL_CAPACITY: usize = 128;

/// A frame from the host, or the error of a line that could not be parsed. The error is boxed because channel slots
/// are preallocated and errors are rare.
pub type IncomingFrame = Result<Frame, Box<WireError>>;

#[derive(Debug)]
pub struct Link {
    /// Frames from the host. Closed means that the input is finished and no more responses arrive; the session
    /// continues.
    pub incoming: mpsc::Receiver<IncomingFrame>,
    /// Fires when the input is finished but responses may still arrive.
    pub finished: CancellationToken,
    /// Frames to the host. Closed means that the host is gone.
    pub outgoing: mpsc::Sender<Frame>,
    /// Fires when everything must stop now.
    pub stop: CancellationToken,
}

#[derive(Debug)]
pub struct HostEnd {
    /// Frames to the engine. Dropping it finishes the input too.
    pub sender: mpsc::Sender<IncomingFrame>,
    /// Fire it when no further prompt follows. Everything sent before is still handled.
    pub finished: CancellationToken,
    /// Frames from the engine. It ends when the session has ended.
    pub receiver: mpsc::Receiver<Frame>,
    /// Fire it to stop everything now.
    pub stop: CancellationToken,
}

/// Creates both ends of a link.
pub fn pair() -> (Link, HostEnd) {
    let (sender, incoming) = mpsc::channel(CHANNEL_CAPACITY);
    let (outgoing, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    let stop = CancellationToken::new();
    let finished = CancellationToken::new();
    let link = Link { incoming, outgoing, finished: finished.clone(), stop: stop.clone() };
    (link, HostEnd { sender, receiver, finished, stop })
}
