//! HTTP: requests for `http://` URLs are forwarded, and CONNECT makes a tunnel. Every request on a connection is checked.

use std::convert::Infallible;
use std::sync::Arc;

use ::http::header::{CONNECTION, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, UPGRADE};
use ::http::uri::Scheme;
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::Proxy;
use super::dial::DialError;
use super::refusals::Reason;
use super::target::Target;
use super::tunnel::{TunnelEnd, carry};

/// Largest head of a request.
const MAX_HEAD: usize = 64 << 10;
const HTTP_PORT: u16 = 80;

/// Headers that are about one connection.
const HOP_BY_HOP: [HeaderName; 3] =
    [CONNECTION, HeaderName::from_static("keep-alive"), HeaderName::from_static("te")];

/// Serves one connection, which counts until its permit is dropped. A tunnel keeps the permit, for hyper ends the
/// connection where the tunnel begins.
pub(crate) async fn serve(proxy: Arc<Proxy>, stream: TcpStream, permit: OwnedSemaphorePermit) {
    let permit = Arc::new(permit);
    let service = service_fn(move |request| {
        let (proxy, permit) = (Arc::clone(&proxy), Arc::clone(&permit));
        async move { Ok::<_, Infallible>(answer(proxy, request, permit).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).max_buf_size(MAX_HEAD).half_close(true);
    // The client is gone or does not speak the protocol: hyper has answered what can be answered.
    let _ = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

async fn answer(
    proxy: Arc<Proxy>,
    request: Request<Incoming>,
    permit: Arc<OwnedSemaphorePermit>,
) -> Response<Body> {
    let credentials = request.headers().get(PROXY_AUTHORIZATION);
    let Some(command) = credentials.and_then(|value| proxy.token.check_header(value.as_bytes())) else {
        let mut response =
            plain(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "this proxy belongs to another command");
        response
            .headers_mut()
            .insert(PROXY_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"sandbox\""));
        return response;
    };
    let target = match read_target(&request) {
        Ok(target) => target,
        Err(text) => return plain(StatusCode::BAD_REQUEST, &text),
    };
    let server = match proxy.dial(&command, &target).await {
        Ok(server) => server,
        Err(DialError::Refused(refusal)) => {
            return plain(StatusCode::FORBIDDEN, &format!("the sandbox refuses the connection: {refusal}"));
        }
        Err(DialError::Unreachable(error)) => {
            return plain(StatusCode::BAD_GATEWAY, &format!("{target} cannot be reached: {error}"));
        }
    };
    if request.method() == Method::CONNECT {
        tokio::spawn(async move {
            carry_tunnel(&proxy, &command, request, server, &target).await;
            drop(permit);
        });
        return Response::new(Body::Text(Bytes::new()));
    }
    match forward(request, server, &target, permit).await {
        Ok(response) => response,
        Err(error) => plain(StatusCode::BAD_GATEWAY, &format!("{target} does not answer: {error}")),
    }
}

/// Returns what a request wants to reach, or says what is wrong with it.
fn read_target(request: &Request<Incoming>) -> Result<Target, String> {
    let uri = request.uri();
    let authority = uri.authority().ok_or("only CONNECT and http:// URLs are served")?.as_str();
    let target = if request.method() == Method::CONNECT {
        Target::parse(authority)
    } else if uri.scheme() == Some(&Scheme::HTTP) {
        Target::parse_with_default(authority, HTTP_PORT)
    } else {
        return Err("only CONNECT and http:// URLs are served".into());
    };
    target.map_err(|error| error.to_string())
}

async fn carry_tunnel(
    proxy: &Proxy,
    command: &str,
    request: Request<Incoming>,
    server: TcpStream,
    target: &Target,
) {
    // The client is gone if there is no upgrade.
    let Ok(client) = hyper::upgrade::on(request).await else { return };
    if let Ok(TunnelEnd::OtherServerName) = carry(TokioIo::new(client), server, &target.host).await {
        proxy.refusals.add(command, target, Reason::OtherServerName);
    }
}

/// Sends a request on, with a `Host` that agrees with the URL, and returns the response.
async fn forward(
    mut request: Request<Incoming>,
    server: TcpStream,
    target: &Target,
    permit: Arc<OwnedSemaphorePermit>,
) -> Result<Response<Body>, hyper::Error> {
    let client_upgrade = request.headers().contains_key(UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // A path of a valid URL is a valid URL.
    *request.uri_mut() = path.parse().unwrap_or_else(|_| Uri::from_static("/"));
    clean_headers(request.headers_mut(), client_upgrade.is_some());
    let host = if target.port == HTTP_PORT { target.host.to_string() } else { target.to_string() };
    if let Ok(host) = HeaderValue::from_str(&host) {
        request.headers_mut().insert(HOST, host);
    }
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(server)).await?;
    // Its errors are those of the request.
    tokio::spawn(connection.with_upgrades());
    let mut response = sender.send_request(request).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        if let Some(client) = client_upgrade {
            let server = hyper::upgrade::on(&mut response);
            let host = target.host.clone();
            tokio::spawn(async move {
                if let (Ok(client), Ok(server)) = (client.await, server.await) {
                    // One of the sides is gone.
                    let _ = carry(TokioIo::new(client), TokioIo::new(server), &host).await;
                }
                drop(permit);
            });
        }
    } else {
        clean_headers(response.headers_mut(), false);
    }
    Ok(response.map(Body::Incoming))
}

/// Removes what is about one connection, but for a wish to change the protocol.
fn clean_headers(headers: &mut HeaderMap, keeps_upgrade: bool) {
    let upgrade = headers.get(UPGRADE).cloned().filter(|_| keeps_upgrade);
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let of_proxies: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("proxy-")).cloned().collect();
    for name in named.iter().chain(&of_proxies).chain(&HOP_BY_HOP).chain([&UPGRADE]) {
        headers.remove(name);
    }
    if let Some(upgrade) = upgrade {
        headers.insert(UPGRADE, upgrade);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::Text(Bytes::from(format!("{text}\n"))));
    *response.status_mut() = status;
    response.headers_mut().insert(::http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

/// Body of a response: our own text, or what a server sends.
enum Body {
    Text(Bytes),
    Incoming(Incoming),
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Text(text) if text.is_empty() => std::task::Poll::Ready(None),
            Self::Text(text) => std::task::Poll::Ready(Some(Ok(Frame::data(std::mem::take(text))))),
            Self::Incoming(body) => std::pin::Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Incoming(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => SizeHint::with_exact(text.len() as u64),
            Self::Incoming(body) => body.size_hint(),
        }
    }
}
