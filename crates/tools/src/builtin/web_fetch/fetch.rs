//! Fetches a page: follows redirects and enforces limits.

use std::time::Duration;

use whimbrel_models::http::{FetchError, HttpClient, Response, Url};
use whimbrel_os::files;

use super::network_scope::{self, NetworkScope};
use super::page::{self, TextKind};
use super::redirect::{MAX_REDIRECTS, RedirectTarget, redirect_location, resolve_redirect};
use crate::api::ToolError;

/// Time limit including redirects.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest decompressed body in bytes.
const MAX_BODY_BYTES: usize = 10 << 20;

/// Accepted media types, preferred first.
const ACCEPT: &str = "text/markdown, text/html, application/json;q=0.9, text/*;q=0.9, */*;q=0.1";

#[derive(Debug, PartialEq)]
pub(super) enum FetchOutcome {
    Page(FetchedPage),
    /// A redirect to another host.
    OtherHost {
        /// The status of the redirect.
        status: u16,
        status_text: &'static str,
        to: Url,
    },
}

/// A page as text.
#[derive(Debug, PartialEq)]
pub(super) struct FetchedPage {
    pub(super) status: u16,
    pub(super) status_text: &'static str,
    /// Size of the body in bytes.
    pub(super) bytes: usize,
    /// The text, truncated if very long.
    pub(super) text: String,
}

pub(super) async fn fetch_page(
    client: &HttpClient,
    url: &Url,
    scope: NetworkScope,
) -> Result<FetchOutcome, ToolError> {
    let timed_out =
        |_| ToolError::Failed(format!("{url} did not respond within {} seconds.", FETCH_TIMEOUT.as_secs()));
    tokio::time::timeout(FETCH_TIMEOUT, fetch_following_redirects(client, url, scope))
        .await
        .map_err(timed_out)?
}

async fn fetch_following_redirects(
    client: &HttpClient,
    url: &Url,
    scope: NetworkScope,
) -> Result<FetchOutcome, ToolError> {
    let mut current = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let response = send_request(client, &current, scope).await?;
        let Some(location) = redirect_location(&response) else {
            return read_page(&current, response).await.map(FetchOutcome::Page);
        };
        let next = resolve_redirect(&current, location).map_err(|error| {
            ToolError::Failed(format!("{current} redirects, which cannot be followed: {error}"))
        })?;
        match next {
            RedirectTarget::SameHost(to) => current = to,
            RedirectTarget::OtherHost(to) => {
                let (status, status_text) = (response.status, response.status_text());
                return Ok(FetchOutcome::OtherHost { status, status_text, to });
            }
        }
    }
    Err(ToolError::Failed(format!("{url} redirects more than {MAX_REDIRECTS} times.")))
}

async fn send_request(client: &HttpClient, url: &Url, scope: NetworkScope) -> Result<Response, ToolError> {
    let host = url.host_str().unwrap_or_default();
    if !scope.allows_host(host) {
        return Err(private_host_error(host));
    }
    client.get(url, ACCEPT, scope.address_filter()).await.map_err(|error| match error {
        FetchError::AddressDenied(_) => private_host_error(host),
        FetchError::Failed(error) => ToolError::Failed(error.message),
    })
}

fn private_host_error(host: &str) -> ToolError {
    ToolError::Rejected(format!(
        "{host} is not on the public internet and cannot be fetched. The user can allow it with {}=1.",
        network_scope::PRIVATE_NETWORK_VARIABLE
    ))
}

/// Reads a response as text.
async fn read_page(url: &Url, response: Response) -> Result<FetchedPage, ToolError> {
    let (status, status_text) = (response.status, response.status_text());
    if !(200..300).contains(&status) {
        return Err(ToolError::Failed(format!(
            "{url} responded with {}.",
            format!("{status} {status_text}").trim_end()
        )));
    }
    let media_type = response.media_type();
    let Some(kind) = TextKind::from_media_type(media_type.as_deref()) else {
        let what = media_type.unwrap_or_default();
        return Err(ToolError::Failed(format!("{url} is {what}; only text can be read.")));
    };
    let charset = response.header("content-type").and_then(page::charset).map(str::to_owned);
    let body = response.read_all(MAX_BODY_BYTES).await.map_err(|error| ToolError::Failed(error.message))?;
    let bytes = body.len();
    let text = files::run_blocking(move || page::decode_body(kind, charset.as_deref(), &body)).await;
    match text {
        Ok(Some(text)) if text.trim().is_empty() => Err(ToolError::Failed(format!("{url} has no text."))),
        Ok(Some(text)) => Ok(FetchedPage { status, status_text, bytes, text }),
        Ok(None) => Err(ToolError::Failed(format!("{url} is not text; only text can be read."))),
        Err(error) => Err(ToolError::Failed(format!("{url} cannot be read: {error}"))),
    }
}
