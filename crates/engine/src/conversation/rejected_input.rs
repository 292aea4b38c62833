//! Rollback of rejected input: messages since the provider last accepted the conversation can be dropped from the
//! history, so that one bad message does not block a session. The transcript keeps them, marked as rejected.

use whimbrel_models::History;
use whimbrel_session_store::load::IdKey;
use whimbrel_session_store::load::repair::{block_placeholders, message_placeholder};
use whimbrel_wire::content::{Block, Content, Role};

use super::Conversation;
use crate::context::PlanModeState;

/// State before the uncommitted messages, and the messages.
#[derive(Debug)]
pub(super) struct Uncommitted {
    history_before: History,
    added_before: u64,
    had_messages: bool,
    plan_mode_before: PlanModeState,
    /// Uuids of the messages, each with the blocks that replace it.
    messages: Vec<(String, Vec<Block>)>,
    /// Keys of the texts injected meanwhile.
    injected_keys: Vec<IdKey>,
}

impl Uncommitted {
    /// Records an injected text.
    pub(super) fn record_key(&mut self, key: IdKey) {
        self.injected_keys.push(key);
    }

    /// Records a message; a hidden one is not replaced by anything.
    pub(super) fn record_message(&mut self, uuid: &str, content: &Content, is_meta: bool) {
        let placeholders = match content {
            _ if is_meta => Vec::new(),
            Content::Text(_) => vec![message_placeholder()],
            Content::Blocks(blocks) => block_placeholders(blocks),
        };
        self.messages.push((uuid.to_owned(), placeholders));
    }
}

impl Conversation {
    /// Starts recording, unless uncommitted messages exist already.
    pub fn begin_uncommitted(&mut self) {
        if self.uncommitted.is_none() {
            let (history_before, added_before, had_messages) =
                (self.history.clone(), self.added_tokens, self.has_messages);
            self.uncommitted = Some(Box::new(Uncommitted {
                history_before,
                added_before,
                had_messages,
                plan_mode_before: self.plan_mode,
                messages: Vec::new(),
                injected_keys: Vec::new(),
            }));
        }
    }

    /// Rolls back to the last accepted state; false if nothing was added since.
    pub fn roll_back(&mut self) -> bool {
        let Some(uncommitted) =
            self.uncommitted.take().filter(|uncommitted| !uncommitted.messages.is_empty())
        else {
            return false;
        };
        let Uncommitted {
            history_before,
            added_before,
            had_messages,
            plan_mode_before,
            messages,
            injected_keys: keys,
        } = *uncommitted;
        (self.history, self.added_tokens, self.has_messages) = (history_before, added_before, had_messages);
        self.plan_mode = plan_mode_before;
        self.unanswered.clear();
        for key in &keys {
            self.injected_keys.remove(key);
        }
        let (uuids, placeholders): (Vec<String>, Vec<Vec<Block>>) = messages.into_iter().unzip();
        let mut placeholders: Vec<Block> = placeholders.into_iter().flatten().collect();
        placeholders.dedup();
        for block in &placeholders {
            self.add_to_history(Role::User, block);
        }
        self.recorder.append_rejection(&uuids);
        true
    }
}
