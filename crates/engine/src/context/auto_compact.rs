//! Auto-compaction: token estimates, the threshold, and when to compact.

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;
use whimbrel_wire::system::CompactTrigger;
use whimbrel_wire::{Block, RawJson};

use crate::agent::Agent;
use crate::context::compact::{self, CompactionError, SummaryInput};

/// Limit on the tokens reserved for the summary.
const SUMMARY_RESERVE_TOKENS: u64 = 20_000;

/// Tokens between the threshold and the last point at which a summary still fits.
const MARGIN_TOKENS: u64 = 13_000;

/// Limit on compactions in a row without progress.
const MAX_CONSECUTIVE: u32 = 3;

/// Number of replies that count as progress.
const PROGRESS_REPLIES: u32 = 3;

/// Estimate for text.
const BYTES_PER_TOKEN: u64 = 4;

/// Estimate for an image.
const IMAGE_TOKENS: u64 = 1_600;

/// Estimate for a page of a document, in tokens and in bytes.
const PAGE_TOKENS_AND_BYTES: (u64, u64) = (2_000, 50_000);
/// Limit on pages of a document in a request.
const MAX_DOCUMENT_PAGES: u64 = 100;
/// Limit on pages in one tool result.
const MAX_RESULT_PAGES: u64 = 20;

/// Settings of auto-compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CompactionConfig {
    /// Disables automatic compaction.
    pub auto_disabled: bool,
    /// Disables manual `/compact` too.
    pub fully_disabled: bool,
    /// Threshold in percent of the window; can only lower the default.
    pub percent: Option<f64>,
    /// A window smaller than the model's, in tokens.
    pub window: Option<u64>,
}

impl CompactionConfig {
    /// Reads the settings from the environment. The error names an invalid variable.
    pub fn from_env(env: &BTreeMap<String, String>) -> Result<Self, String> {
        let set = |name: &str| {
            env.get(name).is_some_and(|value| !matches!(value.trim(), "" | "0" | "false" | "no"))
        };
        let number = |name: &str, limit: f64| match env
            .get(name)
            .map(|text| text.trim())
            .filter(|text| !text.is_empty())
        {
            None => Ok(None),
            Some(text) => match text.parse::<f64>() {
                Ok(number) if number >= 1.0 && number <= limit => Ok(Some(number)),
                _ => Err(format!("{name} must be a number from 1 to {limit}, but is {text:?}.")),
            },
        };
        Ok(Self {
            auto_disabled: set("DISABLE_AUTO_COMPACT") || set("DISABLE_COMPACT"),
            fully_disabled: set("DISABLE_COMPACT"),
            percent: number("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", 100.0)?,
            window: number("CLAUDE_CODE_AUTO_COMPACT_WINDOW", 1e9)?.map(|tokens| tokens as u64),
        })
    }

    /// The threshold in tokens, for a context window and an output limit.
    pub fn threshold(&self, window: u64, max_output: u64) -> u64 {
        let window = self.window.map_or(window, |own| own.min(window));
        let usable = window - SUMMARY_RESERVE_TOKENS.min(max_output).min(window / 4);
        let usual = usable - MARGIN_TOKENS.min(window / 10);
        match self.percent {
            Some(percent) => usual.min((usable as f64 * percent / 100.0) as u64),
            None => usual,
        }
    }
}

/// Compaction attempts of an agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompactionState {
    /// Attempts without progress in between.
    consecutive: u32,
    /// Replies since the last attempt; none before the first.
    replies_since: Option<u32>,
}

impl CompactionState {
    /// Records an attempt, successful or not.
    fn record_attempt(&mut self) {
        self.consecutive += 1;
        self.replies_since = Some(0);
    }

    pub fn record_reply(&mut self) {
        if let Some(replies) = &mut self.replies_since {
            *replies += 1;
            if *replies >= PROGRESS_REPLIES {
                *self = Self::default();
            }
        }
    }

    /// Returns whether to try: not directly after an attempt, and not without progress.
    fn should_try(&self) -> bool {
        self.replies_since != Some(0) && self.consecutive < MAX_CONSECUTIVE
    }
}

/// Returns whether the conversation can be compacted automatically. Before the first reply there is nothing to
/// summarise: then the prompt itself is too long.
pub fn can_compact(agent: &Agent) -> bool {
    !agent.limits.compaction.auto_disabled
        && agent.compaction_state.should_try()
        && agent.conversation.history.has_reply()
}

/// Compacts if the conversation has reached the threshold. For an unknown window, only the provider's error triggers
/// it.
pub async fn compact_if_needed(agent: &mut Agent, cancel: &CancellationToken) {
    let scarce = threshold(agent).is_some_and(|threshold| agent.conversation.token_count() >= threshold);
    if scarce && can_compact(agent) {
        // On failure the request is sent as it is; the provider reports if it does not fit.
        let _ = Box::pin(compact(agent, SummaryInput::FullHistory, cancel)).await;
    }
}

/// Compacts after the provider rejected the conversation as too long; returns whether it succeeded.
pub async fn compact_after_rejection(agent: &mut Agent, cancel: &CancellationToken) -> bool {
    Box::pin(compact(agent, SummaryInput::Excerpt, cancel)).await
}

async fn compact(agent: &mut Agent, source: SummaryInput, cancel: &CancellationToken) -> bool {
    match compact::summarise(agent, CompactTrigger::Auto, "", source, cancel).await {
        Ok(summary) => {
            agent.compaction_state.record_attempt();
            compact::replace_history(agent, CompactTrigger::Auto, summary).await;
            true
        }
        Err(CompactionError::EmptyConversation | CompactionError::Blocked(_) | CompactionError::Model(_)) => {
            agent.compaction_state.record_attempt();
            false
        }
        Err(CompactionError::Interrupted) => false,
    }
}

/// The threshold of this agent in tokens; none if its model's window is unknown.
pub fn threshold(agent: &Agent) -> Option<u64> {
    let model = agent.model();
    let info = agent.engine.catalog().lookup(&model)?;
    let output = agent.limits.max_output_tokens.unwrap_or(info.max_output_tokens);
    Some(agent.limits.compaction.threshold(info.context_window, output))
}

/// Estimates the tokens of a block. Images and documents are not measured by their bytes: scans have many bytes and
/// few pages.
pub fn estimate_tokens(block: &Block) -> u64 {
    estimate_with_page_limit(block, MAX_DOCUMENT_PAGES)
}

fn estimate_with_page_limit(block: &Block, pages: u64) -> u64 {
    match block {
        Block::Image { .. } => IMAGE_TOKENS,
        Block::Document { .. } => {
            (json_size(block) / PAGE_TOKENS_AND_BYTES.1 + 1).min(pages) * PAGE_TOKENS_AND_BYTES.0
        }
        Block::ToolResult { content: Some(content), .. } => match content {
            whimbrel_wire::content::ResultContent::Blocks(blocks) => {
                blocks.iter().map(|block| estimate_with_page_limit(block, MAX_RESULT_PAGES)).sum()
            }
            whimbrel_wire::content::ResultContent::Text(text) => text.len() as u64 / BYTES_PER_TOKEN,
        },
        Block::Text { text, .. } => text.len() as u64 / BYTES_PER_TOKEN,
        block => json_size(block) / BYTES_PER_TOKEN,
    }
}

fn json_size(block: &Block) -> u64 {
    RawJson::from_value(block).map_or(0, |json| json.as_str().len() as u64)
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::content::{ResultContent, Source};

    use super::*;

    #[test]
    fn scanned_document_counts_by_pages() {
        let document = |bytes: usize| {
            let source = Source::Base64 { media_type: "application/pdf".into(), data: "A".repeat(bytes) };
            Block::Document { source, title: None }
        };
        let read = |bytes| Block::ToolResult {
            tool_use_id: "t".into(),
            content: Some(ResultContent::Blocks(vec![document(bytes)])),
            is_error: None,
        };
        assert_eq!(estimate_tokens(&document(60_000)), 4_000);
        assert_eq!(estimate_tokens(&document(20 << 20)), 200_000);
        assert_eq!(estimate_tokens(&read(20 << 20)), 40_000);
    }

    #[test]
    fn threshold_is_below_window() {
        let switches = |percent, window| CompactionConfig { percent, window, ..CompactionConfig::default() };
        let table = [
            ("the usual", switches(None, None), 200_000, 32_000, 167_000),
            ("a large window", switches(None, None), 1_000_000, 128_000, 967_000),
            ("little output", switches(None, None), 200_000, 8_192, 178_808),
            ("a small window", switches(None, None), 8_000, 32_000, 5_200),
            ("no window at all", switches(None, None), 0, 32_000, 0),
            ("earlier", switches(Some(50.0), None), 200_000, 32_000, 90_000),
            ("not later", switches(Some(100.0), None), 200_000, 32_000, 167_000),
            ("a window of its own", switches(None, Some(100_000)), 1_000_000, 128_000, 70_000),
            ("not larger than the model's", switches(None, Some(500_000)), 200_000, 32_000, 167_000),
        ];
        for (name, switches, window, output, expected) in table {
            assert_eq!(switches.threshold(window, output), expected, "{name}");
        }
    }

    #[test]
    fn config_is_read_and_invalid_values_named() {
        let env = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            CompactionConfig::from_env(&pairs.collect())
        };
        assert_eq!(env(&[]), Ok(CompactionConfig::default()));
        assert_eq!(
            env(&[("DISABLE_AUTO_COMPACT", "1")]),
            Ok(CompactionConfig { auto_disabled: true, ..CompactionConfig::default() })
        );
        let never =
            CompactionConfig { auto_disabled: true, fully_disabled: true, ..CompactionConfig::default() };
        assert_eq!(env(&[("DISABLE_COMPACT", "true")]), Ok(never));
        assert_eq!(env(&[("DISABLE_AUTO_COMPACT", "0")]), Ok(CompactionConfig::default()));
        let both =
            env(&[("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "50"), ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "9000")]);
        assert_eq!(
            both,
            Ok(CompactionConfig { percent: Some(50.0), window: Some(9000), ..CompactionConfig::default() })
        );
        for text in ["much", "0", "101", "NaN"] {
            let error = env(&[("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", text)]).unwrap_err();
            assert!(error.contains("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn compaction_is_not_repeated_without_progress() {
        let mut state = CompactionState::default();
        state.record_attempt();
        assert!(!state.should_try(), "nothing was said since");
        state.record_reply();
        assert!(state.should_try());
        state.record_attempt();
        state.record_reply();
        state.record_attempt();
        state.record_reply();
        assert!(!state.should_try(), "the context refills too fast");
        state.record_reply();
        state.record_reply();
        assert!(state.should_try(), "progress since the last compaction");
    }

    #[test]
    fn images_are_not_measured_by_bytes() {
        let picture = serde_json::json!({
            "type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(400_000)},
        });
        let picture: Block = serde_json::from_value(picture).unwrap();
        assert_eq!(estimate_tokens(&picture), 1_600);
        let result = Block::ToolResult {
            tool_use_id: "t".into(),
            content: Some(ResultContent::Blocks(vec![picture, Block::text("x".repeat(400))])),
            is_error: None,
        };
        assert_eq!(estimate_tokens(&result), 1_700);
    }
}
