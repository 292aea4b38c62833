//! Chat Completions: a reply as chunks, or in one piece.

use serde_json::{Map, Value, json};
use whimbrel_wire::{StopReason, Usage};

use super::{Block, Event, Spoken, pieces};

/// Whether the caller wants the figures at the end of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figures {
    Wanted,
    Unwanted,
}

/// The reply in one piece.
pub(crate) fn whole(spoken: &Spoken) -> Value {
    let mut message = json!({"role": "assistant", "content": joined(spoken, text)});
    if let Some(thoughts) = joined(spoken, thinking) {
        message["reasoning_content"] = thoughts.into();
    }
    let calls: Vec<Value> =
        spoken.blocks.iter().filter_map(call).map(|(id, name, sent)| function(id, name, sent)).collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut reply = head(spoken, "chat.completion");
    reply["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish(&spoken.stop)}]);
    reply["usage"] = figures(&spoken.usage);
    reply
}

/// The reply as chunks, the last word `[DONE]` included.
pub(crate) fn events(spoken: &Spoken, wanted: Figures) -> Vec<Event> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let mut calls = 0;
    for block in &spoken.blocks {
        deltas.extend(said(block, spoken.chunk, calls));
        calls += usize::from(call(block).is_some());
    }
    let mut chunks: Vec<Value> = deltas.into_iter().map(|delta| chunk(spoken, &delta, None)).collect();
    chunks.push(chunk(spoken, &Value::Object(Map::new()), Some(finish(&spoken.stop))));
    if wanted == Figures::Wanted {
        let mut last = head(spoken, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = figures(&spoken.usage);
        chunks.push(last);
    }
    let data = chunks.iter().map(Value::to_string).chain(["[DONE]".to_owned()]);
    data.map(|data| Event { name: None, data }).collect()
}

/// What a block adds to the reply, piece by piece. A call opens with its name; fragments of its input follow.
fn said(block: &Block, size: usize, index: usize) -> Vec<Value> {
    match block {
        Block::Text(text) => pieces(text, size).map(|text| json!({"content": text})).collect(),
        Block::Thinking { thinking, .. } => {
            pieces(thinking, size).map(|text| json!({"reasoning_content": text})).collect()
        }
        Block::Tool { id, name, sent, .. } => {
            let mut opening = function(id, name, "");
            opening["index"] = index.into();
            let fragments =
                pieces(sent, size).map(|text| json!({"index": index, "function": {"arguments": text}}));
            [opening].into_iter().chain(fragments).map(|call| json!({"tool_calls": [call]})).collect()
        }
        // There is no word for it in this dialect.
        Block::Verbatim(_) => Vec::new(),
    }
}

fn chunk(spoken: &Spoken, delta: &Value, finish: Option<&str>) -> Value {
    let mut chunk = head(spoken, "chat.completion.chunk");
    chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    chunk
}

fn head(spoken: &Spoken, object: &str) -> Value {
    json!({"id": format!("chatcmpl_{}", spoken.number), "object": object, "created": 0, "model": spoken.model})
}

fn function(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn call(block: &Block) -> Option<(&str, &str, &str)> {
    match block {
        Block::Tool { id, name, sent, .. } => Some((id, name, sent)),
        Block::Text(_) | Block::Thinking { .. } | Block::Verbatim(_) => None,
    }
}

fn text(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => Some(text),
        Block::Thinking { .. } | Block::Tool { .. } | Block::Verbatim(_) => None,
    }
}

fn thinking(block: &Block) -> Option<&str> {
    match block {
        Block::Thinking { thinking, .. } => Some(thinking),
        Block::Text(_) | Block::Tool { .. } | Block::Verbatim(_) => None,
    }
}

fn joined<'a>(spoken: &'a Spoken, part: impl Fn(&'a Block) -> Option<&'a str>) -> Option<String> {
    let parts: Vec<&str> = spoken.blocks.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| parts.concat())
}

fn finish(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens | StopReason::ModelContextWindowExceeded => "length",
        StopReason::Refusal => "content_filter",
        StopReason::EndTurn | StopReason::StopSequence | StopReason::PauseTurn | StopReason::Other(_) => {
            "stop"
        }
    }
}

/// In this dialect the tokens read from the cache are among the tokens of the prompt.
fn figures(usage: &Usage) -> Value {
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
    fn parallel_calls_come_in_fragments_under_their_own_index() {
        let reply =
            Reply::text("Look:").and_tool("Read", json!({"p": 1})).and_tool("Read", json!({"p": 2})).chunk(5);
        let told = events(&Spoken::new(2, &reply, "kimi"), Figures::Wanted);
        let deltas: Vec<String> = told[..told.len() - 1]
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
        assert_eq!(told.last().unwrap().bytes(), b"data: [DONE]\n\n");
    }

    #[test]
    fn figures_come_only_when_they_are_wanted() {
        let spoken = Spoken::new(1, &Reply::text("hi"), "kimi");
        let with = |wanted| {
            events(&spoken, wanted).iter().filter(|event| event.data.contains("prompt_tokens")).count()
        };
        assert_eq!((with(Figures::Wanted), with(Figures::Unwanted)), (1, 0));
        assert_eq!(whole(&spoken)["usage"]["total_tokens"], 110);
    }
}
