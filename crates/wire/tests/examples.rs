//! Realistic lines, one per type and SDK generation, that must decode and round-trip. They lie in `examples/`, so that
//! other languages can use them, too.

use std::collections::BTreeSet;

use serde_json::Value;
use whimbrel_wire::control::Request;
use whimbrel_wire::hook::{HookEvent, HookInput, HookOutput, HookSpecific};
use whimbrel_wire::system::SystemEvent;
use whimbrel_wire::{Frame, decode, encode};

const FRAMES: [&str; 3] = [
    include_str!("examples/messages.jsonl"),
    include_str!("examples/system.jsonl"),
    include_str!("examples/control.jsonl"),
];
const HOOK_INPUTS: &str = include_str!("examples/hook_inputs.jsonl");
const HOOK_OUTPUTS: &str = include_str!("examples/hook_outputs.jsonl");

fn frames() -> impl Iterator<Item = (&'static str, Frame)> {
    let lines = FRAMES.into_iter().flat_map(str::lines);
    lines.map(|line| (line, decode(line).unwrap_or_else(|error| panic!("{error}"))))
}

/// Drops null fields: null means the same as absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(present.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        value => value,
    }
}

fn normalize(json: &str) -> Value {
    without_nulls(serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}")))
}

#[test]
fn every_line_round_trips() {
    for (line, frame) in frames() {
        let mut out = Vec::new();
        encode(&frame, &mut out);
        assert_eq!(normalize(std::str::from_utf8(&out).unwrap()), normalize(line));
    }
}

#[test]
fn every_line_is_of_a_known_type() {
    for (line, frame) in frames() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(frame.kind(), value["type"]);
        match frame {
            Frame::System(system) => assert_eq!(system.event.subtype(), value["subtype"]),
            Frame::ControlRequest(control) => {
                assert!(control.request.direction().is_some(), "{:?}", control.request);
                assert_eq!(control.request.subtype(), value["request"]["subtype"]);
            }
            _ => {}
        }
    }
}

#[test]
fn every_type_has_an_example() {
    let (mut kinds, mut notices, mut requests) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (_, frame) in frames() {
        kinds.insert(frame.kind().to_owned());
        match frame {
            Frame::System(system) => drop(notices.insert(system.event.subtype().to_owned())),
            Frame::ControlRequest(control) => drop(requests.insert(control.request.subtype().to_owned())),
            _ => {}
        }
    }
    let missing = |all: &[&str], seen: &BTreeSet<String>| -> Vec<String> {
        all.iter().filter(|name| !seen.contains(**name)).map(ToString::to_string).collect()
    };
    assert_eq!(missing(Frame::KINDS, &kinds), [""; 0]);
    assert_eq!(missing(SystemEvent::SUBTYPES, &notices), [""; 0]);
    assert_eq!(missing(Request::SUBTYPES, &requests), [""; 0]);
}

#[test]
fn every_hook_input_round_trips() {
    let mut seen = BTreeSet::new();
    for line in HOOK_INPUTS.lines() {
        let input: HookInput = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        seen.insert(input.event.event().unwrap_or_else(|| panic!("not understood: {line}")));
        assert_eq!(without_nulls(serde_json::to_value(&input).unwrap()), normalize(line));
    }
    assert_eq!(seen, HookEvent::ALL.iter().copied().collect());
}

#[test]
fn every_hook_output_round_trips() {
    for line in HOOK_OUTPUTS.lines() {
        let output: HookOutput = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(serde_json::to_value(&output).unwrap(), normalize(line));
        match output {
            HookOutput::Async(_) => assert!(line.contains("async")),
            HookOutput::Sync(output) => {
                assert!(!matches!(output.specific, Some(HookSpecific::Other(_))), "{line}");
            }
        }
    }
}
