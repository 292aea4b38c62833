//! What was done apart from a conversation on the person's word: the model was not asked, and reads of it with the next
//! prompt.

use whimbrel_wire::Block;
use whimbrel_wire::content::{Content, Role};

use super::{Conversation, synthetic_reply};

impl Conversation {
    /// A command, by the id of its prompt and in words for the model, and what came of it. The host hears the outcome
    /// in the model's place.
    pub async fn push_side_result(&mut self, (uuid, command): (&str, &str), outcome: &str, mode: &str) {
        self.begin_uncommitted();
        self.has_messages = true;
        let told = format!("<local-command-stdout>{outcome}</local-command-stdout>");
        let blocks = vec![Block::text(command), Block::text(told)];
        for block in &blocks {
            self.add_to_history(Role::User, block);
        }
        self.write_user(uuid, &Content::Blocks(blocks), vec![("permissionMode", mode.into())]);
        let frame = self.assistant_frame(synthetic_reply(outcome));
        self.log.append_local_command(&frame.uuid, outcome);
        self.flush().await;
        self.frame_sender.send(frame).await;
    }
}
