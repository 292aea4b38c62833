//! What people show of a turn: text and typed events.
#![cfg(feature = "in-process")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use whimbrel::model::{ClosureModel, ModelError, ModelErrorKind, ScriptedReply};
use whimbrel::{
    Agent, Engine, Event, EventStream, Frame, PermissionResult, Scripted, Session, ToolContext, ToolServer,
    TurnError, query, tool,
};

/// A scripted agent in an empty directory, and the script, which records its requests.
fn scripted_agent(replies: Value) -> (Agent, TempDir, Arc<Scripted>) {
    let dir = tempfile::tempdir().unwrap();
    let script = Arc::new(Scripted::replies(replies).unwrap());
    let agent = Agent::new().cwd(dir.path()).persist_session(false).script(Arc::clone(&script));
    (agent, dir, script)
}

async fn with_timeout<T>(wait: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap()
}

fn bash_call(command: &str) -> Value {
    json!([{"type": "tool_use", "name": "Bash", "input": {"command": command}}])
}

async fn collect(events: EventStream<'_>) -> Vec<Event> {
    with_timeout(events.map(Result::unwrap).collect::<Vec<_>>()).await
}

fn warnings(events: &[Event]) -> Vec<&str> {
    let warnings = events.iter().filter_map(|event| match event {
        Event::Warning(text) => Some(text.as_str()),
        _ => None,
    });
    warnings.collect()
}

#[tokio::test]
async fn pieces_of_text_are_the_answer() {
    let text = "A somewhat longer answer, so that it comes in several pieces.";
    let (agent, _dir, _) = scripted_agent(json!([text, text]));
    let mut session = Session::open(&agent).await.unwrap();
    let pieces: Vec<String> =
        with_timeout(session.ask("a").text_stream().map(Result::unwrap).collect::<Vec<_>>()).await;
    assert!(pieces.len() > 1, "{pieces:?}");
    assert_eq!(pieces.concat(), text);
    // Without a stream the engine sends no pieces.
    let mut turn = session.ask("b");
    while let Some(frame) = with_timeout(turn.next()).await {
        assert!(!matches!(frame.unwrap(), Frame::StreamEvent(_)));
    }
}

#[tokio::test]
async fn texts_around_a_tool_call_are_separated() {
    let call = json!([{"type": "text", "text": "I look."}, {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]);
    let (agent, _dir, _) = scripted_agent(json!([call, "Nothing there."]));
    let pieces: Vec<String> =
        with_timeout(query("a", &agent).text_stream().map(Result::unwrap).collect::<Vec<_>>()).await;
    assert_eq!(pieces.concat(), "I look.\n\nNothing there.");
}

#[tokio::test]
async fn failed_turn_ends_the_text_with_its_error() {
    let fault = json!({"fault": {"kind": "authentication", "status": 401, "message": "no luck"}});
    let (agent, _dir, _) = scripted_agent(json!([fault]));
    let mut text = query("a", &agent).text_stream();
    assert!(matches!(with_timeout(text.next()).await, Some(Err(TurnError::Api(_)))));
    assert!(with_timeout(text.next()).await.is_none());
}

#[tokio::test]
async fn events_show_text_calls_and_the_answer() {
    let (agent, dir, _) = scripted_agent(json!([bash_call("cat note"), "Read."]));
    std::fs::write(dir.path().join("note"), "hello\n").unwrap();
    let mut session = Session::open(&agent).await.unwrap();
    let events: Vec<Event> =
        with_timeout(session.ask("a").events().map(Result::unwrap).collect::<Vec<_>>()).await;
    let Some(Event::ToolStarted(start)) = events.first() else { panic!("{events:?}") };
    let Some(Event::ToolEnded(end)) = events.get(2) else { panic!("{events:?}") };
    assert!(matches!(&events[1], Event::ToolOutput(output) if output.text == "hello\n"), "{events:?}");
    assert_eq!((start.name.as_str(), start.input["command"].as_str()), ("Bash", Some("cat note")));
    assert_eq!((end.id.as_str(), end.name.as_str(), end.is_error), (start.id.as_str(), "Bash", false));
    assert!(end.text.contains("hello"), "{end:?}");
    let text = events.iter().filter_map(|event| match event {
        Event::Text(piece) => Some(piece.as_str()),
        _ => None,
    });
    assert_eq!(text.collect::<String>(), "Read.");
    assert!(matches!(events.last(), Some(Event::Done(answer)) if answer.text() == "Read."));
}

#[tokio::test]
async fn events_of_a_subagent_are_nested() {
    let task = json!([{"type": "tool_use", "name": "Agent", "input": {"description": "d", "prompt": "p"}}]);
    let (agent, _dir, _) = scripted_agent(json!([task, bash_call("true"), "found", "done"]));
    let events: Vec<Event> =
        with_timeout(query("a", &agent).events().map(Result::unwrap).collect::<Vec<_>>()).await;
    let inner = events.iter().find_map(|event| match event {
        Event::Subagent { tool_use_id, event } => Some((tool_use_id, &**event)),
        _ => None,
    });
    let Some(Event::ToolStarted(agent_call)) = events.first() else { panic!("{events:?}") };
    let Some((parent, Event::ToolStarted(call))) = inner else { panic!("{events:?}") };
    assert_eq!((parent, call.name.as_str()), (&agent_call.id, "Bash"));
}

#[tokio::test]
async fn warnings_are_events() {
    let (agent, _dir, _) = scripted_agent(json!(["hello"]));
    let agent = agent.disallowed_tools(["Bahs"]);
    let events: Vec<Event> =
        with_timeout(query("a", &agent).events().map(Result::unwrap).collect::<Vec<_>>()).await;
    assert!(
        events.iter().any(|event| matches!(event, Event::Warning(text) if text.contains("Bahs"))),
        "{events:?}"
    );
}

#[tokio::test]
async fn question_shows_warnings_before_its_reply() {
    let overload = json!({"fault": {"kind": "overloaded", "status": 529, "retry_after_ms": 0}});
    let (agent, _dir, _) = scripted_agent(json!([overload, "hello"]));
    let mut session = Session::open(&agent.disallowed_tools(["Bahs"])).await.unwrap();
    let events = collect(session.ask("a").events()).await;
    let warnings = warnings(&events);
    assert!(warnings.len() == 2 && warnings[0].contains("Bahs"), "{events:?}");
    assert!(warnings[1].contains("status 529 and is repeated"), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, Event::BeforeTurn(_))), "{events:?}");
}

#[tokio::test]
async fn turn_dropped_before_its_reply_leaves_nothing() {
    let is_overloaded = Arc::new(AtomicBool::new(true));
    let seen_by_model = Arc::clone(&is_overloaded);
    let model = ClosureModel::new(move |_, _| match seen_by_model.load(Ordering::Relaxed) {
        true => Err(ModelError {
            retry_after: Some(Duration::ZERO),
            ..ModelError::new(ModelErrorKind::Overloaded, "busy")
        }),
        false => Ok(ScriptedReply::text("next")),
    });
    let agent = Agent::new()
        .cwd(std::env::temp_dir())
        .persist_session(false)
        .disallowed_tools(["Bahs"])
        .engine(Engine::builder().model("own", model).build())
        .model("own");
    let mut session = Session::open(&agent).await.unwrap();
    let mut turn = session.ask("a");
    assert!(matches!(with_timeout(turn.next()).await, Some(Ok(Frame::System(_)))));
    drop(turn);
    is_overloaded.store(false, Ordering::Relaxed);
    let events = collect(session.ask("b").events()).await;
    let mut text = String::new();
    for event in &events {
        match event {
            Event::Text(piece) => text.push_str(piece),
            Event::Done(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(text, "next");
}

#[tokio::test]
async fn events_before_the_turn_are_marked() {
    let (agent, _dir, _) = scripted_agent(json!(["one", "two"]));
    let mut session = Session::open(&agent).await.unwrap();
    session.send("first").await.unwrap();
    // Read up to the reply, so that the prompts are not joined.
    while !matches!(with_timeout(session.next()).await, Some(Ok(Frame::Assistant(_)))) {}
    let events = collect(session.ask("second").events()).await;
    let [Event::BeforeTurn(before), own @ ..] = events.as_slice() else { panic!("{events:?}") };
    assert!(matches!(&**before, Event::Done(answer) if answer.text() == "one"), "{before:?}");
    assert!(matches!(own, [Event::Text(_), .., Event::Done(answer)] if answer.text() == "two"), "{own:?}");
}

#[tokio::test]
async fn live_output_and_progress_are_events() {
    let work = tool("work", "Works", |context: ToolContext| async move {
        context.progress_of(1.0, 2.0, "half");
        "done"
    });
    let call = json!([{"type": "tool_use", "name": "mcp__own__work", "input": {}}]);
    let printing = bash_call("echo printed");
    let (agent, _dir, _) = scripted_agent(json!([printing, call, "end", printing, call, "end"]));
    let agent = agent
        .tool_server(ToolServer::new("own").tool(work))
        .can_use_tool(|_| async { PermissionResult::allow() });
    let mut session = Session::open(&agent).await.unwrap();
    let rows = [
        ("turn", collect(session.ask("a").events()).await),
        ("query", collect(query("a", &agent).events()).await),
    ];
    for (name, events) in rows {
        let output: String = events
            .iter()
            .filter_map(|event| match event {
                Event::ToolOutput(output) => Some(output.text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(output, "printed\n", "{name}: {events:?}");
        let is_half = |event: &Event| {
            matches!(event, Event::ToolProgress(report) if report.name == "mcp__own__work"
                && (report.done, report.total, report.message.as_deref()) == (1.0, Some(2.0), Some("half")))
        };
        assert_eq!(events.iter().filter(|event| is_half(event)).count(), 1, "{name}: {events:?}");
    }
}

#[tokio::test]
async fn forwarded_text_of_a_subagent_comes_once() {
    let task = json!([{"type": "tool_use", "name": "Agent", "input": {"description": "d", "prompt": "p"}}]);
    for forwards in [true, false] {
        let (agent, _dir, _) = scripted_agent(json!([task, "I have found it.", "done"]));
        let agent = agent.forward_subagent_text(forwards);
        let events = collect(query("a", &agent).events()).await;
        let text = events.iter().filter_map(|event| match event {
            Event::Subagent { event, .. } => match &**event {
                Event::Text(piece) => Some(piece.as_str()),
                _ => None,
            },
            _ => None,
        });
        let expected = if forwards { "I have found it." } else { "" };
        assert_eq!(text.collect::<String>(), expected, "{events:?}");
    }
}
