//! Structured output: answers that match the host's JSON schema.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, Reply, Script};
use whimbrel_wire::message::{Outcome, TerminalReason, TurnResult};
use whimbrel_wire::options::{Options, OutputFormat, ToolSet};

const TOOL: &str = "StructuredOutput";

fn options(schema: Value) -> Options {
    Options { output_format: Some(OutputFormat::JsonSchema { schema }), ..Options::default() }
}

fn number_schema() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
}

fn host(script: impl Into<Script>) -> HostBuilder {
    Host::with_script(script).options(options(number_schema())).env("MAX_STRUCTURED_OUTPUT_RETRIES", "2")
}

fn output_call(n: impl Into<Value>) -> Reply {
    Reply::tool(TOOL, json!({"n": n.into()}))
}

fn outcome(result: &TurnResult) -> (Outcome, bool, Option<Value>) {
    (result.subtype.clone(), result.is_error, result.structured_output.clone())
}

#[tokio::test]
async fn structured_output_ends_the_turn_and_is_the_result() {
    let rows = [
        ("at once", vec![output_call(5)], 1),
        ("after text", vec![Reply::text("Five."), output_call(5)], 2),
        ("after an invalid call", vec![output_call("five"), output_call(5)], 2),
        (
            "after invalid JSON",
            vec![Reply::tool(TOOL, json!({})).raw_tool_input("{\"n\": "), output_call(5)],
            2,
        ),
        (
            "after text and an invalid call",
            vec![Reply::text("Five."), output_call("five"), output_call(5)],
            3,
        ),
        ("with text in the same reply", vec![output_call(5).and_text("Five.")], 1),
    ];
    for (name, script, requests) in rows {
        let mut host = host(script).start().await.unwrap();
        let result = host.run("Count.").await.unwrap();
        assert_eq!(outcome(&result), (Outcome::Success, false, Some(json!({"n": 5}))), "{name}");
        assert_eq!(result.result.as_deref(), Some(r#"{"n":5}"#), "{name}");
        assert_eq!(host.model_requests().len(), requests, "{name}");
    }
}

#[tokio::test]
async fn model_gets_validation_errors_and_reminders() {
    let script = [Reply::text("Five."), output_call("five"), output_call(5)];
    let mut host = host(script).start().await.unwrap();
    host.run("Count.").await.unwrap();
    let requests = host.model_requests();
    let tool =
        requests[0].body["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == TOOL).unwrap();
    assert_eq!(tool["input_schema"], number_schema());
    assert!(requests[1].last_text().contains("a text answer is not accepted"), "{}", requests[1].last_text());
    assert!(requests[2].last_text().contains("/n: value is not of type"), "{}", requests[2].last_text());
    let init = host.init_frame().unwrap();
    assert!(init["tools"].as_array().unwrap().contains(&json!(TOOL)));
}

#[tokio::test]
async fn missing_structured_output_fails_only_the_turn() {
    let rows = [
        ("invalid calls only", vec![output_call("a"), output_call("b")], 2),
        ("text only", vec![Reply::text("a"), Reply::text("b"), Reply::text("c")], 3),
    ];
    for (name, mut script, requests) in rows {
        script.push(output_call(1));
        let mut host = host(script).start().await.unwrap();
        let result = host.run("Count.").await.unwrap();
        assert_eq!(outcome(&result), (Outcome::ErrorMaxStructuredOutputRetries, true, None), "{name}");
        assert_eq!(result.terminal_reason, Some(TerminalReason::StructuredOutputRetryExhausted), "{name}");
        assert_eq!((result.result.as_deref(), result.errors.unwrap().len()), (None, 1), "{name}");
        assert_eq!(host.model_requests().len(), requests, "{name}");
        let next = host.run("Again.").await.unwrap();
        assert_eq!(outcome(&next), (Outcome::Success, false, Some(json!({"n": 1}))), "{name}");
    }
}

#[tokio::test]
async fn structured_output_is_required_in_every_turn() {
    let script = [output_call(1), Reply::text("Two."), output_call(2)];
    let mut host = host(script).start().await.unwrap();
    assert_eq!(host.run("One?").await.unwrap().structured_output, Some(json!({"n": 1})));
    assert_eq!(host.run("Two?").await.unwrap().structured_output, Some(json!({"n": 2})));
}

#[tokio::test]
async fn other_tool_calls_still_run_and_subagents_are_exempt() {
    let agent_input =
        json!({"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"});
    let both = Reply::tool("Read", json!({"file_path": "note.txt"})).and_tool(TOOL, json!({"n": 7}));
    let script = [Reply::tool("Agent", agent_input), Reply::text("Nothing there."), both];
    let limited = Options {
        tools: Some(ToolSet::List(vec!["Read".into(), "Agent".into()])),
        ..options(number_schema())
    };
    let mut host =
        Host::with_script(script).options(limited).file("note.txt", "hello").start().await.unwrap();
    assert_eq!(host.run("Count.").await.unwrap().structured_output, Some(json!({"n": 7})));
    let offered: Vec<bool> =
        host.model_requests().iter().map(|request| request.tool_names().contains(&TOOL)).collect();
    assert_eq!(offered, [true, false, true]);
    let read = host.received().iter().any(|received| received.json.to_string().contains("hello"));
    assert!(read, "the other call still runs");
}

#[tokio::test]
async fn unusable_schema_fails_initialize() {
    let rows = [
        (json!({"type": "object", "properties": {"n": {"type": "intger"}}}), "intger"),
        (json!({"type": "object", "properties": {"n": {"$ref": "http://127.0.0.1:9/n"}}}), "not fetched"),
        (json!({"type": "array"}), "must be an object"),
    ];
    for (schema, reason) in rows {
        let text = match Host::with_script([Reply::text("Hm.")]).options(options(schema)).start().await {
            Ok(_) => panic!("{reason}: the session started"),
            Err(error) => format!("{error:#}"),
        };
        assert!(text.contains("JSON Schema of the output") && text.contains(reason), "{text}");
    }
}
