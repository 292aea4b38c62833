//! Results of commands that run outside the conversation, such as forked commands: the model was not called and sees
//! the result with the next prompt.

use whimbrel_wire::Block;
use whimbrel_wire::content::{Content, Role};

use super::{Conversation, synthetic_reply};

impl Conversation {
    /// Records a command (uuid of its prompt and text for the model) with its outcome, which the host gets as a
    /// synthetic reply.
    pub async fn push_side_result(&mut self, (uuid, command): (&str, &str), outcome: &str, mode: &str) {
        self.begin_uncommitted();
        self.has_messages = true;
        let output = format!("<local-command-stdout>{outcome}</local-command-stdout>");
        let blocks = vec![Block::text(command), Block::text(output)];
        for block in &blocks {
            self.add_to_history(Role::User, block);
        }
        self.write_user(uuid, &Content::Blocks(blocks), vec![("permissionMode", mode.into())]);
        let frame = self.assistant_frame(synthetic_reply(outcome));
        self.recorder.append_local_command(&frame.uuid, outcome);
        self.flush().await;
        self.frame_sender.send(frame).await;
    }
}
