//! Chat Completions: a reply as stream chunks, or as one response.

use serde_json::{Map, Value, json};
use whimbrel_wire::{StopReason, Usage};

use super::{ResolvedBlock, ResolvedReply, SseEvent, split_chunks};

/// Whether the stream ends with a usage chunk (`stream_options.include_usage`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageChunk {
    Send,
    Omit,
}

/// Encodes the reply as one response.
pub(crate) fn response_body(reply: &ResolvedReply) -> Value {
    let mut message = json!({"role": "assistant", "content": join_parts(reply, text_part)});
    if let Some(thinking) = join_parts(reply, thinking_part) {
        message["reasoning_content"] = thinking.into();
    }
    let calls: Vec<Value> = reply
        .blocks
        .iter()
        .filter_map(tool_call_parts)
        .map(|(id, name, input_json)| function_json(id, name, input_json))
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut body = common_fields(reply, "chat.completion");
    body["choices"] =
        json!([{"index": 0, "message": message, "finish_reason": finish_reason(&reply.stop_reason)}]);
    body["usage"] = usage_json(&reply.usage);
    body
}

/// Encodes the reply as stream chunks, with the final `[DONE]`.
pub(crate) fn stream_events(reply: &ResolvedReply, usage_chunk: UsageChunk) -> Vec<SseEvent> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let mut calls = 0;
    for block in &reply.blocks {
        deltas.extend(block_deltas(block, reply.chunk_size, calls));
        calls += usize::from(tool_call_parts(block).is_some());
    }
    let mut chunks: Vec<Value> = deltas.into_iter().map(|delta| chunk_json(reply, &delta, None)).collect();
    chunks.push(chunk_json(reply, &Value::Object(Map::new()), Some(finish_reason(&reply.stop_reason))));
    if usage_chunk == UsageChunk::Send {
        let mut last = common_fields(reply, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage_json(&reply.usage);
        chunks.push(last);
    }
    let data = chunks.iter().map(Value::to_string).chain(["[DONE]".to_owned()]);
    data.map(|data| SseEvent { name: None, data }).collect()
}

/// The deltas of one block. A tool call begins with its name; chunks of its input follow.
fn block_deltas(block: &ResolvedBlock, size: usize, index: usize) -> Vec<Value> {
    match block {
        ResolvedBlock::Text(text) => split_chunks(text, size).map(|text| json!({"content": text})).collect(),
        ResolvedBlock::Thinking { thinking, .. } => {
            split_chunks(thinking, size).map(|text| json!({"reasoning_content": text})).collect()
        }
        ResolvedBlock::Tool { id, name, input_json, .. } => {
            let mut opening = function_json(id, name, "");
            opening["index"] = index.into();
            let fragments = split_chunks(input_json, size)
                .map(|text| json!({"index": index, "function": {"arguments": text}}));
            [opening].into_iter().chain(fragments).map(|call| json!({"tool_calls": [call]})).collect()
        }
        // Chat Completions has no form for arbitrary blocks.
        ResolvedBlock::Verbatim(_) => Vec::new(),
    }
}

fn chunk_json(reply: &ResolvedReply, delta: &Value, finish: Option<&str>) -> Value {
    let mut chunk = common_fields(reply, "chat.completion.chunk");
    chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    chunk
}

fn common_fields(reply: &ResolvedReply, object: &str) -> Value {
    json!({"id": format!("chatcmpl_{}", reply.reply_number), "object": object, "created": 0, "model": reply.model})
}

fn function_json(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn tool_call_parts(block: &ResolvedBlock) -> Option<(&str, &str, &str)> {
    match block {
        ResolvedBlock::Tool { id, name, input_json, .. } => Some((id, name, input_json)),
        ResolvedBlock::Text(_) | ResolvedBlock::Thinking { .. } | ResolvedBlock::Verbatim(_) => None,
    }
}

fn text_part(block: &ResolvedBlock) -> Option<&str> {
    match block {
        ResolvedBlock::Text(text) => Some(text),
        ResolvedBlock::Thinking { .. } | ResolvedBlock::Tool { .. } | ResolvedBlock::Verbatim(_) => None,
    }
}

fn thinking_part(block: &ResolvedBlock) -> Option<&str> {
    match block {
        ResolvedBlock::Thinking { thinking, .. } => Some(thinking),
        ResolvedBlock::Text(_) | ResolvedBlock::Tool { .. } | ResolvedBlock::Verbatim(_) => None,
    }
}

fn join_parts<'a>(
    reply: &'a ResolvedReply,
    part: impl Fn(&'a ResolvedBlock) -> Option<&'a str>,
) -> Option<String> {
    let parts: Vec<&str> = reply.blocks.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| parts.concat())
}

fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens | StopReason::ModelContextWindowExceeded => "length",
        StopReason::Refusal => "content_filter",
        StopReason::EndTurn | StopReason::StopSequence | StopReason::PauseTurn | StopReason::Other(_) => {
            "stop"
        }
    }
}

/// Chat Completions counts cached tokens among the prompt tokens.
fn usage_json(usage: &Usage) -> Value {
    let prompt = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reply;

    #[test]
    fn parallel_tool_calls_stream_under_their_own_index() {
        let reply = Reply::text("Look:")
            .and_tool("Read", json!({"p": 1}))
            .and_tool("Read", json!({"p": 2}))
            .chunk_size(5);
        let events = stream_events(&ResolvedReply::new(2, &reply, "kimi"), UsageChunk::Send);
        let deltas: Vec<String> = events[..events.len() - 1]
            .iter()
            .map(|event| {
                serde_json::from_str::<Value>(&event.data).unwrap()["choices"][0]["delta"].to_string()
            })
            .collect();
        let expected = [
            r#"{"role":"assistant","content":""}"#,
            r#"{"content":"Look:"}"#,
            r#"{"tool_calls":[{"id":"toolu_2_1","type":"function","function":{"name":"Read","arguments":""},"index":0}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}"#,
            r#"{"tool_calls":[{"id":"toolu_2_2","type":"function","function":{"name":"Read","arguments":""},"index":1}]}"#,
            r#"{"tool_calls":[{"index":1,"function":{"arguments":"{\"p\":"}}]}"#,
            r#"{"tool_calls":[{"index":1,"function":{"arguments":"2}"}}]}"#,
            "{}",
            "null",
        ];
        assert_eq!(deltas, expected);
        assert_eq!(events.last().unwrap().to_bytes(), b"data: [DONE]\n\n");
    }

    #[test]
    fn usage_chunk_is_sent_only_on_request() {
        let reply = ResolvedReply::new(1, &Reply::text("hi"), "kimi");
        let with = |usage_chunk| {
            stream_events(&reply, usage_chunk)
                .iter()
                .filter(|event| event.data.contains("prompt_tokens"))
                .count()
        };
        assert_eq!((with(UsageChunk::Send), with(UsageChunk::Omit)), (1, 0));
        assert_eq!(response_body(&reply)["usage"]["total_tokens"], 110);
    }
}
