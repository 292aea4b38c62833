//! What was added to a conversation since the provider last took it. Should it refuse that for good, it is left out of what
//! is sent next: one bad message does not spoil a session. The transcript keeps it, marked.

use whimbrel_models::History;
use whimbrel_wire::content::{Block, Content, Role};

use super::Conversation;
use crate::session::load::Key;
use crate::session::refused::{self, stand_ins};

/// What was added, and what was there before.
#[derive(Debug)]
pub(super) struct Fresh {
    history: History,
    added: u64,
    begun: bool,
    /// The messages, each with what takes its place.
    messages: Vec<(String, Vec<Block>)>,
    /// What the model was told beside them.
    told: Vec<Key>,
}

impl Fresh {
    /// Notes what the model was told.
    pub(super) fn tell(&mut self, key: Key) {
        self.told.push(key);
    }

    /// Notes a message; one that is not for the host leaves nothing in its place.
    pub(super) fn say(&mut self, uuid: &str, content: &Content, is_meta: bool) {
        let in_place = match content {
            _ if is_meta => Vec::new(),
            Content::Text(_) => vec![refused::note()],
            Content::Blocks(blocks) => stand_ins(blocks),
        };
        self.messages.push((uuid.to_owned(), in_place));
    }
}

impl Conversation {
    /// From here on, what is added can be withdrawn, along with whatever else has had no answer yet.
    pub fn open(&mut self) {
        if self.fresh.is_none() {
            let (history, added, begun) = (self.history.clone(), self.added, self.begun);
            self.fresh =
                Some(Box::new(Fresh { history, added, begun, messages: Vec::new(), told: Vec::new() }));
        }
    }

    /// Leaves out what was added since the provider last took the conversation. False if nothing was.
    pub fn withdraw(&mut self) -> bool {
        let Some(fresh) = self.fresh.take().filter(|fresh| !fresh.messages.is_empty()) else { return false };
        let Fresh { history, added, begun, messages, told } = *fresh;
        (self.history, self.added, self.begun) = (history, added, begun);
        self.unanswered.clear();
        for key in &told {
            self.told.remove(key);
        }
        let (names, in_place): (Vec<String>, Vec<Vec<Block>>) = messages.into_iter().unzip();
        let mut in_place: Vec<Block> = in_place.into_iter().flatten().collect();
        in_place.dedup();
        for block in &in_place {
            self.keep(Role::User, block);
        }
        self.log.refused(&names);
        true
    }
}
