//! Requests OAuth tokens: code exchange and refresh.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::form_urlencoded::{Serializer, byte_serialize};
use whimbrel_models::http::{HttpClient, Url};
use whimbrel_os::clock;

use super::client::{ClientSecret, OauthClient};
use super::discovery::{OauthMetadata, send_request};

const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// Maximum length of a server's text in error messages.
const MAX_SHOWN_CHARS: usize = 300;

/// A token is refreshed this long before it expires.
const REFRESH_MARGIN_SECONDS: u64 = 60;

/// Token as stored on disk, with what a refresh needs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OauthToken {
    pub(super) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    /// Expiry time, in Unix seconds.
    #[serde(rename = "endsAt", default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    token_endpoint: Url,
    resource: String,
    client: OauthClient,
}

/// Parameters of the code exchange.
pub(super) struct CodeExchange<'a> {
    pub(super) code: &'a str,
    pub(super) verifier: &'a str,
    pub(super) redirect_url: &'a str,
}

/// Failed token request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenError {
    /// May succeed later.
    Temporary(String),
    /// Requires a new login.
    Permanent(String),
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Temporary(text) | Self::Permanent(text) => f.write_str(text),
        }
    }
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    token_type: Option<String>,
    expires_in: Option<f64>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

/// Exchanges an authorization code for a token.
pub(super) async fn exchange_code(
    http_client: &HttpClient,
    client: &OauthClient,
    metadata: &OauthMetadata,
    CodeExchange { code, verifier, redirect_url }: CodeExchange<'_>,
) -> Result<OauthToken, TokenError> {
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", redirect_url),
        ("code_verifier", verifier),
        ("resource", &metadata.resource),
    ];
    let token_endpoint = metadata.authorization_server.token_endpoint.clone();
    let response = request_token(http_client, &token_endpoint, client, &fields).await?;
    let expires_at = expiry_seconds(&response);
    let TokenResponse { access_token, refresh_token, scope, .. } = response;
    let (resource, client) = (metadata.resource.clone(), client.clone());
    Ok(OauthToken { access_token, refresh_token, expires_at, scope, token_endpoint, resource, client })
}

impl OauthToken {
    /// Returns true if the token has expired or is about to.
    pub(super) fn is_expiring(&self) -> bool {
        self.expires_at.is_some_and(|end| now_seconds() + REFRESH_MARGIN_SECONDS >= end)
    }

    /// Gets a new token with the refresh token.
    pub(super) async fn refresh(&self, http_client: &HttpClient) -> Result<Self, TokenError> {
        let Some(refresh_token) = &self.refresh_token else {
            return Err(TokenError::Permanent("the login has expired.".into()));
        };
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", refresh_token), ("resource", &self.resource)];
        let response = request_token(http_client, &self.token_endpoint, &self.client, &fields).await?;
        let expires_at = expiry_seconds(&response);
        Ok(Self {
            access_token: response.access_token,
            // A response without a refresh token means that the old one stays valid.
            refresh_token: response.refresh_token.or_else(|| Some(refresh_token.clone())),
            expires_at,
            scope: response.scope.or_else(|| self.scope.clone()),
            ..self.clone()
        })
    }
}

async fn request_token(
    http_client: &HttpClient,
    url: &Url,
    client: &OauthClient,
    fields: &[(&str, &str)],
) -> Result<TokenResponse, TokenError> {
    let (headers, body) = build_form(client, fields);
    let response =
        send_request(http_client, Method::POST, url, headers, body).await.map_err(TokenError::Temporary)?;
    let status = response.status;
    let text = response.read_prefix(MAX_RESPONSE_BYTES).await;
    match status {
        200..300 => parse_token_response(&text).map_err(TokenError::Permanent),
        400 | 401 | 403 => {
            Err(TokenError::Permanent(format!("the login was rejected: {}", error_message(&text))))
        }
        _ => Err(TokenError::Temporary(format!("{url} answered HTTP {status}: {}", error_message(&text)))),
    }
}

/// Form body and headers of a token request, with client authentication.
fn build_form(client: &OauthClient, fields: &[(&str, &str)]) -> (HeaderMap, Bytes) {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let mut body = Serializer::new(String::new());
    body.extend_pairs(fields);
    match &client.secret {
        Some(ClientSecret::Header(secret)) => {
            let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let credentials = STANDARD.encode(format!("{}:{}", encode(&client.id), encode(secret)));
            if let Ok(mut value) = HeaderValue::from_str(&format!("Basic {credentials}")) {
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
        }
        Some(ClientSecret::Field(secret)) => {
            body.append_pair("client_id", &client.id).append_pair("client_secret", secret);
        }
        None => {
            body.append_pair("client_id", &client.id);
        }
    }
    (headers, body.finish().into())
}

/// Parses a token response. Its contents never appear in the error.
fn parse_token_response(text: &[u8]) -> Result<TokenResponse, String> {
    let response: TokenResponse = serde_json::from_slice(text)
        .map_err(|_| format!("the response has no token: {}", error_message(text)))?;
    if response.token_type.as_deref().is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err("the token type is not `bearer`.".into());
    }
    let is_sendable = |text: &str| !text.is_empty() && HeaderValue::from_str(text).is_ok();
    if is_sendable(&response.access_token) {
        Ok(response)
    } else {
        Err("the token has characters that cannot be sent in a header.".into())
    }
}

fn expiry_seconds(response: &TokenResponse) -> Option<u64> {
    let lifetime = response.expires_in.filter(|seconds| seconds.is_finite() && *seconds >= 0.0)?;
    // The value is finite and bounded above.
    Some(now_seconds() + lifetime.min(1e10) as u64)
}

fn now_seconds() -> u64 {
    clock::unix_millis() / 1000
}

/// Error message from the body of a failed response.
pub(super) fn error_message(text: &[u8]) -> String {
    let body = serde_json::from_slice::<Value>(text).ok();
    let field = |name: &str| body.as_ref()?.get(name)?.as_str().map(sanitize_text);
    match (field("error"), field("error_description")) {
        (Some(error), Some(description)) => format!("{description} ({error})."),
        (Some(error), None) => format!("{error}."),
        _ if body.is_some() => "no reason given.".into(),
        _ => sanitize_text(&String::from_utf8_lossy(&text[..text.len().min(MAX_SHOWN_CHARS)])),
    }
}

/// Removes control characters and truncates, so that a server's text cannot control or flood the terminal.
pub(super) fn sanitize_text(text: &str) -> String {
    let clean = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(MAX_SHOWN_CHARS).collect::<String>().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sendable_token_is_accepted() {
        for (text, expected_error) in [
            (r#"{"access_token":"t","token_type":"Bearer","expires_in":3600}"#, None),
            (r#"{"access_token":"t"}"#, None),
            (r#"{"access_token":"t","token_type":"mac"}"#, Some("not `bearer`")),
            ("{\"access_token\":\"a\\nb\"}", Some("cannot be sent")),
            (r#"{"access_token":""}"#, Some("cannot be sent")),
            (
                r#"{"error":"invalid_grant","error_description":"Too late."}"#,
                Some("Too late (invalid_grant)"),
            ),
            (r#"{"token":"secret"}"#, Some("no reason given")),
            ("<html>", Some("<html>")),
        ] {
            match (parse_token_response(text.as_bytes()), expected_error) {
                (Ok(response), None) => assert!(!response.access_token.is_empty()),
                (Err(error), Some(words)) => {
                    assert!(error.contains(words) && !error.contains("secret"), "{error}");
                }
                (result, expected) => panic!("{text}: {:?} instead of {expected:?}", result.err()),
            }
        }
    }

    #[test]
    fn stored_token_keeps_its_field_names() {
        let stored = serde_json::json!({
            "accessToken": "t", "refreshToken": "r", "endsAt": 7, "scope": "s", "tokenEndpoint": "https://h.test/token",
            "resource": "https://h.test/", "client": {"id": "c"},
        });
        let token: OauthToken = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(token.expires_at, Some(7));
        assert_eq!(serde_json::to_value(&token).unwrap()["endsAt"], stored["endsAt"]);
    }

    #[test]
    fn the_client_secret_is_sent_by_the_agreed_method() {
        let client = |secret| OauthClient { id: "a b".into(), secret };
        let fields = [("grant_type", "x y")];
        let (headers, body) = build_form(&client(None), &fields);
        assert_eq!((headers.get(AUTHORIZATION), &body[..]), (None, &b"grant_type=x+y&client_id=a+b"[..]));
        let (headers, body) = build_form(&client(Some(ClientSecret::Field("s".into()))), &fields);
        assert_eq!(headers.get(AUTHORIZATION), None);
        assert_eq!(&body[..], b"grant_type=x+y&client_id=a+b&client_secret=s");
        let (headers, body) = build_form(&client(Some(ClientSecret::Header("s:t".into()))), &fields);
        let credentials = STANDARD.encode("a+b:s%3At");
        assert_eq!(headers[AUTHORIZATION], format!("Basic {credentials}"));
        assert_eq!(&body[..], b"grant_type=x+y");
    }
}
