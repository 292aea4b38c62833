//! How much room a conversation has in the model's window, and when room is made by a summary.

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;
use whimbrel_wire::system::CompactTrigger;
use whimbrel_wire::{Block, RawJson};

use crate::agent::Agent;
use crate::context::compact::{self, Failed, Source};

/// The most tokens that are kept free for a summary.
const RESERVE: u64 = 20_000;

/// Tokens between the point at which room is made and the last at which a summary can still be asked for.
const MARGIN: u64 = 13_000;

/// How often room is made in a row without the conversation getting anywhere.
const IN_A_ROW: u32 = 3;

/// How many replies show that a conversation gets somewhere.
const PROGRESS: u32 = 3;

/// Bytes of text that make a token, by a rule of thumb.
const BYTES_PER_TOKEN: u64 = 4;

/// What a picture takes, about.
const PICTURE: u64 = 1_600;

/// What a page of a document takes in tokens, and in bytes, about.
const PAGE: (u64, u64) = (2_000, 50_000);
/// The most pages that a provider takes in one document.
const PAGES_AT_MOST: u64 = 100;
/// The most pages that a tool shows at once.
const PAGES_READ_AT_ONCE: u64 = 20;

/// When room is made by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Switches {
    /// Never.
    pub off: bool,
    /// Not even if somebody asks for it.
    pub forbidden: bool,
    /// How full the window may get, in percent; only ever less than the usual.
    pub percent: Option<f64>,
    /// A window smaller than the model's own, in tokens.
    pub window: Option<u64>,
}

impl Switches {
    /// Reads the switches from the environment. What makes no sense is an error that names it.
    pub fn from_env(env: &BTreeMap<String, String>) -> Result<Self, String> {
        let set = |name: &str| {
            env.get(name).is_some_and(|value| !matches!(value.trim(), "" | "0" | "false" | "no"))
        };
        let number = |name: &str, most: f64| match env
            .get(name)
            .map(|text| text.trim())
            .filter(|text| !text.is_empty())
        {
            None => Ok(None),
            Some(text) => match text.parse::<f64>() {
                Ok(number) if number >= 1.0 && number <= most => Ok(Some(number)),
                _ => Err(format!("{name} must be a number from 1 to {most}, but is {text:?}.")),
            },
        };
        Ok(Self {
            off: set("DISABLE_AUTO_COMPACT") || set("DISABLE_COMPACT"),
            forbidden: set("DISABLE_COMPACT"),
            percent: number("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", 100.0)?,
            window: number("CLAUDE_CODE_AUTO_COMPACT_WINDOW", 1e9)?.map(|tokens| tokens as u64),
        })
    }

    /// From how many tokens on room is made, for a window and an output limit.
    pub fn threshold(&self, window: u64, max_output: u64) -> u64 {
        let window = self.window.map_or(window, |own| own.min(window));
        let usable = window - RESERVE.min(max_output).min(window / 4);
        let usual = usable - MARGIN.min(window / 10);
        match self.percent {
            Some(percent) => usual.min((usable as f64 * percent / 100.0) as u64),
            None => usual,
        }
    }
}

/// What an agent has done for room so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Room {
    /// How often room was made without getting anywhere in between.
    in_a_row: u32,
    /// Replies since it was made last; none if it never was.
    replies: Option<u32>,
}

impl Room {
    /// Room was made, or could not be made.
    fn tried(&mut self) {
        self.in_a_row += 1;
        self.replies = Some(0);
    }

    /// The model has replied.
    pub fn replied(&mut self) {
        if let Some(replies) = &mut self.replies {
            *replies += 1;
            if *replies >= PROGRESS {
                *self = Self::default();
            }
        }
    }

    /// Whether it is worth trying: not right after it was tried, and not again and again.
    fn is_worth_trying(&self) -> bool {
        self.replies != Some(0) && self.in_a_row < IN_A_ROW
    }
}

/// Whether the engine may make room by itself. Where the model has said nothing yet there is nothing to summarise: what is
/// too long then is the prompt itself.
pub fn may_be_made(agent: &Agent) -> bool {
    !agent.limits.compaction.off && agent.room.is_worth_trying() && agent.conversation.history.has_reply()
}

/// Makes room if the conversation has come near the end of the window. A window that is not known has no end; then the
/// provider tells.
pub async fn make_if_scarce(agent: &mut Agent, cancel: &CancellationToken) {
    let scarce = threshold(agent).is_some_and(|threshold| agent.conversation.tokens() >= threshold);
    if scarce && may_be_made(agent) {
        // If it fails, the request is made as it is: it may still fit, and if not, the provider says so.
        let _ = Box::pin(make(agent, Source::Whole, cancel)).await;
    }
}

/// Makes room because the provider has refused the conversation as too long. Whether it was made.
pub async fn make_after_refusal(agent: &mut Agent, cancel: &CancellationToken) -> bool {
    Box::pin(make(agent, Source::Retold, cancel)).await
}

async fn make(agent: &mut Agent, source: Source, cancel: &CancellationToken) -> bool {
    match compact::summarise(agent, CompactTrigger::Auto, "", source, cancel).await {
        Ok(summary) => {
            agent.room.tried();
            compact::replace(agent, CompactTrigger::Auto, summary).await;
            true
        }
        Err(Failed::Nothing | Failed::Blocked(_) | Failed::Model(_)) => {
            agent.room.tried();
            false
        }
        Err(Failed::Interrupted) => false,
    }
}

/// From how many tokens on room is made for this agent; none if the window of its model is not known.
pub fn threshold(agent: &Agent) -> Option<u64> {
    let model = agent.model();
    let info = agent.engine.catalog().lookup(&model)?;
    let output = agent.limits.max_output_tokens.unwrap_or(info.max_output_tokens);
    Some(agent.limits.compaction.threshold(info.context_window, output))
}

/// How many tokens a block takes, about. Pictures and documents are not measured by their bytes alone: scans have many of
/// them and few pages.
pub fn weight(block: &Block) -> u64 {
    weigh(block, PAGES_AT_MOST)
}

fn weigh(block: &Block, pages: u64) -> u64 {
    match block {
        Block::Image { .. } => PICTURE,
        Block::Document { .. } => (size(block) / PAGE.1 + 1).min(pages) * PAGE.0,
        Block::ToolResult { content: Some(content), .. } => match content {
            whimbrel_wire::content::ResultContent::Blocks(blocks) => {
                blocks.iter().map(|block| weigh(block, PAGES_READ_AT_ONCE)).sum()
            }
            whimbrel_wire::content::ResultContent::Text(text) => text.len() as u64 / BYTES_PER_TOKEN,
        },
        Block::Text { text, .. } => text.len() as u64 / BYTES_PER_TOKEN,
        block => size(block) / BYTES_PER_TOKEN,
    }
}

fn size(block: &Block) -> u64 {
    RawJson::of(block).map_or(0, |json| json.as_str().len() as u64)
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::content::{ResultContent, Source};

    use super::*;

    #[test]
    fn a_scan_counts_by_its_pages_rather_than_its_bytes() {
        let document = |bytes: usize| {
            let source = Source::Base64 { media_type: "application/pdf".into(), data: "A".repeat(bytes) };
            Block::Document { source, title: None }
        };
        let read = |bytes| Block::ToolResult {
            tool_use_id: "t".into(),
            content: Some(ResultContent::Blocks(vec![document(bytes)])),
            is_error: None,
        };
        assert_eq!(weight(&document(60_000)), 4_000);
        assert_eq!(weight(&document(20 << 20)), 200_000);
        assert_eq!(weight(&read(20 << 20)), 40_000);
    }

    #[test]
    fn room_is_made_before_the_window_is_full() {
        let switches = |percent, window| Switches { percent, window, ..Switches::default() };
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
    fn the_switches_are_read_and_nonsense_is_named() {
        let env = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Switches::from_env(&pairs.collect())
        };
        assert_eq!(env(&[]), Ok(Switches::default()));
        assert_eq!(env(&[("DISABLE_AUTO_COMPACT", "1")]), Ok(Switches { off: true, ..Switches::default() }));
        let never = Switches { off: true, forbidden: true, ..Switches::default() };
        assert_eq!(env(&[("DISABLE_COMPACT", "true")]), Ok(never));
        assert_eq!(env(&[("DISABLE_AUTO_COMPACT", "0")]), Ok(Switches::default()));
        let both =
            env(&[("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "50"), ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "9000")]);
        assert_eq!(both, Ok(Switches { percent: Some(50.0), window: Some(9000), ..Switches::default() }));
        for text in ["much", "0", "101", "NaN"] {
            let said = env(&[("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", text)]).unwrap_err();
            assert!(said.contains("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE") && said.contains(text), "{said}");
        }
    }

    #[test]
    fn room_is_not_made_again_and_again() {
        let mut room = Room::default();
        room.tried();
        assert!(!room.is_worth_trying(), "nothing was said since");
        room.replied();
        assert!(room.is_worth_trying());
        room.tried();
        room.replied();
        room.tried();
        room.replied();
        assert!(!room.is_worth_trying(), "it fills up as fast as it is made");
        room.replied();
        room.replied();
        assert!(room.is_worth_trying(), "it gets somewhere");
    }

    #[test]
    fn pictures_are_not_measured_by_their_bytes() {
        let picture = serde_json::json!({
            "type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(400_000)},
        });
        let picture: Block = serde_json::from_value(picture).unwrap();
        assert_eq!(weight(&picture), 1_600);
        let result = Block::ToolResult {
            tool_use_id: "t".into(),
            content: Some(ResultContent::Blocks(vec![picture, Block::text("x".repeat(400))])),
            is_error: None,
        };
        assert_eq!(weight(&result), 1_700);
    }
}
