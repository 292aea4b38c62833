use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel_wire::notice::KeepAlive;

use super::*;

const CHANNEL_CAPACITY: usize = 32;
const LONG: Duration = Duration::from_secs(3600);

struct TestHost {
    live_output: LiveOutput,
    frame_sender: FrameSender,
    frames: mpsc::Receiver<Frame>,
}

impl TestHost {
    fn new() -> Self {
        let (sender, frames) = mpsc::channel(CHANNEL_CAPACITY);
        let frame_sender = FrameSender::new("session".into(), sender, CancellationToken::new());
        Self { live_output: LiveOutput::new(frame_sender.clone()), frame_sender, frames }
    }

    fn subscribed() -> Self {
        let host = Self::new();
        host.live_output.subscribe();
        host
    }

    fn open_stream(&self) -> LiveStream {
        self.live_output.open_stream(OutputSource { tool_use_id: "call".into(), ..OutputSource::default() })
    }

    /// The frames that are there after this time.
    async fn chunks_after(&mut self, time: Duration) -> Vec<ToolOutputChunk> {
        tokio::time::sleep(time).await;
        let frames = std::iter::from_fn(|| self.frames.try_recv().ok());
        let chunks = frames.filter_map(|frame| match frame {
            Frame::ToolOutput(chunk) => Some(*chunk),
            _ => None,
        });
        chunks.collect()
    }

    /// The same as text, each with the number of bytes left out before it.
    async fn texts_after(&mut self, time: Duration) -> Vec<(u64, String)> {
        let chunks = self.chunks_after(time).await.into_iter();
        chunks.map(|chunk| (chunk.omitted_bytes, chunk.text)).collect()
    }
}

fn whole(text: &str) -> (u64, String) {
    (0, text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn output_is_collected_and_sent_in_order() {
    let mut host = TestHost::subscribed();
    let mut observer = host.open_stream().observer();
    for piece in ["one ", "two ", "three\n"] {
        observer.observe(piece.as_bytes());
    }
    assert!(host.chunks_after(BATCH_INTERVAL / 2).await.is_empty());
    let chunks = host.chunks_after(BATCH_INTERVAL).await;
    let uuid = chunks[0].uuid.clone();
    let (tool_use_id, session_id) = ("call".to_owned(), "session".to_owned());
    let text = "one two three\n".to_owned();
    let expected = ToolOutputChunk { tool_use_id, text, uuid, session_id, ..ToolOutputChunk::default() };
    assert_eq!(chunks, [expected]);
    observer.observe(b"four\n");
    assert_eq!(host.texts_after(2 * BATCH_INTERVAL).await, [whole("four\n")]);
    assert!(host.chunks_after(LONG).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn output_is_sent_only_during_a_subscription() {
    let mut host = TestHost::new();
    let mut observer = host.open_stream().observer();
    observer.observe(b"before");
    assert!(host.chunks_after(LONG).await.is_empty());
    host.live_output.subscribe();
    host.live_output.subscribe();
    observer.observe(b"during");
    assert_eq!(host.texts_after(LONG).await, [whole("during")]);
    observer.observe(b"pending");
    host.live_output.unsubscribe();
    observer.observe(b"after");
    host.live_output.unsubscribe();
    assert!(host.chunks_after(LONG).await.is_empty());
    host.live_output.subscribe();
    observer.observe(b"again");
    assert_eq!(host.texts_after(LONG).await, [whole("again")]);
    host.live_output.unsubscribe();
    drop(observer);
    assert!(host.chunks_after(LONG).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn characters_and_escape_sequences_are_put_together() {
    let mut host = TestHost::subscribed();
    let mut observer = host.open_stream().observer();
    for byte in "grün \x1b[31m漢字\x1b[0m".as_bytes() {
        observer.observe(&[*byte]);
    }
    assert_eq!(host.texts_after(LONG).await, [whole("grün 漢字")]);
    observer.observe(&[0xe6]);
    assert!(host.chunks_after(LONG).await.is_empty());
    observer.observe(&[0xbc, 0xa2, 0xe6]);
    assert_eq!(host.texts_after(LONG).await, [whole("漢")]);
    drop(observer);
    assert_eq!(host.texts_after(LONG).await, [whole("\u{fffd}")]);
}

#[tokio::test(start_paused = true)]
async fn a_late_subscription_begins_with_a_whole_character() {
    let mut host = TestHost::new();
    let mut observer = host.open_stream().observer();
    observer.observe(&"漢".as_bytes()[..1]);
    host.live_output.subscribe();
    observer.observe(&"漢字".as_bytes()[1..]);
    assert_eq!(host.texts_after(LONG).await, [whole("字")]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_keeps_the_newest_text_and_counts_the_rest() {
    let mut host = TestHost::subscribed();
    let stream = host.open_stream();
    let mut observer = stream.observer();
    let piece = "ü".repeat(50);
    for _ in 0..10_000 {
        observer.observe(piece.as_bytes());
    }
    observer.observe(b"end");
    let capacity = stream.buffer().pending.capacity();
    assert!(capacity <= 4 * MAX_PENDING_BYTES, "{capacity}");
    let chunks = host.texts_after(LONG).await;
    let [(omitted_bytes, text)] = &chunks[..] else { panic!("{} frames", chunks.len()) };
    assert!(text.len() <= MAX_PENDING_BYTES && text.len() > MAX_PENDING_BYTES - 4, "{}", text.len());
    assert!(text.starts_with('ü') && text.ends_with("üend"));
    assert_eq!(omitted_bytes + text.len() as u64, 1_000_003);
}

#[tokio::test(start_paused = true)]
async fn a_slow_host_always_has_room_for_other_frames() {
    let mut host = TestHost::subscribed();
    let mut observers: Vec<_> = (0..4).map(|_| host.open_stream().observer()).collect();
    let mut printed = 0;
    for _ in 0..100 {
        for observer in &mut observers {
            observer.observe(&[b'x'; 1000]);
            printed += 1000;
        }
        tokio::time::sleep(BATCH_INTERVAL).await;
    }
    assert_eq!(host.frames.len(), MAX_UNREAD_FRAMES + 1);
    for _ in host.frames.len()..CHANNEL_CAPACITY {
        host.frame_sender.try_send(KeepAlive::default());
    }
    assert_eq!(host.frames.len(), CHANNEL_CAPACITY, "other frames are not held up");
    let mut received = 0;
    for _ in 0..2 {
        for (omitted_bytes, text) in host.texts_after(LONG).await {
            received += omitted_bytes + text.len() as u64;
        }
    }
    assert_eq!(received, printed);
}

#[tokio::test(start_paused = true)]
async fn the_end_is_sent_at_once_and_nothing_follows() {
    let mut host = TestHost::subscribed();
    let mut observer = host.open_stream().observer();
    observer.observe(b"last");
    for _ in 0..2 * MAX_UNREAD_FRAMES {
        host.frame_sender.try_send(KeepAlive::default());
    }
    drop(observer);
    assert_eq!(host.texts_after(Duration::ZERO).await, [whole("last")]);
    let mut observer = host.open_stream().observer();
    observer.observe(b"lost");
    for _ in 0..CHANNEL_CAPACITY {
        host.frame_sender.try_send(KeepAlive::default());
    }
    drop(observer);
    for _ in 0..2 {
        assert!(host.chunks_after(LONG).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn output_names_its_background_task() {
    let mut host = TestHost::subscribed();
    let stream = host.open_stream();
    let mut observer = stream.observer();
    observer.observe(b"one");
    let before = host.chunks_after(LONG).await;
    stream.set_task("b1");
    observer.observe(b"two");
    let after = host.chunks_after(LONG).await;
    let tasks: Vec<_> = before.iter().chain(&after).map(|chunk| chunk.task_id.as_deref()).collect();
    assert_eq!(tasks, [None, Some("b1")]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_output_starts_no_work() {
    let host = TestHost::subscribed();
    let mut observer = host.open_stream().observer();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks(), 0);
    observer.observe(b"text");
    assert_eq!(tasks(), 1);
    tokio::time::sleep(3 * BATCH_INTERVAL).await;
    assert_eq!(tasks(), 0);
}
