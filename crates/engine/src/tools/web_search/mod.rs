//! WebSearch: finds pages on the web.
//!
//! - [`served`]: the provider of the small model searches; - [`endpoint`]: a search server of the user's choice does
//! - [`found`]: what came of it

mod endpoint;
mod found;
mod served;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Call, Done, Example, Output, Tool, Touches, Trouble};
use crate::clock;
use crate::on_demand::Offer;

/// The tool.
pub(super) struct WebSearch;

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Input {
    query: String,
    /// Only pages of these.
    #[serde(default)]
    allowed_domains: Vec<String>,
    /// No pages of these.
    #[serde(default)]
    blocked_domains: Vec<String>,
}

impl Tool for WebSearch {
    type Input = Input;

    const NAME: &'static str = "WebSearch";

    const OFFER: Offer = Offer::OnDemand;

    const DESCRIPTION: &'static str = "Searches the web. Gives titles and addresses, and what they say in short. Name the sources that you use.";

    fn touches(_: &Input) -> Touches {
        Touches::Network
    }

    async fn run(&self, mut input: Input, call: Call) -> Output {
        input.query = input.query.trim().to_owned();
        check(&input)?;
        let began = clock::monotonic();
        let found = match call.workspace.variable(endpoint::VARIABLE).filter(|url| !url.trim().is_empty()) {
            Some(url) => endpoint::search(&url, &input, &call).await?,
            None if call.consult.can_search() => served::search(&input, &call).await?,
            None => {
                return Err(Trouble::Refused(format!(
                    "There is no search here: the model's provider has none. The user can name a search server in {} (SearXNG, with JSON switched on).",
                    endpoint::VARIABLE
                )));
            }
        };
        let meta = json!({
            "query": input.query,
            "results": found.for_host(),
            "durationSeconds": began.elapsed().as_secs_f64(),
            "searchCount": found.searches,
        });
        Ok(Done::text(found.for_model(&input.query), meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("a search is for something", json!({"query": " "})).fails(&["The query is empty"]),
            Example::new(
                "sites are either chosen or left out",
                json!({"query": "birds", "allowed_domains": ["a.org"], "blocked_domains": ["b.org"]}),
            )
            .fails(&["not both"]),
            Example::new("where nobody searches, the way is shown", json!({"query": "birds"}))
                .fails(&["There is no search here", "WHIMBREL_SEARCH_URL"]),
        ]
    }
}

fn check(input: &Input) -> Result<(), Trouble> {
    if input.query.is_empty() {
        return Err(Trouble::Refused("The query is empty.".into()));
    }
    if !input.allowed_domains.is_empty() && !input.blocked_domains.is_empty() {
        let text = "Give allowed_domains or blocked_domains, not both.";
        return Err(Trouble::Refused(text.into()));
    }
    Ok(())
}
