//! A server at an address, by streamable HTTP. The protocol is rmcp's; every request goes over our own line, which
//! follows no redirect and so takes no token elsewhere.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::{BoxStream, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use whimbrel_models::ModelError as HttpFault;
use whimbrel_models::http::{Response, Url};

use super::event_limit::EventLimit;
use super::connection_state::ConnectionState;
use super::endpoint::RemoteEndpoint;
use super::message::{ParsedInput, parse_messages};
use crate::mcp::error::McpError;
use crate::mcp::limits;

type StreamableError = StreamableHttpError<HttpFault>;
type EventStream = BoxStream<'static, Result<Sse, SseError>>;

const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_HEADER: HeaderName = HeaderName::from_static("last-event-id");
const EVENT_STREAM_TYPE: &str = "text/event-stream";
const JSON_TYPE: &str = "application/json";
/// How much of an error page is told.
const MAX_SHOWN_BYTES: usize = 300;

/// The transport: rmcp's protocol over our door.
pub(super) type HttpTransport = StreamableHttpClientTransport<StreamableClient>;

/// Makes the transport. Nothing is sent yet.
pub(super) fn new_transport(line: RemoteEndpoint, fate: ConnectionState) -> HttpTransport {
    let config = StreamableHttpClientTransportConfig::with_uri(line.url.as_str());
    let config = config.reinit_on_expired_session(true);
    StreamableHttpClientTransport::with_client(StreamableClient { endpoint: Arc::new(line), state: fate }, config)
}

/// Sends what rmcp wants sent.
#[derive(Clone)]
pub(super) struct StreamableClient {
    endpoint: Arc<RemoteEndpoint>,
    state: ConnectionState,
}

impl StreamableClient {
    async fn send(
        &self,
        method: Method,
        more: HashMap<HeaderName, HeaderValue>,
        session: Option<&str>,
        body: Vec<u8>,
    ) -> Result<Response, StreamableError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON_TYPE));
        headers.extend(more);
        if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
            headers.insert(SESSION_HEADER, session);
        }
        let answer = self.endpoint.request(method.clone(), headers, body.into()).await;
        let answer = answer.map_err(|fault| self.record_error(StreamableHttpError::Client(fault)))?;
        match (answer.status, self.endpoint.auth_error(&answer)) {
            // The text is for us: what the server said is of use only to whoever logs in.
            (401, Some(why)) => {
                let failure = self.record_error(StreamableHttpError::AuthRequired(AuthRequiredError::new(why)));
                if method == Method::POST {
                    // No further message would be taken.
                    self.state.mark_lost();
                }
                Err(failure)
            }
            // Other requests may well be covered: this is no fault of the connection.
            (_, Some(why)) => {
                Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(why, None)))
            }
            (_, None) => Ok(answer),
        }
    }

    /// An answer that is a failure by its status.
    async fn status_error(&self, answer: Response) -> StreamableError {
        let (status, name) = (answer.status, answer.status_text());
        let to = answer.header("location").map(str::to_owned);
        let page = answer.read_prefix(MAX_SHOWN_BYTES).await;
        let text = match (status, to) {
            (300..400, Some(to)) => format!(
                "it answered HTTP {status}: it is now at {}. Redirects are not followed; name that address.",
                redact_url(&to)
            ),
            _ => format!("it answered HTTP {status} {name}: {}", String::from_utf8_lossy(&page).trim()),
        };
        self.record_error(StreamableHttpError::UnexpectedServerResponse(text.into()))
    }

    /// Notes a failure, which rmcp does not always tell.
    fn record_error(&self, failure: StreamableError) -> StreamableError {
        self.state.record_error(to_mcp_error(&failure));
        failure
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableError> {
        let asked = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let sent = self.send(Method::POST, headers, session.as_deref(), serde_json::to_vec(&message)?).await;
        let answer = match sent {
            // Without a beginning there is nothing else to be covered.
            Err(failure) if is_initialize(&message) => return Err(self.record_error(failure)),
            sent => sent?,
        };
        let session_now = answer.header(SESSION_HEADER.as_str()).map(str::to_owned);
        match (answer.status, answer.media_type().as_deref()) {
            (202 | 204, _) => Ok(StreamableHttpPostResponse::Accepted),
            (404, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            (200..300, Some(EVENT_STREAM_TYPE)) => Ok(StreamableHttpPostResponse::Sse(event_stream(answer), session_now)),
            (200..300, _) if asked.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            (200..300, Some(JSON_TYPE)) => {
                let body = answer.read_all(limits::MAX_MESSAGE_BYTES).await.map_err(StreamableHttpError::Client)?;
                Ok(StreamableHttpPostResponse::Json(parse_single(&body, asked)?, session_now))
            }
            (200..300, other) => {
                Err(self.record_error(StreamableHttpError::UnexpectedContentType(other.map(str::to_owned))))
            }
            // An error of the protocol may come with an error of HTTP.
            (400.., Some(JSON_TYPE)) if asked.is_some() => {
                let (status, body) = (answer.status, answer.read_prefix(limits::MAX_DESCRIPTION_BYTES).await);
                match parse_single(&body, asked) {
                    Ok(ServerJsonRpcMessage::Error(error))
                        if status == 400 && session.is_some() && is_session_error(&error.error.message) =>
                    {
                        Err(StreamableHttpError::SessionExpired)
                    }
                    Ok(error @ ServerJsonRpcMessage::Error(_)) => {
                        Ok(StreamableHttpPostResponse::Json(error, session_now))
                    }
                    _ => Err(self.record_error(StreamableHttpError::UnexpectedServerResponse(
                        format!("it answered HTTP {status}: {}", excerpt(&body)).into(),
                    ))),
                }
            }
            _ => Err(self.status_error(answer).await),
        }
    }

    async fn open_stream(
        &self,
        session: Option<Arc<str>>,
        last: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, StreamableError> {
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(&last).ok()) {
            headers.insert(LAST_EVENT_HEADER, last);
        }
        let answer = self.send(Method::GET, headers, session.as_deref(), Vec::new()).await?;
        match (answer.status, answer.media_type().as_deref()) {
            (200..300, Some(EVENT_STREAM_TYPE)) => Ok(event_stream(answer)),
            // Some servers have no such stream and say so in another way.
            (400..500, _) | (200..300, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            _ => Err(self.status_error(answer).await),
        }
    }
}

impl StreamableHttpClient for StreamableClient {
    type Error = HttpFault;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableError> {
        self.post(message, session, headers).await
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableError> {
        // A server that keeps its session is not our trouble.
        self.send(Method::DELETE, headers, Some(&session), Vec::new()).await.map(drop)
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, StreamableError> {
        self.open_stream(session, last, headers).await
    }
}

/// Whether a message begins the session.
fn is_initialize(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::InitializeRequest(_))
}

/// The events of an answer. How large one may be is the same for all of them, so rmcp need not say it each time.
fn event_stream(answer: Response) -> EventStream {
    SseStream::from_bytes_stream(EventLimit::new(answer.into_body(), limits::MAX_MESSAGE_BYTES)).boxed()
}

/// Whether an error is about the session. Servers should say so by HTTP 404, but some of the most copied examples do it
/// by 400 and words.
fn is_session_error(error: &str) -> bool {
    error.to_ascii_lowercase().contains("session")
}

/// A body that is one message. An error that does not say what it is about is the answer to what was asked.
fn parse_single(body: &[u8], asked: Option<RequestId>) -> Result<ServerJsonRpcMessage, StreamableError> {
    let message = match parse_messages(body) {
        ParsedInput::Messages(messages) => messages.into_iter().next(),
        ParsedInput::Ignored => None,
    };
    let unreadable = || format!("its answer is no JSON-RPC message: {}", excerpt(body));
    match message {
        Some(ServerJsonRpcMessage::Error(mut error)) => {
            error.id = error.id.or(asked);
            Ok(ServerJsonRpcMessage::Error(error))
        }
        Some(message) => Ok(message),
        None => Err(StreamableHttpError::UnexpectedServerResponse(unreadable().into())),
    }
}

fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN_BYTES)]).trim().to_owned()
}

/// An address without what may be secret in it.
fn redact_url(address: &str) -> String {
    match Url::parse(address) {
        Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        Err(_) => address.split(['?', '#']).next().unwrap_or_default().to_owned(),
    }
}

/// What a failure of the transport means to us.
pub(super) fn to_mcp_error(failure: &StreamableError) -> McpError {
    match failure {
        StreamableHttpError::AuthRequired(unknown) => {
            McpError::NeedsAuth(unknown.www_authenticate_header.clone())
        }
        StreamableHttpError::InsufficientScope(uncovered) => {
            McpError::NeedsAuth(uncovered.www_authenticate_header.clone())
        }
        StreamableHttpError::Client(fault) => McpError::Disconnected(fault.message.clone()),
        StreamableHttpError::UnexpectedServerResponse(text) => McpError::Disconnected(text.to_string()),
        StreamableHttpError::UnexpectedContentType(kind) => McpError::Disconnected(format!(
            "it answered with {}, which is neither JSON nor events. Is this the address of an MCP server?",
            kind.as_deref().unwrap_or("something")
        )),
        other => McpError::Disconnected(format!("{other}.")),
    }
}
