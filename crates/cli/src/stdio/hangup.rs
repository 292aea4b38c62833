//! Detects that stdout is no longer read. The next write would fail, but a turn that waits for its model or a command
//! writes nothing.

use std::io;
use std::os::fd::AsFd;
use std::thread::Builder;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::exit::{AbortReason, Shutdown};

/// Stops everything as soon as the reader of stdout is gone, from a thread of its own.
pub(crate) fn watch_stdout(cut: Shutdown) -> io::Result<()> {
    let watch = move || {
        if wait_for_hangup(&io::stdout()).is_ok() {
            cut.trigger(AbortReason::HostDisconnected);
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

    use super::*;

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
