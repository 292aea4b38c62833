//! What was said, put in an order that every provider takes: roles alternate, each call has exactly one result, right
//! after it, and each result has its call. Pure; what is intact is kept, what is missing is said to be missing.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use whimbrel_models::History;
use whimbrel_wire::Role;
use whimbrel_wire::content::{Block, ResultContent};

use super::hollow;
use super::line::Key;

/// Stands in for a prompt without content; providers refuse blank text.
pub(crate) const EMPTY_PROMPT: &str = "(The message was empty.)";

/// Stands where the model would speak first.
const LOST_BEGINNING: &str = "(The beginning of the conversation is lost.)";

/// One line of what was said.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said {
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
pub(super) struct Mended {
    pub(super) history: History,
    /// The ids of its calls.
    pub(super) calls: HashSet<String>,
    /// The calls that had no result.
    pub(super) unanswered: Vec<String>,
    /// How many results had no call.
    pub(super) stray_results: usize,
}

/// What is known of a call that has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It had begun.
    Begun,
    /// It had not begun, or touches nothing.
    Harmless,
    /// Nothing.
    Unknown,
}

/// Puts a conversation in order; `started` has the calls that had begun.
pub(super) fn mend(said: Vec<Said>, started: &HashSet<Key>) -> Mended {
    let (answers, reply, mended) = (HashMap::new(), Reply::default(), Mended::default());
    let mut bench = Bench { answers, started, reply, mended };
    let said = bench.take_answers(said);
    for said in said {
        match said.role {
            Role::User => bench.hear(&said),
            Role::Assistant => bench.reply(said),
        }
    }
    bench.close();
    bench.mended.stray_results += bench.answers.len();
    bench.mended
}

struct Bench<'a> {
    answers: HashMap<String, Block>,
    started: &'a HashSet<Key>,
    /// The reply that is still open.
    reply: Reply,
    mended: Mended,
}

#[derive(Default)]
struct Reply {
    id: Option<String>,
    blocks: Vec<Block>,
    /// The calls in it, and what is known of each should it have no result.
    calls: Vec<(String, Fate)>,
}

impl Bench<'_> {
    /// Takes all results out of what was said. Of two for one call the first counts.
    fn take_answers(&mut self, said: Vec<Said>) -> Vec<Said> {
        let mut rest = Vec::with_capacity(said.len());
        for mut said in said {
            let mut answered = false;
            said.blocks = std::mem::take(&mut said.blocks)
                .into_iter()
                .map(hollow::fill)
                .filter_map(|block| match block {
                    Block::ToolResult { ref tool_use_id, .. } => {
                        answered = true;
                        match self.answers.entry(tool_use_id.clone()) {
                            Entry::Occupied(_) => self.mended.stray_results += 1,
                            Entry::Vacant(free) => {
                                free.insert(block);
                            }
                        }
                        None
                    }
                    block => (!is_blank(&block)).then_some(block),
                })
                .collect();
            if said.role == Role::User && said.blocks.is_empty() && !answered {
                said.blocks.push(Block::text(EMPTY_PROMPT));
            }
            rest.push(said);
        }
        rest
    }

    fn hear(&mut self, said: &Said) {
        if said.blocks.is_empty() {
            return;
        }
        self.close();
        for block in &said.blocks {
            self.mended.history.push(Role::User, block);
        }
    }

    /// Adds to the open reply if this is a part of it, though results may stand between.
    fn reply(&mut self, said: Said) {
        if said.reply.is_none() || said.reply != self.reply.id {
            self.close();
            self.reply.id.clone_from(&said.reply);
        }
        for block in said.blocks {
            if let Block::ToolUse { id, .. } = &block {
                if !self.mended.calls.insert(id.clone()) {
                    continue;
                }
                let fate = match said.starts_recorded {
                    _ if self.started.contains(&Key::of(id)) => Fate::Begun,
                    true => Fate::Harmless,
                    false => Fate::Unknown,
                };
                self.reply.calls.push((id.clone(), fate));
            }
            self.reply.blocks.push(block);
        }
    }

    /// Ends the open reply and answers its calls. Providers refuse a reply that ends in thinking.
    fn close(&mut self) {
        let Reply { mut blocks, calls, .. } = std::mem::take(&mut self.reply);
        while blocks.last().is_some_and(is_thinking) {
            blocks.pop();
        }
        if blocks.is_empty() {
            return;
        }
        if self.mended.history.is_empty() {
            self.mended.history.push(Role::User, &Block::text(LOST_BEGINNING));
        }
        for block in &blocks {
            self.mended.history.push(Role::Assistant, block);
        }
        for (id, fate) in calls {
            let answer = self.answers.remove(&id).unwrap_or_else(|| {
                self.mended.unanswered.push(id.clone());
                unknown(id, fate)
            });
            self.mended.history.push(Role::User, &answer);
        }
    }
}

/// The result of a call that has none.
fn unknown(id: String, fate: Fate) -> Block {
    let text = match fate {
        Fate::Begun => {
            "Outcome unknown: the engine ended while this call was running. It may have taken effect in whole or in part. Look before you repeat it."
        }
        Fate::Harmless => {
            "No result: the engine ended before this call was finished. Nothing was changed by it. Make it again if it is still needed."
        }
        Fate::Unknown => {
            "Outcome unknown: the engine ended before this call had a result on record. It may have taken effect. Look before you repeat it."
        }
    };
    Block::ToolResult {
        tool_use_id: id,
        content: Some(ResultContent::Text(text.into())),
        is_error: Some(true),
    }
}

fn is_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. })
}

/// Text without anything to read.
pub(crate) fn is_blank(block: &Block) -> bool {
    matches!(block, Block::Text { text, .. } if text.trim().is_empty())
}
