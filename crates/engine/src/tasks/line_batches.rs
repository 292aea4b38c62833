//! Output lines of a monitored command, reported in bounded batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::plain_text::to_plain_text;
use super::task::TaskFacts;
use crate::internal_events::{EventSender, InternalEvent};

/// Lines per batch, bytes per line, and delay in which a batch is collected.
const MAX_BATCH_LINES: usize = 50;
const MAX_LINE_BYTES: usize = 500;
const BATCH_INTERVAL: Duration = Duration::from_millis(300);

/// Number of batches after which a monitor is stopped.
const MAX_BATCHES: usize = 300;

/// Splits output into lines and sends them.
#[derive(Debug)]
pub(super) struct LineSender {
    partial: Vec<u8>,
    sender: mpsc::Sender<String>,
    dropped: Arc<AtomicUsize>,
}

/// Receives lines and reports them.
pub(super) struct LineReporter {
    receiver: mpsc::Receiver<String>,
    dropped: Arc<AtomicUsize>,
}

pub(super) fn line_channel() -> (LineSender, LineReporter) {
    let (sender, receiver) = mpsc::channel(MAX_BATCH_LINES);
    let dropped = Arc::<AtomicUsize>::default();
    let lines = LineSender { partial: Vec::new(), sender, dropped: Arc::clone(&dropped) };
    (lines, LineReporter { receiver, dropped })
}

impl LineSender {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = MAX_LINE_BYTES.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            if pieces.peek().is_some() {
                self.send_line();
            }
        }
    }

    /// Sends the line that has just ended.
    fn send_line(&mut self) {
        if self.sender.capacity() == 0 {
            // Keep dropped lines cheap: the channel is full.
            let is_told = !self.partial.trim_ascii().is_empty();
            self.partial.clear();
            self.dropped.fetch_add(usize::from(is_told), Ordering::Relaxed);
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

impl LineReporter {
    /// Reports lines in batches until the output ends. Stops a monitor that prints too much.
    pub(super) async fn report(mut self, facts: TaskFacts, news: EventSender, stop: CancellationToken) {
        let mut batches = 0;
        while let Some(first) = self.receiver.recv().await {
            tokio::time::sleep(BATCH_INTERVAL).await;
            let mut lines = vec![first];
            while let Ok(line) = self.receiver.try_recv() {
                lines.push(line);
            }
            let left_out = self.dropped.swap(0, Ordering::Relaxed);
            if left_out > 0 {
                lines.push(format!("({left_out} more lines; all of them are in the output file)"));
            }
            batches += 1;
            if batches == MAX_BATCHES {
                lines.push("(It prints too much and is ended. Watch for less.)".into());
                stop.cancel();
            }
            // The session may be gone.
            let _ = news.send(InternalEvent::Task(Box::new(facts.output_event(&lines.join("\n")))));
            if batches == MAX_BATCHES {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::{TaskEvent, TaskKind};

    fn facts() -> TaskFacts {
        TaskFacts {
            task_id: "b1".into(),
            tool_use_id: "t".into(),
            owner: None,
            kind: TaskKind::Command,
            description: "log".into(),
            command: String::new(),
            agent_type: None,
            name: None,
            output_file: std::path::PathBuf::new(),
        }
    }

    /// Reported batches for this output.
    async fn reported(pieces: &[&[u8]]) -> Vec<String> {
        let (mut lines, teller) = line_channel();
        let (news, mut heard) = mpsc::unbounded_channel();
        pieces.iter().for_each(|piece| lines.push(piece));
        drop(lines);
        teller.report(facts(), news, CancellationToken::new()).await;
        let mut texts = Vec::new();
        while let Ok(post) = heard.try_recv() {
            let InternalEvent::Task(event) = post else { panic!("{post:?}") };
            let TaskEvent::Output { text, .. } = *event else { panic!("{event:?}") };
            texts.push(text);
        }
        texts
    }

    #[tokio::test(start_paused = true)]
    async fn lines_are_reported_whole_across_pieces() {
        assert_eq!(reported(&[b"on", b"e\n\n  \ntw", b"o\nthree"]).await, ["one\ntwo\nthree"]);
        assert!(reported(&[b"\n \n"]).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn excess_lines_are_dropped_and_counted() {
        let flood = b"x\n".repeat(100_000);
        let told = reported(&[&flood, &[b'y'; 100_000], b"\n"]).await;
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].lines().count(), MAX_BATCH_LINES + 1);
        assert!(told[0].ends_with("more lines; all of them are in the output file)"), "{}", told[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_endless_monitor_is_stopped() {
        let (mut lines, teller) = line_channel();
        let (news, mut heard) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let telling = tokio::spawn(teller.report(facts(), news, stop.clone()));
        let mut batches = 0;
        while !stop.is_cancelled() {
            lines.push(b"x\n");
            if heard.recv().await.is_some() {
                batches += 1;
            }
        }
        telling.await.unwrap();
        assert_eq!(batches, MAX_BATCHES);
    }
}
