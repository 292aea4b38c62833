//! HTTP client of the Messages API: URL, headers, and decoding of the response.

use std::sync::Arc;
use std::time::SystemTime;

use ::http::Method;
use ::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::body::BodyOverrides;
use super::credential::{Credential, OAUTH_BETA, insert_key, missing_key_error};
use super::extra_body::{EXTRA_BODY_VARIABLE, ExtraBody};
use super::{body, decode, error};
use crate::error::{ModelError, ModelErrorKind};
use crate::error_hint::{RequestSummary, with_hint};
use crate::event::ReplyEvent;
use crate::http::{HttpClient, RequestUrl, Response, parse_header};
use crate::key_source::API_KEY_HELPER;
use crate::model::{Model, RawEvents, ReplyItem};
use crate::prompt_cache::PromptCaching;
use crate::reply_stream::{EventDecoder, ReplyStream};
use crate::request::{OptionalPart, Request};
use crate::unsupported_parts::UnsupportedParts;

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";
const API_VERSION: &str = "2023-06-01";
const BETA_HEADER: &str = "anthropic-beta";

/// Maximum number of bytes read from an error response.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// Maximum size of a reply that is not streamed.
const MAX_WHOLE_REPLY_BYTES: usize = 32 << 20;

/// A server of the Messages API with its credential.
pub struct Anthropic {
    http: HttpClient,
    /// The parsed URL, or the error every request returns.
    url: Result<RequestUrl, ModelError>,
    headers: HeaderMap,
    credential: Credential,
    /// Variable that the key came from, for error messages.
    key_variable: Option<String>,
    /// Changes to the body of each request, or the error every request returns.
    overrides: Result<Arc<BodyOverrides>, ModelError>,
    unsupported: UnsupportedParts,
}

impl Anthropic {
    /// Reads the credential, `ANTHROPIC_BASE_URL`, `ANTHROPIC_CUSTOM_HEADERS` (`Name: value`, one per line) and what
    /// changes the body of requests.
    pub fn from_env(get: impl Fn(&str) -> Option<String>, http: HttpClient) -> Self {
        let get =
            |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let base = get("ANTHROPIC_BASE_URL").unwrap_or_else(|| DEFAULT_BASE_URL.to_owned());
        let mut model = Self::with_credential(&base, Credential::from_env(get), http);
        model.overrides = ExtraBody::parse(get(EXTRA_BODY_VARIABLE).as_deref())
            .map(|extra| Arc::new(BodyOverrides { extra, caching: PromptCaching::from_env(get) }))
            .map_err(|text| ModelError::new(ModelErrorKind::InvalidRequest, text));
        model.key_variable = Some(model.key_source().to_owned());
        model
            .headers
            .extend(get("ANTHROPIC_CUSTOM_HEADERS").iter().flat_map(|lines| parse_custom_headers(lines)));
        if let Some(betas) = get("ANTHROPIC_BETAS").and_then(|betas| HeaderValue::try_from(betas).ok()) {
            model.headers.append(BETA_HEADER, betas);
        }
        model
    }

    /// Creates a client for a base URL, with an optional key.
    pub fn new(base: &str, key: Option<String>, http: HttpClient) -> Self {
        Self::with_credential(
            base,
            key.map_or(Credential::NotNeeded, |key| Credential::ApiKey(key.trim().to_owned())),
            http,
        )
    }

    /// Sets the variable that the key came from, so that error messages can name it.
    #[must_use]
    pub fn with_key_variable(mut self, variable: Option<String>) -> Self {
        self.key_variable = variable;
        self
    }

    /// Adds headers to every request; those that HTTP does not allow are left out.
    #[must_use]
    pub fn with_headers(mut self, headers: &[(String, String)]) -> Self {
        self.headers.extend(headers.iter().filter_map(parse_header));
        self
    }

    /// Sets which models get cache breakpoints.
    #[must_use]
    pub fn with_prompt_caching(mut self, caching: PromptCaching) -> Self {
        self.overrides =
            self.overrides.map(|known| Arc::new(BodyOverrides { caching, ..BodyOverrides::clone(&known) }));
        self
    }

    fn with_credential(base: &str, credential: Credential, http: HttpClient) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(API_VERSION));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("whimbrel/", env!("CARGO_PKG_VERSION"))));
        headers.extend(credential.header());
        let url = RequestUrl::parse(&messages_url(base));
        Self {
            http,
            url,
            headers,
            credential,
            key_variable: None,
            overrides: Ok(Arc::default()),
            unsupported: UnsupportedParts::default(),
        }
    }

    /// Variable that supplied the key, or `none`.
    pub fn key_source(&self) -> &'static str {
        self.credential.key_source()
    }

    /// Returns true if a key is required but not configured.
    pub(crate) fn is_key_missing(&self) -> bool {
        matches!(self.credential, Credential::Missing)
    }

    /// Returns whether a key that a command prints is used instead of what the environment has.
    pub(crate) fn yields_to_key_source(&self) -> bool {
        self.credential.yields_to_key_source()
    }

    /// Sends a request, optionally with a fetched key, and waits for the response head.
    pub(super) fn open_reply(
        &self,
        request: Arc<Request>,
        fetched: Option<&str>,
    ) -> impl Future<Output = OpenedReply> + Send + use<> {
        let unsupported = self.unsupported.for_model(&request.model);
        let (http, url, overrides) = (self.http.clone(), self.url.clone(), self.overrides.clone());
        let (key, oauth_beta) = match fetched {
            Some(_) => (Some(API_KEY_HELPER.to_owned()), None),
            None => (self.key_variable.clone(), self.oauth_beta()),
        };
        let mut headers = self.headers(&request, &unsupported, oauth_beta);
        let inserted = fetched.map_or(Ok(()), |key| insert_key(&mut headers, key));
        async move {
            inserted?;
            let url = url?;
            let body = body::render(&request, &unsupported, &*overrides?);
            let size = body.iter().map(Bytes::len).sum();
            let response = http.send(Method::POST, &url, headers, body).await?;
            let raw = RawEvents::for_request(&request);
            let summary = RequestSummary { model: &request.model, key_variable: key.as_deref(), size };
            decode_response(response, raw).await.map_err(|error| with_hint(error, &summary))
        }
    }

    /// The beta feature that the credential needs, if any.
    fn oauth_beta(&self) -> Option<&'static str> {
        matches!(self.credential, Credential::OAuth(_)).then_some(OAUTH_BETA)
    }

    fn headers(
        &self,
        request: &Request,
        unsupported: &[OptionalPart],
        oauth_beta: Option<&'static str>,
    ) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.remove(BETA_HEADER);
        let custom = self.headers.get_all(BETA_HEADER).iter().filter_map(|value| value.to_str().ok());
        let betas = body::betas(request, unsupported).into_iter().chain(oauth_beta).chain(custom);
        let betas = betas.collect::<Vec<_>>().join(",");
        if let Ok(value) = HeaderValue::from_str(&betas)
            && !betas.is_empty()
        {
            headers.insert(BETA_HEADER, value);
        }
        headers
    }
}

impl Model for Anthropic {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        if self.is_key_missing() {
            return stream::iter([Err(missing_key_error())]).boxed();
        }
        stream::once(self.open_reply(request, None)).try_flatten().boxed()
    }

    fn mark_unsupported(&self, model: &str, part: &OptionalPart) {
        self.unsupported.add(model, part);
    }
}

/// A started reply, or the error that prevented it.
type OpenedReply = Result<BoxStream<'static, Result<ReplyItem, ModelError>>, ModelError>;

/// Decodes a response, streamed or whole, into reply items.
async fn decode_response(response: Response, raw: RawEvents) -> OpenedReply {
    if response.status != 200 {
        return Err(response_error(response).await);
    }
    match response.media_type().as_deref() {
        None | Some("text/event-stream") => {
            let request_id = response.request_id();
            Ok(ReplyStream::new(response.into_body(), MessagesDecoder(raw), request_id).boxed())
        }
        Some("application/json") => {
            let accepted = ReplyEvent::Accepted { request_id: response.request_id() };
            let whole = decode::decode_whole(&response.read_all(MAX_WHOLE_REPLY_BYTES).await?)?;
            let events = std::iter::once(accepted).chain(whole.events(usize::MAX));
            Ok(stream::iter(events.map(move |event| Ok(raw.wrap(event)))).boxed())
        }
        Some(media) => {
            let why = format!("its content type is {media}");
            let beginning = response.read_prefix(MAX_ERROR_BYTES).await;
            Err(decode::not_a_reply(&String::from_utf8_lossy(&beginning), &why))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a date in `retry-after` is relative to now")]
async fn response_error(response: Response) -> ModelError {
    let status = response.status;
    let headers = response.headers.clone();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(location) = header("location").filter(|_| (300..400).contains(&status)) {
        let message = format!("The server redirects to {location}: set ANTHROPIC_BASE_URL to the right URL.");
        return ModelError {
            status: Some(status),
            ..ModelError::new(ModelErrorKind::InvalidRequest, message)
        };
    }
    let body = response.read_prefix(MAX_ERROR_BYTES).await;
    error::from_status(status, &body).with_headers(header, SystemTime::now())
}

/// Decodes the events of one reply.
struct MessagesDecoder(RawEvents);

impl EventDecoder for MessagesDecoder {
    fn decode(&mut self, name: &str, data: &str, out: &mut impl FnMut(ReplyItem)) -> Result<(), ModelError> {
        out(decode::decode_event(name, data, self.0)?);
        Ok(())
    }
}

/// Parses one header per line; invalid lines are skipped.
fn parse_custom_headers(lines: &str) -> Vec<(HeaderName, HeaderValue)> {
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().parse().ok()?, value.trim().parse().ok()?))
    };
    lines.lines().filter_map(header).collect()
}

fn messages_url(base: &str) -> String {
    let base = base.trim_end_matches('/');
    format!("{}/v1/messages?beta=true", base.strip_suffix("/v1").unwrap_or(base))
}

#[cfg(test)]
mod tests;
