//! The Messages API: a reply as stream events, or as one response.

use serde_json::{Value, json};

use super::{ResolvedBlock, ResolvedReply, SseEvent, split_chunks};

/// Encodes the reply as one response.
pub(crate) fn response_body(reply: &ResolvedReply) -> Value {
    let content: Vec<Value> = reply.blocks.iter().map(block_json).collect();
    let mut message = empty_message(reply);
    message["content"] = content.into();
    message["stop_reason"] = json!(reply.stop_reason);
    message["usage"] = json!(reply.usage);
    message
}

/// Encodes the reply as stream events, in order.
pub(crate) fn stream_events(reply: &ResolvedReply) -> Vec<SseEvent> {
    let mut events = vec![typed_event(&json!({"type": "message_start", "message": empty_message(reply)}))];
    for (index, block) in reply.blocks.iter().enumerate() {
        let start =
            json!({"type": "content_block_start", "index": index, "content_block": block_start_json(block)});
        events.push(typed_event(&start));
        let deltas = block_deltas(block, reply.chunk_size).into_iter();
        events.extend(deltas.map(|delta| {
            typed_event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        events.push(typed_event(&json!({"type": "content_block_stop", "index": index})));
    }
    events.push(typed_event(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": reply.stop_reason, "stop_sequence": null},
        "usage": {"output_tokens": reply.usage.output_tokens},
    })));
    events.push(typed_event(&json!({"type": "message_stop"})));
    events
}

/// Builds an event named after the `type` of its data.
pub(crate) fn typed_event(data: &Value) -> SseEvent {
    SseEvent { name: data["type"].as_str().map(str::to_owned), data: data.to_string() }
}

/// The message of `message_start`: no content yet, at most one output token.
fn empty_message(reply: &ResolvedReply) -> Value {
    let mut usage = json!(reply.usage);
    usage["output_tokens"] = reply.usage.output_tokens.min(1).into();
    json!({
        "id": format!("msg_{}", reply.reply_number),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn block_json(block: &ResolvedBlock) -> Value {
    match block {
        ResolvedBlock::Text(text) => json!({"type": "text", "text": text}),
        ResolvedBlock::Thinking { thinking, signature } => {
            json!({"type": "thinking", "thinking": thinking, "signature": signature})
        }
        ResolvedBlock::Tool { id, name, input, .. } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        ResolvedBlock::Verbatim(block) => block.clone(),
    }
}

fn block_start_json(block: &ResolvedBlock) -> Value {
    match block {
        ResolvedBlock::Text(_) => json!({"type": "text", "text": ""}),
        ResolvedBlock::Thinking { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
        ResolvedBlock::Tool { id, name, .. } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": {}})
        }
        ResolvedBlock::Verbatim(block) => block.clone(),
    }
}

fn block_deltas(block: &ResolvedBlock, size: usize) -> Vec<Value> {
    match block {
        ResolvedBlock::Text(text) => {
            split_chunks(text, size).map(|text| json!({"type": "text_delta", "text": text})).collect()
        }
        ResolvedBlock::Thinking { thinking, signature } => {
            let thinking_deltas =
                split_chunks(thinking, size).map(|text| json!({"type": "thinking_delta", "thinking": text}));
            thinking_deltas.chain([json!({"type": "signature_delta", "signature": signature})]).collect()
        }
        ResolvedBlock::Tool { input_json, .. } => split_chunks(input_json, size)
            .map(|text| json!({"type": "input_json_delta", "partial_json": text}))
            .collect(),
        ResolvedBlock::Verbatim(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reply;

    fn resolve_reply(reply: &Reply) -> ResolvedReply {
        ResolvedReply::new(3, reply, "claude-test")
    }

    #[test]
    fn reply_is_encoded_as_stream_events() {
        let reply = Reply::text("größer").and_tool("Bash", json!({"a": 1})).with_thinking("hm").chunk_size(4);
        let events: Vec<Value> = stream_events(&resolve_reply(&reply))
            .iter()
            .map(|event| serde_json::from_str(&event.data).unwrap())
            .collect();
        let summary: Vec<String> = events
            .iter()
            .map(|event| match &event["delta"] {
                Value::Null => event["type"].as_str().unwrap().to_owned(),
                delta => delta.to_string(),
            })
            .collect();
        let expected = [
            "message_start",
            "content_block_start",
            r#"{"type":"thinking_delta","thinking":"hm"}"#,
            r#"{"type":"signature_delta","signature":"sig"}"#,
            "content_block_stop",
            "content_block_start",
            r#"{"type":"text_delta","text":"größ"}"#,
            r#"{"type":"text_delta","text":"er"}"#,
            "content_block_stop",
            "content_block_start",
            r#"{"type":"input_json_delta","partial_json":"{\"a\""}"#,
            r#"{"type":"input_json_delta","partial_json":":1}"}"#,
            "content_block_stop",
            r#"{"stop_reason":"tool_use","stop_sequence":null}"#,
            "message_stop",
        ];
        assert_eq!(summary, expected);
        assert_eq!(events[9]["content_block"]["id"], "toolu_3_1");
    }

    #[test]
    fn invalid_tool_input_is_sent_verbatim() {
        let reply = Reply::tool("Bash", json!({})).raw_tool_input("{bad");
        let events = stream_events(&resolve_reply(&reply));
        assert!(events[2].data.contains(r#""partial_json":"{bad""#));
    }

    #[test]
    fn response_body_has_content_and_usage() {
        let message = response_body(&resolve_reply(&Reply::text("hi")));
        assert_eq!(message["content"], json!([{"type": "text", "text": "hi"}]));
        assert_eq!(
            (&message["stop_reason"], &message["usage"]["output_tokens"]),
            (&json!("end_turn"), &json!(10))
        );
    }
}
