//! The pipe for output of a command, and the drain window after its exit.

use std::io::{self, PipeWriter};
use std::time::{Duration, Instant};

use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;
use whimbrel_os::clock;

/// Read sizes: small at first, because most commands print little.
const FIRST_READ_BYTES: usize = 4 * 1024;
const LARGE_READ_BYTES: usize = 64 * 1024;

/// Limits for reading on after a command has exited while another process holds its output open: in total, and without
/// new output.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_millis(50);

/// Read end of a pipe for output.
pub(super) struct OutputPipe {
    receiver: Receiver,
    /// The bytes of the last read.
    pub(super) buffer: Vec<u8>,
    /// False once the end of the output is reached.
    pub(super) is_open: bool,
}

impl OutputPipe {
    /// Creates a pipe: our read end, and the write end for the command.
    pub(super) fn create() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        let receiver = Receiver::from_owned_fd(reader.into())?;
        Ok((Self { receiver, buffer: Vec::with_capacity(FIRST_READ_BYTES), is_open: true }, writer))
    }

    /// Reads the next bytes into the buffer; returns whether there were any. Waits for data.
    pub(super) async fn fill(&mut self) -> bool {
        let was_full = self.buffer.len() == self.buffer.capacity();
        self.buffer.clear();
        if was_full {
            self.buffer.reserve_exact(LARGE_READ_BYTES);
            // Yield so that a flood of output cannot starve other tasks or the timeout.
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

    /// Reads and drops everything until the end.
    pub(super) async fn discard(mut self) {
        while self.is_open {
            self.fill().await;
        }
    }
}

/// Period after a command's exit in which its output is still read.
pub(super) struct DrainWindow {
    deadline: Instant,
}

impl DrainWindow {
    pub(super) fn start() -> Self {
        Self { deadline: clock::monotonic() + DRAIN_TIMEOUT }
    }

    /// Awaits the next read; returns whether to try another.
    pub(super) async fn wait_for_more<T>(&self, next: impl Future<Output = T>) -> bool {
        clock::monotonic() < self.deadline && timeout(DRAIN_IDLE_TIMEOUT, next).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test]
    async fn large_output_is_read_in_large_pieces() {
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

    #[tokio::test(start_paused = true)]
    async fn late_output_is_awaited_for_a_short_time() {
        let window = DrainWindow { deadline: clock::monotonic() + Duration::from_secs(3600) };
        assert!(window.wait_for_more(sleep(DRAIN_IDLE_TIMEOUT / 2)).await);
        assert!(!window.wait_for_more(sleep(DRAIN_IDLE_TIMEOUT * 2)).await);
        let over = DrainWindow { deadline: clock::monotonic() };
        assert!(!over.wait_for_more(std::future::ready(())).await);
    }
}
