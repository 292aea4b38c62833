//! Writes the engine's frames as lines to stdout.

use std::io::Write;

use tokio::sync::mpsc;
use whimbrel_wire::Frame;
use whimbrel_wire::codec::encode;

use crate::exit::{AbortReason, Shutdown};

/// Bytes written at once, unless a single frame is larger.
const BATCH_SIZE: usize = 64 * 1024;

/// Writes all frames, queued ones in one batch, and flushes whenever none is queued. A failed write means that the host
/// is gone: then everything stops.
pub(super) fn write_frames(mut engine: mpsc::Receiver<Frame>, mut out: impl Write, cut: &Shutdown) {
    let mut batch = Vec::with_capacity(4096);
    while let Some(frame) = engine.blocking_recv() {
        encode(&frame, &mut batch);
        while batch.len() < BATCH_SIZE
            && let Ok(frame) = engine.try_recv()
        {
            encode(&frame, &mut batch);
        }
        if out.write_all(&batch).and_then(|()| out.flush()).is_err() {
            return cut.trigger(AbortReason::HostDisconnected);
        }
        batch.clear();
        batch.shrink_to(BATCH_SIZE);
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use whimbrel_wire::notice::KeepAlive;

    use super::*;

    /// Counts its writes, or fails.
    #[derive(Default)]
    struct Sink {
        writes: Vec<usize>,
        broken: bool,
    }

    impl Write for &mut Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.broken {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.writes.push(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn queued_frames(count: usize) -> mpsc::Receiver<Frame> {
        let (sender, receiver) = mpsc::channel(count.max(1));
        for _ in 0..count {
            sender.blocking_send(KeepAlive::default().into()).unwrap();
        }
        receiver
    }

    #[test]
    fn queued_frames_are_written_in_one_batch() {
        let mut sink = Sink::default();
        write_frames(queued_frames(100), &mut sink, &Shutdown::default());
        assert_eq!(sink.writes, [100 * "{\"type\":\"keep_alive\"}\n".len()]);
    }

    #[test]
    fn failed_write_stops_everything() {
        let cut = Shutdown::default();
        write_frames(queued_frames(3), &mut Sink { broken: true, ..Sink::default() }, &cut);
        assert_eq!(cut.reason(), Some(AbortReason::HostDisconnected));
        assert!(cut.token().is_cancelled());
    }
}
