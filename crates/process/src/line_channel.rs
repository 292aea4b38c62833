//! Output lines of a command, passed on in bounded batches. Lines that the receiver is too slow for are dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::bounded_output::OutputObserver;
use crate::plain_text::to_plain_text;

/// Lines per batch, bytes per line, and delay in which a batch is collected.
pub const MAX_BATCH_LINES: usize = 50;
const MAX_LINE_BYTES: usize = 500;
const BATCH_INTERVAL: Duration = Duration::from_millis(300);

/// Splits output into lines and sends them.
#[derive(Debug)]
pub struct LineSender {
    partial: Vec<u8>,
    sender: mpsc::Sender<String>,
    dropped: Arc<AtomicUsize>,
}

/// Receives the lines in batches.
#[derive(Debug)]
pub struct LineReceiver {
    receiver: mpsc::Receiver<String>,
    dropped: Arc<AtomicUsize>,
}

/// Lines that arrived close together.
#[derive(Debug)]
pub struct LineBatch {
    pub lines: Vec<String>,
    /// Number of lines dropped since the last batch.
    pub dropped: usize,
}

pub fn line_channel() -> (LineSender, LineReceiver) {
    let (sender, receiver) = mpsc::channel(MAX_BATCH_LINES);
    let dropped = Arc::<AtomicUsize>::default();
    let lines = LineSender { partial: Vec::new(), sender, dropped: Arc::clone(&dropped) };
    (lines, LineReceiver { receiver, dropped })
}

impl OutputObserver for LineSender {
    fn observe(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = MAX_LINE_BYTES.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            if pieces.peek().is_some() {
                self.send_line();
            }
        }
    }
}

impl LineSender {
    /// Sends the line that has just ended.
    fn send_line(&mut self) {
        if self.sender.capacity() == 0 {
            // Keep dropped lines cheap: the channel is full.
            let has_text = !self.partial.trim_ascii().is_empty();
            self.partial.clear();
            self.dropped.fetch_add(usize::from(has_text), Ordering::Relaxed);
            return;
        }
        let line = to_plain_text(&std::mem::take(&mut self.partial));
        if line.trim().is_empty() {
            return;
        }
        if self.sender.try_send(line.trim_end().to_owned()).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The last line may lack a newline.
impl Drop for LineSender {
    fn drop(&mut self) {
        self.send_line();
    }
}

impl LineReceiver {
    /// Waits for a line and collects what follows within the batch interval. Returns `None` once the output has ended.
    pub async fn next_batch(&mut self) -> Option<LineBatch> {
        let first = self.receiver.recv().await?;
        tokio::time::sleep(BATCH_INTERVAL).await;
        let mut lines = vec![first];
        while let Ok(line) = self.receiver.try_recv() {
            lines.push(line);
        }
        Some(LineBatch { lines, dropped: self.dropped.swap(0, Ordering::Relaxed) })
    }
}
