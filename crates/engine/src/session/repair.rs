//! What was said, put in an order that every provider takes: roles alternate, each call has exactly one result, right
//! after it, and each result has its call. Pure; what is intact is kept, what is missing is said to be missing.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use whimbrel_models::History;
use whimbrel_models::history::is_unsigned_thinking;
use whimbrel_wire::Role;
use whimbrel_wire::content::{Block, ResultContent};

use super::started_calls::StartedCalls;
use crate::context::sanitize::is_valid_source;

/// Stands in for a prompt without content; providers refuse blank text.
pub(crate) const EMPTY_PROMPT: &str = "(The message was empty.)";

/// Stands where the model would speak first.
const LOST_BEGINNING: &str = "(The beginning of the conversation is lost.)";

/// Stands where something was that nobody can read.
const UNREADABLE_BLOCK: &str = "(Something that cannot be read stood here.)";

/// One line of what was said.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MessageContent {
    /// Who said it.
    pub(super) role: Role,
    /// The reply that it is a part of.
    pub(super) reply: Option<String>,
    /// What was said.
    pub(super) blocks: Vec<Block>,
    /// Whether a call of it that had begun is known to have begun.
    pub(super) starts_recorded: bool,
}

/// A conversation in order.
#[derive(Debug, Default)]
pub(super) struct RepairedHistory {
    pub(super) history: History,
    /// The ids of its calls.
    pub(super) calls: HashSet<String>,
    /// The calls that had no result.
    pub(super) unanswered: Vec<String>,
    /// How many results had no call.
    pub(super) stray_results: usize,
    /// Whether there is thinking in it that nobody has signed.
    pub(super) has_unsigned_thinking: bool,
}

/// What is known of a call that has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CallState {
    /// It had begun.
    Started,
    /// This agent was at it.
    Delegated(String),
    /// It had not begun, or touches nothing.
    NoEffect,
    /// Nothing.
    Unknown,
}

/// Puts a conversation in order; `started` has the calls that had begun.
pub(super) fn repair(said: Vec<MessageContent>, started: &StartedCalls) -> RepairedHistory {
    let (answers, reply, mended) = (HashMap::new(), OpenReply::default(), RepairedHistory::default());
    let mut bench = Repairer { results: answers, started, reply, repaired: mended };
    let said = bench.extract_results(said);
    for said in said {
        match said.role {
            Role::User => bench.add_user_message(&said),
            Role::Assistant => bench.add_reply_part(said),
        }
    }
    bench.close_reply();
    bench.repaired.stray_results += bench.results.len();
    bench.repaired
}

struct Repairer<'a> {
    results: HashMap<String, Block>,
    started: &'a StartedCalls,
    /// The reply that is still open.
    reply: OpenReply,
    repaired: RepairedHistory,
}

#[derive(Default)]
struct OpenReply {
    id: Option<String>,
    blocks: Vec<Block>,
    /// The calls in it, and what is known of each should it have no result.
    calls: Vec<(String, CallState)>,
}

impl Repairer<'_> {
    /// Takes all results out of what was said. Of two for one call the first counts.
    fn extract_results(&mut self, said: Vec<MessageContent>) -> Vec<MessageContent> {
        let mut rest = Vec::with_capacity(said.len());
        for mut said in said {
            let mut answered = false;
            said.blocks = std::mem::take(&mut said.blocks)
                .into_iter()
                .filter_map(|block| match block {
                    Block::ToolResult { ref tool_use_id, .. } => {
                        answered = true;
                        match self.results.entry(tool_use_id.clone()) {
                            Entry::Occupied(_) => self.repaired.stray_results += 1,
                            Entry::Vacant(free) => {
                                free.insert(replace_unreadable(block));
                            }
                        }
                        None
                    }
                    block => (!is_blank(&block)).then(|| replace_unreadable(block)),
                })
                .collect();
            if said.role == Role::User && said.blocks.is_empty() && !answered {
                said.blocks.push(Block::text(EMPTY_PROMPT));
            }
            rest.push(said);
        }
        rest
    }

    fn add_user_message(&mut self, said: &MessageContent) {
        if said.blocks.is_empty() {
            return;
        }
        self.close_reply();
        for block in &said.blocks {
            self.repaired.history.push(Role::User, block);
        }
    }

    /// Adds to the open reply if this is a part of it, though results may stand between.
    fn add_reply_part(&mut self, said: MessageContent) {
        if said.reply.is_none() || said.reply != self.reply.id {
            self.close_reply();
            self.reply.id.clone_from(&said.reply);
        }
        for block in said.blocks {
            if let Block::ToolUse { id, .. } = &block {
                if !self.repaired.calls.insert(id.clone()) {
                    continue;
                }
                let fate = match (self.started.agent_for(id), said.starts_recorded) {
                    (Some(agent), _) => CallState::Delegated(agent.to_owned()),
                    (None, _) if self.started.contains(id) => CallState::Started,
                    (None, true) => CallState::NoEffect,
                    (None, false) => CallState::Unknown,
                };
                self.reply.calls.push((id.clone(), fate));
            }
            self.reply.blocks.push(block);
        }
    }

    /// Ends the open reply and answers its calls. Providers refuse a reply that ends in thinking.
    fn close_reply(&mut self) {
        let OpenReply { mut blocks, calls, .. } = std::mem::take(&mut self.reply);
        while blocks.last().is_some_and(is_thinking) {
            blocks.pop();
        }
        if blocks.is_empty() {
            return;
        }
        if self.repaired.history.is_empty() {
            self.repaired.history.push(Role::User, &Block::text(LOST_BEGINNING));
        }
        for block in &blocks {
            self.repaired.has_unsigned_thinking |= is_unsigned_thinking(block);
            self.repaired.history.push(Role::Assistant, block);
        }
        for (id, fate) in calls {
            let answer = self.results.remove(&id).unwrap_or_else(|| {
                self.repaired.unanswered.push(id.clone());
                missing_result(id, &fate)
            });
            self.repaired.history.push(Role::User, &answer);
        }
    }
}

/// The result of a call that has none.
fn missing_result(id: String, fate: &CallState) -> Block {
    let text = match fate {
        CallState::Delegated(agent) => &format!(
            "Outcome unknown: the engine ended while the agent {agent} was at this. What it did stays done. Go on with it (Agent with `resume`), or look before you repeat it."
        ),
        CallState::Started => {
            "Outcome unknown: the engine ended while this call was running. It may have taken effect in whole or in part. Look before you repeat it."
        }
        CallState::NoEffect => {
            "No result: the engine ended before this call was finished. Nothing was changed by it. Make it again if it is still needed."
        }
        CallState::Unknown => {
            "Outcome unknown: the engine ended before this call had a result on record. It may have taken effect. Look before you repeat it."
        }
    };
    Block::ToolResult {
        tool_use_id: id,
        content: Some(ResultContent::Text(text.into())),
        is_error: Some(true),
    }
}

/// A block that providers can read: a picture or document that is not base64 is none, whoever has cut it.
fn replace_unreadable(block: Block) -> Block {
    match block {
        Block::Image { ref source } | Block::Document { ref source, .. } if !is_valid_source(source) => {
            Block::text(UNREADABLE_BLOCK)
        }
        Block::ToolResult { tool_use_id, content: Some(ResultContent::Blocks(blocks)), is_error } => {
            let blocks = blocks.into_iter().map(replace_unreadable).collect();
            Block::ToolResult { tool_use_id, content: Some(ResultContent::Blocks(blocks)), is_error }
        }
        block => block,
    }
}

fn is_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. })
}

/// Text without anything to read.
pub(crate) fn is_blank(block: &Block) -> bool {
    matches!(block, Block::Text { text, .. } if text.trim().is_empty())
}
