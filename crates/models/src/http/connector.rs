//! Establishes connections: direct or through a proxy, plain or TLS, with one timeout.

use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::HeaderMap;
use ::http::header::PROXY_AUTHORIZATION;
use ::http::uri::{Scheme, Uri};
use futures::future::{BoxFuture, FutureExt};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use tower_service::Service;

use super::dns::Resolver;
use super::proxy_rules::ProxyRules;
use super::stream::ClientStream;
use super::tls::{TlsClient, TlsSettings};

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// Connection errors raised here, as opposed to errors of the libraries.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("the connection timed out")]
    Timeout,
    #[cfg(feature = "tls-protocol")]
    #[error("the host is not a valid name for a certificate")]
    InvalidServerName,
    #[error(
        "The proxy named in the environment uses {0}, which is not supported: it must have the form http://host:port \
         or https://host:port."
    )]
    UnsupportedProxy(String),
    #[error("the proxy {at} cannot be used")]
    Proxy {
        /// Host and port of the proxy.
        at: String,
        source: BoxError,
    },
}

/// Establishes connections for an HTTP client. Cheap to clone, because every request clones it.
#[derive(Clone)]
pub(super) struct Connector(Arc<ConnectorConfig>);

/// Configuration of a connector.
pub(super) struct ConnectorConfig {
    pub(super) tcp: HttpConnector<Resolver>,
    pub(super) tls: Arc<TlsSettings>,
    pub(super) proxies: Option<ProxyRules>,
    /// Timeout for all of it: DNS, TCP, proxy, TLS.
    pub(super) timeout: Duration,
}

impl Connector {
    pub(super) fn new(config: ConnectorConfig) -> Self {
        Self(Arc::new(config))
    }

    /// Adds the proxy's credentials to a request that the proxy forwards; requests in a tunnel do not pass through it.
    pub(super) fn add_proxy_auth(&self, to: &Uri, headers: &mut HeaderMap) {
        if let Some(proxy) = self.forwarding_proxy(to)
            && let Some(credentials) = proxy.basic_auth()
        {
            headers.entry(PROXY_AUTHORIZATION).or_insert_with(|| credentials.clone());
        }
    }

    /// Host and port of the proxy that forwards a plain request.
    pub(super) fn forwarding_proxy_address(&self, to: &Uri) -> Option<String> {
        self.forwarding_proxy(to).map(|proxy| host_and_port(proxy.uri()))
    }

    fn forwarding_proxy(&self, to: &Uri) -> Option<Intercept> {
        if is_secure(to) { None } else { self.0.proxy_for(to) }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<ClientStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let config = Arc::clone(&self.0);
        async move { config.connect(to).await.map(TokioIo::new) }.boxed()
    }
}

impl ConnectorConfig {
    fn proxy_for(&self, to: &Uri) -> Option<Intercept> {
        self.proxies.as_ref()?.proxy_for(to)
    }

    async fn connect(self: Arc<Self>, to: Uri) -> Result<ClientStream, BoxError> {
        let proxy = self.proxy_for(&to);
        let scheme = proxy.as_ref().and_then(|proxy| proxy.uri().scheme_str()).unwrap_or("http");
        if !matches!(scheme, "http" | "https") {
            return Err(ConnectError::UnsupportedProxy(scheme.to_owned()).into());
        }
        // First, because unreadable root certificates affect every server.
        let tls = if is_secure(&to) { Some(self.tls.client()?) } else { None };
        let deadline = Instant::now() + self.timeout;
        let stream = match proxy {
            None => with_deadline(deadline, self.connect_tcp(to.clone())).await?,
            Some(proxy) => {
                let at = host_and_port(proxy.uri());
                let via_proxy = Arc::clone(&self).connect_via_proxy(proxy, to.clone(), tls.is_some());
                with_deadline(deadline, via_proxy)
                    .await
                    .map_err(|source| ConnectError::Proxy { at, source })?
            }
        };
        match tls {
            None => Ok(stream),
            Some(tls) => with_deadline(deadline, start_tls(stream, &to, tls)).await,
        }
    }

    /// Connects to a forwarding proxy, or through a proxy to the server.
    async fn connect_via_proxy(
        self: Arc<Self>,
        proxy: Intercept,
        to: Uri,
        through: bool,
    ) -> Result<ClientStream, BoxError> {
        if through {
            self.open_tunnel(&proxy, to).await
        } else {
            Ok(self.connect_to_proxy(proxy.uri().clone()).await?.into_proxied())
        }
    }

    /// Opens a tunnel to a server through a proxy.
    async fn open_tunnel(self: Arc<Self>, proxy: &Intercept, to: Uri) -> Result<ClientStream, BoxError> {
        let mut tunnel = Tunnel::new(proxy.uri().clone(), ProxyConnector(self));
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        Ok(tunnel.call(to).await?.into_inner())
    }

    /// Connects to a proxy, always with HTTP/1.1.
    async fn connect_to_proxy(&self, proxy: Uri) -> Result<ClientStream, BoxError> {
        let tcp = self.connect_tcp(proxy.clone()).await?;
        if !is_secure(&proxy) {
            return Ok(tcp);
        }
        start_tls(tcp, &proxy, self.tls.client()?.without_http2()).await
    }

    async fn connect_tcp(&self, to: Uri) -> Result<ClientStream, BoxError> {
        let stream = self.tcp.clone().call(to).await?;
        Ok(ClientStream::from_tcp(stream.into_inner()))
    }
}

/// Runs one step of connecting until the deadline.
async fn with_deadline(
    deadline: Instant,
    step: impl Future<Output = Result<ClientStream, BoxError>>,
) -> Result<ClientStream, BoxError> {
    tokio::time::timeout_at(deadline, step).await.unwrap_or_else(|_| Err(ConnectError::Timeout.into()))
}

/// Host and port of a proxy, without its credentials.
fn host_and_port(proxy: &Uri) -> String {
    let host = proxy.host().unwrap_or_default();
    proxy.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn is_secure(to: &Uri) -> bool {
    to.scheme() == Some(&Scheme::HTTPS)
}

async fn start_tls(stream: ClientStream, to: &Uri, tls: TlsClient) -> Result<ClientStream, BoxError> {
    let connection = tls.handshake(stream, to.host().unwrap_or_default()).await?;
    Ok(ClientStream::from_tls(connection))
}

/// Connector for the proxy connection below a tunnel.
#[derive(Clone)]
struct ProxyConnector(Arc<ConnectorConfig>);

impl Service<Uri> for ProxyConnector {
    type Response = TokioIo<ClientStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, proxy: Uri) -> Self::Future {
        let config = Arc::clone(&self.0);
        async move { config.connect_to_proxy(proxy).await.map(TokioIo::new) }.boxed()
    }
}
