//! Lines on stdin and stdout, read and written by threads of their own, because reading stdin cannot be cancelled.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::thread::Builder;

use futures::{Sink, Stream, sink, stream};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::outbox::Backlog;

/// Lines that may wait between a thread and the connection.
const MAX_WAITING_LINES: usize = 64;

/// Reads lines until the input ends or `stop` fires. Invalid UTF-8 is replaced; such a line cannot be parsed.
pub(crate) fn read_lines(
    source: impl Read + Send + 'static,
    stop: CancellationToken,
) -> io::Result<impl Stream<Item = io::Result<String>> + Send + 'static> {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_LINES);
    let read = move || {
        let mut source = BufReader::new(source);
        loop {
            let mut line = Vec::new();
            let item = match source.read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => Ok(String::from_utf8_lossy(&line).trim().to_owned()),
                Err(error) => Err(error),
            };
            let has_ended = item.is_err();
            if item.as_ref().is_ok_and(String::is_empty) {
                continue;
            }
            if sender.blocking_send(item).is_err() || has_ended {
                return;
            }
        }
    };
    Builder::new().name("stdin".into()).spawn(read)?;
    Ok(stream::unfold((receiver, stop), |(mut receiver, stop)| async move {
        let line = stop.run_until_cancelled(receiver.recv()).await.flatten()?;
        Some((line, (receiver, stop)))
    }))
}

/// Writes lines until the connection ends. The receiver is notified when all are written. Fires `stop` if the reader is gone.
pub(crate) fn write_lines(
    mut target: impl Write + Send + 'static,
    backlog: Backlog,
    stop: CancellationToken,
) -> io::Result<(impl Sink<String, Error = io::Error> + Send + 'static, oneshot::Receiver<()>)> {
    let (sender, mut receiver) = mpsc::channel::<String>(MAX_WAITING_LINES);
    let (done_sender, done) = oneshot::channel();
    let write = move || {
        while let Some(mut line) = receiver.blocking_recv() {
            line.push('\n');
            if target.write_all(line.as_bytes()).and_then(|()| target.flush()).is_err() {
                stop.cancel();
                break;
            }
            backlog.record_written(&line);
        }
        // The program may have stopped waiting.
        let _ = done_sender.send(());
    };
    Builder::new().name("stdout".into()).spawn(write)?;
    let sink = sink::unfold(sender, |sender, line: String| async move {
        sender.send(line).await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(sender)
    });
    Ok((sink, done))
}

#[cfg(test)]
mod tests {
    use futures::{SinkExt, StreamExt};

    use super::*;

    #[tokio::test]
    async fn lines_are_read_whatever_their_bytes() {
        let source: &[u8] = b"{\"a\":1}\r\n\n\xff\nlast";
        let lines = read_lines(source, CancellationToken::new()).unwrap();
        let lines: Vec<String> = lines.map(Result::unwrap).collect().await;
        assert_eq!(lines, ["{\"a\":1}", "\u{fffd}", "last"]);
    }

    #[tokio::test]
    async fn stop_ends_the_input() {
        let (source, _open) = io::pipe().unwrap();
        let stop = CancellationToken::new();
        let mut lines = Box::pin(read_lines(source, stop.clone()).unwrap());
        stop.cancel();
        assert!(lines.next().await.is_none());
    }

    #[tokio::test]
    async fn lines_are_written_and_a_closed_pipe_stops() {
        let (mut source, target) = io::pipe().unwrap();
        let (sink, done) = write_lines(target, Backlog::default(), CancellationToken::new()).unwrap();
        let mut sink = Box::pin(sink);
        sink.send("one".into()).await.unwrap();
        drop(sink);
        done.await.unwrap();
        let mut text = String::new();
        source.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\n");

        let (source, target) = io::pipe().unwrap();
        drop(source);
        let stop = CancellationToken::new();
        let (sink, _done) = write_lines(target, Backlog::default(), stop.clone()).unwrap();
        Box::pin(sink).send("lost".into()).await.unwrap();
        stop.cancelled().await;
    }
}
