//! Writes the engine's frames as lines to stdout, and detects that stdout is no longer read. A write would detect it,
//! too, but a turn that waits for its model or a command writes nothing.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread::Builder;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;
use whimbrel_wire::Frame;
use whimbrel_wire::codec::encode;

use crate::shutdown::{AbortReason, Shutdown};

/// Bytes written at once, unless a single frame is larger.
const BATCH_SIZE: usize = 64 * 1024;

/// Writes all frames, queued ones in one batch, and flushes whenever none is queued. A failed write means that the host
/// is gone: then everything stops.
pub(super) fn write_frames(mut engine: mpsc::Receiver<Frame>, mut out: impl Write, shutdown: &Shutdown) {
    let mut batch = Vec::with_capacity(4096);
    while let Some(frame) = engine.blocking_recv() {
        encode(&frame, &mut batch);
        while batch.len() < BATCH_SIZE
            && let Ok(frame) = engine.try_recv()
        {
            encode(&frame, &mut batch);
        }
        if out.write_all(&batch).and_then(|()| out.flush()).is_err() {
            return shutdown.trigger(AbortReason::HostDisconnected);
        }
        batch.clear();
        batch.shrink_to(BATCH_SIZE);
    }
}

/// Stops everything as soon as the reader of stdout is gone, from a thread of its own.
pub(crate) fn watch_stdout(shutdown: Shutdown) -> io::Result<()> {
    let watch = move || {
        if wait_for_hangup(&io::stdout()).is_ok() {
            shutdown.trigger(AbortReason::HostDisconnected);
        }
    };
    Builder::new().name("reader".into()).spawn(watch).map(drop)
}

/// Waits until the other end is closed. `poll` reports that without a requested event, so none is requested. For a
/// file, which has no other end, it blocks until the program ends.
fn wait_for_hangup(output: &impl AsFd) -> io::Result<()> {
    let mut watched = [PollFd::new(output, PollFlags::empty())];
    loop {
        match poll(&mut watched, None) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

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
        let shutdown = Shutdown::default();
        write_frames(queued_frames(3), &mut Sink { broken: true, ..Sink::default() }, &shutdown);
        assert_eq!(shutdown.reason(), Some(AbortReason::HostDisconnected));
        assert!(shutdown.token().is_cancelled());
    }

    #[test]
    fn closed_reader_is_detected_on_pipes_and_sockets() {
        let (pipe_reader, pipe) = io::pipe().unwrap();
        let (socket_reader, socket) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            let pipe = scope.spawn(|| wait_for_hangup(&pipe));
            let socket = scope.spawn(|| wait_for_hangup(&socket));
            drop((pipe_reader, socket_reader));
            pipe.join().unwrap().unwrap();
            socket.join().unwrap().unwrap();
        });
    }
}
