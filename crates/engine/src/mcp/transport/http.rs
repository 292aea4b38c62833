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
use whimbrel_models::Fault as HttpFault;
use whimbrel_models::http::{Response, Url};

use super::bounded::Bounded;
use super::fate::Fate;
use super::line::Line;
use super::message::{Heard, read};
use crate::mcp::fault::Fault;
use crate::mcp::limits;

type Failure = StreamableHttpError<HttpFault>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
/// How much of an error page is told.
const SHOWN: usize = 300;

/// The transport: rmcp's protocol over our door.
pub(super) type Http = StreamableHttpClientTransport<HttpClient>;

/// Makes the transport. Nothing is sent yet.
pub(super) fn transport(line: Line, fate: Fate) -> Http {
    let config = StreamableHttpClientTransportConfig::with_uri(line.url.as_str());
    let config = config.reinit_on_expired_session(true);
    StreamableHttpClientTransport::with_client(HttpClient { line: Arc::new(line), fate }, config)
}

/// Sends what rmcp wants sent.
#[derive(Clone)]
pub(super) struct HttpClient {
    line: Arc<Line>,
    fate: Fate,
}

impl HttpClient {
    async fn send(
        &self,
        method: Method,
        more: HashMap<HeaderName, HeaderValue>,
        session: Option<&str>,
        body: Vec<u8>,
    ) -> Result<Response, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.extend(more);
        if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
            headers.insert(SESSION, session);
        }
        let answer = self.line.request(method.clone(), headers, body.into()).await;
        let answer = answer.map_err(|fault| self.failed(StreamableHttpError::Client(fault)))?;
        match (answer.status, self.line.refusal(&answer)) {
            // The text is for us: what the server said is of use only to whoever logs in.
            (401, Some(why)) => {
                let failure = self.failed(StreamableHttpError::AuthRequired(AuthRequiredError::new(why)));
                if method == Method::POST {
                    // No further message would be taken.
                    self.fate.lose();
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
    async fn refused(&self, answer: Response) -> Failure {
        let (status, name) = (answer.status, answer.status_text());
        let to = answer.header("location").map(str::to_owned);
        let page = answer.beginning(SHOWN).await;
        let text = match (status, to) {
            (300..400, Some(to)) => format!(
                "it answered HTTP {status}: it is now at {}. Redirects are not followed; name that address.",
                without_secrets(&to)
            ),
            _ => format!("it answered HTTP {status} {name}: {}", String::from_utf8_lossy(&page).trim()),
        };
        self.failed(StreamableHttpError::UnexpectedServerResponse(text.into()))
    }

    /// Notes a failure, which rmcp does not always tell.
    fn failed(&self, failure: Failure) -> Failure {
        self.fate.note(fault(&failure));
        failure
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let asked = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let sent = self.send(Method::POST, headers, session.as_deref(), serde_json::to_vec(&message)?).await;
        let answer = match sent {
            // Without a beginning there is nothing else to be covered.
            Err(failure) if is_beginning(&message) => return Err(self.failed(failure)),
            sent => sent?,
        };
        let session_now = answer.header(SESSION.as_str()).map(str::to_owned);
        match (answer.status, answer.media_type().as_deref()) {
            (202 | 204, _) => Ok(StreamableHttpPostResponse::Accepted),
            (404, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            (200..300, Some(EVENTS)) => Ok(StreamableHttpPostResponse::Sse(events(answer), session_now)),
            (200..300, _) if asked.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            (200..300, Some(JSON)) => {
                let body = answer.whole(limits::MESSAGE).await.map_err(StreamableHttpError::Client)?;
                Ok(StreamableHttpPostResponse::Json(single(&body, asked)?, session_now))
            }
            (200..300, other) => {
                Err(self.failed(StreamableHttpError::UnexpectedContentType(other.map(str::to_owned))))
            }
            // An error of the protocol may come with an error of HTTP.
            (400.., Some(JSON)) if asked.is_some() => {
                let (status, body) = (answer.status, answer.beginning(limits::DESCRIPTION).await);
                match single(&body, asked) {
                    Ok(ServerJsonRpcMessage::Error(error))
                        if status == 400 && session.is_some() && has_forgotten_us(&error.error.message) =>
                    {
                        Err(StreamableHttpError::SessionExpired)
                    }
                    Ok(error @ ServerJsonRpcMessage::Error(_)) => {
                        Ok(StreamableHttpPostResponse::Json(error, session_now))
                    }
                    _ => Err(self.failed(StreamableHttpError::UnexpectedServerResponse(
                        format!("it answered HTTP {status}: {}", shown(&body)).into(),
                    ))),
                }
            }
            _ => Err(self.refused(answer).await),
        }
    }

    async fn stream(
        &self,
        session: Option<Arc<str>>,
        last: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(&last).ok()) {
            headers.insert(LAST_EVENT, last);
        }
        let answer = self.send(Method::GET, headers, session.as_deref(), Vec::new()).await?;
        match (answer.status, answer.media_type().as_deref()) {
            (200..300, Some(EVENTS)) => Ok(events(answer)),
            // Some servers have no such stream and say so in another way.
            (400..500, _) | (200..300, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            _ => Err(self.refused(answer).await),
        }
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFault;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post(message, session, headers).await
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
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
    ) -> Result<Events, Failure> {
        self.stream(session, last, headers).await
    }
}

/// Whether a message begins the session.
fn is_beginning(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::InitializeRequest(_))
}

/// The events of an answer. How large one may be is the same for all of them, so rmcp need not say it each time.
fn events(answer: Response) -> Events {
    SseStream::from_bytes_stream(Bounded::new(answer.chunks(), limits::MESSAGE)).boxed()
}

/// Whether an error is about the session. Servers should say so by HTTP 404, but some of the most copied examples do it
/// by 400 and words.
fn has_forgotten_us(error: &str) -> bool {
    error.to_ascii_lowercase().contains("session")
}

/// A body that is one message. An error that does not say what it is about is the answer to what was asked.
fn single(body: &[u8], asked: Option<RequestId>) -> Result<ServerJsonRpcMessage, Failure> {
    let message = match read(body) {
        Heard::Messages(messages) => messages.into_iter().next(),
        Heard::Noise => None,
    };
    let unreadable = || format!("its answer is no JSON-RPC message: {}", shown(body));
    match message {
        Some(ServerJsonRpcMessage::Error(mut error)) => {
            error.id = error.id.or(asked);
            Ok(ServerJsonRpcMessage::Error(error))
        }
        Some(message) => Ok(message),
        None => Err(StreamableHttpError::UnexpectedServerResponse(unreadable().into())),
    }
}

fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).trim().to_owned()
}

/// An address without what may be secret in it.
fn without_secrets(address: &str) -> String {
    match Url::parse(address) {
        Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        Err(_) => address.split(['?', '#']).next().unwrap_or_default().to_owned(),
    }
}

/// What a failure of the transport means to us.
pub(super) fn fault(failure: &Failure) -> Fault {
    match failure {
        StreamableHttpError::AuthRequired(unknown) => {
            Fault::NeedsAuth(unknown.www_authenticate_header.clone())
        }
        StreamableHttpError::InsufficientScope(uncovered) => {
            Fault::NeedsAuth(uncovered.www_authenticate_header.clone())
        }
        StreamableHttpError::Client(fault) => Fault::Gone(fault.message.clone()),
        StreamableHttpError::UnexpectedServerResponse(text) => Fault::Gone(text.to_string()),
        StreamableHttpError::UnexpectedContentType(kind) => Fault::Gone(format!(
            "it answered with {}, which is neither JSON nor events. Is this the address of an MCP server?",
            kind.as_deref().unwrap_or("something")
        )),
        other => Fault::Gone(format!("{other}.")),
    }
}
