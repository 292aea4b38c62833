//! Search by a server of the user's choice with the JSON API of SearXNG.

use std::time::Duration;

use serde::Deserialize;
use whimbrel_models::http::{FetchError, HttpClient, Url};

use super::WebSearchInput;
use super::results::{ResultPart, SearchResults, WebPage};
use crate::api::{ToolContext, ToolError};

/// Variable with the server's URL. The user sets it, so it may be in a private network.
pub(super) const SEARCH_URL_VARIABLE: &str = "WHIMBREL_SEARCH_URL";

/// Time limit of a search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest response in bytes.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// Maximum number of results.
const MAX_RESULTS: usize = 10;

/// Maximum bytes of a snippet.
const MAX_SNIPPET_BYTES: usize = 400;

#[derive(Deserialize)]
struct SearchResponse {
    #[serde(default)]
    results: Vec<Hit>,
}

#[derive(Deserialize)]
struct Hit {
    #[serde(default)]
    title: String,
    #[serde(default)]
    url: String,
    #[serde(default, alias = "snippet")]
    content: Option<String>,
}

pub(super) async fn search(
    server: &str,
    input: &WebSearchInput,
    call: &ToolContext,
) -> Result<SearchResults, ToolError> {
    let mut url: Url = server.trim().parse().map_err(|_| {
        ToolError::Failed(format!(
            "{SEARCH_URL_VARIABLE} is not a valid URL: {server:?}. The user must correct it."
        ))
    })?;
    url.query_pairs_mut().append_pair("q", &input.query).append_pair("format", "json");
    let search = tokio::time::timeout(SEARCH_TIMEOUT, send_request(&url, call));
    let timed_out = |_| {
        ToolError::Failed(format!(
            "The search server did not respond within {} seconds.",
            SEARCH_TIMEOUT.as_secs()
        ))
    };
    let Some(response) = call.cancel.run_until_cancelled(search).await else {
        return Err(ToolError::Failed("The search was interrupted.".into()));
    };
    let response: SearchResponse = serde_json::from_slice(&response.map_err(timed_out)??).map_err(|error| {
        ToolError::Failed(format!(
            "The search server did not return SearXNG JSON ({error}). The user must enable the JSON format there or \
             change {SEARCH_URL_VARIABLE}."
        ))
    })?;
    let pages: Vec<WebPage> = response
        .results
        .into_iter()
        .filter(|hit| matches_domains(&hit.url, input))
        .take(MAX_RESULTS)
        .map(to_web_page)
        .collect();
    Ok(SearchResults { parts: vec![ResultPart::Pages { id: call.id.clone(), pages }], searches: 1 })
}

async fn send_request(url: &Url, call: &ToolContext) -> Result<bytes::Bytes, ToolError> {
    let client = HttpClient::from_env(|name| call.workspace.variable(name));
    let result = client.get(url, "application/json", |_| true).await;
    let response = result.map_err(|error| match error {
        FetchError::AddressDenied(_) => {
            ToolError::Failed(format!("The search server cannot be reached: {error}."))
        }
        FetchError::Failed(error) => ToolError::Failed(format!("The search failed: {}", error.message)),
    })?;
    if response.status != 200 {
        let status = format!("{} {}", response.status, response.status_text());
        return Err(ToolError::Failed(format!("The search server responded with {}.", status.trim_end())));
    }
    response.read_all(MAX_RESPONSE_BYTES).await.map_err(|error| ToolError::Failed(error.message))
}

/// Returns whether a URL matches the domain filters.
fn matches_domains(url: &str, input: &WebSearchInput) -> bool {
    let Ok(url) = url.parse::<Url>() else { return false };
    if !matches!(url.scheme(), "http" | "https") {
        return false;
    }
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    let is_in_domain = |domain: &String| {
        let domain = domain.trim().trim_start_matches("*.").to_ascii_lowercase();
        host == domain || host.ends_with(&format!(".{domain}"))
    };
    (input.allowed_domains.is_empty() || input.allowed_domains.iter().any(is_in_domain))
        && !input.blocked_domains.iter().any(is_in_domain)
}

fn to_web_page(hit: Hit) -> WebPage {
    let mut snippet = hit.content.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    snippet.truncate(snippet.floor_char_boundary(MAX_SNIPPET_BYTES));
    WebPage { title: hit.title, url: hit.url, snippet }
}
