//! Notices when nobody reads stdout any more. The next write would fail, but a turn that waits for its model or a command
//! has nothing to write.

use std::io;
use std::os::fd::AsFd;
use std::thread::Builder;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::exit::{Shutdown, AbortReason};

/// Stops everything as soon as the reader of stdout is gone, from a thread of its own.
pub(crate) fn watch_stdout(cut: Shutdown) -> io::Result<()> {
    let watch = move || {
        if wait_for_hangup(&io::stdout()).is_ok() {
            cut.trigger(AbortReason::HostDisconnected);
        }
    };
    Builder::new().name("reader".into()).spawn(watch).map(drop)
}

/// Waits until nobody is at the other end. That is told without being asked for; so nothing is asked for, and a file, which
/// has no other end, is waited for until the program ends.
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
    fn the_end_of_a_reader_is_noticed_whatever_it_reads_from() {
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
