//! Authenticated HTTP requests to one remote server.

use bytes::Bytes;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use whimbrel_models::ModelError as HttpError;
use whimbrel_models::http::{HttpClient, Response, Url};
use whimbrel_wire::options::RemoteServer;

use super::headers_command::HeadersCommand;
use crate::deps::ServerDeps;
use crate::error::McpError;
use crate::oauth::challenge::missing_scope;
use crate::oauth::{CredentialStore, TokenProvider};

/// URL of a server with the headers and credentials of every request. Cheap enough to clone.
#[derive(Clone)]
pub(super) struct RemoteEndpoint {
    pub(super) url: Url,
    headers: HeaderMap,
    credentials: Credentials,
    http_client: HttpClient,
}

/// Renewable credentials of a server.
#[derive(Clone)]
enum Credentials {
    /// None, or those in the entry's headers.
    None,
    /// OAuth token of the user.
    Token(TokenProvider),
    /// Headers printed by `headersHelper`.
    Command(HeadersCommand),
}

impl RemoteEndpoint {
    /// Reads an entry and obtains the credentials.
    pub(super) async fn connect(
        name: &str,
        server: &RemoteServer,
        deps: &ServerDeps,
    ) -> Result<Self, McpError> {
        let url = Url::parse(&server.url).map_err(|error| McpError::Permanent(format!("`url`: {error}.")))?;
        let user_agent = HeaderValue::from_static(concat!("whimbrel/", env!("CARGO_PKG_VERSION")));
        let mut headers = HeaderMap::from_iter([(http::header::USER_AGENT, user_agent)]);
        for (name, value) in &server.headers {
            let header = sensitive_header(name, value);
            let (name, value) =
                header.ok_or_else(|| McpError::Permanent(format!("`headers`: {name:?} cannot be sent.")))?;
            headers.insert(name, value);
        }
        let client = deps.http_client.clone();
        let credentials = match &server.headers_helper {
            Some(command) => {
                let helper = HeadersCommand::new(command, name, &server.url, deps);
                helper.run().await.map_err(McpError::Disconnected)?;
                Credentials::Command(helper)
            }
            None if headers.contains_key(AUTHORIZATION) => Credentials::None,
            None => {
                let provider =
                    TokenProvider::load(CredentialStore::from_env(&deps.environment), &url, &client).await;
                provider.map_or(Credentials::None, Credentials::Token)
            }
        };
        Ok(Self { url, headers, credentials, http_client: client })
    }

    /// Same headers and credentials with another URL of the same origin.
    pub(super) fn with_url(self, url: Url) -> Self {
        Self { url, ..self }
    }

    /// Sends a request and waits for the response head. On HTTP 401 the credentials are refreshed and the request is
    /// sent once more.
    pub(super) async fn request(
        &self,
        method: Method,
        extra_headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, HttpError> {
        let headers = self.credentials.headers().await;
        let response = self.send(method.clone(), &headers, extra_headers.clone(), body.clone()).await?;
        if response.status != 401 {
            return Ok(response);
        }
        match self.credentials.refresh_headers(&headers).await? {
            Some(headers) => {
                response.into_body().drain();
                self.send(method, &headers, extra_headers, body).await
            }
            None => Ok(response),
        }
    }

    async fn send(
        &self,
        method: Method,
        auth_headers: &HeaderMap,
        extra_headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, HttpError> {
        let mut headers = self.headers.clone();
        headers.extend(auth_headers.clone());
        headers.extend(extra_headers);
        self.http_client.request(method, self.url.clone(), headers, body).await
    }

    /// Text of an authentication or scope error, if the response is one.
    pub(super) fn auth_error(&self, response: &Response) -> Option<String> {
        match response.status {
            401 => Some(self.unauthorized_text()),
            403 => missing_scope(response.header(WWW_AUTHENTICATE.as_str())?)
                .map(|scope| missing_scope_text(scope.as_deref())),
            _ => None,
        }
    }

    fn unauthorized_text(&self) -> String {
        match self.credentials {
            Credentials::None => "it answered HTTP 401.".into(),
            Credentials::Token(_) => "the saved login is no longer valid (HTTP 401).".into(),
            Credentials::Command(_) => {
                "it rejected the headers of the `headersHelper` command (HTTP 401).".into()
            }
        }
    }
}

impl Credentials {
    async fn headers(&self) -> HeaderMap {
        match self {
            Self::None => HeaderMap::new(),
            Self::Token(provider) => authorization_headers(provider.authorization().await),
            Self::Command(helper) => helper.cached().await,
        }
    }

    /// Headers to use after `rejected` got HTTP 401; `None` if nothing else is available.
    async fn refresh_headers(&self, rejected: &HeaderMap) -> Result<Option<HeaderMap>, HttpError> {
        match (self, rejected.get(AUTHORIZATION)) {
            (Self::Token(provider), Some(rejected)) => {
                let refreshed = provider.refresh_authorization(rejected).await?;
                Ok(refreshed.map(|header| authorization_headers(Some(header))))
            }
            (Self::Token(_) | Self::None, _) => Ok(None),
            // If the command fails now, the server's 401 is reported.
            (Self::Command(helper), _) => Ok(helper.rerun(rejected).await),
        }
    }
}

/// Text for a token without the required scope.
fn missing_scope_text(scope: Option<&str>) -> String {
    match scope {
        Some(scope) => format!(
            "the token lacks the scope \"{scope}\" (HTTP 403). Add it to `oauth.scopes` of its entry."
        ),
        None => "the token lacks a required scope (HTTP 403).".into(),
    }
}

fn authorization_headers(header: Option<HeaderValue>) -> HeaderMap {
    header.map(|header| (AUTHORIZATION, header)).into_iter().collect()
}

/// Header whose value is hidden from logs.
pub(super) fn sensitive_header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, mut value) = (name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?);
    value.set_sensitive(true);
    Some((name, value))
}
