//! The Chat Completions dialect, so that OpenAI, Kimi, DeepSeek, OpenRouter, Ollama, vLLM, llama.cpp and many others
//! can be asked.
//!
//! - [`request`]: our request in their words, pure
//! - [`chunk`]: one piece of an answer, read leniently; [`stream`]: pieces to events, pure
//! - [`refusal`]: what an error means, pure
//! - [`answer`]: an answer as it arrives
//! - here: where to ask and with which key

mod answer;
mod chunk;
mod refusal;
mod request;
mod stream;

use std::sync::Arc;
use std::time::SystemTime;

use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use futures::stream::{self as streams, BoxStream, StreamExt, TryStreamExt};
use uuid::Uuid;

use crate::fault::{Fault, FaultKind};
use crate::http::{Door, Response};
use crate::model::{Delta, Model};
use crate::request::Request;

use answer::Answer;
use stream::Translation;

/// Where OpenAI itself is asked.
const OPENAI: &str = "https://api.openai.com/v1";

/// The most bytes that are read of an answer that only says what went wrong.
const REFUSAL_LIMIT: usize = 64 * 1024;

/// An endpoint that speaks Chat Completions.
#[derive(Clone)]
pub struct OpenAiChat {
    door: Door,
    address: String,
    key: Option<String>,
}

impl OpenAiChat {
    /// The endpoint named by `OPENAI_BASE_URL` (OpenAI itself if unset), with the key in `OPENAI_API_KEY`.
    /// Local servers need no key.
    pub fn from_env(get: impl Fn(&str) -> Option<String>, door: Door) -> Self {
        let base = get("OPENAI_BASE_URL").filter(|base| !base.trim().is_empty());
        Self::new(base.as_deref().unwrap_or(OPENAI), get("OPENAI_API_KEY"), door)
    }

    /// The endpoint at a base URL, with or without `/v1` and a slash at its end.
    pub fn new(base: &str, key: Option<String>, door: Door) -> Self {
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        Self { door, address: endpoint(base), key }
    }

    /// Sends a request and waits for the beginning of the answer.
    async fn open(self, request: Arc<Request>) -> Result<Answer, Fault> {
        let messages = request.history.messages();
        let body = request::body(&request, &messages)
            .map_err(|error| Fault::new(FaultKind::InvalidRequest, format!("The request cannot be written: {error}.")))?;
        let taken = request::call_ids(&messages).map(str::to_owned);
        let translation = Translation::new(seed(), request.model.as_str(), taken);
        drop(messages);
        let response = self.door.post(&self.address, self.headers()?, body).await?;
        if (200..300).contains(&response.status) {
            Ok(Answer::new(response.chunks(), translation))
        } else {
            Err(refused(response).await)
        }
    }

    fn headers(&self) -> Result<HeaderMap, Fault> {
        let mut headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (ACCEPT, HeaderValue::from_static("text/event-stream, application/json")),
            (USER_AGENT, HeaderValue::from_static(concat!("whimbrel/", env!("CARGO_PKG_VERSION")))),
        ]);
        match &self.key {
            Some(key) => {
                let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
                    Fault::new(FaultKind::NoCredentials, "The API key holds characters that no key can have.")
                })?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            None if self.address.starts_with(OPENAI) => {
                return Err(Fault::new(FaultKind::NoCredentials, "OPENAI_API_KEY is not set."));
            }
            None => {}
        }
        Ok(headers)
    }
}

impl Model for OpenAiChat {
    fn ask(&self, request: Arc<Request>) -> BoxStream<'static, Result<Delta, Fault>> {
        let raw_events = request.raw_events;
        let delta = move |event: crate::Event| Delta { raw: event.raw().filter(|_| raw_events), event };
        streams::once(self.clone().open(request)).map_ok(Answer::events).try_flatten().map_ok(delta).boxed()
    }
}

async fn refused(response: Response) -> Fault {
    let (status, headers) = (response.status, response.headers.clone());
    let body = response.beginning(REFUSAL_LIMIT).await;
    refusal::of_status(status, &String::from_utf8_lossy(&body))
        .with_headers(|name| headers.get(name).and_then(|value| value.to_str().ok()), SystemTime::now())
}

/// Unlike any other, and short: an id made of it has at most 40 characters, which is all that some providers take.
fn seed() -> String {
    let mut seed = Uuid::new_v4().simple().to_string();
    seed.truncate(24);
    seed
}

/// The address to ask at, for what people write as a base URL.
fn endpoint(base: &str) -> String {
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
