//! The one door to the network: who may be reached and how, proxies, TLS, time and size limits.
//!
//! Nothing is set up before it is needed: a process that only talks to an `http://` address never reads a root
//! certificate, and one that never asks has no client at all.

mod fetching;
mod sending;
mod trouble;
mod trust;

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue};
use ::http::{HeaderMap, Method};
use bytes::{Bytes, BytesMut};
use futures::stream::{Stream, StreamExt};
use http_body::Body as _;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy};

use crate::fault::{self, Fault, FaultKind};

pub use fetching::{NotFetched, Permit};
pub use reqwest::Url;
pub use sending::Pieces;

/// The way out, shared by all sessions of a process. Cloning shares the connections.
#[derive(Clone)]
pub struct Door {
    inner: Arc<Inner>,
}

struct Inner {
    route: Route,
    limits: Limits,
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
}

/// How the network is reached, as the environment says.
#[derive(Debug, Clone, Default, PartialEq)]
struct Route {
    http_proxy: Option<String>,
    https_proxy: Option<String>,
    no_proxy: String,
    /// A PEM file with further root certificates.
    extra_roots: Option<String>,
    /// Another one, which many programs share and which need not be there.
    shared_roots: Option<String>,
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

/// The proxy never stands between us and this machine.
const NEVER_PROXIED: &str = "localhost,127.0.0.0/8,::1";

impl Door {
    /// A door that goes by `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY` (also in lower case), and trusts the
    /// certificates in `NODE_EXTRA_CA_CERTS` and `SSL_CERT_FILE` beside those of the system.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Self {
        Self::with_limits(get, Limits::default())
    }

    /// The same, with limits of your own.
    pub fn with_limits(get: impl Fn(&str) -> Option<String>, limits: Limits) -> Self {
        let inner = Inner { route: route(get), limits, plain: OnceLock::new(), secure: OnceLock::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Sends a request and waits for the head of the answer, whatever its status.
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: impl Into<Pieces>,
    ) -> Result<Response, Fault> {
        let url = Url::parse(url).map_err(|error| {
            Fault::new(FaultKind::InvalidRequest, format!("{url:?} is no address: {error}."))
        })?;
        self.request(Method::POST, url, headers, body).await
    }

    /// Sends a request of any kind to an address that the user named, and waits for the head of the answer, whatever
    /// its status. Redirects are not followed.
    pub async fn request(
        &self,
        method: Method,
        url: Url,
        mut headers: HeaderMap,
        body: impl Into<Pieces>,
    ) -> Result<Response, Fault> {
        let host = url.host_str().unwrap_or_default().to_owned();
        // Compressed events would only arrive later and cost more; what comes compressed all the same is read.
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let (body, progress) = body.into().sending();
        let request =
            self.client(&url)?.request(method, url).headers(headers).body(reqwest::Body::wrap(body));
        let answer = tokio::select! {
            answer = request.send() => answer.map_err(|error| trouble::sending(&host, &error))?,
            () = progress.stuck(self.inner.limits.write) => {
                return Err(Fault::new(FaultKind::Stalled, format!("{host} accepted the connection but does not read the request.")));
            }
        };
        Ok(Response::new(answer, host, self.inner.limits.decoded))
    }

    /// The client for an address, made once.
    fn client(&self, url: &Url) -> Result<&Client, Fault> {
        let Inner { route, limits, plain, secure } = &*self.inner;
        let cell = if route.needs_tls(url.scheme()) { secure } else { plain };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        // Saves a thread for looking up what is known.
        let known = [([127, 0, 0, 1], 0).into(), ([0, 0, 0, 0, 0, 0, 0, 1], 0).into()];
        let client = route.client(url, route.builder(limits)?.resolve_to_addrs("localhost", &known))?;
        Ok(cell.get_or_init(|| client))
    }
}

fn route(get: impl Fn(&str) -> Option<String>) -> Route {
    let any =
        |names: &[&str]| names.iter().find_map(|name| get(name).filter(|value| !value.trim().is_empty()));
    let all = any(&["ALL_PROXY", "all_proxy"]);
    Route {
        http_proxy: any(&["HTTP_PROXY", "http_proxy"]).or_else(|| all.clone()),
        https_proxy: any(&["HTTPS_PROXY", "https_proxy"]).or(all),
        no_proxy: any(&["NO_PROXY", "no_proxy"])
            .map_or_else(|| NEVER_PROXIED.to_owned(), |list| format!("{NEVER_PROXIED},{list}")),
        extra_roots: any(&["NODE_EXTRA_CA_CERTS"]),
        shared_roots: any(&["SSL_CERT_FILE"]),
    }
}

impl Route {
    fn needs_tls(&self, scheme: &str) -> bool {
        scheme == "https" || self.http_proxy.as_deref().is_some_and(|proxy| proxy.starts_with("https:"))
    }

    fn builder(&self, limits: &Limits) -> Result<ClientBuilder, Fault> {
        let mut builder = Client::builder()
            .no_proxy()
            // A redirect would carry the key to whoever is named there.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(limits.connect)
            .http2_keep_alive_interval(Duration::from_secs(20))
            .http2_keep_alive_timeout(Duration::from_secs(20));
        // An address may hold a password, so it is not repeated.
        let bad = |_| {
            Fault::new(FaultKind::InvalidRequest, "The proxy named in the environment is no valid address.")
        };
        let http = self.http_proxy.as_ref().map(|address| Proxy::http(address).map_err(bad));
        let https = self.https_proxy.as_ref().map(|address| Proxy::https(address).map_err(bad));
        for proxy in http.into_iter().chain(https) {
            builder = builder.proxy(proxy?.no_proxy(NoProxy::from_string(&self.no_proxy)));
        }
        Ok(builder)
    }

    /// A client for an address: without TLS where none is needed.
    fn client(&self, url: &Url, builder: ClientBuilder) -> Result<Client, Fault> {
        let builder =
            if self.needs_tls(url.scheme()) { self.trust(builder)? } else { trust::nobody(builder)? };
        builder.build().map_err(|error| trouble::setting_up(&error))
    }
}

/// An answer whose head has arrived.
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    body: Chunks,
}

impl Response {
    fn new(answer: reqwest::Response, host: String, limit: u64) -> Self {
        let (head, body) = ::http::Response::<reqwest::Body>::from(answer).into_parts();
        Self { status: head.status.as_u16(), headers: head.headers, body: Chunks { body, host, left: limit } }
    }

    /// What the status is called.
    pub fn status_text(&self) -> &'static str {
        let status = ::http::StatusCode::from_u16(self.status).ok();
        status.and_then(|status| status.canonical_reason()).unwrap_or_default()
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The media type without its parameters, in lower case.
    pub fn media_type(&self) -> Option<String> {
        let value = self.headers.get(CONTENT_TYPE)?.to_str().ok()?;
        Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    /// The provider's id of the request, if it gave one.
    pub fn request_id(&self) -> Option<String> {
        fault::request_id(|name| self.headers.get(name).and_then(|value| value.to_str().ok()))
    }

    /// The body as it arrives.
    pub fn chunks(self) -> Chunks {
        self.body
    }

    /// The body's beginning, up to a limit; what a failing connection had brought until then.
    pub async fn beginning(self, limit: usize) -> Bytes {
        let mut chunks = self.chunks();
        let mut text = BytesMut::new();
        while let Some(Ok(chunk)) = chunks.next().await {
            text.extend_from_slice(&chunk);
            if text.len() >= limit {
                text.truncate(limit);
                break;
            }
        }
        text.freeze()
    }

    /// The whole body; one that is larger than the limit is a fault.
    pub async fn whole(self, limit: usize) -> Result<Bytes, Fault> {
        let mut chunks = self.chunks();
        chunks.left = chunks.left.min(limit as u64);
        let mut text = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            text.extend_from_slice(&chunk?);
        }
        Ok(text.freeze())
    }
}

/// The body of an answer, decompressed, in the pieces it arrives in.
pub struct Chunks {
    body: reqwest::Body,
    host: String,
    left: u64,
}

impl Chunks {
    /// Reads what is left so that the connection can be used again; gives up soon.
    pub fn finish(mut self) {
        let rest = async move { while let Some(Ok(_)) = self.next().await {} };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(Duration::from_secs(2), rest));
        }
    }
}

impl Stream for Chunks {
    type Item = Result<Bytes, Fault>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(trouble::receiving(&this.host, &error)))),
                Some(Ok(frame)) => frame,
            };
            // Trailers say nothing to us.
            let Ok(chunk) = frame.into_data() else { continue };
            if chunk.is_empty() {
                continue;
            }
            return Poll::Ready(Some(match this.left.checked_sub(chunk.len() as u64) {
                Some(left) => {
                    this.left = left;
                    Ok(chunk)
                }
                None => Err(trouble::too_large(&this.host)),
            }));
        }
    }
}

#[cfg(test)]
mod tests;
