//! Fetching what somebody else named: only addresses that the caller permits are connected to.

use std::net::{IpAddr, SocketAddr};

use ::http::header::{ACCEPT, USER_AGENT};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{Door, Inner, Response, Url, trouble};
use crate::fault::Fault;

/// Which addresses may be connected to.
pub type Permit = fn(IpAddr) -> bool;

/// Why nothing was fetched.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotFetched {
    /// The host is at an address that is not permitted; nothing was sent.
    #[error("{0} is not permitted")]
    Forbidden(IpAddr),
    /// Something went wrong on the line.
    #[error(transparent)]
    Failed(#[from] Fault),
}

impl Door {
    /// Asks for what lies at an address and waits for the head of the answer, whatever its status. Redirects are not
    /// followed.
    ///
    /// The host is looked up once, and what is connected to is what was judged. Where a proxy stands between, it looks
    /// the host up itself; then only an address that stands in the URL can be judged.
    pub async fn get(&self, url: &Url, accept: &str, permit: Permit) -> Result<Response, NotFetched> {
        let host = url.host_str().unwrap_or_default().to_owned();
        if let Some(address) = literal(&host).filter(|address| !permit(*address)) {
            return Err(NotFetched::Forbidden(address));
        }
        let Inner { route, limits, .. } = &*self.inner;
        // A client of its own: a connection that others have made was judged by others.
        let builder = route.builder(limits)?.dns_resolver(Judged { host: host.clone(), permit });
        let request = route.client(url, builder)?.get(url.clone()).header(ACCEPT, accept);
        let request = request.header(USER_AGENT, concat!("whimbrel/", env!("CARGO_PKG_VERSION")));
        let answer = request.send().await.map_err(|error| match trouble::forbidden(&error) {
            Some(address) => NotFetched::Forbidden(address),
            None => NotFetched::Failed(trouble::sending(&host, &error)),
        })?;
        Ok(Response::new(answer, host, limits.decoded))
    }
}

/// The address that a host's name is, if it is one.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Looks names up, and judges where the host is. The other name that is ever asked for is that of the proxy.
struct Judged {
    host: String,
    permit: Permit,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let permit = (name.as_str() == self.host).then_some(self.permit);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let barred = permit.and_then(|permit| found.iter().find(|address| !permit(address.ip())));
            match barred {
                Some(address) => Err(NotFetched::Forbidden(address.ip()).into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}
