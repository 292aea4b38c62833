//! Thinking in the history: held back until another block follows, kept or dropped for the next model, on or off
//! within a tool loop.

use whimbrel_models::Thinking;
use whimbrel_models::providers::ApiDialect;
use whimbrel_session_store::load::repair::is_blank;
use whimbrel_wire::content::{Block, Role};

use super::Conversation;

impl Conversation {
    /// Adds a block of the reply to the history. Providers reject blank text and messages that end in thinking, so
    /// thinking is held back until another block follows.
    pub(super) fn add_reply_block(&mut self, block: &Block) {
        match block {
            Block::Thinking { .. } | Block::RedactedThinking { .. } => {
                self.pending_thinking.push(block.clone());
            }
            block if is_blank(block) => {}
            block => {
                self.unanswered.clear();
                self.uncommitted = None;
                for thinking in std::mem::take(&mut self.pending_thinking) {
                    self.add_to_history(Role::Assistant, &thinking);
                }
                self.add_to_history(Role::Assistant, block);
            }
        }
    }

    /// Called when a reply ends or is retried: drops thinking that no block followed.
    pub fn drop_pending_thinking(&mut self) {
        self.pending_thinking.clear();
    }

    /// Prepares the history for the next model. Thinking is signed: another model rejects it, and the Messages API
    /// rejects thinking without a signature.
    pub fn prepare_for_model(&mut self, model: &str, dialect: Option<ApiDialect>) {
        if dialect == Some(ApiDialect::Messages) && std::mem::take(&mut self.has_unsigned_thinking) {
            self.history.drop_unsigned_thinking();
        }
        if self.thinking_model.as_deref().is_some_and(|previous| !is_same_model(previous, model)) {
            self.history.drop_thinking();
        }
        self.thinking_model = Some(model.to_owned());
    }

    /// The thinking configuration that the next request can use. Within a tool loop, the Messages API requires
    /// thinking to stay on or off; Chat Completions wants the reasoning before a call back in any case.
    pub fn effective_thinking(&mut self, requested: Thinking, dialect: Option<ApiDialect>) -> Thinking {
        if dialect == Some(ApiDialect::Chat) {
            return requested;
        }
        match (requested, self.history.tool_loop_has_thinking()) {
            (Thinking::Enabled { .. }, Some(false)) => Thinking::Disabled,
            (Thinking::Disabled, Some(true)) => {
                self.history.drop_thinking();
                Thinking::Disabled
            }
            _ => requested,
        }
    }
}

/// Returns whether two names mean one model: replies carry the version, requests often omit it.
fn is_same_model(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
