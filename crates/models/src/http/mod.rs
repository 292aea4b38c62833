//! The HTTP client, the only access to the network: connection pool, proxies, TLS, timeouts and size limits.
//!
//! Everything is initialized on first use: a process that only uses `http://` URLs reads no root certificates, and one
//! that sends no request creates no connection pool.
//!
//! [`HttpClient`] passes a request to the connection `pool`; new connections are established in `connector`.

mod config;
mod connector;
mod dns;
mod error;
mod guarded_fetch;
mod gzip;
mod pool;
mod proxy_rules;
mod request_body;
mod request_url;
mod response;
mod stream;
#[cfg(feature = "tls-protocol")]
mod tls;
#[cfg(not(feature = "tls-protocol"))]
#[path = "tls_unavailable.rs"]
mod tls;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::http::header::{ACCEPT_ENCODING, HeaderName, HeaderValue};
use ::http::{HeaderMap, Method};

use self::config::NetworkConfig;
use self::dns::Resolver;
use self::pool::ConnectionPool;
use self::tls::TlsSettings;
use crate::error::{ModelError, ModelErrorKind};

pub use guarded_fetch::{AddressFilter, FetchError};
pub use request_body::RequestBody;
pub use request_url::RequestUrl;
pub use response::{BodyStream, Response};
pub use url::Url;

/// HTTP client shared by all sessions of a process. Clones share the connections.
#[derive(Clone)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

struct Inner {
    network_config: NetworkConfig,
    limits: HttpClientLimits,
    tls: Arc<TlsSettings>,
    /// Boxed, because many clients never send a request.
    pool: OnceLock<Box<ConnectionPool>>,
}

/// Timeouts and size limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HttpClientLimits {
    /// Timeout for establishing a connection, TLS included.
    pub connect_timeout: Duration,
    /// Timeout after which a request body that the server does not read has stalled.
    pub write_timeout: Duration,
    /// Maximum size of a response body, decompressed.
    pub max_decoded_bytes: u64,
}

impl Default for HttpClientLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            max_decoded_bytes: 256 << 20,
        }
    }
}

impl HttpClient {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` (also in lower case). Trusts the certificates in
    /// `NODE_EXTRA_CA_CERTS` and `SSL_CERT_FILE` in addition to those of the system. Loopback never goes through a
    /// proxy. `NODE_EXTRA_CA_CERTS` must be readable and valid; `SSL_CERT_FILE` may be invalid, because other programs
    /// share it.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Self {
        Self::with_limits(get, HttpClientLimits::default())
    }

    /// As [`HttpClient::from_env`], with other limits.
    pub fn with_limits(get: impl Fn(&str) -> Option<String>, limits: HttpClientLimits) -> Self {
        let network_config = NetworkConfig::from_env(get);
        let tls = Arc::new(TlsSettings::new(&network_config));
        Self { inner: Arc::new(Inner { network_config, limits, tls, pool: OnceLock::new() }) }
    }

    /// Sends a POST request and waits for the response head, whatever its status.
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: impl Into<RequestBody>,
    ) -> Result<Response, ModelError> {
        self.send(Method::POST, &RequestUrl::parse(url)?, headers, body).await
    }

    /// Sends a request to a URL configured by the user and waits for the response head, whatever its status. Redirects
    /// are not followed.
    pub async fn request(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: impl Into<RequestBody>,
    ) -> Result<Response, ModelError> {
        self.send(method, &RequestUrl::try_from(url)?, headers, body).await
    }

    /// As [`HttpClient::request`], for a parsed address.
    pub async fn send(
        &self,
        method: Method,
        request_url: &RequestUrl,
        mut headers: HeaderMap,
        body: impl Into<RequestBody>,
    ) -> Result<Response, ModelError> {
        // Compressed events arrive later and cost more; compressed responses are decoded nevertheless.
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let HttpClientLimits { write_timeout: write, max_decoded_bytes: decoded, .. } = self.inner.limits;
        let (body, progress) = body.into().into_sending();
        let pool = self.pool()?;
        let response = tokio::select! {
            response = pool.send(method, request_url, headers, body) => response,
            () = progress.wait_until_stalled(write) => {
                let host = request_url.host();
                let message = format!("{host} accepted the connection but does not read the request.");
                return Err(ModelError::new(ModelErrorKind::Stalled, message));
            }
        };
        Ok(Response::new(pool.check_response(request_url, response)?, request_url, decoded))
    }

    /// Returns the connection pool, created on first use.
    fn pool(&self) -> Result<&ConnectionPool, ModelError> {
        let Inner { network_config, limits, tls, pool } = &*self.inner;
        if let Some(pool) = pool.get() {
            return Ok(pool);
        }
        let new = ConnectionPool::new(network_config, limits, tls, Resolver::default())?;
        Ok(pool.get_or_init(|| Box::new(new)))
    }
}

/// Parses a header of the program; `None` if HTTP does not allow it.
pub(crate) fn parse_header((name, value): &(String, String)) -> Option<(HeaderName, HeaderValue)> {
    Some((HeaderName::try_from(name.as_str()).ok()?, HeaderValue::try_from(value.as_str()).ok()?))
}

#[cfg(test)]
mod tests;
