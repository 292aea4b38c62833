//! Asking over HTTP: address, headers, and what comes back made into events.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use ::http::Method;
use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use super::read::{self, Raw};
use super::{body, refusal};
use crate::correct::Part;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::http::{Address, Door, Response};
use crate::key::KEY_HELPER;
use crate::model::{Delta, Model};
use crate::remedy::{Asked, with_remedy};
use crate::reply::{Dialect, Reply};
use crate::request::Request;

const DEFAULT_BASE: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";
const BETA: &str = "anthropic-beta";

/// What is read of an answer that is an error.
const ERROR_LIMIT: usize = 64 * 1024;
/// The largest reply that may come whole.
const WHOLE_LIMIT: usize = 32 << 20;

/// The Messages API at one address, with one key.
pub struct Anthropic {
    door: Door,
    /// Where it is, or why that is nowhere.
    address: Result<Address, Fault>,
    headers: HeaderMap,
    key: Key,
    /// The variable that the key came from.
    key_variable: Option<String>,
    /// What the server has refused, with the model for which it did.
    refused: Mutex<Vec<(String, Part)>>,
}

/// What we ask with.
enum Key {
    Own(String),
    Token(String),
    Missing,
    NotNeeded,
}

impl Key {
    /// The header that carries it. A key that fits in no header is as good as none.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let (name, text) = match self {
            Self::Own(key) => (HeaderName::from_static("x-api-key"), key.clone()),
            Self::Token(token) => (AUTHORIZATION, format!("Bearer {token}")),
            Self::Missing | Self::NotNeeded => return None,
        };
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }
}

impl Anthropic {
    /// Goes by `ANTHROPIC_API_KEY` or `ANTHROPIC_AUTH_TOKEN` (which wins), `ANTHROPIC_BASE_URL` and
    /// `ANTHROPIC_CUSTOM_HEADERS` (`Name: value`, one per line).
    pub fn from_env(get: impl Fn(&str) -> Option<String>, door: Door) -> Self {
        let get = |name| get(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let base = get("ANTHROPIC_BASE_URL").unwrap_or_else(|| DEFAULT_BASE.to_owned());
        let key = match (get("ANTHROPIC_AUTH_TOKEN"), get("ANTHROPIC_API_KEY")) {
            (Some(token), _) => Key::Token(token),
            (None, Some(key)) => Key::Own(key),
            (None, None) => Key::Missing,
        };
        let mut model = Self::at(&base, key, door);
        model.key_variable = Some(model.key_source().to_owned());
        model.headers.extend(get("ANTHROPIC_CUSTOM_HEADERS").iter().flat_map(|lines| custom_headers(lines)));
        model
    }

    /// A server at a base URL, with a key if it wants one.
    pub fn new(base: &str, key: Option<String>, door: Door) -> Self {
        Self::at(base, key.map_or(Key::NotNeeded, |key| Key::Own(key.trim().to_owned())), door)
    }

    /// Says which variable the key came from, so that errors can name it.
    #[must_use]
    pub fn with_key_from(mut self, variable: Option<String>) -> Self {
        self.key_variable = variable;
        self
    }

    fn at(base: &str, key: Key, door: Door) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("whimbrel/", env!("CARGO_PKG_VERSION"))));
        headers.extend(key.header());
        let address = Address::parse(&address(base));
        Self { door, address, headers, key, key_variable: None, refused: Mutex::default() }
    }

    /// Which variable gave the key: `ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN` or `none`.
    pub fn key_source(&self) -> &'static str {
        match self.key {
            Key::Own(_) => "ANTHROPIC_API_KEY",
            Key::Token(_) => "ANTHROPIC_AUTH_TOKEN",
            Key::Missing | Key::NotNeeded => "none",
        }
    }

    /// Whether nobody can be asked with what is known here.
    pub(crate) fn lacks_key(&self) -> bool {
        matches!(self.key, Key::Missing)
    }

    /// Sends a request, with a key that was fetched if there is one, and waits for the head of the answer.
    pub(super) fn open(
        &self,
        request: Arc<Request>,
        fetched: Option<&str>,
    ) -> impl Future<Output = Opened> + Send + use<> {
        let refused = self.refused(&request.model);
        let (door, address, mut headers) =
            (self.door.clone(), self.address.clone(), self.headers(&request, &refused));
        let key = match fetched {
            Some(_) => Some(KEY_HELPER.to_owned()),
            None => self.key_variable.clone(),
        };
        let put = fetched.map_or(Ok(()), |key| carry(&mut headers, key));
        async move {
            put?;
            let address = address?;
            let body = body::render(&request, &refused);
            let size = body.iter().map(Bytes::len).sum();
            let answer = door.send(Method::POST, &address, headers, body).await?;
            let raw = if request.raw_events { Raw::Keep } else { Raw::Drop };
            let asked = Asked { model: &request.model, key: key.as_deref(), size };
            events(answer, raw).await.map_err(|fault| with_remedy(fault, &asked))
        }
    }

    fn refused(&self, model: &str) -> Vec<Part> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.iter().filter(|(at, _)| at == model).map(|(_, part)| part.clone()).collect()
    }

    fn headers(&self, request: &Request, refused: &[Part]) -> HeaderMap {
        let mut headers = self.headers.clone();
        let own = headers.remove(BETA);
        let own = own.as_ref().and_then(|value| value.to_str().ok());
        let betas = body::betas(request, refused).into_iter().chain(own).collect::<Vec<_>>().join(",");
        if let Ok(value) = HeaderValue::from_str(&betas)
            && !betas.is_empty()
        {
            headers.insert(BETA, value);
        }
        headers
    }
}

impl Model for Anthropic {
    fn ask(&self, request: Arc<Request>) -> BoxStream<'static, Result<Delta, Fault>> {
        if self.lacks_key() {
            return stream::iter([Err(no_credentials())]).boxed();
        }
        stream::once(self.open(request, None)).try_flatten().boxed()
    }

    fn forgo(&self, model: &str, part: &Part) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.push((model.to_owned(), part.clone()));
    }
}

/// A reply that has begun, or why it has not.
type Opened = Result<BoxStream<'static, Result<Delta, Fault>>, Fault>;

/// Puts a key that was fetched on a request. Whether the server takes it as a key or as a token is not known.
fn carry(headers: &mut HeaderMap, key: &str) -> Result<(), Fault> {
    for key in [Key::Own(key.to_owned()), Key::Token(key.to_owned())] {
        let (name, value) = key.header().ok_or_else(|| {
            let message =
                format!("What the command of {KEY_HELPER} prints holds characters that no key can have.");
            Fault::new(FaultKind::NoCredentials, message)
        })?;
        headers.insert(name, value);
    }
    Ok(())
}

/// The answer as events, in whichever form it came.
async fn events(answer: Response, raw: Raw) -> Opened {
    if answer.status != 200 {
        return Err(refused(answer).await);
    }
    match answer.media_type().as_deref() {
        None | Some("text/event-stream") => {
            let request_id = answer.request_id();
            Ok(Reply::new(answer.chunks(), raw, request_id).boxed())
        }
        Some("application/json") => {
            let accepted = Event::Accepted { request_id: answer.request_id() };
            let whole = read::whole(&answer.whole(WHOLE_LIMIT).await?)?;
            let events = std::iter::once(accepted).chain(whole.events(usize::MAX));
            Ok(stream::iter(events.map(move |event| Ok(raw.with(event)))).boxed())
        }
        Some(media) => {
            let why = format!("it is {media}");
            let beginning = answer.beginning(ERROR_LIMIT).await;
            Err(read::not_a_stream(&String::from_utf8_lossy(&beginning), &why))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a date in a header is told from now")]
async fn refused(answer: Response) -> Fault {
    let status = answer.status;
    let headers = answer.headers.clone();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(place) = header("location").filter(|_| (300..400).contains(&status)) {
        let message =
            format!("The server sends us on to {place}; set ANTHROPIC_BASE_URL to the right address.");
        return Fault { status: Some(status), ..Fault::new(FaultKind::InvalidRequest, message) };
    }
    let body = answer.beginning(ERROR_LIMIT).await;
    refusal::of_status(status, &body).with_headers(header, SystemTime::now())
}

impl Dialect for Raw {
    fn read(&mut self, name: &str, data: &str, out: &mut impl FnMut(Delta)) -> Result<(), Fault> {
        out(read::read(name, data, *self)?);
        Ok(())
    }
}

/// Lines that are no header are left out.
fn custom_headers(lines: &str) -> Vec<(HeaderName, HeaderValue)> {
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().parse().ok()?, value.trim().parse().ok()?))
    };
    lines.lines().filter_map(header).collect()
}

fn address(base: &str) -> String {
    let base = base.trim_end_matches('/');
    format!("{}/v1/messages?beta=true", base.strip_suffix("/v1").unwrap_or(base))
}

fn no_credentials() -> Fault {
    Fault::new(
        FaultKind::NoCredentials,
        "There is no key to ask a model with. Set ANTHROPIC_API_KEY, or ANTHROPIC_AUTH_TOKEN (with ANTHROPIC_BASE_URL \
         for another server), or `apiKeyHelper` in your settings, or use OPENAI_BASE_URL with `--model openai:NAME`.",
    )
}

#[cfg(test)]
mod tests;
