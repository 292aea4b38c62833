//! Bytes both ways between a command and a host, with a look at the name in a TLS connection.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use super::client_hello::{Hello, read_hello};
use super::target::Host;

/// Size of the buffer for each direction.
const BUFFER: usize = 64 << 10;
/// A connection without a byte for this long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_HELLO: usize = 16 << 10;

/// How a tunnel ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TunnelEnd {
    Closed,
    /// The TLS connection names another host.
    OtherServerName,
}

/// Carries bytes until both sides have finished.
pub(crate) async fn carry(
    client: impl AsyncRead + AsyncWrite + Unpin,
    server: impl AsyncRead + AsyncWrite + Unpin,
    host: &Host,
) -> io::Result<TunnelEnd> {
    let (mut client_reader, mut client_writer) = tokio::io::split(client);
    let (mut server_reader, mut server_writer) = tokio::io::split(server);
    let activity = Activity::new();
    let downward = copy(&mut server_reader, &mut client_writer, &activity);
    let upward = async {
        if check_start(&mut client_reader, &mut server_writer, host).await? == TunnelEnd::OtherServerName {
            return Ok(TunnelEnd::OtherServerName);
        }
        copy(&mut client_reader, &mut server_writer, &activity).await?;
        Ok(TunnelEnd::Closed)
    };
    tokio::pin!(downward, upward);
    tokio::select! {
        ended = &mut upward => {
            if ended? == TunnelEnd::OtherServerName {
                return Ok(TunnelEnd::OtherServerName);
            }
            downward.await?;
        }
        ended = &mut downward => {
            ended?;
            // A server that has finished may still read.
            return upward.await;
        }
    }
    Ok(TunnelEnd::Closed)
}

/// Reads the first bytes of the client, checks a TLS name in them, and passes them on.
async fn check_start(
    client: &mut (impl AsyncRead + Unpin),
    server: &mut (impl AsyncWrite + Unpin),
    host: &Host,
) -> io::Result<TunnelEnd> {
    let mut start = vec![0; MAX_HELLO];
    let mut length = client.read(&mut start).await?;
    if length == 0 {
        return Ok(TunnelEnd::Closed);
    }
    let deadline = Instant::now() + HELLO_TIMEOUT;
    loop {
        match read_hello(&start[..length]) {
            Hello::NoName => break,
            Hello::Name(name) if Host::parse(&name).as_ref() == Ok(host) => break,
            Hello::Name(_) | Hello::Malformed => return Ok(TunnelEnd::OtherServerName),
            Hello::Incomplete if length == MAX_HELLO => return Ok(TunnelEnd::OtherServerName),
            Hello::Incomplete => {}
        }
        let read = tokio::time::timeout_at(deadline, client.read(&mut start[length..])).await;
        match read.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? {
            0 => return Ok(TunnelEnd::Closed),
            more => length += more,
        }
    }
    server.write_all(&start[..length]).await?;
    Ok(TunnelEnd::Closed)
}

/// The time of the last byte in either direction.
struct Activity {
    start: Instant,
    last: AtomicU64,
}

impl Activity {
    fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0) }
    }

    fn note(&self) {
        self.last.store(self.elapsed(), Ordering::Relaxed);
    }

    fn is_idle(&self) -> bool {
        let silence = self.elapsed().saturating_sub(self.last.load(Ordering::Relaxed));
        Duration::from_millis(silence) >= IDLE_TIMEOUT
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

async fn copy(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    activity: &Activity,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = match timeout(IDLE_TIMEOUT, reader.read(&mut buffer)).await {
            Ok(length) => length?,
            Err(_) if activity.is_idle() => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => continue,
        };
        if length == 0 {
            return writer.shutdown().await;
        }
        activity.note();
        writer.write_all(&buffer[..length]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::super::client_hello::tests::hello;
    use super::*;

    async fn carried(sent: Vec<u8>) -> (Option<TunnelEnd>, Vec<u8>) {
        let (mut client, near) = tokio::io::duplex(1 << 16);
        let (far, mut server) = tokio::io::duplex(1 << 16);
        client.write_all(&sent).await.unwrap();
        client.shutdown().await.unwrap();
        let host = Host::parse("good.test").unwrap();
        let server = async {
            let mut received = Vec::new();
            server.read_to_end(&mut received).await.unwrap();
            server.shutdown().await.unwrap();
            received
        };
        let (ended, received) = tokio::join!(carry(near, far, &host), server);
        (ended.ok(), received)
    }

    /// S-20.
    #[tokio::test]
    async fn tls_name_must_be_the_host() {
        let good = hello(&["GOOD.test"], 10);
        assert_eq!(carried(good.clone()).await, (Some(TunnelEnd::Closed), good));
        let evil = hello(&["evil.test"], 4096);
        assert_eq!(carried(evil).await, (Some(TunnelEnd::OtherServerName), vec![]));
        let without = hello(&[], 4096);
        assert_eq!(carried(without.clone()).await, (Some(TunnelEnd::Closed), without));
        let other = b"SSH-2.0-client\r\n".to_vec();
        assert_eq!(carried(other.clone()).await, (Some(TunnelEnd::Closed), other));
    }

    #[tokio::test]
    async fn server_may_speak_first() {
        let (mut client, near) = tokio::io::duplex(64);
        let (far, mut server) = tokio::io::duplex(64);
        let host = Host::parse("good.test").unwrap();
        let conversation = async {
            server.write_all(b"hello").await.unwrap();
            let mut greeting = [0; 5];
            client.read_exact(&mut greeting).await.unwrap();
            drop((client, server));
            greeting
        };
        let (_, greeting) = tokio::join!(carry(near, far, &host), conversation);
        assert_eq!(&greeting, b"hello");
    }
}
