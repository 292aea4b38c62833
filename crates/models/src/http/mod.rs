//! The one door to the network: who may be reached and how, proxies, TLS, time and size limits.
//!
//! Nothing is set up before it is needed: a process that only talks to an `http://` address never reads a root
//! certificate, and one that never asks has no client at all.
//!
//! A request goes from the door to its `way`, which keeps connections; new ones are made in `connecting`.

mod address;
mod response;
mod connector;
mod guarded_fetch;
mod stream;
mod dns;
mod proxy_rules;
mod config;
mod request_body;
mod system_roots;
mod error;
mod tls;
mod gzip;
mod pool;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::http::header::{ACCEPT_ENCODING, HeaderValue};
use ::http::{HeaderMap, Method};

use self::dns::Resolver;
use self::config::NetworkConfig;
use self::tls::TlsSettings;
use self::pool::ConnectionPool;
use crate::error::{ModelError, ModelErrorKind};

pub use address::Address;
pub use response::{BodyStream, Response};
pub use guarded_fetch::{FetchError, AddressFilter};
pub use request_body::RequestBody;
pub use url::Url;

/// The way out, shared by all sessions of a process. Cloning shares the connections.
#[derive(Clone)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

struct Inner {
    network_config: NetworkConfig,
    limits: HttpClientLimits,
    tls: Arc<TlsSettings>,
    /// Boxed, as many doors are never gone through.
    pool: OnceLock<Box<ConnectionPool>>,
}

/// Limits of time and size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HttpClientLimits {
    /// The longest time for making a connection, TLS included.
    pub connect_timeout: Duration,
    /// The longest time in which the server takes nothing of a request.
    pub write_timeout: Duration,
    /// The most bytes an answer may have, decompressed.
    pub max_decoded_bytes: u64,
}

impl Default for HttpClientLimits {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(30), write_timeout: Duration::from_secs(60), max_decoded_bytes: 256 << 20 }
    }
}

impl HttpClient {
    /// A door that goes by `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY` (also in lower case), and trusts the
    /// certificates in `NODE_EXTRA_CA_CERTS` and `SSL_CERT_FILE` beside those of the system. No proxy is asked for this
    /// machine itself. The first file has to be there and whole; the second need not, as it is meant for many programs.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Self {
        Self::with_limits(get, HttpClientLimits::default())
    }

    /// The same, with limits of your own.
    pub fn with_limits(get: impl Fn(&str) -> Option<String>, limits: HttpClientLimits) -> Self {
        let route = NetworkConfig::from_env(get);
        let trust = Arc::new(TlsSettings::new(&route));
        Self { inner: Arc::new(Inner { network_config: route, limits, tls: trust, pool: OnceLock::new() }) }
    }

    /// Sends a request and waits for the head of the answer, whatever its status.
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: impl Into<RequestBody>,
    ) -> Result<Response, ModelError> {
        self.send(Method::POST, &Address::parse(url)?, headers, body).await
    }

    /// Sends a request of any kind to an address that the user named, and waits for the head of the answer, whatever
    /// its status. Redirects are not followed.
    pub async fn request(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: impl Into<RequestBody>,
    ) -> Result<Response, ModelError> {
        self.send(method, &Address::try_from(url)?, headers, body).await
    }

    /// The same, for an address that was read before.
    pub async fn send(
        &self,
        method: Method,
        address: &Address,
        mut headers: HeaderMap,
        body: impl Into<RequestBody>,
    ) -> Result<Response, ModelError> {
        // Compressed events would only arrive later and cost more; what comes compressed all the same is read.
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let HttpClientLimits { write_timeout: write, max_decoded_bytes: decoded, .. } = self.inner.limits;
        let (body, progress) = body.into().into_sending();
        let way = self.pool()?;
        let answer = tokio::select! {
            answer = way.send(method, address, headers, body) => answer,
            () = progress.wait_until_stalled(write) => {
                let host = address.host();
                let message = format!("{host} accepted the connection but does not read the request.");
                return Err(ModelError::new(ModelErrorKind::Stalled, message));
            }
        };
        Ok(Response::new(way.check_response(address, answer)?, address, decoded))
    }

    /// The connections of this door, set up once.
    fn pool(&self) -> Result<&ConnectionPool, ModelError> {
        let Inner { network_config: route, limits, tls: trust, pool: way } = &*self.inner;
        if let Some(way) = way.get() {
            return Ok(way);
        }
        let new = ConnectionPool::new(route, limits, trust, Resolver::default())?;
        Ok(way.get_or_init(|| Box::new(new)))
    }
}

#[cfg(test)]
mod tests;
