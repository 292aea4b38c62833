//! A way out: connections that are kept and shared, and requests that are sent over them.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::ACCEPT;
use ::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header::AUTHORIZATION};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::Limits;
use super::address::Address;
use super::connecting::{Connector, Ways};
use super::names::Names;
use super::route::Route;
use super::sending::Sending;
use super::trouble;
use super::trust::Trust;
use crate::fault::Fault;

/// How long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(90);
/// How often a connection of HTTP/2 is asked whether it lives, and how long it may take to say so.
const PING: Duration = Duration::from_secs(20);
/// How soon the system asks the same of a silent connection, and how often.
const PROBE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;
/// How long the system waits until what was sent has arrived.
#[cfg(any(target_os = "android", target_os = "linux"))]
const ARRIVAL: Duration = Duration::from_secs(30);

/// A client with its connections.
pub(super) struct Way {
    client: Client<Connector, Box<Sending>>,
    connector: Connector,
}

impl Way {
    pub(super) fn new(
        route: &Route,
        limits: &Limits,
        trust: &Arc<Trust>,
        names: Names,
    ) -> Result<Self, Fault> {
        let mut tcp = HttpConnector::new_with_resolver(names);
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Shared among the addresses of a host, so that one that is dead leaves time for the next.
        tcp.set_connect_timeout(Some(limits.connect));
        tcp.set_keepalive(Some(PROBE));
        tcp.set_keepalive_interval(Some(PROBE));
        tcp.set_keepalive_retries(Some(PROBES));
        #[cfg(any(target_os = "android", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(ARRIVAL));
        let ways = Ways { tcp, trust: Arc::clone(trust), proxies: route.proxies()?, limit: limits.connect };
        let connector = Connector::new(ways);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PING)
            .build(connector.clone());
        Ok(Self { client, connector })
    }

    /// Sends a request and waits for the head of the answer, whatever its status. Redirects are not followed: they
    /// would carry the key to whoever is named there.
    pub(super) fn send(
        &self,
        method: Method,
        address: &Address,
        mut headers: HeaderMap,
        body: Box<Sending>,
    ) -> impl Future<Output = Result<Response<Incoming>, Error>> + Send + use<> {
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        if let Some(login) = &address.login {
            headers.entry(AUTHORIZATION).or_insert_with(|| login.clone());
        }
        self.connector.authorize(&address.uri, &mut headers);
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = address.uri.clone();
        *request.headers_mut() = headers;
        self.client.request(request)
    }

    /// The answer of the server that was asked, or the fault, also where a proxy answers in its own name.
    pub(super) fn understood(
        &self,
        address: &Address,
        answer: Result<Response<Incoming>, Error>,
    ) -> Result<Response<Incoming>, Fault> {
        let proxy = || self.connector.passing_on(&address.uri);
        match answer {
            Err(error) => Err(trouble::sending(address.host(), proxy(), &error)),
            Ok(answer) if answer.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED => match proxy() {
                Some(proxy) => Err(trouble::no_login(address.host(), &proxy)),
                None => Ok(answer),
            },
            Ok(answer) => Ok(answer),
        }
    }
}
