//! Reports the output lines of a monitored command as task events.

use tokio_util::sync::CancellationToken;
use whimbrel_process::line_channel::{LineBatch, LineReceiver};

use super::TaskInfo;
use crate::internal_events::{EventSender, InternalEvent};

/// Number of batches after which a monitor is stopped.
const MAX_BATCHES: usize = 300;

/// Reports lines in batches until the output ends. Stops a monitor that prints too much.
pub(super) async fn report_lines(
    mut receiver: LineReceiver,
    info: TaskInfo,
    events: EventSender,
    stop: CancellationToken,
) {
    let mut batches = 0;
    while let Some(LineBatch { mut lines, dropped }) = receiver.next_batch().await {
        if dropped > 0 {
            lines.push(format!("({dropped} more lines are in the output file)"));
        }
        batches += 1;
        if batches == MAX_BATCHES {
            lines.push("(Stopped: too much output. Make the command print less.)".into());
            stop.cancel();
        }
        // The session may be gone.
        let _ = events.send(InternalEvent::Task(Box::new(info.output_event(&lines.join("\n")))));
        if batches == MAX_BATCHES {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::tasks::{TaskEvent, TaskKind};
    use whimbrel_process::OutputObserver;
    use whimbrel_process::line_channel::{MAX_BATCH_LINES, line_channel};

    fn info() -> TaskInfo {
        TaskInfo {
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
        let (mut lines, line_receiver) = line_channel();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        pieces.iter().for_each(|piece| lines.observe(piece));
        drop(lines);
        report_lines(line_receiver, info(), sender, CancellationToken::new()).await;
        let mut texts = Vec::new();
        while let Ok(internal_event) = receiver.try_recv() {
            let InternalEvent::Task(event) = internal_event else { panic!("{internal_event:?}") };
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
        let reports = reported(&[&flood, &[b'y'; 100_000], b"\n"]).await;
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0].lines().count(), MAX_BATCH_LINES + 1);
        assert!(reports[0].ends_with("more lines are in the output file)"), "{}", reports[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_endless_monitor_is_stopped() {
        let (mut lines, line_receiver) = line_channel();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let reporter = tokio::spawn(report_lines(line_receiver, info(), sender, stop.clone()));
        let mut batches = 0;
        while !stop.is_cancelled() {
            lines.observe(b"x\n");
            if receiver.recv().await.is_some() {
                batches += 1;
            }
        }
        reporter.await.unwrap();
        assert_eq!(batches, MAX_BATCHES);
    }
}
