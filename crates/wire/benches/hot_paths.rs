//! Codec benchmark over the most frequent lines. `cargo xtask bench --instructions` counts the instructions per case.

use std::hint::black_box;

use whimbrel_wire::{Frame, decode, encode};

/// A prompt as the official SDK sends it.
const USER: &str = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"Please look at the file and tell me why the build fails."}]},"parent_tool_use_id":null,"session_id":""}"#;

/// A tool call as the engine reports it to the host.
const ASSISTANT: &str = r#"{"type":"assistant","message":{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_01A09q90qw90lq917835lq9","name":"Bash","input":{"command":"cargo build 2>&1 | tail -5","description":"Build the project"}}],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":120,"cache_read_input_tokens":4000,"output_tokens":1}},"parent_tool_use_id":null,"uuid":"7f1e5f1c-6f0a-4f35-a5f8-0a8f4fb6c1c2","session_id":"3b0c0b56-8f0c-4a5c-9d53-5a4f3f0f7f11"}"#;

/// A streamed text delta.
const DELTA: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word 1234 "}},"parent_tool_use_id":null,"uuid":"7f1e5f1c-6f0a-4f35-a5f8-0a8f4fb6c1c2","session_id":"3b0c0b56-8f0c-4a5c-9d53-5a4f3f0f7f11"}"#;

/// The host's answer that allows a tool call.
const ALLOW: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"req_1_abcd","response":{"behavior":"allow","updatedInput":{"command":"cargo build 2>&1 | tail -5","description":"Build the project"}}}}"#;

/// Name of a case, and the function that repeats it.
type Case = (&'static str, fn(u64));

const CASES: [Case; 6] = [
    ("read a user line", |times| run_decode(USER, times)),
    ("read a control_response line", |times| run_decode(ALLOW, times)),
    ("read an assistant line", |times| run_decode(ASSISTANT, times)),
    ("write a user line", |times| run_encode(USER, times)),
    ("write an assistant line", |times| run_encode(ASSISTANT, times)),
    ("write a stream_event line", |times| run_encode(DELTA, times)),
];

fn run_decode(line: &str, times: u64) {
    for _ in 0..times {
        drop(black_box(decode(black_box(line))));
    }
}

fn run_encode(line: &str, times: u64) {
    let frame = decode(line)
        .unwrap_or_else(|error| Frame::from(whimbrel_wire::message::User::prompt(error.to_string())));
    let mut out = Vec::new();
    for _ in 0..times {
        out.clear();
        encode(black_box(&frame), &mut out);
        black_box(&out);
    }
}

/// `--list` prints the case names, `NAME TIMES` repeats one case; anything else runs every case once.
#[expect(clippy::print_stdout, reason = "the list of cases is what was asked for")]
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
