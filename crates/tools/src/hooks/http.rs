//! HTTP hooks: the hook input is sent by POST, and the response body is the hook's output.
//!
//! - Status 200 to 299: an empty body is no output, a JSON object is the output, other text is text.
//! - Any other status, redirects included, and a failed request are errors.
//!
//! `$NAME` and `${NAME}` in headers are expanded for the variables that the hook lists; others expand to nothing.

use std::time::Duration;

use bytes::Bytes;
use fancy_regex::{Captures, Regex};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;
use whimbrel_config::settings::hooks::HttpHookConfig;
use whimbrel_models::http::{HttpClient, Url};
use whimbrel_wire::hook::HookEvent;

use super::output::ParsedOutput;
use crate::workspace::Workspace;

const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Error of an invalid URL or header name.
pub(super) fn validation_error(hook: &HttpHookConfig) -> Option<String> {
    match Url::parse(&hook.url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {}
        _ => return Some(format!("{:?} is not a URL that begins with http:// or https://", hook.url)),
    }
    let invalid = hook.headers.keys().find(|name| HeaderName::from_bytes(name.as_bytes()).is_err())?;
    Some(format!("{invalid:?} is not a valid header name"))
}

/// Sends the hook input and parses the response.
pub(super) async fn run(
    hook: &HttpHookConfig,
    event: HookEvent,
    body: Bytes,
    workspace: &Workspace,
    limit: Duration,
    cancel: &CancellationToken,
) -> ParsedOutput {
    let response = tokio::time::timeout(limit, post(hook, body, workspace));
    match cancel.run_until_cancelled(response).await {
        None => ParsedOutput::Cancelled,
        Some(Err(_)) => ParsedOutput::TimedOut(limit),
        Some(Ok(Err(error))) => ParsedOutput::Failed(error),
        Some(Ok(Ok(text))) => ParsedOutput::from_http(event, &text),
    }
}

async fn post(hook: &HttpHookConfig, input: Bytes, workspace: &Workspace) -> Result<String, String> {
    let client = HttpClient::from_env(|name| workspace.variable(name));
    let headers = expand_headers(hook, |name| workspace.variable(name))?;
    let response = client.post(&hook.url, headers, input).await.map_err(|error| error.message)?;
    match response.status {
        200..=299 => {
            let body = response.read_all(MAX_RESPONSE_BYTES).await.map_err(|error| error.message)?;
            Ok(String::from_utf8_lossy(&body).into_owned())
        }
        status @ 300..=399 => Err(format!("it responded with {status}: redirects of hooks are not followed")),
        status => Err(format!("it responded with {status} {}", response.status_text())),
    }
}

fn expand_headers(
    hook: &HttpHookConfig,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    for (name, value) in &hook.headers {
        let value = expand_variables(value, |name| {
            variable(name).filter(|_| hook.allowed_env_vars.iter().any(|allowed| allowed == name))
        });
        // The value may hold a secret and is not shown.
        let invalid = || format!("the value of its header {name} is not valid");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        headers.insert(name, HeaderValue::from_str(&value).map_err(|_| invalid())?);
    }
    Ok(headers)
}

fn expand_variables(text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let Ok(pattern) = Regex::new(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))") else {
        return text.to_owned();
    };
    let value = |captures: &Captures<'_, str>| {
        captures.get(1).or(captures.get(2)).and_then(|name| variable(name.as_str())).unwrap_or_default()
    };
    pattern.replace_all(text, value).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn only_listed_variables_are_expanded_in_headers() {
        let hook = HttpHookConfig {
            headers: BTreeMap::from([("X-Key".into(), "a $KEY b ${KEY}c $OTHER$".into())]),
            allowed_env_vars: vec!["KEY".into()],
            ..HttpHookConfig::default()
        };
        let headers = expand_headers(&hook, |name| Some(format!("<{name}>"))).unwrap();
        assert_eq!(headers["x-key"], "a <KEY> b <KEY>c $");
        assert_eq!(headers[CONTENT_TYPE], "application/json");
        let error = expand_headers(&hook, |_| Some("line\nbreak".into())).unwrap_err();
        assert_eq!(error, "the value of its header X-Key is not valid");
    }

    #[test]
    fn the_url_must_be_http_or_https() {
        for (url, valid) in [
            ("https://example.invalid/hook", true),
            ("http://127.0.0.1:8080", true),
            ("file:///etc/passwd", false),
            ("example.invalid", false),
            ("", false),
        ] {
            let hook = HttpHookConfig { url: url.into(), ..HttpHookConfig::default() };
            assert_eq!(validation_error(&hook).is_none(), valid, "{url}");
        }
        let headers = BTreeMap::from([("no name".into(), String::new())]);
        let hook = HttpHookConfig { url: "http://127.0.0.1".into(), headers, ..HttpHookConfig::default() };
        assert!(validation_error(&hook).unwrap().contains("no name"));
    }
}
