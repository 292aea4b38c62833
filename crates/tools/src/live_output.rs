//! Live output of running commands, for a host that has subscribed. The text of a command waits in a bounded buffer and
//! is sent in batches. Neither the command nor the turn waits for the host: what it does not read in time is left out
//! and counted.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use whimbrel_os::ids;
use whimbrel_process::{OutputObserver, PlainTextDecoder};
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::Frame;
use whimbrel_wire::message::{ToolOutputChunk, ToolProgress};

/// Time in which output is collected for one frame. It doubles while the host does not read, up to the maximum.
const BATCH_INTERVAL: Duration = Duration::from_millis(40);
const MAX_BATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Text of one command that waits to be sent, and thus the longest text of a frame.
const MAX_PENDING_BYTES: usize = 32 * 1024;

/// Number of unread frames above which output waits, so that it never fills the channel that turns use, too.
const MAX_UNREAD_FRAMES: usize = 8;

/// The subscription of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LiveOutput(Arc<Subscription>);

#[derive(Debug)]
struct Subscription {
    /// Number of changes so far: even while there is no subscription, odd while there is one.
    changes: AtomicU64,
    frame_sender: FrameSender,
}

/// The call that started a command, and its agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputSource {
    pub(crate) tool_use_id: String,
    pub(crate) task_id: Option<String>,
    pub(crate) parent_tool_use_id: Option<String>,
    pub(crate) agent_id: Option<String>,
}

/// Output of one command. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct LiveStream(Arc<StreamState>);

#[derive(Debug)]
struct StreamState {
    subscription: Arc<Subscription>,
    buffer: Mutex<StreamBuffer>,
}

#[derive(Debug, Default)]
struct StreamBuffer {
    source: OutputSource,
    /// The subscription that the buffered text is for.
    changes: u64,
    decoder: PlainTextDecoder,
    pending: String,
    /// Bytes left out before `pending`.
    omitted_bytes: u64,
    /// Whether a task sends the pending text.
    has_sender: bool,
}

/// Passes the output of a command on. When it is dropped, the remaining text is sent and nothing follows.
#[derive(Debug)]
struct StreamObserver(LiveStream);

/// Result of an attempt to send.
enum Flush {
    NothingPending,
    Sent,
    /// The host has to read first.
    Waiting,
}

impl LiveOutput {
    /// Output that is sent over `frame_sender`, once there is a subscription.
    pub fn new(frame_sender: FrameSender) -> Self {
        Self(Arc::new(Subscription { changes: AtomicU64::new(0), frame_sender }))
    }

    /// Begins the subscription. Output of running commands is sent from now on.
    pub fn subscribe(&self) {
        self.0.changes.fetch_or(1, Ordering::Relaxed);
    }

    /// Ends the subscription. Pending text is dropped.
    pub fn unsubscribe(&self) {
        // No other thread changes it: control requests are handled in order.
        let changes = self.0.changes.load(Ordering::Relaxed);
        self.0.changes.store(changes + changes % 2, Ordering::Relaxed);
    }

    /// Tells a subscribed host that a call has its permission and starts.
    pub(crate) async fn send_call_start(&self, source: OutputSource, tool: &str) {
        if self.0.current().is_none() {
            return;
        }
        let frame_sender = &self.0.frame_sender;
        let progress = ToolProgress {
            tool_use_id: source.tool_use_id,
            tool_name: tool.to_owned(),
            parent_tool_use_id: source.parent_tool_use_id,
            elapsed_time_seconds: 0.0,
            task_id: source.task_id,
            heartbeat: None,
            subagent_type: None,
            subagent_retry: None,
            progress: None,
            uuid: ids::new_uuid(),
            session_id: frame_sender.session_id().to_string(),
        };
        frame_sender.send(progress).await;
    }

    pub(crate) fn open_stream(&self, source: OutputSource) -> LiveStream {
        let buffer = StreamBuffer { source, ..StreamBuffer::default() };
        LiveStream(Arc::new(StreamState { subscription: Arc::clone(&self.0), buffer: Mutex::new(buffer) }))
    }
}

impl Subscription {
    /// Number that identifies the current subscription, if there is one.
    fn current(&self) -> Option<u64> {
        Some(self.changes.load(Ordering::Relaxed)).filter(|changes| changes % 2 == 1)
    }
}

impl LiveStream {
    /// The observer for the capture of the command's output.
    pub(crate) fn observer(&self) -> impl OutputObserver + use<> {
        StreamObserver(self.clone())
    }

    /// Attributes further output to a background task.
    pub(crate) fn set_task(&self, task_id: &str) {
        self.buffer().source.task_id = Some(task_id.to_owned());
    }

    /// Returns whether the host has subscribed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.subscription.current().is_some()
    }

    /// Counts output that is not passed on, and drops what was before it.
    pub(crate) fn omit(&self, bytes: u64) {
        let mut buffer = self.buffer();
        let dropped = mem::take(&mut buffer.pending).len() as u64;
        buffer.decoder = PlainTextDecoder::default();
        buffer.omitted_bytes += dropped + bytes;
    }

    /// The buffer is valid after each statement, so a poisoned lock holds valid data.
    fn buffer(&self) -> MutexGuard<'_, StreamBuffer> {
        self.0.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the pending text unless the host has more than `max_unread` frames to read. The lock is held meanwhile, so
    /// that nothing is sent after the last flush.
    fn flush(&self, buffer: &mut StreamBuffer, max_unread: usize) -> Flush {
        if self.0.subscription.current() != Some(buffer.changes) {
            buffer.clear();
        }
        if buffer.pending.is_empty() {
            return Flush::NothingPending;
        }
        let frame_sender = &self.0.subscription.frame_sender;
        match frame_sender.send_if_read(max_unread, || buffer.take_frame(&frame_sender.session_id())) {
            true => Flush::Sent,
            false => Flush::Waiting,
        }
    }
}

impl StreamBuffer {
    fn clear(&mut self) {
        self.decoder = PlainTextDecoder::default();
        self.pending.clear();
        self.omitted_bytes = 0;
    }

    /// Adds output of a subscription.
    fn push(&mut self, mut bytes: &[u8], changes: u64) {
        if self.changes != changes {
            self.clear();
            self.changes = changes;
            // A command that already ran may have printed the first part of a character.
            let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
            bytes = &bytes[bytes.iter().take_while(is_continuation).count()..];
        }
        self.decoder.push(bytes, &mut self.pending);
        self.drop_excess();
    }

    /// Leaves out the oldest text beyond the limit.
    fn drop_excess(&mut self) {
        let excess = self.pending.len().saturating_sub(MAX_PENDING_BYTES);
        let excess = self.pending.ceil_char_boundary(excess);
        self.pending.drain(..excess);
        self.omitted_bytes += excess as u64;
    }

    fn take_frame(&mut self, session_id: &str) -> Frame {
        let OutputSource { tool_use_id, task_id, parent_tool_use_id, agent_id } = self.source.clone();
        let (text, omitted_bytes) = (mem::take(&mut self.pending), mem::take(&mut self.omitted_bytes));
        let (uuid, session_id) = (ids::new_uuid(), session_id.to_owned());
        Frame::from(ToolOutputChunk {
            tool_use_id,
            task_id,
            parent_tool_use_id,
            agent_id,
            text,
            omitted_bytes,
            uuid,
            session_id,
        })
    }
}

impl OutputObserver for StreamObserver {
    fn observe(&mut self, bytes: &[u8]) {
        let Some(changes) = self.0.0.subscription.current() else { return };
        let mut buffer = self.0.buffer();
        buffer.push(bytes, changes);
        if !buffer.pending.is_empty() && !buffer.has_sender {
            buffer.has_sender = true;
            tokio::spawn(send_pending(Arc::downgrade(&self.0.0)));
        }
    }
}

impl Drop for StreamObserver {
    fn drop(&mut self) {
        let mut buffer = self.0.buffer();
        let decoder = mem::take(&mut buffer.decoder);
        decoder.finish(&mut buffer.pending);
        // Waiting would hold up the result, which has this text, too.
        self.0.flush(&mut buffer, usize::MAX);
        buffer.clear();
    }
}

/// Sends the text of a stream in batches until nothing is pending or the stream is gone.
async fn send_pending(stream: Weak<StreamState>) {
    let mut interval = BATCH_INTERVAL;
    loop {
        tokio::time::sleep(interval).await;
        let Some(stream) = stream.upgrade().map(LiveStream) else { return };
        let mut buffer = stream.buffer();
        interval = match stream.flush(&mut buffer, MAX_UNREAD_FRAMES) {
            Flush::NothingPending => {
                buffer.has_sender = false;
                return;
            }
            Flush::Sent => BATCH_INTERVAL,
            Flush::Waiting => (interval * 2).min(MAX_BATCH_INTERVAL),
        };
    }
}

#[cfg(test)]
mod tests;
