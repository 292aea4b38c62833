//! Fetches URLs from untrusted sources: only IP addresses that the caller's filter allows are connected to.

use std::net::IpAddr;

use ::http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use ::http::{HeaderMap, HeaderValue, Method};

use super::dns::Resolver;
use super::pool::ConnectionPool;
use super::request_body::RequestBody;
use super::request_url::RequestUrl;
use super::{HttpClient, Inner, Response, Url, error};
use crate::error::{ModelError, ModelErrorKind};

/// Decides which IP addresses may be connected to.
pub type AddressFilter = fn(IpAddr) -> bool;

/// Error of a guarded fetch.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FetchError {
    /// The filter denied the host's address; nothing was sent.
    #[error("{0} is not permitted")]
    AddressDenied(IpAddr),
    /// The request failed.
    #[error(transparent)]
    Failed(#[from] ModelError),
}

impl HttpClient {
    /// Sends a GET request and waits for the response head, whatever its status. Redirects are not followed.
    ///
    /// The host is resolved once, and only the checked addresses are connected to (no DNS rebinding). A proxy resolves
    /// the host itself; then only an IP address in the URL can be checked.
    pub async fn get(&self, url: &Url, accept: &str, filter: AddressFilter) -> Result<Response, FetchError> {
        let request_url = RequestUrl::try_from(url.clone())?;
        if let Some(ip) = literal_ip(request_url.host()).filter(|ip| !filter(*ip)) {
            return Err(FetchError::AddressDenied(ip));
        }
        let Inner { network_config, limits, tls, .. } = &*self.inner;
        // A separate pool, because pooled connections were checked with other filters.
        let pool = ConnectionPool::new(
            network_config,
            limits,
            tls,
            Resolver::with_guard(request_url.host(), filter),
        )?;
        let (body, _) = RequestBody::default().into_sending();
        let response = pool.send(Method::GET, &request_url, request_headers(accept)?, body).await;
        if let Some(ip) = response.as_ref().err().and_then(error::denied_address) {
            return Err(FetchError::AddressDenied(ip));
        }
        let response = pool.check_response(&request_url, response)?;
        Ok(Response::new(response, &request_url, limits.max_decoded_bytes))
    }
}

fn request_headers(accept: &str) -> Result<HeaderMap, ModelError> {
    let accept = HeaderValue::from_str(accept).map_err(|_| {
        ModelError::new(ModelErrorKind::InvalidRequest, format!("{accept:?} is not a valid header value."))
    })?;
    let agent = HeaderValue::from_static(concat!("whimbrel/", env!("CARGO_PKG_VERSION")));
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, accept);
    headers.insert(USER_AGENT, agent);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    Ok(headers)
}

/// Parses the host as an IP address, if it is one.
fn literal_ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}
