//! The way to a server at an address: every request carries what the entry says, and whatever shows who we are.

use bytes::Bytes;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use whimbrel_models::Fault as HttpFault;
use whimbrel_models::http::{Door, Response, Url};
use whimbrel_wire::options::RemoteServer;

use super::helper::Helper;
use crate::mcp::fault::Fault;
use crate::mcp::login::challenge::missing_scope;
use crate::mcp::login::{Pass, Wallet};
use crate::mcp::surroundings::Surroundings;

/// The address of a server, and what goes with every request to it. Cheap enough to clone.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) url: Url,
    headers: HeaderMap,
    badge: Badge,
    door: Door,
}

/// What shows who we are, and can be renewed.
#[derive(Clone)]
enum Badge {
    /// Nothing does, or the headers of the entry do.
    None,
    /// The person has logged in.
    Login(Pass),
    /// A command of the person knows.
    Helper(Helper),
}

impl Line {
    /// Reads an entry, and finds out who we are there.
    pub(super) async fn to(
        name: &str,
        server: &RemoteServer,
        surroundings: &Surroundings,
    ) -> Result<Self, Fault> {
        let url = Url::parse(&server.url).map_err(|error| Fault::Hopeless(format!("`url`: {error}.")))?;
        let agent = HeaderValue::from_static(concat!("whimbrel/", env!("CARGO_PKG_VERSION")));
        let mut headers = HeaderMap::from_iter([(http::header::USER_AGENT, agent)]);
        for (name, value) in &server.headers {
            let header = secret_header(name, value);
            let (name, value) =
                header.ok_or_else(|| Fault::Hopeless(format!("`headers`: {name:?} cannot be sent.")))?;
            headers.insert(name, value);
        }
        let door = surroundings.door.clone();
        let badge = match &server.headers_helper {
            Some(command) => {
                let helper = Helper::new(command, name, &server.url, surroundings);
                helper.ask().await.map_err(Fault::Gone)?;
                Badge::Helper(helper)
            }
            None if headers.contains_key(AUTHORIZATION) => Badge::None,
            None => {
                let pass = Pass::find(Wallet::of(&surroundings.environment), &url, &door).await;
                pass.map_or(Badge::None, Badge::Login)
            }
        };
        Ok(Self { url, headers, badge, door })
    }

    /// The same with another address at the same place.
    pub(super) fn at(self, url: Url) -> Self {
        Self { url, ..self }
    }

    /// Sends a request, and waits for the head of the answer. If the server does not know us, what shows who we are is
    /// renewed, and the request is sent once more.
    pub(super) async fn request(
        &self,
        method: Method,
        more: HeaderMap,
        body: Bytes,
    ) -> Result<Response, HttpFault> {
        let badge = self.badge.show().await;
        let answer = self.send(method.clone(), &badge, more.clone(), body.clone()).await?;
        if answer.status != 401 {
            return Ok(answer);
        }
        match self.badge.show_another(&badge).await? {
            Some(badge) => {
                answer.chunks().finish();
                self.send(method, &badge, more, body).await
            }
            None => Ok(answer),
        }
    }

    async fn send(
        &self,
        method: Method,
        badge: &HeaderMap,
        more: HeaderMap,
        body: Bytes,
    ) -> Result<Response, HttpFault> {
        let mut headers = self.headers.clone();
        headers.extend(badge.clone());
        headers.extend(more);
        self.door.request(method, self.url.clone(), headers, body).await
    }

    /// Why a server refuses a request by its status, if that is because of who we are.
    pub(super) fn refusal(&self, answer: &Response) -> Option<String> {
        match answer.status {
            401 => Some(self.unknown()),
            403 => missing_scope(answer.header(WWW_AUTHENTICATE.as_str())?)
                .map(|scope| uncovered(scope.as_deref())),
            _ => None,
        }
    }

    /// Why a server that answers 401 does so, as far as we know.
    fn unknown(&self) -> String {
        match self.badge {
            Badge::None => "it answered HTTP 401.".into(),
            Badge::Login(_) => "the login that is kept for it no longer holds (HTTP 401).".into(),
            Badge::Helper(_) => {
                "it does not take what the command of `headersHelper` prints (HTTP 401).".into()
            }
        }
    }
}

impl Badge {
    /// What to show.
    async fn show(&self) -> HeaderMap {
        match self {
            Self::None => HeaderMap::new(),
            Self::Login(pass) => authorization(pass.show().await),
            Self::Helper(helper) => helper.last().await,
        }
    }

    /// What to show instead of what was refused. None if there is nothing else.
    async fn show_another(&self, refused: &HeaderMap) -> Result<Option<HeaderMap>, HttpFault> {
        match (self, refused.get(AUTHORIZATION)) {
            (Self::Login(pass), Some(refused)) => {
                let another = pass.show_another(refused).await?;
                Ok(another.map(|header| authorization(Some(header))))
            }
            (Self::Login(_) | Self::None, _) => Ok(None),
            // Should the command fail now, the server's own word is told.
            (Self::Helper(helper), _) => Ok(helper.ask_again(refused).await),
        }
    }
}

/// A login that is known, and does not reach far enough.
fn uncovered(scope: Option<&str>) -> String {
    match scope {
        Some(scope) => format!(
            "the one that it was shown does not cover the scope \"{scope}\" (HTTP 403). Name that in `oauth.scopes` of its entry."
        ),
        None => "the one that it was shown does not cover this (HTTP 403).".into(),
    }
}

fn authorization(header: Option<HeaderValue>) -> HeaderMap {
    header.map(|header| (AUTHORIZATION, header)).into_iter().collect()
}

/// A header whose value is not for everybody's eyes.
pub(super) fn secret_header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, mut value) = (name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?);
    value.set_sensitive(true);
    Some((name, value))
}
