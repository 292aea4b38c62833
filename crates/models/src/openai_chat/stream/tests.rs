//! Streams of real providers and the replies they decode to.

use proptest::prelude::*;
use serde_json::{Value, json};
use whimbrel_wire::{Block, StopReason, Usage};

use super::*;
use crate::assemble::ReplyAssembler;

/// A translated and assembled reply.
#[derive(Debug, PartialEq)]
struct Reply {
    blocks: Vec<Block>,
    stop: StopReason,
    /// Input, read from the cache, output.
    tokens: (u64, u64, u64),
}

fn translate(lines: &[&str]) -> Result<Vec<ReplyEvent>, ModelError> {
    let mut translator = ReplyTranslator::new("seed", "requested", []);
    let mut events = Vec::new();
    for line in lines {
        events.extend(translator.push_data(line)?);
    }
    events.extend(translator.finish());
    Ok(events)
}

fn assemble(events: &[ReplyEvent]) -> Reply {
    let mut assembler = ReplyAssembler::default();
    let finished = events.iter().filter_map(|event| assembler.push_event(event).unwrap());
    let blocks =
        finished.inspect(|block| assert_eq!(block.bad_input, None)).map(|block| block.block).collect();
    assert!(assembler.complete);
    assert!(!assembler.id.is_empty());
    let Usage { input_tokens, cache_read_input_tokens, output_tokens, .. } = assembler.usage;
    Reply {
        blocks,
        stop: assembler.stop_reason.unwrap(),
        tokens: (input_tokens, cache_read_input_tokens, output_tokens),
    }
}

fn thinking(text: &str) -> Block {
    Block::Thinking { thinking: text.into(), signature: String::new() }
}

fn call(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input }
}

struct Row {
    name: &'static str,
    lines: &'static [&'static str],
    reply: Reply,
}

fn check(rows: Vec<Row>) {
    for Row { name, lines, reply } in rows {
        let events = translate(lines).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(assemble(&events), reply, "{name}");
    }
}

#[test]
fn streams_of_hosted_models_are_translated() {
    check(vec![
        Row {
            name: "OpenAI: text, with figures in a last chunk without choices",
            lines: &[
                r#"{"id":"chatcmpl-B9","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_44","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}"#,
                r#"{"id":"chatcmpl-B9","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"Hel"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
                r#"{"id":"chatcmpl-B9","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"lo"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
                r#"{"id":"chatcmpl-B9","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}"#,
                r#"{"id":"chatcmpl-B9","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","choices":[],"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}"#,
                "[DONE]",
            ],
            reply: Reply {
                blocks: vec![Block::text("Hello")],
                stop: StopReason::EndTurn,
                tokens: (86, 1920, 300),
            },
        },
        Row {
            name: "OpenAI: two calls, one after the other",
            lines: &[
                r#"{"id":"chatcmpl-1","model":"gpt-4o","choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-1","model":"gpt-4o","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_A","type":"function","function":{"name":"Read","arguments":""}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-1","model":"gpt-4o","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-1","model":"gpt-4o","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" \"a\"}"}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-1","model":"gpt-4o","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_B","type":"function","function":{"name":"Now","arguments":""}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-1","model":"gpt-4o","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-1","model":"gpt-4o","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
                "[DONE]",
            ],
            reply: Reply {
                blocks: vec![call("call_A", "Read", json!({"path": "a"})), call("call_B", "Now", json!({}))],
                stop: StopReason::ToolUse,
                tokens: (0, 0, 0),
            },
        },
        Row {
            name: "Kimi: reasoning, text and a call; the figures are inside the choice",
            lines: &[
                r#"{"id":"chatcmpl-68","object":"chat.completion.chunk","created":1762,"model":"kimi-k2-thinking","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-68","object":"chat.completion.chunk","created":1762,"model":"kimi-k2-thinking","choices":[{"index":0,"delta":{"reasoning_content":"The user"},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-68","object":"chat.completion.chunk","created":1762,"model":"kimi-k2-thinking","choices":[{"index":0,"delta":{"reasoning_content":" wants a list."},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-68","object":"chat.completion.chunk","created":1762,"model":"kimi-k2-thinking","choices":[{"index":0,"delta":{"content":"I look."},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-68","object":"chat.completion.chunk","created":1762,"model":"kimi-k2-thinking","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"functions.Bash:0","type":"function","function":{"name":"Bash","arguments":""}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-68","object":"chat.completion.chunk","created":1762,"model":"kimi-k2-thinking","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"command\":\"ls\"}"}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-68","object":"chat.completion.chunk","created":1762,"model":"kimi-k2-thinking","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls","usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"cached_tokens":64}}],"system_fingerprint":"fpv0_1"}"#,
                "[DONE]",
            ],
            reply: Reply {
                blocks: vec![
                    thinking("The user wants a list."),
                    Block::text("I look."),
                    call("functions.Bash:0", "Bash", json!({"command": "ls"})),
                ],
                stop: StopReason::ToolUse,
                tokens: (36, 64, 20),
            },
        },
        Row {
            name: "DeepSeek: figures by its own name",
            lines: &[
                r#"{"id":"ds","model":"deepseek-reasoner","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"Hm."},"finish_reason":null}]}"#,
                r#"{"id":"ds","model":"deepseek-reasoner","choices":[{"index":0,"delta":{"content":"Yes","reasoning_content":null},"finish_reason":null}]}"#,
                r#"{"id":"ds","model":"deepseek-reasoner","choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":18,"completion_tokens":249,"prompt_cache_hit_tokens":10,"prompt_cache_miss_tokens":8}}"#,
                "[DONE]",
            ],
            reply: Reply {
                blocks: vec![thinking("Hm."), Block::text("Yes")],
                stop: StopReason::EndTurn,
                tokens: (8, 10, 249),
            },
        },
        Row {
            name: "Mistral: content in parts",
            lines: &[
                r#"{"id":"m1","model":"magistral","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]}]},"finish_reason":null}]}"#,
                r#"{"id":"m1","model":"magistral","choices":[{"index":0,"delta":{"content":[{"type":"text","text":"Yes."}]},"finish_reason":"stop"}]}"#,
                "[DONE]",
            ],
            reply: Reply {
                blocks: vec![thinking("Hm."), Block::text("Yes.")],
                stop: StopReason::EndTurn,
                tokens: (0, 0, 0),
            },
        },
    ]);
}

#[test]
fn streams_of_local_servers_are_translated() {
    check(vec![
        Row {
            name: "Ollama: a whole call in one chunk, its arguments an object, without index and id, and `stop` after it",
            lines: &[
                r#"{"id":"chatcmpl-20","object":"chat.completion.chunk","created":1721830177,"model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Look first."},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-20","object":"chat.completion.chunk","created":1721830177,"model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"Read","arguments":{"path":"a","n":1}}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-20","object":"chat.completion.chunk","created":1721830177,"model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}"#,
                r#"{"id":"chatcmpl-20","object":"chat.completion.chunk","created":1721830177,"model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[],"usage":{"prompt_tokens":180,"completion_tokens":21,"total_tokens":201}}"#,
                "[DONE]",
            ],
            reply: Reply {
                blocks: vec![
                    thinking("Look first."),
                    call("call_seed_1", "Read", json!({"path": "a", "n": 1})),
                ],
                stop: StopReason::ToolUse,
                tokens: (180, 0, 21),
            },
        },
        Row {
            name: "Ollama: every call has the number 0",
            lines: &[
                r#"{"id":"chatcmpl-7","model":"llama3.1","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_a","index":0,"type":"function","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-7","model":"llama3.1","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_b","index":0,"type":"function","function":{"name":"Read","arguments":"{\"path\":\"b\"}"}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-7","model":"llama3.1","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"index":0,"type":"function","function":{"name":"Now","arguments":"{}"}}]},"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-7","model":"llama3.1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"tool_calls"}]}"#,
                "[DONE]",
            ],
            reply: Reply {
                blocks: vec![
                    call("call_a", "Read", json!({"path": "a"})),
                    call("call_b", "Read", json!({"path": "b"})),
                    call("call_seed_2", "Now", json!({})),
                ],
                stop: StopReason::ToolUse,
                tokens: (0, 0, 0),
            },
        },
        Row {
            name: "vLLM: white space before the call, figures with every chunk",
            lines: &[
                r#"{"id":"chatcmpl-tool-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-32B","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":7,"total_tokens":7,"completion_tokens":0}}"#,
                r#"{"id":"chatcmpl-tool-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-32B","choices":[{"index":0,"delta":{"reasoning":"Hm","reasoning_content":"Hm"},"logprobs":null,"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-tool-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-32B","choices":[{"index":0,"delta":{"content":"\n\n"},"logprobs":null,"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-tool-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-32B","choices":[{"index":0,"delta":{"tool_calls":[{"id":"chatcmpl-tool-f0","type":"function","index":0,"function":{"name":"Bash"}}]},"logprobs":null,"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-tool-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-32B","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"command\": \"l"}}]},"logprobs":null,"finish_reason":null}]}"#,
                r#"{"id":"chatcmpl-tool-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-32B","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"s\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":7,"total_tokens":16,"completion_tokens":9}}"#,
                r#"{"id":"chatcmpl-tool-1","object":"chat.completion.chunk","created":1,"model":"Qwen/Qwen3-32B","choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"tool_calls","stop_reason":null}],"usage":{"prompt_tokens":7,"total_tokens":17,"completion_tokens":10}}"#,
                "[DONE]",
            ],
            reply: Reply {
                blocks: vec![thinking("Hm"), call("chatcmpl-tool-f0", "Bash", json!({"command": "ls"}))],
                stop: StopReason::ToolUse,
                tokens: (7, 0, 10),
            },
        },
        Row {
            name: "llama.cpp: reasoning, figures and timings in a last chunk, no closing mark",
            lines: &[
                r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1750,"id":"chatcmpl-xK","model":"gpt-oss-20b","system_fingerprint":"b5686","object":"chat.completion.chunk"}"#,
                r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":"Let me"}}],"created":1750,"id":"chatcmpl-xK","model":"gpt-oss-20b","object":"chat.completion.chunk"}"#,
                r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"9rXk","type":"function","function":{"name":"Bash","arguments":"{\""}}]}}],"created":1750,"id":"chatcmpl-xK","model":"gpt-oss-20b","object":"chat.completion.chunk"}"#,
                r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"command\":\"ls\"}"}}]}}],"created":1750,"id":"chatcmpl-xK","model":"gpt-oss-20b","object":"chat.completion.chunk"}"#,
                r#"{"choices":[{"finish_reason":"tool_calls","index":0,"delta":{}}],"created":1750,"id":"chatcmpl-xK","model":"gpt-oss-20b","object":"chat.completion.chunk"}"#,
                r#"{"choices":[],"created":1750,"id":"chatcmpl-xK","model":"gpt-oss-20b","object":"chat.completion.chunk","usage":{"completion_tokens":11,"prompt_tokens":50,"total_tokens":61},"timings":{"prompt_n":50,"predicted_n":11}}"#,
            ],
            reply: Reply {
                blocks: vec![thinking("Let me"), call("9rXk", "Bash", json!({"command": "ls"}))],
                stop: StopReason::ToolUse,
                tokens: (50, 0, 11),
            },
        },
    ]);
}

#[test]
fn loosely_identified_calls_are_separated() {
    let read = |path: &str| json!({ "path": path });
    let reply = |blocks| Reply { blocks, stop: StopReason::ToolUse, tokens: (0, 0, 0) };
    check(vec![
        Row {
            name: "fragments of two calls are mixed",
            lines: &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":""}},{"index":1,"id":"b","function":{"name":"Write","arguments":""}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"path\":"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"\"2\"}"}},{"index":0,"function":{"arguments":"\"1\"}"}}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            ],
            reply: reply(vec![call("a", "Read", read("1")), call("b", "Write", read("2"))]),
        },
        Row {
            name: "no index, distinguished by id",
            lines: &[
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"Read","arguments":"{\"path\""}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"arguments":":\"1\"}"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}]}}]}"#,
                "[DONE]",
            ],
            reply: reply(vec![call("a", "Read", read("1")), call("b", "Read", read("2"))]),
        },
        Row {
            name: "no index, no ids, two calls in one chunk",
            lines: &[
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"","function":{"name":"Now","arguments":""}},{"id":"","function":{"name":"Read","arguments":{"path":"1"}}}]}}]}"#,
                "[DONE]",
            ],
            reply: reply(vec![call("call_seed_0", "Now", json!({})), call("call_seed_1", "Read", read("1"))]),
        },
        Row {
            name: "no index, no ids, fragments one after the other",
            lines: &[
                r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"Read","arguments":"{\"path\":"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"\"1\"}"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}]}}]}"#,
                "[DONE]",
            ],
            reply: reply(vec![
                call("call_seed_0", "Read", read("1")),
                call("call_seed_1", "Read", read("2")),
            ]),
        },
        Row {
            name: "a name in pieces",
            lines: &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Re"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"","function":{"name":"ad","arguments":""}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":"{\"path\":\"1\"}"}}]}}]}"#,
                "[DONE]",
            ],
            reply: reply(vec![call("a", "Read", read("1"))]),
        },
    ]);
}

#[test]
fn unusual_call_forms_are_accepted() {
    let read = |path: &str| json!({ "path": path });
    let reply = |blocks| Reply { blocks, stop: StopReason::ToolUse, tokens: (0, 0, 0) };
    check(vec![
        Row {
            name: "id and name repeated with each fragment, and the whole call at the end",
            lines: &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":""}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"path\":"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"\"1\"}"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":""}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}]}}]}"#,
                "[DONE]",
            ],
            reply: reply(vec![call("a", "Read", read("1"))]),
        },
        Row {
            name: "two calls with one id",
            lines: &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}},{"index":1,"id":"a","function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}]}}]}"#,
                "[DONE]",
            ],
            reply: reply(vec![call("a", "Read", read("1")), call("call_seed_1", "Read", read("2"))]),
        },
        Row {
            name: "text between and after calls",
            lines: &[
                r#"{"choices":[{"delta":{"content":"first ","tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"path\":"}}]}}]}"#,
                r#"{"choices":[{"delta":{"content":"then"}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"1\"}"}}]}}]}"#,
                r#"{"choices":[{"delta":{"content":" \n"}}]}"#,
                "[DONE]",
            ],
            reply: reply(vec![Block::text("first "), call("a", "Read", read("1")), Block::text("then \n")]),
        },
        Row {
            name: "the old single call",
            lines: &[
                r#"{"choices":[{"delta":{"role":"assistant","content":null,"function_call":{"name":"Read","arguments":""}}}]}"#,
                r#"{"choices":[{"delta":{"function_call":{"arguments":"{\"path\":\"1\"}"}}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#,
                "[DONE]",
            ],
            reply: reply(vec![call("call_seed_0", "Read", read("1"))]),
        },
        Row {
            name: "a call without a name is kept, an empty one is dropped",
            lines: &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}},{"index":1,"id":"b","function":{}}]}}]}"#,
                "[DONE]",
            ],
            reply: reply(vec![call("a", "unnamed", json!({}))]),
        },
    ]);
}

#[test]
fn id_of_an_earlier_call_is_replaced() {
    let mut translator = ReplyTranslator::new("seed", "requested", ["call_0".to_owned()]);
    let line = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_0","function":{"name":"Now","arguments":"{}"}}]}}]}"#;
    let events = translator.push_data(line).unwrap();
    assert_eq!(events[1], ReplyEvent::BlockStart { index: 0, block: call("call_seed_0", "Now", json!({})) });
}

#[test]
fn missing_id_and_model_are_filled_in() {
    let events =
        ReplyTranslator::new("seed", "requested", []).push_data(r#"{"choices":[{"delta":{}}]}"#).unwrap();
    let expected = ReplyEvent::MessageStart {
        id: "chatcmpl-seed".into(),
        model: "requested".into(),
        usage: ReportedUsage::default(),
    };
    assert_eq!(events, [expected]);
}

#[test]
fn first_open_block_is_emitted_as_it_grows() {
    let mut translator = ReplyTranslator::new("seed", "requested", []);
    let delta = |index, piece: &str| ReplyEvent::BlockDelta {
        index,
        delta: BlockDelta::InputJson { partial_json: piece.into() },
    };
    let start = |index, id, name| ReplyEvent::BlockStart { index, block: call(id, name, json!({})) };
    let stop = |index| ReplyEvent::BlockStop { index };
    let end = |input_tokens, output_tokens| ReplyEvent::MessageDelta {
        stop_reason: Some(StopReason::ToolUse),
        stop_sequence: None,
        usage: match (input_tokens, output_tokens) {
            (0, 0) => ReportedUsage::default(),
            _ => Usage { input_tokens, output_tokens, ..Usage::default() }.into(),
        },
    };
    let steps = [
        (
            r#"{"id":"r","model":"m","choices":[{"delta":{"role":"assistant","content":"hi"}}]}"#,
            vec![
                ReplyEvent::MessageStart {
                    id: "r".into(),
                    model: "m".into(),
                    usage: ReportedUsage::default(),
                },
                ReplyEvent::BlockStart { index: 0, block: Block::text("") },
                ReplyEvent::BlockDelta { index: 0, delta: BlockDelta::Text { text: "hi".into() } },
            ],
        ),
        (
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read"}}]}}]}"#,
            vec![stop(0)],
        ),
        (
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":{}"}}]}}]}"#,
            vec![start(1, "a", "Read"), delta(1, "{\"p\":{}")],
        ),
        (
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"Now","arguments":"{"}}]}}]}"#,
            vec![],
        ),
        (
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}"#,
            vec![delta(1, "}"), stop(1), start(2, "b", "Now"), delta(2, "{")],
        ),
        (
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}}]}"#,
            vec![delta(2, "}")],
        ),
        (r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#, vec![stop(2), end(0, 0)]),
        (r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}"#, vec![end(5, 6)]),
        ("[DONE]", vec![ReplyEvent::MessageStop]),
        ("[DONE]", vec![]),
    ];
    for (line, events) in steps {
        assert_eq!(translator.push_data(line).unwrap(), events, "{line}");
    }
    assert_eq!(translator.finish(), []);
}

#[test]
fn stop_reason_matches_the_content() {
    let other = || StopReason::Other("abort".into());
    for (finish, called, refused, expected) in [
        (Some("stop"), false, false, StopReason::EndTurn),
        (Some("stop"), true, false, StopReason::ToolUse),
        (Some("stop"), false, true, StopReason::Refusal),
        (Some("tool_calls"), true, false, StopReason::ToolUse),
        (Some("tool_calls"), false, false, StopReason::EndTurn),
        (Some("function_call"), true, false, StopReason::ToolUse),
        (Some("length"), false, false, StopReason::MaxTokens),
        (Some("length"), true, false, StopReason::MaxTokens),
        (Some("content_filter"), false, false, StopReason::Refusal),
        (Some("abort"), false, false, other()),
        (None, true, false, StopReason::ToolUse),
        (None, false, false, StopReason::EndTurn),
    ] {
        assert_eq!(stop_reason(finish, called, refused), expected, "{finish:?} {called} {refused}");
    }
}

#[test]
fn refusal_is_text_with_its_stop_reason() {
    check(vec![Row {
        name: "OpenAI",
        lines: &[
            r#"{"choices":[{"delta":{"role":"assistant","content":null,"refusal":"I can't"}}]}"#,
            r#"{"choices":[{"delta":{"refusal":" help."}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            "[DONE]",
        ],
        reply: Reply {
            blocks: vec![Block::text("I can't help.")],
            stop: StopReason::Refusal,
            tokens: (0, 0, 0),
        },
    }]);
}

#[test]
fn call_truncated_by_the_output_limit_is_invalid() {
    let events = translate(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Write","arguments":"{\"text\":\"lo"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
        "[DONE]",
    ])
    .unwrap();
    let mut assembler = ReplyAssembler::default();
    let finished: Vec<_> = events.iter().filter_map(|event| assembler.push_event(event).unwrap()).collect();
    assert!(finished[0].bad_input.is_some());
    assert_eq!(assembler.stop_reason, Some(StopReason::MaxTokens));
}

#[test]
fn broken_streams_are_errors() {
    let text = r#"{"id":"r","model":"m","choices":[{"delta":{"content":"hi"},"finish_reason":null}]}"#;
    for (name, lines, kind, message) in [
        ("not JSON", vec![text, "<html>"], ModelErrorKind::Protocol, "<html>"),
        (
            "OpenAI: an error object",
            vec![
                text,
                r#"{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}"#,
            ],
            ModelErrorKind::Server,
            "The server had an error",
        ),
        (
            "OpenRouter: an error beside a choice",
            vec![
                text,
                r#"{"id":"r","error":{"code":429,"message":"Rate limit exceeded"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
            ],
            ModelErrorKind::RateLimit,
            "Rate limit exceeded",
        ),
        (
            "vLLM: an error that is not wrapped",
            vec![
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            ],
            ModelErrorKind::PromptTooLong,
            "maximum context length",
        ),
        (
            "llama.cpp: the context is full",
            vec![
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}"#,
            ],
            ModelErrorKind::PromptTooLong,
            "available context size",
        ),
        (
            "Ollama: an error that is only a string",
            vec![r#"{"error":"llama runner terminated"}"#],
            ModelErrorKind::Server,
            "llama runner",
        ),
        (
            "DeepSeek: aborted",
            vec![text, r#"{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}"#],
            ModelErrorKind::Overloaded,
            "overloaded",
        ),
        (
            "aborted",
            vec![text, r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#],
            ModelErrorKind::Server,
            "aborted",
        ),
    ] {
        let error = translate(&lines).expect_err(name);
        assert_eq!(error.kind, kind, "{name}: {error}");
        assert!(error.message.contains(message), "{name}: {error}");
    }
}

#[test]
fn reply_ends_with_the_marker_or_a_finish_reason() {
    let text = r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":null}]}"#;
    let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":3}}"#;
    for (name, lines, complete) in [
        ("nothing at all", vec![], false),
        ("only the closing mark", vec!["[DONE]"], false),
        ("figures only", vec![usage], false),
        ("figures and the closing mark", vec![usage, "[DONE]"], false),
        ("neither", vec![text], false),
        ("the closing mark", vec![text, "", "[DONE]"], true),
        ("a reason to stop", vec![text, stop], true),
        ("both", vec![text, stop, "[DONE]", "[DONE]", text], true),
    ] {
        let ends =
            translate(&lines).unwrap().iter().filter(|event| **event == ReplyEvent::MessageStop).count();
        assert_eq!(ends, usize::from(complete), "{name}");
    }
}

#[test]
fn content_after_the_finish_reason_counts() {
    check(vec![
        Row {
            name: "a call after `stop`",
            lines: &[
                r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":null}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
                r#"{"choices":[{"delta":{"content":"!"},"finish_reason":null}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Now","arguments":"{}"}}]}}]}"#,
                "[DONE]",
            ],
            reply: Reply {
                blocks: vec![Block::text("hi"), Block::text("!"), call("a", "Now", json!({}))],
                stop: StopReason::ToolUse,
                tokens: (0, 0, 0),
            },
        },
        Row {
            name: "`stop` with every piece",
            lines: &[
                r#"{"choices":[{"delta":{"content":"h"},"finish_reason":"stop"}]}"#,
                r#"{"choices":[{"delta":{"content":"i"},"finish_reason":"stop"}]}"#,
            ],
            reply: Reply { blocks: vec![Block::text("hi")], stop: StopReason::EndTurn, tokens: (0, 0, 0) },
        },
    ]);
}

#[test]
fn whole_reply_becomes_the_same_events() {
    let mut translator = ReplyTranslator::new("seed", "requested", []);
    let events = translator
        .translate_whole(
            r#"{"id":"chatcmpl-1","object":"chat.completion","model":"qwen","choices":[{"index":0,"message":{
                "role":"assistant","reasoning_content":"Hm.","content":"Both.","refusal":null,"tool_calls":[
                {"id":"a","type":"function","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}},
                {"id":"a","type":"function","function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}]},
                "logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":19,"completion_tokens":10}}"#,
        )
        .unwrap();
    assert_eq!(
        assemble(&events),
        Reply {
            blocks: vec![
                thinking("Hm."),
                Block::text("Both."),
                call("a", "Read", json!({"path": "1"})),
                call("call_seed_3", "Read", json!({"path": "2"})),
            ],
            stop: StopReason::ToolUse,
            tokens: (19, 0, 10),
        }
    );
    for (body, kind) in [
        ("<html>", ModelErrorKind::Protocol),
        ("{}", ModelErrorKind::NotAStream),
        (r#"{"error":{"message":"no","code":"model_not_found"}}"#, ModelErrorKind::ModelNotFound),
    ] {
        assert_eq!(
            ReplyTranslator::new("seed", "requested", []).translate_whole(body).unwrap_err().kind,
            kind,
            "{body}"
        );
    }
}

#[test]
fn invalid_usage_is_never_an_error() {
    for (usage, expected) in [
        ("null", (0, 0, 0)),
        ("{}", (0, 0, 0)),
        (r#"{"prompt_tokens":-4,"completion_tokens":2.7}"#, (0, 0, 2)),
        (r#"{"prompt_tokens":"many","completion_tokens":null}"#, (0, 0, 0)),
        (r#"{"prompt_tokens":5,"prompt_tokens_details":null,"completion_tokens":1}"#, (5, 0, 1)),
        (
            r#"{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":9},"completion_tokens":1}"#,
            (0, 9, 1),
        ),
    ] {
        let line = format!(
            r#"{{"choices":[{{"delta":{{"content":"x"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        assert_eq!(assemble(&translate(&[&line]).unwrap()).tokens, expected, "{usage}");
    }
}

/// Generates arbitrary JSON for the delta of a chunk.
fn any_delta() -> impl Strategy<Value = Value> {
    let text = prop_oneof![Just(""), Just(" \n"), Just("a"), Just("ü b")];
    let arguments = prop_oneof![
        Just(json!("")),
        Just(json!("{}")),
        Just(json!("{\"a\":")),
        Just(json!("1}")),
        Just(json!({"a": 1})),
        Just(Value::Null),
    ];
    let call = (0..3u64, 0..3usize, 0..3usize, arguments).prop_map(|(index, id, name, arguments)| {
        let index = if index == 2 { Value::Null } else { json!(index) };
        json!({
            "index": index,
            "id": (["x", "y", ""][id]),
            "function": {"name": (["Read", "Re", ""][name]), "arguments": arguments},
        })
    });
    prop_oneof![
        text.clone().prop_map(|text| json!({"content": text})),
        text.prop_map(|text| json!({"reasoning": text})),
        proptest::collection::vec(call, 0..3).prop_map(|calls| json!({"tool_calls": calls})),
    ]
}

proptest! {
    #[test]
    fn events_are_ordered_and_call_ids_unique_for_any_input(
        deltas in proptest::collection::vec((any_delta(), 0..8usize), 1..12),
    ) {
        let mut translator = ReplyTranslator::new("seed", "requested", []);
        let mut events = Vec::new();
        for (delta, finish) in deltas {
            let finish = if finish == 0 { json!("stop") } else { Value::Null };
            let line = json!({"choices": [{"delta": delta, "finish_reason": finish}]});
            events.extend(translator.push_data(&line.to_string()).unwrap());
        }
        events.extend(translator.push_data("[DONE]").unwrap());
        let mut assembler = ReplyAssembler::default();
        let mut ids = HashSet::new();
        for event in &events {
            if let Some(finished) = assembler.push_event(event).unwrap()
                && let Block::ToolUse { id, name, .. } = finished.block
            {
                prop_assert!(!name.is_empty());
                prop_assert!(ids.insert(id.clone()), "{} twice", id);
            }
        }
        prop_assert!(assembler.complete);
        let expected = if ids.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        prop_assert_eq!(assembler.stop_reason, Some(expected));
    }
}
