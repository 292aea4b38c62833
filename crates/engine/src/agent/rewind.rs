//! Rewinds the conversation of an agent, and what depends on it.

use super::Agent;
use crate::context::compaction_policy::CompactionState;
use crate::conversation::reload::ConversationRewind;

impl Agent {
    /// Goes back to an earlier state of the conversation. Tools that the model has loaded stay loaded, so that the
    /// provider's prompt cache stays valid.
    pub async fn rewind(&mut self, rewind: ConversationRewind) {
        self.conversation.rewind(rewind).await;
        self.compaction_state = CompactionState::default();
        self.tool_env.context.todos.replace(Vec::new());
        // The model must read a file again before it edits it: what it knew may be dropped, or not be true any more.
        let workspace = &self.tool_env.context.workspace;
        workspace.seen_files().iter().for_each(|(path, _)| workspace.forget_seen(path));
        self.inject_context();
    }
}
