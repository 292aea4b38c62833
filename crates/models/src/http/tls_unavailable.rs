//! TLS in a build without the feature `tls`: every `https://` URL is rejected with the reason.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::config::NetworkConfig;
use super::connector::BoxError;
use super::stream::ClientStream;
use crate::error::{ModelError, ModelErrorKind};

pub(super) struct TlsSettings;

impl TlsSettings {
    pub(super) fn new(_: &NetworkConfig) -> Self {
        Self
    }

    pub(super) fn client(&self) -> Result<TlsClient, ModelError> {
        let message = "This build of the program has no TLS, so it cannot open https:// URLs. Build it with the feature \
                       `tls`, which is on by default.";
        Err(ModelError::new(ModelErrorKind::InvalidRequest, message))
    }

    #[cfg(test)]
    pub(super) fn is_initialized(&self) -> bool {
        false
    }
}

/// Has no values: there is no client without TLS.
pub(super) enum TlsClient {}

/// Has no values: there is no connection without a client.
pub(super) enum TlsConnection {}

impl TlsClient {
    pub(super) fn without_http2(self) -> Self {
        match self {}
    }

    pub(super) async fn handshake(self, _: ClientStream, _: &str) -> Result<TlsConnection, BoxError> {
        match self {}
    }
}

pub(super) fn selected_http2(connection: &TlsConnection) -> bool {
    match *connection {}
}

pub(super) fn untrusted_reason(_: &(dyn std::error::Error + 'static), _: &'static str) -> Option<String> {
    None
}

impl AsyncRead for TlsConnection {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match *self {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }
}
