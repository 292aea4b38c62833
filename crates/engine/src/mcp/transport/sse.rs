//! A server at an address, by the older transport: its events come by one long answer, which names where our messages
//! are to be sent.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_models::http::{Chunks, Url};
use whimbrel_models::sse::Decoder;

use super::fate::Fate;
use super::line::Line;
use super::message::{Heard, read};
use crate::mcp::fault::Fault;

/// How many messages may wait to be read.
const WAITING: usize = 64;
/// How long the server may take to accept a message.
const ACCEPT_LIMIT: Duration = Duration::from_secs(60);
/// How much of an error page is told.
const SHOWN: usize = 300;

/// A connection to a server.
pub(super) struct SseTransport {
    messages: Line,
    fate: Fate,
    heard: mpsc::Receiver<ServerJsonRpcMessage>,
    _reader: AbortOnDropHandle<()>,
}

impl SseTransport {
    /// Connects, and waits until the server has said where messages go.
    pub(super) async fn connect(line: Line, fate: Fate) -> Result<Self, Fault> {
        let accept = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))]);
        let answer = line.request(Method::GET, accept, Bytes::new()).await;
        let answer = answer.map_err(|fault| Fault::Gone(fault.message))?;
        if let Some(why) = line.refusal(&answer) {
            return Err(Fault::NeedsAuth(why));
        }
        match (answer.status, answer.media_type().as_deref()) {
            (200..300, Some("text/event-stream")) => {}
            (status, kind) => {
                let kind = kind.unwrap_or("something").to_owned();
                let page = answer.beginning(SHOWN).await;
                let page = String::from_utf8_lossy(&page);
                let text =
                    format!("it answered HTTP {status} with {kind} instead of events: {}", page.trim());
                return Err(Fault::Gone(text));
            }
        }
        let mut events = Events { chunks: answer.chunks(), decoder: Decoder::new() };
        let url = events.endpoint(&line.url).await?;
        let (send, heard) = mpsc::channel(WAITING);
        let reader = AbortOnDropHandle::new(tokio::spawn(events.pass_on(send, fate.clone())));
        Ok(Self { messages: line.at(url), fate, heard, _reader: reader })
    }

    /// Sends a message. The answer comes as an event.
    pub(super) fn send(
        &self,
        item: &ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Fault>> + use<> {
        let (line, fate, body) = (self.messages.clone(), self.fate.clone(), serde_json::to_vec(item));
        async move {
            let body = body.map_err(|error| Fault::Refused(error.to_string()))?;
            let json = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
            let request = line.request(Method::POST, json, body.into());
            let answer = tokio::time::timeout(ACCEPT_LIMIT, request).await;
            let answer = answer.map_err(|_| Fault::Late(ACCEPT_LIMIT))?;
            let answer = answer.map_err(|fault| Fault::Gone(fault.message))?;
            match answer.status {
                200..300 => {
                    answer.chunks().finish();
                    Ok(())
                }
                status if let Some(why) = line.refusal(&answer) => {
                    let fault = Fault::NeedsAuth(why);
                    if status == 401 {
                        // No further message would be taken.
                        fate.note(fault.clone());
                        fate.lose();
                    }
                    Err(fault)
                }
                status => {
                    let page = answer.beginning(SHOWN).await;
                    let page = String::from_utf8_lossy(&page);
                    Err(Fault::Gone(format!("it answered HTTP {status} to a message: {}", page.trim())))
                }
            }
        }
    }

    /// The next message; none once the stream has ended.
    pub(super) async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.heard.recv().await
    }
}

/// The long answer.
struct Events {
    chunks: Chunks,
    decoder: Decoder,
}

impl Events {
    /// Reads up to the event that names the address for messages.
    async fn endpoint(&mut self, base: &Url) -> Result<Url, Fault> {
        loop {
            let (name, data) = self.next().await?;
            if name == "endpoint" {
                return endpoint(base, data.trim());
            }
        }
    }

    /// Hands all messages on until the stream ends.
    async fn pass_on(mut self, send: mpsc::Sender<ServerJsonRpcMessage>, fate: Fate) {
        let fault = loop {
            match self.next().await {
                Ok((name, data)) if name.is_empty() || name == "message" => {
                    let Heard::Messages(messages) = read(data.as_bytes()) else { continue };
                    for message in messages {
                        if send.send(message).await.is_err() {
                            return;
                        }
                    }
                }
                Ok(_) => {}
                Err(fault) => break fault,
            }
        };
        fate.note(fault);
    }

    async fn next(&mut self) -> Result<(String, String), Fault> {
        loop {
            let event = self.decoder.next_event().map_err(|error| Fault::Gone(format!("{error}.")))?;
            if let Some(event) = event {
                return Ok((event.name.into_owned(), event.data.into_owned()));
            }
            match self.chunks.next().await {
                Some(Ok(bytes)) => self.decoder.push(&bytes),
                Some(Err(fault)) => return Err(Fault::Gone(fault.message)),
                None => return Err(Fault::Gone("it has ended its stream of events.".into())),
            }
        }
    }
}

/// The address for messages. It must be at the same place: our headers go there.
fn endpoint(base: &Url, written: &str) -> Result<Url, Fault> {
    let url = base
        .join(written)
        .map_err(|error| Fault::Gone(format!("its address for messages is none: {error}.")))?;
    if url.origin() != base.origin() {
        let there = url.origin().ascii_serialization();
        return Err(Fault::Hopeless(format!("it wants messages sent to {there}, which is another server.")));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_same_server_only() {
        let base = Url::parse("http://127.0.0.1:80/a/sse?k=1").unwrap();
        for (written, expected) in [
            ("/messages?s=1", Some("http://127.0.0.1/messages?s=1")),
            ("messages", Some("http://127.0.0.1/a/messages")),
            ("http://127.0.0.1/m", Some("http://127.0.0.1/m")),
            ("http://127.0.0.1:81/m", None),
            ("https://127.0.0.1/m", None),
            ("//169.254.169.254/latest", None),
            ("file:///etc/passwd", None),
            ("http://[", None),
        ] {
            assert_eq!(endpoint(&base, written).ok().as_ref().map(Url::as_str), expected, "{written}");
        }
    }
}
