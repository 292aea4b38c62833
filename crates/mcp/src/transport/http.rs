//! Streamable HTTP transport. The protocol is rmcp's; requests go through [`RemoteEndpoint`], which follows no
//! redirects, so that no token reaches another server.

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
use whimbrel_models::ModelError as HttpError;
use whimbrel_models::http::{Response, Url};

use super::authenticated_endpoint::RemoteEndpoint;
use super::connection_state::ConnectionState;
use super::event_limit::EventLimit;
use super::message::{ParsedInput, parse_messages};
use crate::error::McpError;
use crate::limits;

type StreamableError = StreamableHttpError<HttpError>;
type EventStream = BoxStream<'static, Result<Sse, SseError>>;

const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_HEADER: HeaderName = HeaderName::from_static("last-event-id");
const EVENT_STREAM_TYPE: &str = "text/event-stream";
const JSON_TYPE: &str = "application/json";
const MAX_SHOWN_BYTES: usize = 300;

/// rmcp's transport over our HTTP client.
pub(super) type HttpTransport = StreamableHttpClientTransport<StreamableClient>;

/// Creates the transport without sending anything.
pub(super) fn new_transport(endpoint: RemoteEndpoint, state: ConnectionState) -> HttpTransport {
    let config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
    let config = config.reinit_on_expired_session(true);
    StreamableHttpClientTransport::with_client(
        StreamableClient { endpoint: Arc::new(endpoint), state },
        config,
    )
}

/// HTTP client for rmcp's transport.
#[derive(Clone)]
pub(super) struct StreamableClient {
    endpoint: Arc<RemoteEndpoint>,
    state: ConnectionState,
}

impl StreamableClient {
    async fn send(
        &self,
        method: Method,
        extra_headers: HashMap<HeaderName, HeaderValue>,
        session: Option<&str>,
        body: Vec<u8>,
    ) -> Result<Response, StreamableError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON_TYPE));
        headers.extend(extra_headers);
        if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
            headers.insert(SESSION_HEADER, session);
        }
        let response = self.endpoint.request(method.clone(), headers, body.into()).await;
        let response = response.map_err(|error| self.record_error(StreamableHttpError::Client(error)))?;
        match (response.status, self.endpoint.auth_error(&response)) {
            // rmcp reports this text as the reason; the header itself is only needed by a login.
            (401, Some(reason)) => {
                let error =
                    self.record_error(StreamableHttpError::AuthRequired(AuthRequiredError::new(reason)));
                if method == Method::POST {
                    // The server would accept no further message.
                    self.state.mark_lost();
                }
                Err(error)
            }
            // Other requests may have the scope, so the connection is fine.
            (_, Some(reason)) => {
                Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(reason, None)))
            }
            (_, None) => Ok(response),
        }
    }

    /// Error for a response with an error status.
    async fn status_error(&self, response: Response) -> StreamableError {
        let (status, name) = (response.status, response.status_text());
        let location = response.header("location").map(str::to_owned);
        let body = response.read_prefix(MAX_SHOWN_BYTES).await;
        let text = match (status, location) {
            (300..400, Some(location)) => format!(
                "it answered HTTP {status}: it redirects to {}. Redirects are not followed; configure that URL.",
                redact_url(&location)
            ),
            _ => format!("it answered HTTP {status} {name}: {}", String::from_utf8_lossy(&body).trim()),
        };
        self.record_error(StreamableHttpError::UnexpectedServerResponse(text.into()))
    }

    /// Records an error, because rmcp does not report every one.
    fn record_error(&self, error: StreamableError) -> StreamableError {
        self.state.record_error(to_mcp_error(&error));
        error
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableError> {
        let request_id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let sent = self.send(Method::POST, headers, session.as_deref(), serde_json::to_vec(&message)?).await;
        let response = match sent {
            // Without `initialize` no other request can succeed.
            Err(error) if is_initialize(&message) => return Err(self.record_error(error)),
            sent => sent?,
        };
        let new_session = response.header(SESSION_HEADER.as_str()).map(str::to_owned);
        match (response.status, response.media_type().as_deref()) {
            (202 | 204, _) => Ok(StreamableHttpPostResponse::Accepted),
            (404, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            (200..300, Some(EVENT_STREAM_TYPE)) => {
                Ok(StreamableHttpPostResponse::Sse(event_stream(response), new_session))
            }
            (200..300, _) if request_id.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            (200..300, Some(JSON_TYPE)) => {
                let body = response
                    .read_all(limits::MAX_MESSAGE_BYTES)
                    .await
                    .map_err(StreamableHttpError::Client)?;
                Ok(StreamableHttpPostResponse::Json(parse_single(&body, request_id)?, new_session))
            }
            (200..300, other) => {
                Err(self.record_error(StreamableHttpError::UnexpectedContentType(other.map(str::to_owned))))
            }
            // A JSON-RPC error may come with an HTTP error status.
            (400.., Some(JSON_TYPE)) if request_id.is_some() => {
                let (status, body) =
                    (response.status, response.read_prefix(limits::MAX_DESCRIPTION_BYTES).await);
                match parse_single(&body, request_id) {
                    Ok(ServerJsonRpcMessage::Error(error))
                        if status == 400 && session.is_some() && is_session_error(&error.error.message) =>
                    {
                        Err(StreamableHttpError::SessionExpired)
                    }
                    Ok(error @ ServerJsonRpcMessage::Error(_)) => {
                        Ok(StreamableHttpPostResponse::Json(error, new_session))
                    }
                    _ => Err(self.record_error(StreamableHttpError::UnexpectedServerResponse(
                        format!("it answered HTTP {status}: {}", excerpt(&body)).into(),
                    ))),
                }
            }
            _ => Err(self.status_error(response).await),
        }
    }

    async fn open_stream(
        &self,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, StreamableError> {
        if let Some(last_event_id) =
            last_event_id.and_then(|last_event_id| HeaderValue::from_str(&last_event_id).ok())
        {
            headers.insert(LAST_EVENT_HEADER, last_event_id);
        }
        let response = self.send(Method::GET, headers, session.as_deref(), Vec::new()).await?;
        match (response.status, response.media_type().as_deref()) {
            (200..300, Some(EVENT_STREAM_TYPE)) => Ok(event_stream(response)),
            // Servers without this stream answer in various ways.
            (400..500, _) | (200..300, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            _ => Err(self.status_error(response).await),
        }
    }
}

impl StreamableHttpClient for StreamableClient {
    type Error = HttpError;

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
        // Failing to delete the session at the server is harmless.
        self.send(Method::DELETE, headers, Some(&session), Vec::new()).await.map(drop)
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, StreamableError> {
        self.open_stream(session, last_event_id, headers).await
    }
}

/// Returns true for the `initialize` request.
fn is_initialize(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::InitializeRequest(_))
}

/// Event stream of a response, with the event size limited.
fn event_stream(response: Response) -> EventStream {
    SseStream::from_bytes_stream(EventLimit::new(response.into_body(), limits::MAX_MESSAGE_BYTES)).boxed()
}

/// Returns true if an error is about an expired session. The protocol says HTTP 404, but widely copied examples answer
/// 400 with a text.
fn is_session_error(error: &str) -> bool {
    error.to_ascii_lowercase().contains("session")
}

/// Parses a body that is one message. An error without an id is taken as the response to `request_id`.
fn parse_single(body: &[u8], request_id: Option<RequestId>) -> Result<ServerJsonRpcMessage, StreamableError> {
    let message = match parse_messages(body) {
        ParsedInput::Messages(messages) => messages.into_iter().next(),
        ParsedInput::Ignored => None,
    };
    let unreadable = || format!("its response is not a JSON-RPC message: {}", excerpt(body));
    match message {
        Some(ServerJsonRpcMessage::Error(mut error)) => {
            error.id = error.id.or(request_id);
            Ok(ServerJsonRpcMessage::Error(error))
        }
        Some(message) => Ok(message),
        None => Err(StreamableHttpError::UnexpectedServerResponse(unreadable().into())),
    }
}

fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN_BYTES)]).trim().to_owned()
}

/// URL without query and fragment, which may hold secrets.
fn redact_url(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        Err(_) => text.split(['?', '#']).next().unwrap_or_default().to_owned(),
    }
}

pub(super) fn to_mcp_error(error: &StreamableError) -> McpError {
    match error {
        StreamableHttpError::AuthRequired(auth_error) => {
            McpError::NeedsAuth(auth_error.www_authenticate_header.clone())
        }
        StreamableHttpError::InsufficientScope(scope_error) => {
            McpError::NeedsAuth(scope_error.www_authenticate_header.clone())
        }
        StreamableHttpError::Client(error) => McpError::Disconnected(error.message.clone()),
        StreamableHttpError::UnexpectedServerResponse(text) => McpError::Disconnected(text.to_string()),
        StreamableHttpError::UnexpectedContentType(content_type) => McpError::Disconnected(format!(
            "it answered with {}, which is neither JSON nor an event stream. Check that the URL is that of an MCP server.",
            content_type.as_deref().unwrap_or("something")
        )),
        other => McpError::Disconnected(format!("{other}.")),
    }
}
