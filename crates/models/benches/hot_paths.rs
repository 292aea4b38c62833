//! Hot paths: a delta from the model's bytes to the host's line, and a request from the history to its bytes.
//! `cargo xtask bench --instructions` counts the instructions of each case.

use std::hint::black_box;
use std::sync::Arc;

use whimbrel_models::anthropic::body;
use whimbrel_models::anthropic::decode::decode_event;
use whimbrel_models::assemble::ReplyAssembler;
use whimbrel_models::sse::SseDecoder;
use whimbrel_models::{History, RawEvents, Request, RequestPrefix, ToolSpec};
use whimbrel_wire::message::StreamEvent;
use whimbrel_wire::{Block, Frame, RawJson, Role, encode};

/// Number of deltas per chunk for a fast model.
const DELTAS_PER_CHUNK: usize = 50;

const START: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;

/// Name of a case, and a function that repeats it.
type Case = (&'static str, fn(u64));

const CASES: [Case; 8] = [
    ("delta: bytes to events", |times| run_deltas(times, |decoder, _| next_event(decoder))),
    ("delta: bytes to decoded events", |times| {
        run_deltas(times, |decoder, _| decode(decoder, RawEvents::Drop));
    }),
    ("delta: bytes to decoded events, raw kept", |times| {
        run_deltas(times, |decoder, _| decode(decoder, RawEvents::Keep));
    }),
    ("delta: bytes to the host's line", |times| run_deltas(times, encode_frame)),
    ("request of 10 messages", |times| run_requests(10, times)),
    ("request of 100 messages", |times| run_requests(100, times)),
    ("request of 5000 messages", |times| run_requests(5000, times)),
    ("add a tool result of 400 bytes", run_pushes),
];

/// Feeds the decoder with deltas in chunks and runs a step for each.
fn run_deltas(times: u64, mut step: impl FnMut(&mut SseDecoder, &mut ReplyAssembler)) {
    let mut assembler = ReplyAssembler::default();
    if let Ok(start) = decode_event("content_block_start", START, RawEvents::Drop) {
        let _ = assembler.push_event(&start.event);
    }
    let event = |number: usize| {
        let data = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"word {number} "}}}}"#
        );
        format!("event: content_block_delta\ndata: {data}\n\n")
    };
    let events: Vec<String> = (0..DELTAS_PER_CHUNK).map(event).collect();
    let mut decoder = SseDecoder::new();
    let mut remaining = times as usize;
    while remaining > 0 {
        let count = remaining.min(DELTAS_PER_CHUNK);
        decoder.push(black_box(&events[..count].concat()).as_bytes());
        for _ in 0..count {
            step(&mut decoder, &mut assembler);
        }
        remaining -= count;
    }
    black_box(assembler.open_text());
}

fn next_event(decoder: &mut SseDecoder) {
    drop(black_box(decoder.next_event()));
}

fn decode(decoder: &mut SseDecoder, raw: RawEvents) {
    if let Ok(Some(event)) = decoder.next_event() {
        drop(black_box(decode_event(&event.name, &event.data, raw)));
    }
}

/// Everything that happens to a delta within a process, except for the channels between tasks.
fn encode_frame(decoder: &mut SseDecoder, assembler: &mut ReplyAssembler) {
    let Ok(Some(event)) = decoder.next_event() else { return };
    let Ok(item) = decode_event(&event.name, &event.data, RawEvents::Keep) else { return };
    let _ = assembler.push_event(&item.event);
    let Some(event) = item.raw else { return };
    let (session_id, uuid) = (
        "3b0c0b56-8f0c-4a5c-9d53-5a4f3f0f7f11".to_owned(),
        "7f1e5f1c-6f0a-4f35-a5f8-0a8f4fb6c1c2".to_owned(),
    );
    let frame = Frame::from(StreamEvent { event, parent_tool_use_id: None, session_id, uuid, ttft_ms: None });
    let mut line = Vec::with_capacity(512);
    encode(&frame, &mut line);
    black_box(line);
}

/// Renders requests for a tool loop with this number of messages.
fn run_requests(messages: usize, times: u64) {
    let mut history = tool_loop(messages);
    let schema = r#"{"type":"object","properties":{"command":{"type":"string","description":"What to run"}},"required":["command"]}"#;
    let tool = |number: usize| {
        let input_schema = RawJson::parse(schema).ok()?;
        Some(Arc::new(ToolSpec {
            name: format!("Tool{number}"),
            description: "What it does. ".repeat(40),
            input_schema,
        }))
    };
    let prefix =
        Arc::new(RequestPrefix::new(vec!["How to work. ".repeat(300)], (0..10).filter_map(tool).collect()));
    let overrides = body::BodyOverrides::default();
    for _ in 0..times {
        let request = Request::new("claude-sonnet-4-5", Arc::clone(&prefix), history.snapshot());
        black_box(body::render(black_box(&request), &[], &overrides));
    }
}

fn run_pushes(times: u64) {
    let mut history = tool_loop(9);
    let result = result(0);
    for _ in 0..times {
        history.push(Role::User, black_box(&result));
    }
    black_box(history.size());
}

fn tool_loop(messages: usize) -> History {
    let mut history = History::new();
    for number in 0..messages {
        match number % 2 {
            0 => history.push(Role::User, &result(number)),
            _ => history.push(Role::Assistant, &Block::text(format!("Step {number} is next."))),
        }
    }
    history
}

fn result(number: usize) -> Block {
    let content = Some(format!("{number}: {}", "some output to keep\n".repeat(20)).into());
    Block::ToolResult { tool_use_id: format!("toolu_{number:08}"), content, is_error: Some(false) }
}

/// `--list` prints the names of the cases, `NAME TIMES` repeats one case; otherwise each case runs once.
#[expect(clippy::print_stdout, reason = "the list of cases is the output")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list"] => CASES.iter().for_each(|(name, _)| println!("{name}")),
        [case, times] if !case.starts_with('-') => {
            let times = times.parse().unwrap_or_default();
            CASES.iter().filter(|(name, _)| *name == case).for_each(|(_, run)| run(times));
        }
        _ => CASES.iter().for_each(|(_, run)| run(1)),
    }
}
