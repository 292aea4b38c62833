//! One caller: reads its requests one after the other and performs what is planned for each.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;

use super::heard::{self, Heard};
use super::plan::{self, Act};
use super::{Ears, Recorded, Shared, dialect};
use crate::script::Asked;

/// What ends a body.
const END: &[u8] = b"0\r\n\r\n";

/// Whether more can come on a connection.
#[derive(PartialEq, Eq)]
enum After {
    Open,
    Closed,
}

/// A caller's connection.
struct Connection {
    number: usize,
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
    shared: Arc<Shared>,
}

/// Serves a caller until it goes away or is hung up on.
pub(super) async fn serve(stream: TcpStream, number: usize, shared: Arc<Shared>) {
    // Small writes must arrive as they are made.
    let _ = stream.set_nodelay(true);
    let (from, to) = stream.into_split();
    if shared.ears == Ears::Shut {
        return std::future::pending().await;
    }
    let mut connection = Connection { number, from: BufReader::new(from), to, shared };
    while let Ok(Some(request)) = heard::read(&mut connection.from).await {
        let acts = connection.record(request);
        match connection.perform(acts).await {
            Ok(After::Open) => {}
            Ok(After::Closed) => return,
            Err(_) => {
                connection.shared.progress.send_modify(|progress| progress.deserted += 1);
                return;
            }
        }
    }
}

impl Connection {
    /// Writes a request down and plans what is done for it.
    fn record(&self, heard: Heard) -> Vec<Act> {
        let Heard { method, path, query, headers, body } = heard;
        let mut recorded = self.shared.recorded();
        let request = Recorded {
            number: recorded.len(),
            connection: self.number,
            at: Instant::now(),
            method,
            path,
            query,
            headers,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        };
        let acts = match dialect(&request) {
            Some(dialect) => {
                let number = self.shared.progress.borrow().replies_asked;
                let asked = Asked { number, dialect, body: request.body.clone() };
                plan::of_reply(&asked, &self.shared.script.choose(&asked))
            }
            None => plan::of_other(&request.method, &request.path, &body),
        };
        let is_reply = dialect(&request).is_some();
        recorded.push(request);
        drop(recorded);
        self.shared.progress.send_modify(|progress| {
            progress.requests += 1;
            progress.replies_asked += usize::from(is_reply);
        });
        acts
    }

    /// Does what is planned. An error means that the caller went away meanwhile.
    async fn perform(&mut self, acts: Vec<Act>) -> io::Result<After> {
        let last = acts.len().saturating_sub(1);
        for (index, act) in acts.into_iter().enumerate() {
            match act {
                Act::Head { status, headers } => self.to.write_all(head(status, &headers).as_bytes()).await?,
                Act::Send(bytes) if index == last => {
                    // In one write, so that a caller who knows the last event need not wait for the end after it.
                    self.to.write_all(&[chunk(&bytes), END.to_vec()].concat()).await?;
                    return Ok(After::Open);
                }
                Act::Send(bytes) => self.to.write_all(&chunk(&bytes)).await?,
                Act::Wait(time) => self.unless_left(tokio::time::sleep(time)).await?,
                Act::Hold(name) => {
                    let mut released = self.shared.released.subscribe();
                    self.unless_left(async { drop(released.wait_for(|names| names.contains(&name)).await) })
                        .await?;
                }
                Act::Repeat { bytes, every } => loop {
                    self.to.write_all(&chunk(&bytes)).await?;
                    self.unless_left(tokio::time::sleep(every)).await?;
                },
                Act::Drip { bytes, every } => {
                    for byte in bytes {
                        self.unless_left(tokio::time::sleep(every)).await?;
                        self.to.write_all(&chunk(&[byte])).await?;
                    }
                }
                Act::Stall => self.unless_left(std::future::pending()).await?,
                Act::HangUp => return Ok(After::Closed),
            }
        }
        self.to.write_all(END).await?;
        Ok(After::Open)
    }

    /// Waits, but not longer than the caller stays.
    async fn unless_left(&mut self, wait: impl Future<Output = ()>) -> io::Result<()> {
        tokio::select! {
            () = wait => Ok(()),
            left = left(&mut self.from) => Err(left),
        }
    }
}

/// Ends when the caller has gone away.
async fn left(from: &mut BufReader<OwnedReadHalf>) -> io::Error {
    match from.fill_buf().await {
        Ok([]) => io::ErrorKind::ConnectionAborted.into(),
        // A next request is waiting already; it will be read in its turn.
        Ok(_) => std::future::pending().await,
        Err(error) => error,
    }
}

/// A piece of a body as it is written; an empty one would be its end.
fn chunk(bytes: &[u8]) -> Vec<u8> {
    match bytes {
        [] => Vec::new(),
        bytes => [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat(),
    }
}

fn head(status: u16, headers: &[(String, String)]) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} Scripted\r\ntransfer-encoding: chunked\r\n{headers}\r\n")
}
