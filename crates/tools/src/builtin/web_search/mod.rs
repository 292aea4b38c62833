//! WebSearch: searches the web.
//!
//! `provider` searches with the small model's provider, `searxng` with a server of the user's choice, `results` renders
//! what was found.

mod provider;
mod results;
mod searxng;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_os::clock;

use crate::api::ToolLoading;
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};

pub(super) struct WebSearchTool;

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct WebSearchInput {
    query: String,
    /// Only include these domains.
    #[serde(default)]
    allowed_domains: Vec<String>,
    /// Exclude these domains.
    #[serde(default)]
    blocked_domains: Vec<String>,
}

impl Tool for WebSearchTool {
    type Input = WebSearchInput;

    const NAME: &'static str = "WebSearch";

    const LOADING: ToolLoading = ToolLoading::Deferred;

    const DESCRIPTION: &'static str = "Searches the web and returns titles, URLs and excerpts. Cite the sources you \
        use.";

    fn effects(_: &WebSearchInput) -> Effects {
        Effects::Network
    }

    async fn run(&self, mut input: WebSearchInput, call: ToolContext) -> ToolResult {
        input.query = input.query.trim().to_owned();
        check_input(&input)?;
        let started = clock::monotonic();
        let found = match call
            .workspace
            .variable(searxng::SEARCH_URL_VARIABLE)
            .filter(|url| !url.trim().is_empty())
        {
            Some(url) => searxng::search(&url, &input, &call).await?,
            None if call.small_model.can_search() => provider::search(&input, &call).await?,
            None => {
                return Err(ToolError::Rejected(format!(
                    "Web search is not available: the model's provider has none. The user can set a search server in \
                     {} (SearXNG with the JSON format enabled).",
                    searxng::SEARCH_URL_VARIABLE
                )));
            }
        };
        let meta = json!({
            "query": input.query,
            "results": found.to_host_json(),
            "durationSeconds": started.elapsed().as_secs_f64(),
            "searchCount": found.searches,
        });
        Ok(ToolOutput::text(found.render_for_model(&input.query), meta))
    }

    fn examples() -> Vec<Example> {
        vec![
            Example::new("an empty query is rejected", json!({"query": " "}))
                .expect_error(&["The query is empty"]),
            Example::new(
                "domains are either allowed or blocked",
                json!({"query": "birds", "allowed_domains": ["a.org"], "blocked_domains": ["b.org"]}),
            )
            .expect_error(&["not both"]),
            Example::new("without a search server the remedy is shown", json!({"query": "birds"}))
                .expect_error(&["Web search is not available", "WHIMBREL_SEARCH_URL"]),
        ]
    }
}

fn check_input(input: &WebSearchInput) -> Result<(), ToolError> {
    if input.query.is_empty() {
        return Err(ToolError::Rejected("The query is empty.".into()));
    }
    if !input.allowed_domains.is_empty() && !input.blocked_domains.is_empty() {
        let text = "Set allowed_domains or blocked_domains, not both.";
        return Err(ToolError::Rejected(text.into()));
    }
    Ok(())
}
