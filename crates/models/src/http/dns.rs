//! Looking up where a host is, and judging it where somebody else named the host.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{io, vec};

use futures::future::{BoxFuture, FutureExt};
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use super::guarded_fetch::{FetchError, AddressFilter};

/// Looks names up in the system.
#[derive(Clone, Default)]
pub(super) struct Resolver {
    guarded_host: Option<Arc<GuardedHost>>,
}

/// The host that may only be where it is permitted. Whatever else is looked up beside it is a proxy.
struct GuardedHost {
    host: String,
    filter: AddressFilter,
}

impl Resolver {
    /// Looks names up, and judges where one host is.
    pub(super) fn with_guard(host: &str, permit: AddressFilter) -> Self {
        Self { guarded_host: Some(Arc::new(GuardedHost { host: host.to_owned(), filter: permit })) }
    }

    fn check_addresses(&self, name: &str, found: &[SocketAddr]) -> Result<(), FetchError> {
        let permit = self.guarded_host.as_ref().filter(|judged| judged.host == name).map(|judged| judged.filter);
        let barred = permit.and_then(|permit| found.iter().find(|address| !permit(address.ip())));
        barred.map_or(Ok(()), |address| Err(FetchError::AddressDenied(address.ip())))
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
        let names = self.clone();
        let judged = move |name: &str, found: Vec<SocketAddr>| match names.check_addresses(name, &found) {
            Ok(()) => Ok(found.into_iter()),
            Err(barred) => Err(io::Error::other(barred)),
        };
        // Saves a thread for looking up what is known.
        if name.as_str() == "localhost" {
            let known = vec![([127, 0, 0, 1], 0).into(), ([0, 0, 0, 0, 0, 0, 0, 1], 0).into()];
            return ready(judged(name.as_str(), known)).boxed();
        }
        async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            judged(name.as_str(), found)
        }
        .boxed()
    }
}
