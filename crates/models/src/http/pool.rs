//! Connection pool: sends requests over shared connections.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::ACCEPT;
use ::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header::AUTHORIZATION};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::HttpClientLimits;
use super::config::NetworkConfig;
use super::connector::{Connector, ConnectorConfig};
use super::dns::Resolver;
use super::error;
use super::request_body::SendingBody;
use super::request_url::RequestUrl;
use super::tls::TlsSettings;
use crate::error::ModelError;

/// Time after which an idle connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Interval and timeout of HTTP/2 pings.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(20);
/// Interval and number of TCP keep-alive probes.
const TCP_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const TCP_KEEPALIVE_RETRIES: u32 = 3;
/// Time after which unacknowledged data closes a TCP connection.
#[cfg(any(target_os = "android", target_os = "linux"))]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

/// An HTTP client with its pooled connections.
pub(super) struct ConnectionPool {
    client: Client<Connector, Box<SendingBody>>,
    connector: Connector,
}

impl ConnectionPool {
    pub(super) fn new(
        network_config: &NetworkConfig,
        limits: &HttpClientLimits,
        tls: &Arc<TlsSettings>,
        resolver: Resolver,
    ) -> Result<Self, ModelError> {
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Divided among the addresses of a host, so that a dead one leaves time for the next.
        tcp.set_connect_timeout(Some(limits.connect_timeout));
        tcp.set_keepalive(Some(TCP_KEEPALIVE_INTERVAL));
        tcp.set_keepalive_interval(Some(TCP_KEEPALIVE_INTERVAL));
        tcp.set_keepalive_retries(Some(TCP_KEEPALIVE_RETRIES));
        #[cfg(any(target_os = "android", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));
        let config = ConnectorConfig {
            tcp,
            tls: Arc::clone(tls),
            proxies: network_config.proxy_rules()?,
            timeout: limits.connect_timeout,
        };
        let connector = Connector::new(config);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .http2_keep_alive_interval(HTTP2_PING_INTERVAL)
            .http2_keep_alive_timeout(HTTP2_PING_INTERVAL)
            .build(connector.clone());
        Ok(Self { client, connector })
    }

    /// Sends a request and waits for the response head, whatever its status. Redirects are not followed, because they
    /// would send the key to another server.
    pub(super) fn send(
        &self,
        method: Method,
        request_url: &RequestUrl,
        mut headers: HeaderMap,
        body: Box<SendingBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, Error>> + Send + use<> {
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        if let Some(basic_auth) = &request_url.basic_auth {
            headers.entry(AUTHORIZATION).or_insert_with(|| basic_auth.clone());
        }
        self.connector.add_proxy_auth(&request_url.uri, &mut headers);
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = request_url.uri.clone();
        *request.headers_mut() = headers;
        self.client.request(request)
    }

    /// Converts a failed request, or a response of the proxy itself, to an error.
    pub(super) fn check_response(
        &self,
        request_url: &RequestUrl,
        response: Result<Response<Incoming>, Error>,
    ) -> Result<Response<Incoming>, ModelError> {
        let proxy = || self.connector.forwarding_proxy_address(&request_url.uri);
        match response {
            Err(error) => Err(error::send_error(request_url.host(), proxy(), &error)),
            Ok(response) if response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED => match proxy() {
                Some(proxy) => Err(error::proxy_auth_error(request_url.host(), &proxy)),
                None => Ok(response),
            },
            Ok(response) => Ok(response),
        }
    }
}
