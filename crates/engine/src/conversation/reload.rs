//! Replaces a conversation by a state that was loaded from its transcript: when it is resumed, after a rewind, and to run
//! calls that never started.

use whimbrel_session_store::load::LoadedConversation;
use whimbrel_session_store::rewind_record::RewindRecord;
use whimbrel_wire::system::ConversationRewound;

use super::Conversation;
use crate::context::PlanModeState;

/// A rewind of a conversation.
pub struct ConversationRewind {
    pub record: RewindRecord,
    /// The state to go back to.
    pub loaded: LoadedConversation,
    pub notice: ConversationRewound,
}

/// Text for the model that waits for the results of open calls; with the permission mode that it announces.
pub type HeldText = (String, Option<String>);

impl Conversation {
    /// Takes over a loaded state. Call ids and uuids that were used stay reserved.
    pub(super) fn replace(&mut self, loaded: LoadedConversation) {
        self.has_messages = loaded.has_messages();
        self.thinking_model = loaded.recorded.model;
        self.history = loaded.history;
        self.has_unsigned_thinking = loaded.has_unsigned_thinking;
        self.tool_call_ids.extend(loaded.call_ids);
        self.injected_keys = loaded.hidden_texts;
        self.plan_mode = PlanModeState::from_announced_mode(loaded.announced_mode.as_deref());
        self.context_meter.reset();
        self.context_meter.restore(self.history.size(), loaded.context_tokens);
        self.counted_tokens = loaded.context_tokens;
        self.added_tokens = if loaded.context_tokens > 0 { 0 } else { self.history.size() as u64 / 4 };
        self.pending_thinking.clear();
        self.unanswered.clear();
        self.last_prompt.clear();
        (self.last_assistant_uuid, self.uncommitted) = (None, None);
        self.recorder.resume_after(loaded.leaf, loaded.uuids);
    }

    /// The last entry in the transcript.
    pub fn leaf(&self) -> Option<&str> {
        self.recorder.leaf()
    }

    /// Goes back to an earlier state. The transcript keeps what is left behind.
    pub async fn rewind(&mut self, rewind: ConversationRewind) {
        let ConversationRewind { record, mut loaded, notice } = rewind;
        self.recorder.append_rewind(&record);
        loaded.leaf = Some(record.uuid.clone());
        self.replace(loaded);
        self.flush().await;
        self.publish_pending().await;
        self.frame_sender.notify_as(record.uuid, notice).await;
    }

    /// Takes over the same conversation with open calls. Their results must come next; returns the texts that have to
    /// wait for them.
    pub fn reopen_calls(&mut self, loaded: LoadedConversation) -> Vec<HeldText> {
        let held = self.recorder.take_pending_hidden();
        self.replace(loaded);
        held
    }

    /// Appends texts that had to wait.
    pub fn push_held(&mut self, held: Vec<HeldText>) {
        for (text, announced_mode) in held {
            self.push_hidden_text(&text, announced_mode.as_deref());
        }
    }
}
