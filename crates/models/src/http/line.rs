//! A connection as bytes: plain, or with TLS around it, once or twice.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to a server, or to the proxy that passes requests on.
pub(super) struct Line {
    layers: Layers,
    /// Whether requests go to a proxy, which has to be told the whole address.
    proxied: bool,
}

/// What a connection is made of.
enum Layers {
    Plain(TcpStream),
    /// Boxed, so that a plain connection does not hold the room for it.
    Secure(Box<TlsStream<Line>>),
}

impl Line {
    pub(super) fn plain(tcp: TcpStream) -> Self {
        Self { layers: Layers::Plain(tcp), proxied: false }
    }

    pub(super) fn secure(tls: TlsStream<Self>) -> Self {
        Self { layers: Layers::Secure(Box::new(tls)), proxied: false }
    }

    pub(super) fn proxied(self) -> Self {
        Self { proxied: true, ..self }
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.proxied);
        match &self.layers {
            Layers::Secure(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2") => {
                connected.negotiated_h2()
            }
            Layers::Plain(_) | Layers::Secure(_) => connected,
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().layers {
            Layers::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Layers::Secure(tls) => Pin::new(tls).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().layers {
            Layers::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Layers::Secure(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().layers {
            Layers::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Layers::Secure(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().layers {
            Layers::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Layers::Secure(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().layers {
            Layers::Plain(tcp) => Pin::new(tcp).poll_write_vectored(context, slices),
            Layers::Secure(tls) => Pin::new(tls).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.layers {
            Layers::Plain(tcp) => tcp.is_write_vectored(),
            Layers::Secure(tls) => tls.is_write_vectored(),
        }
    }
}
