//! Asking over HTTP: address, headers, and what comes back made into events.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use serde_json::Value;
use uuid::Uuid;

use super::request::Translated;
use super::stream::Translation;
use super::{refusal, request};
use crate::correct::Part;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::http::{Door, Response};
use crate::model::{Delta, Model};
use crate::remedy::{Asked, with_remedy};
use crate::reply::{Dialect, Reply};
use crate::request::Request;

/// Where OpenAI itself is asked.
const OPENAI: &str = "https://api.openai.com/v1";

/// The variable with OpenAI's key, and that of whoever else is named by `OPENAI_BASE_URL`.
const KEY: &str = "OPENAI_API_KEY";

/// What is read of an answer that is an error.
const ERROR_LIMIT: usize = 64 * 1024;
/// The largest reply that may come whole.
const WHOLE_LIMIT: usize = 32 << 20;

/// An endpoint that speaks Chat Completions.
#[derive(Clone)]
pub struct OpenAiChat {
    door: Door,
    url: String,
    key: Option<String>,
    /// The variable that the key came from.
    key_variable: Option<String>,
    /// What the server has refused, with the model for which it did.
    refused: Arc<Mutex<Vec<(String, Part)>>>,
}

impl OpenAiChat {
    /// Goes by `OPENAI_BASE_URL` (OpenAI itself if unset) and `OPENAI_API_KEY`, which local servers do not need.
    pub fn from_env(get: impl Fn(&str) -> Option<String>, door: Door) -> Self {
        let base = get("OPENAI_BASE_URL").filter(|base| !base.trim().is_empty());
        Self::new(base.as_deref().unwrap_or(OPENAI), get(KEY), door).with_key_from(Some(KEY.to_owned()))
    }

    /// The endpoint at a base URL, with or without `/v1` and a slash at its end.
    pub fn new(base: &str, key: Option<String>, door: Door) -> Self {
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        Self { door, url: address(base), key, key_variable: None, refused: Arc::default() }
    }

    /// Says which variable the key came from, so that errors can name it.
    #[must_use]
    pub fn with_key_from(mut self, variable: Option<String>) -> Self {
        self.key_variable = variable;
        self
    }

    fn headers(&self) -> Result<HeaderMap, Fault> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("whimbrel/", env!("CARGO_PKG_VERSION"))));
        match &self.key {
            Some(key) => {
                let mut secret = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
                    Fault::new(FaultKind::NoCredentials, "The API key holds characters that no key can have.")
                })?;
                secret.set_sensitive(true);
                headers.insert(AUTHORIZATION, secret);
            }
            None if self.url.starts_with(OPENAI) => {
                let message = "There is no key to ask OpenAI with. Set OPENAI_API_KEY, or OPENAI_BASE_URL for another server.";
                return Err(Fault::new(FaultKind::NoCredentials, message));
            }
            None => {}
        }
        Ok(headers)
    }

    fn refused(&self, model: &str) -> Vec<Part> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.iter().filter(|(at, _)| at == model).map(|(_, part)| part.clone()).collect()
    }

    /// Sends a request and waits for the head of the answer.
    async fn open(self, request: Arc<Request>) -> Result<BoxStream<'static, Result<Delta, Fault>>, Fault> {
        let headers = self.headers()?;
        let Translated { body, calls } = request::translate(&request, &self.refused(&request.model));
        let reader = Reader {
            translation: Translation::new(seed(), request.model.as_str(), calls),
            raw: if request.raw_events { Raw::Keep } else { Raw::Drop },
        };
        let size = body.iter().map(Bytes::len).sum();
        let asked = Asked { model: &request.model, key: self.key_variable.as_deref(), size };
        let answer = self.door.post(&self.url, headers, body).await?;
        events(answer, reader).await.map_err(|fault| with_remedy(fault, &asked))
    }
}

impl Model for OpenAiChat {
    fn ask(&self, request: Arc<Request>) -> BoxStream<'static, Result<Delta, Fault>> {
        stream::once(self.clone().open(request)).try_flatten().boxed()
    }

    fn forgo(&self, model: &str, part: &Part) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.push((model.to_owned(), part.clone()));
    }
}

/// The answer as events, in whichever form it came. Servers are careless about naming the form of a stream.
async fn events(
    answer: Response,
    mut reader: Reader,
) -> Result<BoxStream<'static, Result<Delta, Fault>>, Fault> {
    if !(200..300).contains(&answer.status) {
        return Err(refused(answer).await);
    }
    match answer.media_type().as_deref() {
        None | Some("text/event-stream" | "text/plain" | "application/octet-stream") => {
            let request_id = answer.request_id();
            Ok(Reply::new(answer.chunks(), reader, request_id).boxed())
        }
        Some("application/json") => {
            let accepted = Event::Accepted { request_id: answer.request_id() };
            let body = answer.whole(WHOLE_LIMIT).await?;
            let events = reader.translation.take_whole(&String::from_utf8_lossy(&body))?;
            let events = std::iter::once(accepted).chain(events);
            Ok(stream::iter(events.map(move |event| Ok(reader.raw.with(event)))).boxed())
        }
        Some(media) => {
            let message = format!("The server's answer is not a reply of a model: it is {media}.");
            Err(Fault::new(FaultKind::NotAStream, message))
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a date in `retry-after` counts from the moment the answer came"
)]
async fn refused(answer: Response) -> Fault {
    let (status, headers) = (answer.status, answer.headers.clone());
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(place) = header("location").filter(|_| (300..400).contains(&status)) {
        let message = format!("The server sends us on to {place}; set the base URL to the right address.");
        return Fault { status: Some(status), ..Fault::new(FaultKind::InvalidRequest, message) };
    }
    let body = answer.beginning(ERROR_LIMIT).await;
    refusal::of_status(status, &String::from_utf8_lossy(&body)).with_headers(header, SystemTime::now())
}

/// Reads the events of one reply.
struct Reader {
    translation: Translation,
    raw: Raw,
}

/// Whether each event is also given as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Raw {
    Keep,
    Drop,
}

impl Raw {
    fn with(self, event: Event) -> Delta {
        Delta { raw: if self == Self::Keep { event.raw() } else { None }, event }
    }
}

impl Dialect for Reader {
    fn read(&mut self, name: &str, data: &str, out: &mut impl FnMut(Delta)) -> Result<(), Fault> {
        if name == "error" {
            let value = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
            return Err(refusal::inside_stream(&value));
        }
        self.translation.take(data)?.into_iter().for_each(|event| out(self.raw.with(event)));
        Ok(())
    }

    fn finish(&mut self, out: &mut impl FnMut(Delta)) -> Result<(), Fault> {
        self.translation.end().into_iter().for_each(|event| out(self.raw.with(event)));
        Ok(())
    }
}

/// Unlike any other, and short: an id made of it has at most 40 characters, which is all that some providers take.
#[expect(clippy::disallowed_methods, reason = "ids that the provider owes us are made here")]
fn seed() -> String {
    let mut seed = Uuid::new_v4().simple().to_string();
    seed.truncate(24);
    seed
}

/// The address to ask at, for what people write as a base URL.
fn address(base: &str) -> String {
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
