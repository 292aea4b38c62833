//! Fetching what somebody else named: only addresses that the caller permits are connected to.

use std::net::IpAddr;

use ::http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use ::http::{HeaderMap, HeaderValue, Method};

use super::address::Address;
use super::dns::Resolver;
use super::request_body::RequestBody;
use super::pool::ConnectionPool;
use super::{HttpClient, Inner, Response, Url, error};
use crate::error::{ModelError, ModelErrorKind};

/// Which addresses may be connected to.
pub type AddressFilter = fn(IpAddr) -> bool;

/// Why nothing was fetched.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FetchError {
    /// The host is at an address that is not permitted; nothing was sent.
    #[error("{0} is not permitted")]
    AddressDenied(IpAddr),
    /// Something went wrong on the line.
    #[error(transparent)]
    Failed(#[from] ModelError),
}

impl HttpClient {
    /// Asks for what lies at an address and waits for the head of the answer, whatever its status. Redirects are not
    /// followed.
    ///
    /// The host is looked up once, and what is connected to is what was judged. Where a proxy stands between, it looks
    /// the host up itself; then only an address that stands in the URL can be judged.
    pub async fn get(&self, url: &Url, accept: &str, permit: AddressFilter) -> Result<Response, FetchError> {
        let address = Address::try_from(url.clone())?;
        if let Some(place) = literal_ip(address.host()).filter(|place| !permit(*place)) {
            return Err(FetchError::AddressDenied(place));
        }
        let Inner { network_config: route, limits, tls: trust, .. } = &*self.inner;
        // A client of its own: a connection that others have made was judged by others.
        let way = ConnectionPool::new(route, limits, trust, Resolver::with_guard(address.host(), permit))?;
        let (body, _) = RequestBody::default().into_sending();
        let answer = way.send(Method::GET, &address, request_headers(accept)?, body).await;
        if let Some(place) = answer.as_ref().err().and_then(error::denied_address) {
            return Err(FetchError::AddressDenied(place));
        }
        let answer = way.check_response(&address, answer)?;
        Ok(Response::new(answer, &address, limits.max_decoded_bytes))
    }
}

fn request_headers(accept: &str) -> Result<HeaderMap, ModelError> {
    let accept = HeaderValue::from_str(accept)
        .map_err(|_| ModelError::new(ModelErrorKind::InvalidRequest, format!("{accept:?} fits in no header.")))?;
    let agent = HeaderValue::from_static(concat!("whimbrel/", env!("CARGO_PKG_VERSION")));
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, accept);
    headers.insert(USER_AGENT, agent);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    Ok(headers)
}

/// The address that a host's name is, if it is one.
fn literal_ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}
