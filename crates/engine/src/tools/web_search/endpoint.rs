//! A search by a server that the user has chosen: one that answers like SearXNG, with JSON.

use std::time::Duration;

use serde::Deserialize;
use whimbrel_models::http::{Door, NotFetched, Url};

use super::Input;
use super::found::{Found, Page, Part};
use crate::tools::{Call, Trouble};

/// The variable with the server's address. It is the user's own choice, so it may lie in their own network.
pub(super) const VARIABLE: &str = "WHIMBREL_SEARCH_URL";

/// The longest time for all of it.
const TIME: Duration = Duration::from_secs(30);

/// The most bytes of an answer.
const SIZE: usize = 4 << 20;

/// How many pages are told.
const MOST: usize = 10;

/// How much is told of a page, in bytes.
const SNIPPET: usize = 400;

#[derive(Deserialize)]
struct Answer {
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

pub(super) async fn search(server: &str, input: &Input, call: &Call) -> Result<Found, Trouble> {
    let mut url: Url = server.trim().parse().map_err(|_| {
        Trouble::Failed(format!("{VARIABLE} is no address: {server:?}. The user has to mend it."))
    })?;
    url.query_pairs_mut().append_pair("q", &input.query).append_pair("format", "json");
    let asked = tokio::time::timeout(TIME, ask(&url, call));
    let late =
        |_| Trouble::Failed(format!("The search server did not answer within {} seconds.", TIME.as_secs()));
    let Some(answer) = call.cancel.run_until_cancelled(asked).await else {
        return Err(Trouble::Failed("The search was interrupted.".into()));
    };
    let answer: Answer = serde_json::from_slice(&answer.map_err(late)??).map_err(|error| {
        Trouble::Failed(format!(
            "The search server's answer is not the JSON of SearXNG ({error}). The user has to switch JSON on there, or change {VARIABLE}."
        ))
    })?;
    let pages: Vec<Page> =
        answer.results.into_iter().filter(|hit| is_wanted(&hit.url, input)).take(MOST).map(page).collect();
    Ok(Found { parts: vec![Part::Pages { id: call.id.clone(), pages }], searches: 1 })
}

async fn ask(url: &Url, call: &Call) -> Result<bytes::Bytes, Trouble> {
    let door = Door::from_env(|name| call.workspace.variable(name));
    let got = door.get(url, "application/json", |_| true).await;
    let response = got.map_err(|error| match error {
        NotFetched::Forbidden(_) => Trouble::Failed(format!("The search server cannot be asked: {error}.")),
        NotFetched::Failed(fault) => Trouble::Failed(format!("The search failed: {}", fault.message)),
    })?;
    if response.status != 200 {
        let status = format!("{} {}", response.status, response.status_text());
        return Err(Trouble::Failed(format!("The search server answered {}.", status.trim_end())));
    }
    response.whole(SIZE).await.map_err(|fault| Trouble::Failed(fault.message))
}

/// Whether a page is on a site that is wanted.
fn is_wanted(url: &str, input: &Input) -> bool {
    let Ok(url) = url.parse::<Url>() else { return false };
    if !matches!(url.scheme(), "http" | "https") {
        return false;
    }
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    let on = |domain: &String| {
        let domain = domain.trim().trim_start_matches("*.").to_ascii_lowercase();
        host == domain || host.ends_with(&format!(".{domain}"))
    };
    (input.allowed_domains.is_empty() || input.allowed_domains.iter().any(on))
        && !input.blocked_domains.iter().any(on)
}

fn page(hit: Hit) -> Page {
    let mut snippet = hit.content.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    snippet.truncate(snippet.floor_char_boundary(SNIPPET));
    Page { title: hit.title, url: hit.url, snippet }
}
