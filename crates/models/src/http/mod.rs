//! The one door to the network: who may be reached and how, proxies, TLS, time and size limits.
//!
//! Nothing is set up before it is needed: a process that only talks to an `http://` address never reads a root
//! certificate, and one that never asks has no client at all.
//!
//! A request goes from the door to its `way`, which keeps connections; new ones are made in `connecting`.

mod address;
mod answer;
mod connecting;
mod fetching;
mod line;
mod names;
mod proxies;
mod route;
mod sending;
mod system_roots;
mod trouble;
mod trust;
mod unzip;
mod way;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::http::header::{ACCEPT_ENCODING, HeaderValue};
use ::http::{HeaderMap, Method};

use self::names::Names;
use self::route::Route;
use self::trust::Trust;
use self::way::Way;
use crate::fault::{Fault, FaultKind};

pub use address::Address;
pub use answer::{Chunks, Response};
pub use fetching::{NotFetched, Permit};
pub use sending::Pieces;
pub use url::Url;

/// The way out, shared by all sessions of a process. Cloning shares the connections.
#[derive(Clone)]
pub struct Door {
    inner: Arc<Inner>,
}

struct Inner {
    route: Route,
    limits: Limits,
    trust: Arc<Trust>,
    /// Boxed, as many doors are never gone through.
    way: OnceLock<Box<Way>>,
}

/// Limits of time and size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The longest time for making a connection, TLS included.
    pub connect: Duration,
    /// The longest time in which the server takes nothing of a request.
    pub write: Duration,
    /// The most bytes an answer may have, decompressed.
    pub decoded: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(30), write: Duration::from_secs(60), decoded: 256 << 20 }
    }
}

impl Door {
    /// A door that goes by `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY` (also in lower case), and trusts the
    /// certificates in `NODE_EXTRA_CA_CERTS` and `SSL_CERT_FILE` beside those of the system. No proxy is asked for this
    /// machine itself. The first file has to be there and whole; the second need not, as it is meant for many programs.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Self {
        Self::with_limits(get, Limits::default())
    }

    /// The same, with limits of your own.
    pub fn with_limits(get: impl Fn(&str) -> Option<String>, limits: Limits) -> Self {
        let route = Route::from_env(get);
        let trust = Arc::new(Trust::new(&route));
        Self { inner: Arc::new(Inner { route, limits, trust, way: OnceLock::new() }) }
    }

    /// Sends a request and waits for the head of the answer, whatever its status.
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: impl Into<Pieces>,
    ) -> Result<Response, Fault> {
        self.send(Method::POST, &Address::parse(url)?, headers, body).await
    }

    /// Sends a request of any kind to an address that the user named, and waits for the head of the answer, whatever
    /// its status. Redirects are not followed.
    pub async fn request(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: impl Into<Pieces>,
    ) -> Result<Response, Fault> {
        self.send(method, &Address::try_from(url)?, headers, body).await
    }

    /// The same, for an address that was read before.
    pub async fn send(
        &self,
        method: Method,
        address: &Address,
        mut headers: HeaderMap,
        body: impl Into<Pieces>,
    ) -> Result<Response, Fault> {
        // Compressed events would only arrive later and cost more; what comes compressed all the same is read.
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let Limits { write, decoded, .. } = self.inner.limits;
        let (body, progress) = body.into().sending();
        let way = self.way()?;
        let answer = tokio::select! {
            answer = way.send(method, address, headers, body) => answer,
            () = progress.stuck(write) => {
                let host = address.host();
                let message = format!("{host} accepted the connection but does not read the request.");
                return Err(Fault::new(FaultKind::Stalled, message));
            }
        };
        Ok(Response::new(way.understood(address, answer)?, address, decoded))
    }

    /// The connections of this door, set up once.
    fn way(&self) -> Result<&Way, Fault> {
        let Inner { route, limits, trust, way } = &*self.inner;
        if let Some(way) = way.get() {
            return Ok(way);
        }
        let new = Way::new(route, limits, trust, Names::default())?;
        Ok(way.get_or_init(|| Box::new(new)))
    }
}

#[cfg(test)]
mod tests;
