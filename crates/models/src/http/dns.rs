//! DNS resolution, with an address check for hosts from untrusted sources.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{io, vec};

use futures::future::{BoxFuture, FutureExt};
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use super::guarded_fetch::{AddressFilter, FetchError};

/// Resolves host names with the system resolver.
#[derive(Clone, Default)]
pub(super) struct Resolver {
    guarded_host: Option<Arc<GuardedHost>>,
}

/// The host whose addresses are checked. Any other name that is resolved belongs to a proxy.
struct GuardedHost {
    host: String,
    filter: AddressFilter,
}

impl Resolver {
    /// Creates a resolver that checks the addresses of one host.
    pub(super) fn with_guard(host: &str, filter: AddressFilter) -> Self {
        Self { guarded_host: Some(Arc::new(GuardedHost { host: host.to_owned(), filter })) }
    }

    fn check_addresses(&self, name: &str, found: &[SocketAddr]) -> Result<(), FetchError> {
        let filter =
            self.guarded_host.as_ref().filter(|guarded| guarded.host == name).map(|guarded| guarded.filter);
        let denied = filter.and_then(|filter| found.iter().find(|address| !filter(address.ip())));
        denied.map_or(Ok(()), |address| Err(FetchError::AddressDenied(address.ip())))
    }
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Self::Response, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.clone();
        let check = move |name: &str, found: Vec<SocketAddr>| match resolver.check_addresses(name, &found) {
            Ok(()) => Ok(found.into_iter()),
            Err(denied) => Err(io::Error::other(denied)),
        };
        // Known without a lookup, which would need a thread.
        if name.as_str() == "localhost" {
            let known = vec![([127, 0, 0, 1], 0).into(), ([0, 0, 0, 0, 0, 0, 0, 1], 0).into()];
            return ready(check(name.as_str(), known)).boxed();
        }
        async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            check(name.as_str(), found)
        }
        .boxed()
    }
}
