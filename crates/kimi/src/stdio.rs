//! Lines on stdin and stdout, read and written by threads of their own, because reading stdin cannot be cancelled.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::thread::Builder;

use tokio::sync::{mpsc, oneshot};

use crate::json_rpc::Outgoing;

/// Lines that may wait between a thread and the session.
const MAX_WAITING_LINES: usize = 64;

/// Longest line that is read.
const MAX_LINE_BYTES: u64 = 100 << 20;

/// Reads lines until the input ends. Invalid UTF-8 is replaced.
pub(crate) fn read_lines(source: impl Read + Send + 'static) -> io::Result<mpsc::Receiver<String>> {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_LINES);
    let read = move || {
        let mut source = BufReader::new(source);
        loop {
            let mut line = Vec::new();
            match source.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            if sender.blocking_send(text.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
                return;
            }
        }
    };
    Builder::new().name("stdin".into()).spawn(read)?;
    Ok(receiver)
}

/// The end of a thread that writes lines.
pub(crate) struct Writer {
    pub(crate) lines: mpsc::Sender<Outgoing>,
    /// Completes when everything is written, or the reader is gone.
    pub(crate) done: oneshot::Receiver<()>,
}

/// Writes lines until the sender is dropped or the reader is gone.
pub(crate) fn write_lines(mut target: impl Write + Send + 'static) -> io::Result<Writer> {
    let (lines, mut receiver) = mpsc::channel::<Outgoing>(MAX_WAITING_LINES);
    let (done_sender, done) = oneshot::channel();
    let write = move || {
        while let Some(line) = receiver.blocking_recv() {
            let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
            bytes.push(b'\n');
            if target.write_all(&bytes).and_then(|()| target.flush()).is_err() {
                break;
            }
        }
        // The program may have stopped waiting.
        let _ = done_sender.send(());
    };
    Builder::new().name("stdout".into()).spawn(write)?;
    Ok(Writer { lines, done })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn every_line_is_read() {
        let source: &[u8] = b"{\"a\":1}\r\n\n\xff\nlast";
        let mut lines = read_lines(source).unwrap();
        let mut found = Vec::new();
        while let Some(line) = lines.recv().await {
            found.push(line);
        }
        assert_eq!(found, ["{\"a\":1}", "", "\u{fffd}", "last"]);
    }

    #[tokio::test]
    async fn lines_are_written_in_order() {
        let (mut source, target) = io::pipe().unwrap();
        let Writer { lines, done } = write_lines(target).unwrap();
        for number in 0..3 {
            lines
                .send(Outgoing::Reply { id: Some(number.to_string()), result: Ok(json!({})) })
                .await
                .unwrap();
        }
        drop(lines);
        done.await.unwrap();
        let mut text = String::new();
        source.read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with(r#"{"jsonrpc":"2.0","id":"0","result":{}}"#), "{text}");
    }
}
