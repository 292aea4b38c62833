//! One-line log form of frames: types, names and ids, never contents.

use whimbrel_os::log::{Log, LogTopic};
use whimbrel_wire::content::Content;
use whimbrel_wire::control::Response;
use whimbrel_wire::{Block, Frame};

/// Logs an incoming or outgoing frame.
pub fn log_frame(log: &Log, direction: &str, frame: &Frame) {
    if log.is_enabled()
        && let Some((topic, description)) = describe_frame(frame)
    {
        log.write_line(topic, || format!("{direction}: {description}"));
    }
}

/// Topic and description of a frame. Stream events are not logged.
fn describe_frame(frame: &Frame) -> Option<(LogTopic, String)> {
    let description = match frame {
        Frame::StreamEvent(_) | Frame::KeepAlive(_) => return None,
        Frame::ControlRequest(asked) => {
            return Some((
                LogTopic::Control,
                format!("{} requested as {}", asked.request.subtype(), asked.request_id),
            ));
        }
        Frame::ControlResponse(answer) => {
            let description = match &answer.response {
                Response::Success { request_id, .. } => format!("{request_id} answered"),
                Response::Error { request_id, error, .. } => format!("{request_id} failed: {error}"),
            };
            return Some((LogTopic::Control, description));
        }
        Frame::ControlCancel(cancel) => {
            return Some((LogTopic::Control, format!("{} cancelled", cancel.request_id)));
        }
        Frame::Assistant(message) => format!("assistant: {}", describe_blocks(&message.message.content)),
        Frame::User(message) => match &message.message.content {
            Content::Text(text) => format!("user: {} bytes of text", text.len()),
            Content::Blocks(message) => format!("user: {}", describe_blocks(message)),
        },
        Frame::System(system) => format!("system: {}", system.event.subtype()),
        Frame::Result(result) => {
            let how = if result.is_error { " (error)" } else { "" };
            format!(
                "result: {:?}{how}, {} turns, {} ms",
                result.subtype, result.num_turns, result.duration_ms
            )
        }
        other => other.kind().to_owned(),
    };
    Some((LogTopic::Frames, description))
}

fn describe_blocks(blocks: &[Block]) -> String {
    blocks.iter().map(describe_block).collect::<Vec<_>>().join(", ")
}

fn describe_block(block: &Block) -> String {
    match block {
        Block::Text { text, .. } => format!("{} bytes of text", text.len()),
        Block::Thinking { .. } | Block::RedactedThinking { .. } => "thinking".into(),
        Block::ToolUse { id, name, .. } => format!("{name} called as {id}"),
        Block::ToolResult { tool_use_id, is_error, .. } => {
            let how = if *is_error == Some(true) { "failed" } else { "finished" };
            format!("{tool_use_id} {how}")
        }
        Block::Image { .. } => "an image".into(),
        Block::Document { .. } => "a document".into(),
        _ => "another block".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use whimbrel_wire::decode;

    use super::*;

    #[test]
    fn frames_are_logged_without_their_contents() {
        let message = |role: &str, block: Value| json!({"type": role, "message": {"role": role, "model": "m", "content": [block]}});
        let rows = [
            (
                json!({"type": "user", "message": {"role": "user", "content": "secret"}}),
                Some("user: 6 bytes of text"),
            ),
            (
                message(
                    "assistant",
                    json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "secret"}}),
                ),
                Some("assistant: Bash called as t1"),
            ),
            (
                message(
                    "user",
                    json!({"type": "tool_result", "tool_use_id": "t1", "content": "secret", "is_error": true}),
                ),
                Some("user: t1 failed"),
            ),
            (
                json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "set_model", "model": "secret"}}),
                Some("set_model requested as r1"),
            ),
            (
                json!({"type": "control_response", "response": {"subtype": "success", "request_id": "r1", "response": {"a": "secret"}}}),
                Some("r1 answered"),
            ),
            (json!({"type": "stream_event", "event": {"a": "secret"}, "session_id": "s", "uuid": "u"}), None),
            (json!({"type": "keep_alive"}), None),
        ];
        for (frame, expected) in rows {
            let description =
                describe_frame(&decode(&frame.to_string()).unwrap()).map(|(_, description)| description);
            assert_eq!(description.as_deref(), expected, "{frame}");
        }
    }
}
