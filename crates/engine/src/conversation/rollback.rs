//! What was added to a conversation since the provider last took it. Should it refuse that for good, it is left out of what
//! is sent next: one bad message does not spoil a session. The transcript keeps it, marked.

use whimbrel_models::History;
use whimbrel_wire::content::{Block, Content, Role};

use super::Conversation;
use crate::session::load::IdKey;
use crate::session::rejected::{self, block_placeholders};

/// What was added, and what was there before.
#[derive(Debug)]
pub(super) struct Uncommitted {
    history_before: History,
    added_before: u64,
    had_messages: bool,
    /// The messages, each with what takes its place.
    messages: Vec<(String, Vec<Block>)>,
    /// What the model was told beside them.
    injected_keys: Vec<IdKey>,
}

impl Uncommitted {
    /// Notes what the model was told.
    pub(super) fn record_key(&mut self, key: IdKey) {
        self.injected_keys.push(key);
    }

    /// Notes a message; one that is not for the host leaves nothing in its place.
    pub(super) fn record_message(&mut self, uuid: &str, content: &Content, is_meta: bool) {
        let in_place = match content {
            _ if is_meta => Vec::new(),
            Content::Text(_) => vec![rejected::message_placeholder()],
            Content::Blocks(blocks) => block_placeholders(blocks),
        };
        self.messages.push((uuid.to_owned(), in_place));
    }
}

impl Conversation {
    /// From here on, what is added can be withdrawn, along with whatever else has had no answer yet.
    pub fn begin_uncommitted(&mut self) {
        if self.uncommitted.is_none() {
            let (history, added, begun) = (self.history.clone(), self.added_tokens, self.has_messages);
            self.uncommitted =
                Some(Box::new(Uncommitted { history_before: history, added_before: added, had_messages: begun, messages: Vec::new(), injected_keys: Vec::new() }));
        }
    }

    /// Leaves out what was added since the provider last took the conversation. False if nothing was.
    pub fn roll_back(&mut self) -> bool {
        let Some(fresh) = self.uncommitted.take().filter(|fresh| !fresh.messages.is_empty()) else { return false };
        let Uncommitted { history_before: history, added_before: added, had_messages: begun, messages, injected_keys: told } = *fresh;
        (self.history, self.added_tokens, self.has_messages) = (history, added, begun);
        self.unanswered.clear();
        for key in &told {
            self.injected_keys.remove(key);
        }
        let (names, in_place): (Vec<String>, Vec<Vec<Block>>) = messages.into_iter().unzip();
        let mut in_place: Vec<Block> = in_place.into_iter().flatten().collect();
        in_place.dedup();
        for block in &in_place {
            self.add_to_history(Role::User, block);
        }
        self.log.append_rejection(&names);
        true
    }
}
