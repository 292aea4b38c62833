//! The proxy through which this process itself reaches the network.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::target::Target;

/// Largest answer to a request for a tunnel.
const MAX_ANSWER: usize = 16 << 10;

/// An HTTP proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Upstream {
    address: String,
    authorization: Option<String>,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Upstream").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Reads the URL of an HTTP proxy; other schemes are not supported.
    pub fn parse(url: &str) -> Option<Self> {
        let url = url::Url::parse(url).ok().filter(|url| url.scheme() == "http")?;
        let host = url.host_str()?;
        let address = format!("{host}:{}", url.port_or_known_default()?);
        let authorization = (!url.username().is_empty()).then(|| {
            let credentials = format!("{}:{}", url.username(), url.password().unwrap_or_default());
            format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(credentials))
        });
        Some(Self { address, authorization })
    }

    /// Asks for a tunnel.
    pub(crate) async fn connect(&self, target: &Target) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let authorization = self.authorization.as_deref().unwrap_or_default();
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            // Byte by byte: what follows belongs to the tunnel.
            let byte = stream.read_u8().await?;
            answer.push(byte);
            if answer.len() > MAX_ANSWER {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        let status = String::from_utf8_lossy(&answer);
        let status = status.lines().next().unwrap_or_default();
        if status.split(' ').nth(1) == Some("200") {
            return Ok(stream);
        }
        Err(io::Error::other(format!("the proxy of this machine answers: {status}")))
    }
}
