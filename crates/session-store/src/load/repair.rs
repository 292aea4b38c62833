//! Repairs a loaded history so that every provider accepts it: roles alternate, each tool call is followed by exactly
//! one result, and each result has its call. Pure. Intact parts are kept; missing ones get placeholders.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use whimbrel_models::History;
use whimbrel_models::history::is_unsigned_thinking;
use whimbrel_wire::Role;
use whimbrel_wire::content::{Block, ResultContent, Source};

use crate::load::open_calls::{CallState, LastCalls, OpenCall, missing_result, open_call};
use crate::load::tool_calls::StartedCalls;

/// Replaces an empty prompt; providers reject blank text.
pub const EMPTY_PROMPT: &str = "(The message was empty.)";

/// Inserted where the history would start with the model.
const LOST_BEGINNING: &str = "(The beginning of the conversation is lost.)";

/// Replaces an unreadable block.
const UNREADABLE_BLOCK: &str = "(Unreadable content was removed here.)";

/// Replaces a message that a provider rejected permanently. The original stays in the transcript and is not sent again.
const MESSAGE_PLACEHOLDER: &str = "(A message was removed here because the provider rejected it.)";

/// Replaces a rejected tool result.
const RESULT_PLACEHOLDER: &str =
    "(The call ran, but its result was removed because the provider rejected it.)";

/// Content of one message entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MessageContent {
    pub(crate) role: Role,
    /// Id of the reply that the entry is a part of.
    pub(crate) reply: Option<String>,
    pub(crate) blocks: Vec<Block>,
    /// The engine recorded the start of every call with effects, so a call without a record had none.
    pub(crate) starts_recorded: bool,
}

#[derive(Debug, Default)]
pub(crate) struct RepairedHistory {
    pub(crate) history: History,
    /// Ids of all tool calls.
    pub(crate) calls: HashSet<String>,
    /// Ids of calls without a result.
    pub(crate) unanswered: Vec<String>,
    /// Calls of the last reply that were left open.
    pub(crate) open_calls: Vec<OpenCall>,
    /// Number of results without a call.
    pub(crate) stray_results: usize,
    /// The history contains thinking without a signature.
    pub(crate) has_unsigned_thinking: bool,
}

/// Repairs a history; `started` contains the calls that had started.
pub(crate) fn repair(
    messages: Vec<MessageContent>,
    started: &StartedCalls,
    last_calls: LastCalls,
) -> RepairedHistory {
    let (results, reply, repaired) = (HashMap::new(), OpenReply::default(), RepairedHistory::default());
    let mut repairer = Repairer { results, started, reply, repaired };
    let messages = repairer.extract_results(messages);
    for messages in messages {
        match messages.role {
            Role::User => repairer.add_user_message(&messages),
            Role::Assistant => repairer.add_reply_part(messages),
        }
    }
    repairer.close_reply(last_calls);
    repairer.repaired.stray_results += repairer.results.len();
    repairer.repaired
}

struct Repairer<'a> {
    results: HashMap<String, Block>,
    started: &'a StartedCalls,
    /// The reply being assembled.
    reply: OpenReply,
    repaired: RepairedHistory,
}

#[derive(Default)]
struct OpenReply {
    id: Option<String>,
    blocks: Vec<Block>,
    /// Its calls, each with the state to report if there is no result.
    calls: Vec<(String, CallState)>,
}

impl Repairer<'_> {
    /// Removes all tool results from the messages. Of several results for one call the first is used.
    fn extract_results(&mut self, messages: Vec<MessageContent>) -> Vec<MessageContent> {
        let mut rest = Vec::with_capacity(messages.len());
        for mut messages in messages {
            let mut has_results = false;
            messages.blocks = std::mem::take(&mut messages.blocks)
                .into_iter()
                .filter_map(|block| match block {
                    Block::ToolResult { ref tool_use_id, .. } => {
                        has_results = true;
                        match self.results.entry(tool_use_id.clone()) {
                            Entry::Occupied(_) => self.repaired.stray_results += 1,
                            Entry::Vacant(slot) => {
                                slot.insert(replace_unreadable(block));
                            }
                        }
                        None
                    }
                    block => (!is_blank(&block)).then(|| replace_unreadable(block)),
                })
                .collect();
            if messages.role == Role::User && messages.blocks.is_empty() && !has_results {
                messages.blocks.push(Block::text(EMPTY_PROMPT));
            }
            rest.push(messages);
        }
        rest
    }

    fn add_user_message(&mut self, message: &MessageContent) {
        if message.blocks.is_empty() {
            return;
        }
        self.close_reply(LastCalls::Answered);
        for block in &message.blocks {
            self.repaired.history.push(Role::User, block);
        }
    }

    /// Adds to the open reply if the entry is part of it, even after tool results.
    fn add_reply_part(&mut self, message: MessageContent) {
        if message.reply.is_none() || message.reply != self.reply.id {
            self.close_reply(LastCalls::Answered);
            self.reply.id.clone_from(&message.reply);
        }
        for block in message.blocks {
            if let Block::ToolUse { id, .. } = &block {
                if !self.repaired.calls.insert(id.clone()) {
                    continue;
                }
                let state = match (self.started.agent_for(id), message.starts_recorded) {
                    (Some(agent), _) => CallState::Delegated(agent.to_owned()),
                    (None, _) if self.started.contains(id) => CallState::Started,
                    (None, true) => CallState::NoEffect,
                    (None, false) => CallState::Unknown,
                };
                self.reply.calls.push((id.clone(), state));
            }
            self.reply.blocks.push(block);
        }
    }

    /// Ends the open reply and appends the results of its calls. Providers reject a reply that ends in thinking.
    fn close_reply(&mut self, last_calls: LastCalls) {
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
        let is_unstarted = |(id, state): &(String, CallState)| {
            *state == CallState::NoEffect && !self.results.contains_key(id)
        };
        let is_left_open = last_calls == LastCalls::Open && calls.iter().any(is_unstarted);
        for (id, state) in calls {
            let result = match self.results.remove(&id) {
                Some(result) => result,
                None => {
                    self.repaired.unanswered.push(id.clone());
                    if is_left_open {
                        self.repaired.open_calls.extend(open_call(&blocks, &id, &state));
                        continue;
                    }
                    missing_result(id, &state)
                }
            };
            self.repaired.history.push(Role::User, &result);
        }
    }
}

/// Replaces images and documents that are not valid base64, for example because another engine truncated them.
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

/// Placeholder for a rejected message.
pub fn message_placeholder() -> Block {
    Block::text(MESSAGE_PLACEHOLDER)
}

/// Placeholders for the blocks of a rejected message: each tool result stays a result, because its call needs one; all other blocks become one
/// text.
pub fn block_placeholders(blocks: &[Block]) -> Vec<Block> {
    let mut placeholders: Vec<Block> = blocks.iter().filter_map(result_placeholder).collect();
    if placeholders.len() < blocks.len() {
        placeholders.push(message_placeholder());
    }
    placeholders
}

fn result_placeholder(block: &Block) -> Option<Block> {
    match block {
        Block::ToolResult { tool_use_id, is_error, .. } => Some(Block::ToolResult {
            tool_use_id: tool_use_id.clone(),
            content: Some(ResultContent::Text(RESULT_PLACEHOLDER.into())),
            is_error: *is_error,
        }),
        _ => None,
    }
}

fn is_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. })
}

pub fn is_blank(block: &Block) -> bool {
    matches!(block, Block::Text { text, .. } if text.trim().is_empty())
}

/// Returns whether data declared as base64 is valid base64.
pub fn is_valid_source(source: &Source) -> bool {
    match source {
        Source::Base64 { data, .. } => !data.is_empty() && BASE64_STANDARD.decode(data).is_ok(),
        Source::Url { .. } | Source::Text { .. } | Source::File { .. } => true,
    }
}
