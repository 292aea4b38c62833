//! Attribution of a conversation's frames: to the main agent or to a subagent.

use whimbrel_wire::content::Block;

#[derive(Debug, Clone, Default)]
pub struct Attribution {
    pub(super) subagent_info: Option<SubagentAttribution>,
}

/// Attribution to a subagent.
#[derive(Debug, Clone)]
pub(super) struct SubagentAttribution {
    pub(super) parent_tool_use_id: String,
    pub(super) agent_id: String,
    pub(super) agent_type: String,
    pub(super) description: String,
    /// Whether its text is forwarded to the host as it streams.
    forward_text: bool,
}

impl Attribution {
    pub fn main() -> Self {
        Self::default()
    }

    /// Attribution to a subagent that a tool call started.
    pub fn subagent(parent_tool_use_id: &str, agent_id: &str, agent_type: &str, description: &str) -> Self {
        let subagent = SubagentAttribution {
            parent_tool_use_id: parent_tool_use_id.into(),
            agent_id: agent_id.into(),
            agent_type: agent_type.into(),
            description: description.into(),
            forward_text: false,
        };
        Self { subagent_info: Some(subagent) }
    }

    /// Sets whether the text of a subagent is forwarded to the host.
    #[must_use]
    pub fn with_text_forwarded(mut self, forward_text: bool) -> Self {
        if let Some(subagent) = &mut self.subagent_info {
            subagent.forward_text = forward_text;
        }
        self
    }

    /// The tool call that started the subagent; `None` for the main agent.
    pub fn parent_tool_use_id(&self) -> Option<&str> {
        self.subagent_info.as_ref().map(|subagent| subagent.parent_tool_use_id.as_str())
    }

    /// Returns whether a block is sent to the host as it streams. The text of a subagent is its report and comes with
    /// its result.
    pub fn is_visible(&self, block: &Block) -> bool {
        self.subagent_info.as_ref().is_none_or(|subagent| subagent.forward_text)
            || !matches!(block, Block::Text { .. } | Block::Thinking { .. })
    }
}
