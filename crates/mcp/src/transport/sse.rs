//! SSE transport, the older one: messages of the server arrive on a long response, whose first event names the URL for
//! ours.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_models::http::{BodyStream, Url};
use whimbrel_models::sse::SseDecoder;

use super::authenticated_endpoint::RemoteEndpoint;
use super::connection_state::ConnectionState;
use super::message::{ParsedInput, parse_messages};
use crate::error::McpError;

const QUEUE_CAPACITY: usize = 64;
/// Timeout for the server to accept a message.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_SHOWN_BYTES: usize = 300;

pub(super) struct SseTransport {
    message_endpoint: RemoteEndpoint,
    state: ConnectionState,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    _reader: AbortOnDropHandle<()>,
}

impl SseTransport {
    /// Connects and waits for the `endpoint` event.
    pub(super) async fn connect(endpoint: RemoteEndpoint, state: ConnectionState) -> Result<Self, McpError> {
        let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))]);
        let response = endpoint.request(Method::GET, accept, Bytes::new()).await;
        let response = response.map_err(|error| McpError::Disconnected(error.message))?;
        if let Some(reason) = endpoint.auth_error(&response) {
            return Err(McpError::NeedsAuth(reason));
        }
        match (response.status, response.media_type().as_deref()) {
            (200..300, Some("text/event-stream")) => {}
            (status, content_type) => {
                let content_type = content_type.unwrap_or("something").to_owned();
                let body = response.read_prefix(MAX_SHOWN_BYTES).await;
                let body = String::from_utf8_lossy(&body);
                let text = format!(
                    "it answered HTTP {status} with {content_type} instead of an event stream: {}",
                    body.trim()
                );
                return Err(McpError::Disconnected(text));
            }
        }
        let mut events = EventReader { chunks: response.into_body(), decoder: SseDecoder::new() };
        let url = events.read_endpoint(&endpoint.url).await?;
        let (sender, incoming) = mpsc::channel(QUEUE_CAPACITY);
        let reader = AbortOnDropHandle::new(tokio::spawn(events.forward_messages(sender, state.clone())));
        Ok(Self { message_endpoint: endpoint.with_url(url), state, incoming, _reader: reader })
    }

    /// Posts a message. The response arrives as an event.
    pub(super) fn send(
        &self,
        item: &ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), McpError>> + use<> {
        let (endpoint, state, body) =
            (self.message_endpoint.clone(), self.state.clone(), serde_json::to_vec(item));
        async move {
            let body = body.map_err(|error| McpError::ErrorResponse(error.to_string()))?;
            let json = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
            let request = endpoint.request(Method::POST, json, body.into());
            let response = tokio::time::timeout(ACCEPT_TIMEOUT, request).await;
            let response = response.map_err(|_| McpError::Timeout(ACCEPT_TIMEOUT))?;
            let response = response.map_err(|error| McpError::Disconnected(error.message))?;
            match response.status {
                200..300 => {
                    response.into_body().drain();
                    Ok(())
                }
                status if let Some(reason) = endpoint.auth_error(&response) => {
                    let error = McpError::NeedsAuth(reason);
                    if status == 401 {
                        // The server would accept no further message.
                        state.record_error(error.clone());
                        state.mark_lost();
                    }
                    Err(error)
                }
                status => {
                    let text = response.read_prefix(MAX_SHOWN_BYTES).await;
                    let text = String::from_utf8_lossy(&text);
                    Err(McpError::Disconnected(format!(
                        "it answered HTTP {status} to a message: {}",
                        text.trim()
                    )))
                }
            }
        }
    }

    /// Next message; `None` once the stream has ended.
    pub(super) async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }
}

/// Reader of the event stream.
struct EventReader {
    chunks: BodyStream,
    decoder: SseDecoder,
}

impl EventReader {
    /// Reads up to the `endpoint` event.
    async fn read_endpoint(&mut self, base: &Url) -> Result<Url, McpError> {
        loop {
            let (name, data) = self.next_event().await?;
            if name == "endpoint" {
                return resolve_endpoint(base, data.trim());
            }
        }
    }

    /// Forwards messages until the stream ends.
    async fn forward_messages(mut self, sender: mpsc::Sender<ServerJsonRpcMessage>, state: ConnectionState) {
        let error = loop {
            match self.next_event().await {
                Ok((name, data)) if name.is_empty() || name == "message" => {
                    let ParsedInput::Messages(messages) = parse_messages(data.as_bytes()) else { continue };
                    for message in messages {
                        if sender.send(message).await.is_err() {
                            return;
                        }
                    }
                }
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        state.record_error(error);
    }

    async fn next_event(&mut self) -> Result<(String, String), McpError> {
        loop {
            let event =
                self.decoder.next_event().map_err(|error| McpError::Disconnected(format!("{error}.")))?;
            if let Some(event) = event {
                return Ok((event.name.into_owned(), event.data.into_owned()));
            }
            match self.chunks.next().await {
                Some(Ok(bytes)) => self.decoder.push(&bytes),
                Some(Err(error)) => return Err(McpError::Disconnected(error.message)),
                None => return Err(McpError::Disconnected("it closed its event stream.".into())),
            }
        }
    }
}

/// Resolves the message URL. It must have the same origin, because our headers are sent there.
fn resolve_endpoint(base: &Url, text: &str) -> Result<Url, McpError> {
    let url = base.join(text).map_err(|error| {
        McpError::Disconnected(format!("its message endpoint is not a valid URL: {error}."))
    })?;
    if url.origin() != base.origin() {
        let origin = url.origin().ascii_serialization();
        return Err(McpError::Permanent(format!("its message endpoint {origin} is on another server.")));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_same_origin_only() {
        let base = Url::parse("http://127.0.0.1:80/a/sse?k=1").unwrap();
        for (text, expected) in [
            ("/messages?s=1", Some("http://127.0.0.1/messages?s=1")),
            ("messages", Some("http://127.0.0.1/a/messages")),
            ("http://127.0.0.1/m", Some("http://127.0.0.1/m")),
            ("http://127.0.0.1:81/m", None),
            ("https://127.0.0.1/m", None),
            ("//169.254.169.254/latest", None),
            ("file:///etc/passwd", None),
            ("http://[", None),
        ] {
            assert_eq!(resolve_endpoint(&base, text).ok().as_ref().map(Url::as_str), expected, "{text}");
        }
    }
}
