//! Making connections: directly or past a proxy, plain or with TLS, in time.

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
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::line::Line;
use super::names::Names;
use super::proxies::Proxies;
use super::trust::Trust;

type BoxError = Box<dyn Error + Send + Sync>;

/// Why no connection was made, where the reason is ours.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotConnected {
    #[error("it took too long")]
    TooLate,
    #[error("the host has no name that a certificate could be for")]
    Nameless,
    #[error(
        "The proxy named in the environment speaks {0}, which is not supported: it has to look like \
         http://host:port or https://host:port."
    )]
    UnknownProxy(String),
    #[error("the proxy {at} cannot be used")]
    Proxy {
        /// Its host and port.
        at: String,
        source: BoxError,
    },
}

/// Makes connections for a client. Cloning is cheap, as every request does it.
#[derive(Clone)]
pub(super) struct Connector(Arc<Ways>);

/// What connections are made with.
pub(super) struct Ways {
    pub(super) tcp: HttpConnector<Names>,
    pub(super) trust: Arc<Trust>,
    pub(super) proxies: Option<Proxies>,
    /// The longest time for all of it: name, connection, proxy, TLS.
    pub(super) limit: Duration,
}

impl Connector {
    pub(super) fn new(ways: Ways) -> Self {
        Self(Arc::new(ways))
    }

    /// Puts the password of the proxy on a request that the proxy reads; one inside a tunnel it does not.
    pub(super) fn authorize(&self, to: &Uri, headers: &mut HeaderMap) {
        if let Some(proxy) = self.reader(to)
            && let Some(password) = proxy.basic_auth()
        {
            headers.entry(PROXY_AUTHORIZATION).or_insert_with(|| password.clone());
        }
    }

    /// The host and port of the proxy that reads a request and passes it on.
    pub(super) fn passing_on(&self, to: &Uri) -> Option<String> {
        self.reader(to).map(|proxy| place(proxy.uri()))
    }

    fn reader(&self, to: &Uri) -> Option<Intercept> {
        if is_secure(to) { None } else { self.0.proxy(to) }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Line>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let ways = Arc::clone(&self.0);
        async move { ways.connect(to).await.map(TokioIo::new) }.boxed()
    }
}

impl Ways {
    fn proxy(&self, to: &Uri) -> Option<Intercept> {
        self.proxies.as_ref()?.before(to)
    }

    async fn connect(self: Arc<Self>, to: Uri) -> Result<Line, BoxError> {
        let proxy = self.proxy(&to);
        let scheme = proxy.as_ref().and_then(|proxy| proxy.uri().scheme_str()).unwrap_or("http");
        if !matches!(scheme, "http" | "https") {
            return Err(NotConnected::UnknownProxy(scheme.to_owned()).into());
        }
        // First of all: roots that cannot be read are so for every server.
        let tls = if is_secure(&to) { Some(self.trust.tls()?) } else { None };
        let end = Instant::now() + self.limit;
        let line = match proxy {
            None => in_time(end, self.tcp(to.clone())).await?,
            Some(proxy) => {
                let at = place(proxy.uri());
                let past = Arc::clone(&self).past(proxy, to.clone(), tls.is_some());
                in_time(end, past).await.map_err(|source| NotConnected::Proxy { at, source })?
            }
        };
        match tls {
            None => Ok(line),
            Some(tls) => in_time(end, secure(line, &to, tls)).await,
        }
    }

    /// A connection to a proxy that passes requests on, or through it to the server.
    async fn past(self: Arc<Self>, proxy: Intercept, to: Uri, through: bool) -> Result<Line, BoxError> {
        if through {
            self.tunnel(&proxy, to).await
        } else {
            Ok(self.to_proxy(proxy.uri().clone()).await?.proxied())
        }
    }

    /// A connection to a server that goes through a proxy.
    async fn tunnel(self: Arc<Self>, proxy: &Intercept, to: Uri) -> Result<Line, BoxError> {
        let mut tunnel = Tunnel::new(proxy.uri().clone(), ToProxy(self));
        if let Some(password) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(password.clone());
        }
        Ok(tunnel.call(to).await?.into_inner())
    }

    /// A connection to a proxy. What is said there is always HTTP/1.1.
    async fn to_proxy(&self, proxy: Uri) -> Result<Line, BoxError> {
        let tcp = self.tcp(proxy.clone()).await?;
        if !is_secure(&proxy) {
            return Ok(tcp);
        }
        let mut tls = ClientConfig::clone(&*self.trust.tls()?);
        tls.alpn_protocols.clear();
        secure(tcp, &proxy, Arc::new(tls)).await
    }

    async fn tcp(&self, to: Uri) -> Result<Line, BoxError> {
        let stream = self.tcp.clone().call(to).await?;
        Ok(Line::plain(stream.into_inner()))
    }
}

/// What is done before the end of the time that a connection may take.
async fn in_time(end: Instant, step: impl Future<Output = Result<Line, BoxError>>) -> Result<Line, BoxError> {
    tokio::time::timeout_at(end, step).await.unwrap_or_else(|_| Err(NotConnected::TooLate.into()))
}

/// Host and port of a proxy, without its password.
fn place(proxy: &Uri) -> String {
    let host = proxy.host().unwrap_or_default();
    proxy.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn is_secure(to: &Uri) -> bool {
    to.scheme() == Some(&Scheme::HTTPS)
}

async fn secure(line: Line, to: &Uri, tls: Arc<ClientConfig>) -> Result<Line, BoxError> {
    let host = to.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(|_| NotConnected::Nameless)?;
    Ok(Line::secure(TlsConnector::from(tls).connect(name, line).await?))
}

/// The connection below a tunnel.
#[derive(Clone)]
struct ToProxy(Arc<Ways>);

impl Service<Uri> for ToProxy {
    type Response = TokioIo<Line>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, proxy: Uri) -> Self::Future {
        let ways = Arc::clone(&self.0);
        async move { ways.to_proxy(proxy).await.map(TokioIo::new) }.boxed()
    }
}
