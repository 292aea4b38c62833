//! The pipe that an output of a command comes in by, and how long it is read after the command has ended.

use std::io::{self, PipeWriter};
use std::time::{Duration, Instant};

use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use crate::clock;

/// How much is read at once: little at first, for most commands say little.
const FIRST_READ_BYTES: usize = 4 * 1024;
const LARGE_READ_BYTES: usize = 64 * 1024;

/// How long we wait for more output after a command has ended, if something still holds its output open: at most
/// this long, and only as long as something comes every now and then.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_millis(50);

/// Where an output of a command comes in.
pub(super) struct OutputPipe {
    receiver: Receiver,
    /// What came last.
    pub(super) buffer: Vec<u8>,
    /// Whether something can still come.
    pub(super) is_open: bool,
}

impl OutputPipe {
    /// A new pipe: our end, and the end for the command.
    pub(super) fn create() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        let receiver = Receiver::from_owned_fd(reader.into())?;
        Ok((Self { receiver, buffer: Vec::with_capacity(FIRST_READ_BYTES), is_open: true }, writer))
    }

    /// Puts the next bytes into the buffer, and says whether there were any. Waits if nothing is there.
    pub(super) async fn fill(&mut self) -> bool {
        let was_full = self.buffer.len() == self.buffer.capacity();
        self.buffer.clear();
        if was_full {
            self.buffer.reserve_exact(LARGE_READ_BYTES);
            // Whoever floods us does not keep others waiting, nor the clock that ends it.
            tokio::task::yield_now().await;
        }
        self.is_open = self.receiver.readable().await.is_ok();
        match self.receiver.try_read_buf(&mut self.buffer) {
            Ok(count) if count > 0 => return true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => self.is_open = false,
        }
        false
    }

    /// Takes what comes and drops it, until nothing more can come.
    pub(super) async fn discard(mut self) {
        while self.is_open {
            self.fill().await;
        }
    }
}

/// The time after a command's end in which its outputs are still read.
pub(super) struct DrainWindow {
    deadline: Instant,
}

impl DrainWindow {
    /// It begins now.
    pub(super) fn start() -> Self {
        Self { deadline: clock::monotonic() + DRAIN_TIMEOUT }
    }

    /// Waits for the next piece, and says whether it is worth waiting for another.
    pub(super) async fn wait_for_more<T>(&self, next: impl Future<Output = T>) -> bool {
        clock::monotonic() < self.deadline && timeout(DRAIN_IDLE_TIMEOUT, next).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn whoever_says_much_is_read_in_large_pieces() {
        let (mut pipe, mut writer) = OutputPipe::create().unwrap();
        writer.write_all(&[b'x'; 10_000]).unwrap();
        assert!(pipe.fill().await);
        assert_eq!(pipe.buffer.len(), FIRST_READ_BYTES);
        assert!(pipe.fill().await);
        assert_eq!(pipe.buffer.len(), 10_000 - FIRST_READ_BYTES);
        drop(writer);
        assert!(!pipe.fill().await);
        assert!(!pipe.is_open && pipe.buffer.capacity() <= LARGE_READ_BYTES);
    }
}
