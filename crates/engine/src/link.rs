//! A transport is a pair of channels. Stdio, a Rust caller and a web socket differ only in who holds the other end.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::{Frame, WireError};

/// How many frames may wait in one direction. A slow reader slows the sender down; nothing is dropped.
const DEPTH: usize = 128;

/// The engine's end.
#[derive(Debug)]
pub struct Link {
    /// What the host says. Closed means: the input is finished. That is not a reason to stop.
    pub incoming: mpsc::Receiver<Result<Frame, WireError>>,
    /// What the engine says. Closed means: the host is gone.
    pub outgoing: mpsc::Sender<Frame>,
    /// Fires when everything is to stop now.
    pub stop: CancellationToken,
}

/// The host's end.
#[derive(Debug)]
pub struct HostEnd {
    /// Lines for the engine: frames, or what could not be read as one. Drop it to finish the input.
    pub sender: mpsc::Sender<Result<Frame, WireError>>,
    /// Frames of the engine. It ends when the run has ended.
    pub receiver: mpsc::Receiver<Frame>,
    /// Fire it to stop everything now.
    pub stop: CancellationToken,
}

/// Makes both ends.
pub fn pair() -> (Link, HostEnd) {
    let (sender, incoming) = mpsc::channel(DEPTH);
    let (outgoing, receiver) = mpsc::channel(DEPTH);
    let stop = CancellationToken::new();
    (Link { incoming, outgoing, stop: stop.clone() }, HostEnd { sender, receiver, stop })
}
