//! Tool calls in a conversation: unique call ids, and the results.

use serde_json::{Value, json};
use whimbrel_os::ids;
use whimbrel_wire::content::{Block, Content, ResultContent, Role};
use whimbrel_wire::message::User;

use super::Conversation;
use crate::tool_scheduler::ToolCallResult;

impl Conversation {
    /// Makes the id of a tool call unique in the conversation: results are matched by id, and some servers restart
    /// numbering in each reply or send no id.
    pub fn make_call_id_unique(&mut self, id: &mut String) {
        let base = if id.is_empty() { "call".to_owned() } else { id.clone() };
        id.clone_from(&base);
        let mut suffix = 2;
        while !self.tool_call_ids.insert(id.clone()) {
            *id = format!("{base}_{suffix}");
            suffix += 1;
        }
    }

    /// Appends the result of a tool call.
    pub async fn push_tool_result(&mut self, result: ToolCallResult) {
        let frame = self.add_result(result);
        self.flush().await;
        self.frame_sender.send(frame).await;
    }

    /// Records a result for a call that was not run because the turn ended: for model and transcript only.
    pub fn close_unrun_call(&mut self, result: ToolCallResult) {
        self.add_result(result);
    }

    fn add_result(&mut self, result: ToolCallResult) -> User {
        self.begin_uncommitted();
        let ToolCallResult { id, content, meta, is_error, command_exit, .. } = result;
        let block = Block::ToolResult {
            tool_use_id: id,
            content: Some(non_empty_result(content)),
            is_error: Some(is_error),
        };
        self.add_to_history(Role::User, &block);
        let uuid = ids::new_uuid();
        let content = Content::Blocks(vec![block]);
        let mut extra_fields = vec![("toolUseResult", meta.clone())];
        extra_fields.extend(
            self.last_assistant_uuid.clone().map(|id| ("sourceToolAssistantUUID", Value::String(id))),
        );
        extra_fields.extend(command_exit.as_ref().map(|exit| ("commandExit", json!(exit))));
        self.write_user(&uuid, &content, extra_fields);
        User { tool_use_result: Some(meta), command_exit, ..self.user_frame(uuid, content) }
    }
}

/// Replaces an empty result, which providers reject.
fn non_empty_result(content: ResultContent) -> ResultContent {
    match content {
        ResultContent::Text(text) if text.is_empty() => ResultContent::Text("(no output)".into()),
        other => other,
    }
}
