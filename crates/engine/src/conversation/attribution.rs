//! Who speaks in a conversation: the main agent of a session, or a subagent that a call started.

use whimbrel_wire::content::Block;

/// Who speaks in a conversation.
#[derive(Debug, Clone, Default)]
pub struct Attribution {
    pub(super) subagent_info: Option<SubagentAttribution>,
}

/// A subagent's place.
#[derive(Debug, Clone)]
pub(super) struct SubagentAttribution {
    pub(super) parent_tool_use_id: String,
    pub(super) agent_id: String,
    pub(super) agent_type: String,
    pub(super) description: String,
    /// Whether the host hears its words as they are said.
    forward_text: bool,
}

impl Attribution {
    /// The main agent of the session.
    pub fn main() -> Self {
        Self::default()
    }

    /// A subagent that a call started.
    pub fn subagent(call: &str, agent_id: &str, kind: &str, errand: &str) -> Self {
        let below = SubagentAttribution {
            parent_tool_use_id: call.into(),
            agent_id: agent_id.into(),
            agent_type: kind.into(),
            description: errand.into(),
            forward_text: false,
        };
        Self { subagent_info: Some(below) }
    }

    /// The same, but the host hears its words as they are said, if it wants to.
    #[must_use]
    pub fn with_text_forwarded(mut self, wanted: bool) -> Self {
        if let Some(below) = &mut self.subagent_info {
            below.forward_text = wanted;
        }
        self
    }

    /// The call that started the subagent; none for the main one.
    pub fn parent_tool_use_id(&self) -> Option<&str> {
        self.subagent_info.as_ref().map(|below| below.parent_tool_use_id.as_str())
    }

    /// Whether the host hears a block as it is said. A subagent's words are its report: they come with its result.
    pub fn is_visible(&self, block: &Block) -> bool {
        self.subagent_info.as_ref().is_none_or(|below| below.forward_text)
            || !matches!(block, Block::Text { .. } | Block::Thinking { .. })
    }
}
