//! HTTP client of Chat Completions: URL, headers, and decoding of the response.

use std::sync::Arc;
use std::time::SystemTime;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::request::ChatRequest;
use super::stream::ReplyTranslator;
use super::{error, request};
use crate::error::{ModelError, ModelErrorKind};
use crate::error_hint::{RequestSummary, with_hint};
use crate::event::ReplyEvent;
use crate::http::{HttpClient, Response, parse_header};
use crate::model::{Model, RawEvents, ReplyItem};
use crate::reply_stream::{EventDecoder, ReplyStream};
use crate::request::{OptionalPart, Request};
use crate::unsupported_parts::UnsupportedParts;

/// Base URL of OpenAI.
const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// Variable with the key for OpenAI, or for the server named by `OPENAI_BASE_URL`.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// Maximum number of bytes read from an error response.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// Maximum size of a reply that is not streamed.
const MAX_WHOLE_REPLY_BYTES: usize = 32 << 20;

/// A Chat Completions endpoint.
#[derive(Clone)]
pub struct OpenAiChat {
    http: HttpClient,
    url: String,
    key: Option<String>,
    /// Variable that the key came from, for error messages.
    key_variable: Option<String>,
    /// Headers of the program.
    extra_headers: HeaderMap,
    /// Fields of every request that the program has set.
    extra_fields: Arc<Map<String, Value>>,
    unsupported: Arc<UnsupportedParts>,
}

impl OpenAiChat {
    /// Reads `OPENAI_BASE_URL` (OpenAI by default) and `OPENAI_API_KEY`, which local servers do not need.
    pub fn from_env(get: impl Fn(&str) -> Option<String>, http: HttpClient) -> Self {
        let base = get("OPENAI_BASE_URL").filter(|base| !base.trim().is_empty());
        Self::new(base.as_deref().unwrap_or(OPENAI_BASE_URL), get(KEY_VARIABLE), http)
            .with_key_variable(Some(KEY_VARIABLE.to_owned()))
    }

    /// Creates a client for a base URL, with or without `/v1` and a trailing slash.
    pub fn new(base: &str, key: Option<String>, http: HttpClient) -> Self {
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        let (url, extra_headers) = (completions_url(base), HeaderMap::new());
        Self {
            http,
            url,
            key,
            key_variable: None,
            extra_headers,
            extra_fields: Arc::default(),
            unsupported: Arc::default(),
        }
    }

    /// Adds headers to every request; those that HTTP does not allow are left out.
    #[must_use]
    pub fn with_headers(mut self, headers: &[(String, String)]) -> Self {
        self.extra_headers.extend(headers.iter().filter_map(parse_header));
        self
    }

    /// Adds fields to the body of every request, in place of those of the same name.
    #[must_use]
    pub fn with_body_fields(self, fields: Map<String, Value>) -> Self {
        Self { extra_fields: Arc::new(fields), ..self }
    }

    /// Sets the variable that the key came from, so that error messages can name it.
    #[must_use]
    pub fn with_key_variable(mut self, variable: Option<String>) -> Self {
        self.key_variable = variable;
        self
    }

    fn headers(&self) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("whimbrel/", env!("CARGO_PKG_VERSION"))));
        match &self.key {
            Some(key) => {
                let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
                    ModelError::new(
                        ModelErrorKind::NoCredentials,
                        "The API key contains invalid characters: set a valid one.",
                    )
                })?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            None if self.url.starts_with(OPENAI_BASE_URL) => {
                let message = "No OpenAI API key is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL for another server.";
                return Err(ModelError::new(ModelErrorKind::NoCredentials, message));
            }
            None => {}
        }
        headers.extend(self.extra_headers.clone());
        Ok(headers)
    }

    /// Sends a request and waits for the response head.
    async fn open_reply(
        self,
        request: Arc<Request>,
    ) -> Result<BoxStream<'static, Result<ReplyItem, ModelError>>, ModelError> {
        let headers = self.headers()?;
        let ChatRequest { body, calls } =
            request::translate(&request, &self.unsupported.for_model(&request.model), &self.extra_fields);
        let decoder = ChatDecoder {
            translator: ReplyTranslator::new(new_id_seed(), request.model.as_str(), calls),
            raw: RawEvents::for_request(&request),
        };
        let size = body.iter().map(Bytes::len).sum();
        let summary =
            RequestSummary { model: &request.model, key_variable: self.key_variable.as_deref(), size };
        let response = self.http.post(&self.url, headers, body).await?;
        decode_response(response, decoder).await.map_err(|error| with_hint(error, &summary))
    }
}

impl Model for OpenAiChat {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        stream::once(self.clone().open_reply(request)).try_flatten().boxed()
    }

    fn mark_unsupported(&self, model: &str, part: &OptionalPart) {
        self.unsupported.add(model, part);
    }
}

/// Decodes a response, streamed or whole. Servers label streams with various media types.
async fn decode_response(
    response: Response,
    mut decoder: ChatDecoder,
) -> Result<BoxStream<'static, Result<ReplyItem, ModelError>>, ModelError> {
    if !(200..300).contains(&response.status) {
        return Err(response_error(response).await);
    }
    match response.media_type().as_deref() {
        None | Some("text/event-stream" | "text/plain" | "application/octet-stream") => {
            let request_id = response.request_id();
            Ok(ReplyStream::new(response.into_body(), decoder, request_id).boxed())
        }
        Some("application/json") => {
            let accepted = ReplyEvent::Accepted { request_id: response.request_id() };
            let body = response.read_all(MAX_WHOLE_REPLY_BYTES).await?;
            let events = decoder.translator.translate_whole(&String::from_utf8_lossy(&body))?;
            let events = std::iter::once(accepted).chain(events);
            Ok(stream::iter(events.map(move |event| Ok(decoder.raw.wrap(event)))).boxed())
        }
        Some(media) => {
            let message = format!("The server's response is not a model reply: its content type is {media}.");
            Err(ModelError::new(ModelErrorKind::NotAStream, message))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a date in `retry-after` is relative to now")]
async fn response_error(response: Response) -> ModelError {
    let (status, headers) = (response.status, response.headers.clone());
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(location) = header("location").filter(|_| (300..400).contains(&status)) {
        let message = format!("The server redirects to {location}: set the base URL to the right one.");
        return ModelError {
            status: Some(status),
            ..ModelError::new(ModelErrorKind::InvalidRequest, message)
        };
    }
    let body = response.read_prefix(MAX_ERROR_BYTES).await;
    error::from_status(status, &String::from_utf8_lossy(&body)).with_headers(header, SystemTime::now())
}

/// Decodes the events of one reply.
struct ChatDecoder {
    translator: ReplyTranslator,
    raw: RawEvents,
}

impl EventDecoder for ChatDecoder {
    fn decode(&mut self, name: &str, data: &str, out: &mut impl FnMut(ReplyItem)) -> Result<(), ModelError> {
        if name == "error" {
            let value = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
            return Err(error::from_stream_value(&value));
        }
        self.translator.push_data(data)?.into_iter().for_each(|event| out(self.raw.wrap(event)));
        Ok(())
    }

    fn finish(&mut self, out: &mut impl FnMut(ReplyItem)) -> Result<(), ModelError> {
        self.translator.finish().into_iter().for_each(|event| out(self.raw.wrap(event)));
        Ok(())
    }
}

/// Returns a unique seed for call ids. It is short because some providers accept ids of at most 40 characters.
#[expect(clippy::disallowed_methods, reason = "generates the ids that a provider omits")]
fn new_id_seed() -> String {
    let mut seed = Uuid::new_v4().simple().to_string();
    seed.truncate(24);
    seed
}

/// Completes a base URL, in the forms users write it, to the URL of the endpoint.
fn completions_url(base: &str) -> String {
    const PATH: &str = "/chat/completions";
    let (base, query) = match base.trim().split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (base.trim(), String::new()),
    };
    let base = base.trim_end_matches('/');
    let base = if base.contains("://") { base.to_owned() } else { format!("http://{base}") };
    let has_path = base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    if base.ends_with(PATH) {
        format!("{base}{query}")
    } else if has_path {
        format!("{base}{PATH}{query}")
    } else {
        format!("{base}/v1{PATH}{query}")
    }
}

#[cfg(test)]
mod tests;
