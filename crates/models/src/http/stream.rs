//! Byte stream of a connection: plain TCP, TLS, or TLS within TLS (a secure proxy).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::tls::{TlsConnection, selected_http2};

/// A connection to a server or to a forwarding proxy.
pub(super) struct ClientStream {
    transport: StreamKind,
    /// Whether requests go to a forwarding proxy, which needs the absolute URL.
    proxied: bool,
}

/// The underlying stream.
enum StreamKind {
    Plain(TcpStream),
    /// Boxed to keep plain connections small.
    Tls(Box<TlsConnection>),
}

impl ClientStream {
    pub(super) fn from_tcp(tcp: TcpStream) -> Self {
        Self { transport: StreamKind::Plain(tcp), proxied: false }
    }

    pub(super) fn from_tls(tls: TlsConnection) -> Self {
        Self { transport: StreamKind::Tls(Box::new(tls)), proxied: false }
    }

    pub(super) fn into_proxied(self) -> Self {
        Self { proxied: true, ..self }
    }
}

impl Connection for ClientStream {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.proxied);
        match &self.transport {
            StreamKind::Tls(tls) if selected_http2(tls) => connected.negotiated_h2(),
            StreamKind::Plain(_) | StreamKind::Tls(_) => connected,
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            StreamKind::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            StreamKind::Tls(tls) => Pin::new(tls).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().transport {
            StreamKind::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            StreamKind::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            StreamKind::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            StreamKind::Tls(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            StreamKind::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            StreamKind::Tls(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().transport {
            StreamKind::Plain(tcp) => Pin::new(tcp).poll_write_vectored(context, slices),
            StreamKind::Tls(tls) => Pin::new(tls).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            StreamKind::Plain(tcp) => tcp.is_write_vectored(),
            StreamKind::Tls(tls) => tls.is_write_vectored(),
        }
    }
}
