//! Tests of what frames change.

use serde_json::{Value, json};
use whimbrel::Frame;

use super::*;

fn handle(conversation: &mut Conversation, frames: &[Value]) -> Vec<Change> {
    let now = Instant::now();
    let decode = |frame: &Value| -> Frame { whimbrel::wire::decode(&frame.to_string()).unwrap() };
    frames.iter().flat_map(|frame| conversation.handle_frame(&decode(frame), now)).collect()
}

fn delta(text: &str) -> Value {
    json!({"type": "stream_event", "parent_tool_use_id": null, "event":
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}})
}

fn reply(parent: impl Into<Value>, content: impl Into<Value>) -> Value {
    let (parent, content) = (parent.into(), content.into());
    json!({"type": "assistant", "parent_tool_use_id": parent, "message": {"model": "m", "content": [content]}})
}

fn call(id: &str, name: &str, input: impl Into<Value>) -> Value {
    let input = input.into();
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn tool_result(parent: impl Into<Value>, id: &str, text: &str) -> Value {
    let parent = parent.into();
    json!({"type": "user", "parent_tool_use_id": parent, "session_id": "s", "message": {"role": "user", "content":
        [{"type": "tool_result", "tool_use_id": id, "content": text}]}})
}

#[test]
fn streamed_text_is_shown_once() {
    let mut conversation = Conversation::default();
    let text = json!({"type": "text", "text": "Hello."});
    let changes = handle(&mut conversation, &[delta("Hel"), delta("lo."), reply(Value::Null, text.clone())]);
    assert_eq!(changes, [Change::Text("Hel".into()), Change::Text("lo.".into()), Change::TextEnd]);
    let changes = handle(&mut conversation, &[reply(Value::Null, text)]);
    assert_eq!(changes, [Change::Show(Item::Answer("Hello.".into()))]);
    assert_eq!(conversation.transcript.items().len(), 2);
}

#[test]
fn call_is_shown_with_its_result_and_live_output_before() {
    let mut conversation = Conversation::default();
    let output = json!({"type": "tool_output", "tool_use_id": "t", "parent_tool_use_id": null,
        "text": "1\n2\n3\n4\n5\n6\n50 %\r60 %", "omitted_bytes": 0});
    let bash = reply(Value::Null, call("t", "Bash", json!({"command": "ls"})));
    assert_eq!(handle(&mut conversation, &[bash, output]), []);
    assert_eq!(conversation.calls[0].live_lines(), ["3", "4", "5", "6", "60 %"]);
    let changes = handle(&mut conversation, &[tool_result(Value::Null, "t", "done")]);
    let [Change::Show(Item::Call(finished))] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((finished.name.as_str(), finished.text.as_str()), ("Bash", "done"));
    assert!(conversation.calls.is_empty());
}

#[test]
fn subagent_has_a_transcript_of_its_own() {
    let mut conversation = Conversation::default();
    let input = json!({"subagent_type": "Explore", "description": "look around", "prompt": "p"});
    let inner = call("r", "Read", json!({"file_path": "a"}));
    let changes = handle(
        &mut conversation,
        &[
            reply(Value::Null, call("a", "Agent", input)),
            reply("a", inner),
            tool_result("a", "r", "text"),
            reply("a", json!({"type": "text", "text": "found"})),
        ],
    );
    assert_eq!(changes, []);
    let agent = conversation.running_agents().next().unwrap();
    assert_eq!((agent.definition.as_str(), agent.call_count), ("Explore", 1));
    assert_eq!(agent.transcript.items().len(), 2);
    handle(&mut conversation, &[tool_result(Value::Null, "a", "report")]);
    assert_eq!(conversation.running_agents().count(), 0);
}

#[test]
fn tasks_follow_the_tools() {
    let mut conversation = Conversation::default();
    let todo =
        |content: &str, status: &str| json!({"content": content, "status": status, "activeForm": "doing"});
    let todos =
        json!({"todos": [todo("one", "completed"), todo("two", "in_progress"), todo("three", "pending")]});
    let changes = handle(
        &mut conversation,
        &[reply(Value::Null, call("t", "TodoWrite", todos)), tool_result(Value::Null, "t", "ok")],
    );
    assert_eq!(changes, [], "the list has a place of its own");
    let shown: Vec<&str> = conversation.todos.iter().map(|todo| todo.text.as_str()).collect();
    assert_eq!(shown, ["one", "doing", "three"]);
    assert!(conversation.has_open_todos());
}

#[test]
fn interrupted_turn_ends_its_calls() {
    let mut conversation = Conversation::default();
    handle(
        &mut conversation,
        &[delta("Hi"), reply(Value::Null, call("t", "Bash", json!({"command": "sleep 9"})))],
    );
    conversation.request_interrupt();
    let result = json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "duration_ms": 1,
        "duration_api_ms": 1, "num_turns": 1, "total_cost_usd": 0.5, "errors": ["x"]});
    let changes = handle(&mut conversation, &[result]);
    assert!(!conversation.is_running() && conversation.calls.is_empty());
    let [Change::Show(Item::Call(_)), Change::Show(Item::Note(_, text)), Change::TurnEnded(end)] =
        &changes[..]
    else {
        panic!("{changes:?}")
    };
    assert_eq!((text.as_str(), end.is_interrupted, end.cost_usd), ("interrupted", true, 0.5));
}

#[test]
fn local_command_is_shown_once() {
    let mut conversation = Conversation::default();
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1,
        "duration_api_ms": 0, "num_turns": 0, "result": "the page", "local_command": "help"});
    let changes = handle(&mut conversation, &[result]);
    assert_eq!(changes[0], Change::Show(Item::Page("the page".into())));
}

#[test]
fn only_agents_in_the_background_are_reported_as_tasks() {
    let agent = |background: bool| {
        let input = json!({"description": "look", "subagent_type": "explore"});
        let started = json!({"type": "system", "subtype": "task_started", "task_id": "a", "tool_use_id": "t",
            "description": "look", "task_type": "local_agent", "session_id": "s", "uuid": "1",
            "is_backgrounded": background});
        vec![reply(Value::Null, call("t", "Agent", input)), started]
    };
    let ended = json!({"type": "system", "subtype": "task_notification", "task_id": "a", "tool_use_id": "t",
        "status": "completed", "output_file": "", "summary": "done", "session_id": "s", "uuid": "2"});
    let updated = json!({"type": "system", "subtype": "task_updated", "task_id": "a", "session_id": "s",
        "uuid": "3", "patch": {"is_backgrounded": true}});
    for (background, updates, expected) in [(false, None, 0), (true, None, 1), (false, Some(updated), 1)] {
        let mut conversation = Conversation::default();
        handle(&mut conversation, &agent(background));
        handle(&mut conversation, updates.as_slice());
        let changes = handle(&mut conversation, std::slice::from_ref(&ended));
        let notes = changes.iter().filter(|change| matches!(change, Change::Show(Item::Note(..))));
        assert_eq!(notes.count(), expected, "{background} {changes:?}");
    }
}
