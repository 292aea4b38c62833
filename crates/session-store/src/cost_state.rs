//! Entries that record the cost of a session so far, in the form of the official engine. The last one counts when the
//! session is resumed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Type of the entry.
pub(crate) const COST_STATE: &str = "cost-state";

/// Cost of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CostState {
    pub session_id: String,
    #[serde(rename = "totalCostUSD")]
    pub total_cost_usd: f64,
    /// Time spent waiting for the model, in milliseconds.
    #[serde(rename = "totalAPIDuration")]
    pub total_api_duration: u64,
    pub total_lines_added: u64,
    pub total_lines_removed: u64,
    pub model_usage: BTreeMap<String, ModelCost>,
    /// The price of a model is not known, so the total is too low.
    pub has_unknown_model_cost: bool,
}

/// Tokens and cost of one model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelCost {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub cache_creation_input_tokens: u64,
    pub web_search_requests: u64,
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
}

/// Renders an entry.
pub(crate) fn render_entry(state: &CostState) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Entry<'a> {
        r#type: &'static str,
        #[serde(flatten)]
        state: &'a CostState,
    }
    serde_json::to_string(&Entry { r#type: COST_STATE, state })
}

/// Parses an entry; `None` if it is invalid or its figures are not finite.
pub(crate) fn parse_entry(bytes: &[u8]) -> Option<CostState> {
    let state: CostState = serde_json::from_slice(bytes).ok()?;
    let dollars = state.model_usage.values().map(|model| model.cost_usd).chain([state.total_cost_usd]);
    dollars.into_iter().all(|usd| usd.is_finite() && usd >= 0.0).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_of_the_official_engine_is_read_and_ours_has_its_form() {
        let official = r#"{"type":"cost-state","sessionId":"s","totalCostUSD":0.25,"totalAPIDuration":30,
            "totalAPIDurationWithoutRetries":27,"totalToolDuration":0,"totalLinesAdded":2,"totalLinesRemoved":1,
            "totalDuration":481,"startTime":1,"modelUsage":{"m":{"inputTokens":9,"outputTokens":7,"thinkingTokens":0,
            "cacheReadInputTokens":3,"cacheCreationInputTokens":4,"webSearchRequests":1,"costUSD":0.25}},
            "hasUnknownModelCost":false}"#;
        let state = parse_entry(official.as_bytes()).unwrap();
        let model = ModelCost {
            input_tokens: 9,
            output_tokens: 7,
            cache_read_input_tokens: 3,
            cache_creation_input_tokens: 4,
            web_search_requests: 1,
            cost_usd: 0.25,
        };
        let expected = CostState {
            session_id: "s".into(),
            total_cost_usd: 0.25,
            total_api_duration: 30,
            total_lines_added: 2,
            total_lines_removed: 1,
            model_usage: [("m".to_owned(), model)].into(),
            has_unknown_model_cost: false,
        };
        assert_eq!(state, expected);
        let rendered = render_entry(&state).unwrap();
        assert!(
            rendered.starts_with(r#"{"type":"cost-state","sessionId":"s","totalCostUSD":0.25"#),
            "{rendered}"
        );
        assert_eq!(parse_entry(rendered.as_bytes()), Some(state));
    }

    #[test]
    fn invalid_entries_are_ignored() {
        for entry in
            [r#"{"type":"cost-state","totalCostUSD":-1}"#, r#"{"modelUsage":{"m":{"costUSD":"x"}}}"#, "{"]
        {
            assert_eq!(parse_entry(entry.as_bytes()), None, "{entry}");
        }
    }
}
