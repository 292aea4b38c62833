//! Who speaks in a conversation: the main agent of a session, or a subagent that a call started.

use whimbrel_wire::content::Block;

/// Who speaks in a conversation.
#[derive(Debug, Clone, Default)]
pub struct Speaker {
    pub(super) below: Option<Below>,
}

/// A subagent's place.
#[derive(Debug, Clone)]
pub(super) struct Below {
    pub(super) call: String,
    pub(super) agent_id: String,
    pub(super) kind: String,
    pub(super) errand: String,
    /// Whether the host hears its words as they are said.
    aloud: bool,
}

impl Speaker {
    /// The main agent of the session.
    pub fn main() -> Self {
        Self::default()
    }

    /// A subagent that a call started.
    pub fn subagent(call: &str, agent_id: &str, kind: &str, errand: &str) -> Self {
        let below = Below {
            call: call.into(),
            agent_id: agent_id.into(),
            kind: kind.into(),
            errand: errand.into(),
            aloud: false,
        };
        Self { below: Some(below) }
    }

    /// The same, but the host hears its words as they are said, if it wants to.
    #[must_use]
    pub fn aloud(mut self, wanted: bool) -> Self {
        if let Some(below) = &mut self.below {
            below.aloud = wanted;
        }
        self
    }

    /// The call that started the subagent; none for the main one.
    pub fn call(&self) -> Option<&str> {
        self.below.as_ref().map(|below| below.call.as_str())
    }

    /// Whether the host hears a block as it is said. A subagent's words are its report: they come with its result.
    pub fn is_heard(&self, block: &Block) -> bool {
        self.below.as_ref().is_none_or(|below| below.aloud)
            || !matches!(block, Block::Text { .. } | Block::Thinking { .. })
    }
}
