//! Getting a page: asks, follows redirects, and keeps to the limits.

use std::time::Duration;

use whimbrel_models::http::{Door, NotFetched, Response, Url};

use super::address::{self, Next};
use super::guard::{self, Reach};
use super::page::{self, Kind};
use crate::files;
use crate::tools::Trouble;

/// The longest time for all of it.
const TIME: Duration = Duration::from_secs(30);

/// The most bytes of a body, decompressed.
const SIZE: usize = 10 << 20;

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// What we like to read, best first.
const ACCEPT: &str = "text/markdown, text/html, application/json;q=0.9, text/*;q=0.9, */*;q=0.1";

/// What was found at an address.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    /// A page.
    Page(Page),
    /// The way to another host.
    Elsewhere {
        /// The status of the redirect.
        status: u16,
        /// What it is called.
        status_text: &'static str,
        /// Where it leads.
        to: Url,
    },
}

/// A page as text.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    /// The HTTP status.
    pub(super) status: u16,
    /// What it is called.
    pub(super) status_text: &'static str,
    /// How many bytes the body had.
    pub(super) bytes: usize,
    /// What is to be read, cut if it was very long.
    pub(super) text: String,
}

/// Gets what lies at an address.
pub(super) async fn fetch(door: &Door, url: &Url, reach: Reach) -> Result<Found, Trouble> {
    let late = |_| Trouble::Failed(format!("{url} did not arrive within {} seconds.", TIME.as_secs()));
    tokio::time::timeout(TIME, follow(door, url, reach)).await.map_err(late)?
}

async fn follow(door: &Door, url: &Url, reach: Reach) -> Result<Found, Trouble> {
    let mut at = url.clone();
    for _ in 0..=REDIRECTS {
        let response = ask(door, &at, reach).await?;
        let Some(location) = redirected(&response) else {
            return receive(&at, response).await.map(Found::Page);
        };
        let next = address::redirect(&at, location)
            .map_err(|why| Trouble::Failed(format!("{at} redirects, and that cannot be followed: {why}")))?;
        match next {
            Next::Here(to) => at = to,
            Next::Elsewhere(to) => {
                let (status, status_text) = (response.status, response.status_text());
                return Ok(Found::Elsewhere { status, status_text, to });
            }
        }
    }
    Err(Trouble::Failed(format!("{url} redirects more than {REDIRECTS} times.")))
}

async fn ask(door: &Door, url: &Url, reach: Reach) -> Result<Response, Trouble> {
    let host = url.host_str().unwrap_or_default();
    if !reach.permits_name(host) {
        return Err(barred(host));
    }
    door.get(url, ACCEPT, reach.permit()).await.map_err(|error| match error {
        NotFetched::Forbidden(_) => barred(host),
        NotFetched::Failed(fault) => Trouble::Failed(fault.message),
    })
}

fn barred(host: &str) -> Trouble {
    Trouble::Refused(format!(
        "{host} is not on the public internet and is not fetched from. The user can permit it with {}=1.",
        guard::VARIABLE
    ))
}

/// Where an answer sends us, if it does.
fn redirected(response: &Response) -> Option<&str> {
    matches!(response.status, 301 | 302 | 303 | 307 | 308).then(|| response.header("location"))?
}

/// Reads an answer as text.
async fn receive(url: &Url, response: Response) -> Result<Page, Trouble> {
    let (status, status_text) = (response.status, response.status_text());
    if !(200..300).contains(&status) {
        return Err(Trouble::Failed(format!(
            "{url} answered {}.",
            format!("{status} {status_text}").trim_end()
        )));
    }
    let media_type = response.media_type();
    let Some(kind) = Kind::of(media_type.as_deref()) else {
        let what = media_type.unwrap_or_default();
        return Err(Trouble::Failed(format!("{url} is {what}; only text can be read.")));
    };
    let charset = response.header("content-type").and_then(page::charset).map(str::to_owned);
    let body = response.whole(SIZE).await.map_err(|fault| Trouble::Failed(fault.message))?;
    let bytes = body.len();
    let text = files::aside(move || page::text(kind, charset.as_deref(), &body)).await;
    match text {
        Ok(Some(text)) if text.trim().is_empty() => Err(Trouble::Failed(format!("{url} has no text."))),
        Ok(Some(text)) => Ok(Page { status, status_text, bytes, text }),
        Ok(None) => Err(Trouble::Failed(format!("{url} is no text; only text can be read."))),
        Err(error) => Err(Trouble::Failed(format!("{url} cannot be read: {error}"))),
    }
}
