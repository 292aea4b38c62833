//! OAuth redirect listener on a loopback port.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use whimbrel_models::http::Url;
use whimbrel_wire::options::OauthTerms;

const CALLBACK_PATH: &str = "/callback";

const MAX_REQUEST_HEAD_BYTES: usize = 32 * 1024;

/// Timeout for reading a browser's request.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Parameters of the redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallbackParams {
    pub(super) code: Option<String>,
    pub(super) error: Option<String>,
    /// `iss` parameter: the authorization server that redirected.
    pub(super) issuer: Option<String>,
}

/// Listener for the browser's redirect.
pub(super) struct CallbackListener {
    listener: TcpListener,
    url: String,
}

impl CallbackListener {
    /// Binds the configured port, or a free one.
    pub(super) async fn bind(terms: &OauthTerms) -> Result<Self, String> {
        let requested_port = terms.callback_port.unwrap_or(0);
        let listener = TcpListener::bind(("127.0.0.1", requested_port)).await;
        let listener = listener.map_err(|error| {
            format!("Cannot listen on port {requested_port} for the browser redirect: {error}.")
        })?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        // Registered clients use `localhost` by convention; otherwise the IP address avoids name resolution.
        let host = if terms.client_id.is_some() { "localhost" } else { "127.0.0.1" };
        Ok(Self { listener, url: format!("http://{host}:{port}{CALLBACK_PATH}") })
    }

    /// Redirect URI.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Waits for the redirect. Requests with another `state` are answered with 404.
    pub(super) async fn wait_callback(&self, state: &str) -> Result<CallbackParams, String> {
        // Browsers open speculative connections, so all connections are read concurrently.
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                connection = self.listener.accept() => {
                    let (stream, _) = connection.map_err(|error| format!("Cannot accept the browser redirect: {error}."))?;
                    let state = state.to_owned();
                    connections.spawn(async move { timeout(READ_TIMEOUT, handle_connection(stream, &state)).await.ok().flatten() });
                }
                Some(callback) = connections.join_next() => {
                    if let Ok(Some(params)) = callback {
                        return Ok(params);
                    }
                }
            }
        }
    }
}

/// Reads one request, answers it, and returns the parameters if `state` matches.
async fn handle_connection(mut stream: TcpStream, state: &str) -> Option<CallbackParams> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_REQUEST_HEAD_BYTES {
        if stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let target =
        head.strip_prefix("GET ").and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
    let params = parse_callback_url(&format!("http://127.0.0.1{target}"), state);
    let (status, text) = match &params {
        Some(CallbackParams { error: None, .. }) => {
            ("200 OK", "Whimbrel has received the login. You can close this page and return to the terminal.")
        }
        Some(_) => ("200 OK", "The login was denied. You can close this page; the terminal shows details."),
        None => ("404 Not Found", "Not found."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>Whimbrel</title><p>{text}</p>");
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    // The parameters count even if the browser has closed the connection.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
    params
}

/// Parses a pasted line as the URL that the browser ended at.
pub(super) fn parse_pasted(line: &str, state: &str) -> Option<CallbackParams> {
    parse_callback_url(line.trim(), state)
}

/// Parses a redirect URL; `None` if path or `state` do not match.
fn parse_callback_url(text: &str, state: &str) -> Option<CallbackParams> {
    let url = Url::parse(text).ok().filter(|url| url.path() == CALLBACK_PATH)?;
    let fields: BTreeMap<String, String> =
        url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    if fields.get("state").map(String::as_str) != Some(state) {
        return None;
    }
    let error = fields.get("error").map(|error| match fields.get("error_description") {
        Some(description) => format!("{} ({error})", super::token::sanitize_text(description)),
        None => super::token::sanitize_text(error),
    });
    Some(CallbackParams { code: fields.get("code").cloned(), error, issuer: fields.get("iss").cloned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_redirect_with_our_state_counts() {
        let params = |code: Option<&str>, error: Option<&str>| {
            Some(CallbackParams { code: code.map(Into::into), error: error.map(Into::into), issuer: None })
        };
        for (url, expected) in [
            ("http://127.0.0.1:5/callback?code=a%20b&state=s", params(Some("a b"), None)),
            (" http://localhost:5/callback?state=s&code=c\n", params(Some("c"), None)),
            (
                "http://127.0.0.1/callback?state=s&error=access_denied&error_description=No",
                params(None, Some("No (access_denied)")),
            ),
            ("http://127.0.0.1/callback?code=a&state=other", None),
            ("http://127.0.0.1/callback?code=a", None),
            ("http://127.0.0.1/favicon.ico?state=s", None),
            ("yes please", None),
            ("", None),
        ] {
            assert_eq!(parse_pasted(url, "s"), expected, "{url}");
        }
    }
}
