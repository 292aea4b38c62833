use futures::StreamExt;
use serde_json::json;
use whimbrel_wire::{Block, Role};

use super::*;
use crate::assemble::ReplyAssembler;
use crate::history::History;
use crate::providers::Providers;
use crate::request::RequestPrefix;
use crate::scripted::Scripted;

const NAME: &str = "scripted:test";

fn request(items: &[&str]) -> Arc<Request> {
    let mut history = History::new();
    for (at, text) in items.iter().enumerate() {
        let role = if at % 2 == 0 { Role::User } else { Role::Assistant };
        history.push(role, &Block::text(*text));
    }
    Arc::new(Request::new("m", Arc::new(RequestPrefix::new(vec![], vec![])), history.snapshot()))
}

/// Sends a request and returns the reply's text, or the error.
async fn request_text(providers: &Providers, items: &[&str]) -> Result<String, ModelError> {
    let (model, _) = providers.resolve(NAME)?;
    let mut stream = model.stream_reply(request(items));
    let (mut assembler, mut text) = (ReplyAssembler::default(), String::new());
    while let Some(item) = stream.next().await {
        if let Some(finished) = assembler.push_event(&item?.event)?
            && let Block::Text { text: more, .. } = finished.block
        {
            text += &more;
        }
    }
    Ok(text)
}

fn recording_providers(path: &Path, replies: serde_json::Value) -> Providers {
    let providers = Providers::offline();
    providers.add_script("test", Arc::new(Scripted::replies(replies).unwrap()));
    providers.with_recording(Recording::record_to(path))
}

fn replaying_providers(path: &Path) -> Providers {
    Providers::offline().with_recording(Recording::replay_from(path))
}

#[tokio::test]
async fn same_requests_get_the_same_replies_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.jsonl");
    let failure = json!({"fault": {"kind": "overloaded", "status": 529, "message": "full"}});
    let first = recording_providers(&path, json!(["One.", "Two.", failure, "Three."]));
    assert_eq!(request_text(&first, &["a"]).await.unwrap(), "One.");
    assert_eq!(request_text(&first, &["<system-reminder>Monday", "x", "b"]).await.unwrap(), "Two.");
    assert_eq!(request_text(&first, &["c"]).await.unwrap_err().kind, ModelErrorKind::Overloaded);
    assert_eq!(request_text(&first, &["c"]).await.unwrap(), "Three.");

    let again = replaying_providers(&path);
    let error = request_text(&again, &["c"]).await.unwrap_err();
    assert_eq!((error.kind, error.status, &*error.message), (ModelErrorKind::Overloaded, Some(529), "full"));
    assert_eq!(request_text(&again, &["c"]).await.unwrap(), "Three.");
    assert_eq!(request_text(&again, &["<system-reminder>Tuesday", "x", "b"]).await.unwrap(), "Two.");
    assert_eq!(request_text(&again, &["a"]).await.unwrap(), "One.");
    let exhausted = request_text(&again, &["a"]).await.unwrap_err();
    assert!(exhausted.message.contains("it has 4 steps, and another one was requested"), "{exhausted}");
}

#[tokio::test]
async fn divergence_names_the_step_and_the_difference() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.jsonl");
    let first = recording_providers(&path, json!(["One.", "Two."]));
    request_text(&first, &["a"]).await.unwrap();
    request_text(&first, &["a", "One.", "b"]).await.unwrap();

    let again = replaying_providers(&path);
    request_text(&again, &["a"]).await.unwrap();
    let error = request_text(&again, &["a", "One.", "B"]).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Script);
    for part in ["step 2 (m)", "message 3 was", "\"b\"", "\"B\""] {
        assert!(error.message.contains(part), "{part}: {error}");
    }
    let unplayed = again.describe_unplayed().unwrap();
    assert!(
        unplayed.starts_with("1 of the 2 recorded steps") && unplayed.contains("step 2 (m)"),
        "{unplayed}"
    );
    let longer = request_text(&again, &["a", "One.", "b", "c", "d"]).await.unwrap_err();
    assert!(longer.message.contains("message 4 is new"), "{longer}");
    assert_eq!(
        request_text(&again, &["a", "One.", "b"]).await.unwrap(),
        "Two.",
        "the right request is still answered"
    );
    assert_eq!(again.describe_unplayed(), None);
}

#[tokio::test]
async fn difference_excerpt_ignores_ids_and_timestamps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.jsonl");
    let first = recording_providers(&path, json!(["One.", "Two."]));
    let long = |id: &str, at: &str, end: &str| {
        format!("{id} at {at}: {} {end} {}", "x".repeat(500), "y".repeat(500))
    };
    let then = long("a11111111", "2026-11-16T15:02:56.455364894Z", "green");
    request_text(&first, &["a", "One.", &then]).await.unwrap();
    request_text(&first, &["a", "One.", &then, "Two.", "b"]).await.unwrap();
    let texts = std::fs::read_to_string(&path).unwrap().matches("green").count();
    assert_eq!(texts, 1, "each message is kept once");

    let again = replaying_providers(&path);
    let now = long("a22222222", "2027-01-01T00:00:00Z", "blue");
    let error = request_text(&again, &["a", "One.", &now]).await.unwrap_err();
    for part in ["step 1", "message 3 was ... xxx", "x green yyy", "x blue yyy"] {
        assert!(error.message.contains(part), "{part}: {error}");
    }
    assert!(!error.message.contains("a22222222") && error.message.len() < 600, "{error}");
    let same = long("a22222222", "2027-01-01T00:00:00Z", "green");
    assert_eq!(request_text(&again, &["a", "One.", &same]).await.unwrap(), "One.");
    let error = request_text(&again, &["a", "One.", &same, "Two.", "c"]).await.unwrap_err();
    assert!(error.message.contains("step 2") && error.message.contains("message 5 was"), "{error}");
}

#[tokio::test]
async fn unusable_recording_names_the_cause() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.jsonl");
    let missing = request_text(&replaying_providers(&path), &["a"]).await.unwrap_err();
    assert!(missing.message.contains("recording.jsonl cannot be replayed"), "{missing}");
    std::fs::write(&path, "nonsense\n").unwrap();
    let invalid = request_text(&replaying_providers(&path), &["a"]).await.unwrap_err();
    assert!(invalid.message.contains("line 1 is not a valid step"), "{invalid}");
    let existing = request_text(&recording_providers(&path, json!(["One."])), &["a"]).await.unwrap_err();
    assert!(
        existing.message.contains("recording.jsonl cannot be created"),
        "an older one is not overwritten: {existing}"
    );
}

#[tokio::test]
async fn incomplete_recording_is_valid_up_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.jsonl");
    let first = recording_providers(&path, json!(["One.", "Two."]));
    request_text(&first, &["a"]).await.unwrap();
    let (model, _) = first.resolve(NAME).unwrap();
    let mut cut = model.stream_reply(request(&["b"]));
    cut.next().await.unwrap().unwrap();
    drop(cut);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}{{\"step\":3,\"mod")).unwrap();

    let again = replaying_providers(&path);
    assert_eq!(request_text(&again, &["a"]).await.unwrap(), "One.");
    assert_eq!(request_text(&again, &["b"]).await.unwrap_err().kind, ModelErrorKind::Interrupted);
}

#[tokio::test]
async fn abandoned_reply_is_cut_if_requested_again_else_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.jsonl");
    let first = recording_providers(&path, json!(["One.", "Two.", "Three."]));
    let (model, _) = first.resolve(NAME).unwrap();
    for _ in 0..2 {
        let mut cut = model.stream_reply(request(&["a"]));
        cut.next().await.unwrap().unwrap();
    }
    let again = replaying_providers(&path);
    assert_eq!(request_text(&again, &["a"]).await.unwrap_err().kind, ModelErrorKind::Cut);
    assert_eq!(request_text(&again, &["a"]).await.unwrap_err().kind, ModelErrorKind::Interrupted);
}

#[tokio::test]
async fn new_ids_are_substituted_in_replies() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.jsonl");
    let first = recording_providers(&path, json!(["Ask a11111111, not a22222222.", "Done."]));
    let then = ["a", "Started a11111111 and a22222222."];
    assert!(request_text(&first, &then).await.unwrap().contains("a11111111"));
    request_text(&first, &["a", "x", "a11111111 says b."]).await.unwrap();

    let again = replaying_providers(&path);
    let now = ["a", "Started a33333333 and a11111111."];
    assert_eq!(request_text(&again, &now).await.unwrap(), "Ask a33333333, not a11111111.");
    assert_eq!(request_text(&again, &["a", "x", "a33333333 says b."]).await.unwrap(), "Done.");

    let other = replaying_providers(&path);
    let error = request_text(&other, &["a", "Started a33333333 and a33333333."]).await.unwrap_err();
    assert!(error.message.contains("message 2 was"), "{error}");
}

#[tokio::test]
async fn tool_results_may_come_in_another_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.jsonl");
    let is_answered = async |providers: &Providers, ids: [&str; 2]| {
        let mut history = History::new();
        for id in ids {
            let content = Some(format!("{id} is done").into());
            let result = Block::ToolResult { tool_use_id: id.into(), content, is_error: None };
            history.push(Role::User, &result);
        }
        history.push(Role::User, &Block::text("More?"));
        let prefix = Arc::new(RequestPrefix::new(vec![], vec![]));
        let (model, _) = providers.resolve(NAME).unwrap();
        let items: Vec<_> =
            model.stream_reply(Arc::new(Request::new("m", prefix, history.snapshot()))).collect().await;
        items.into_iter().all(|item| item.is_ok())
    };
    assert!(is_answered(&recording_providers(&path, json!(["One."])), ["t1", "t2"]).await);
    assert!(is_answered(&replaying_providers(&path), ["t2", "t1"]).await);
    assert!(!is_answered(&replaying_providers(&path), ["t2", "t3"]).await);
}

#[tokio::test]
async fn ids_in_thinking_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("recording.jsonl");
    let is_answered = async |providers: &Providers, thought: &str, agent: &str| {
        let mut history = History::new();
        history.push(Role::User, &Block::text("Go."));
        let thinking = Block::Thinking { thinking: format!("I wait for {thought}."), signature: "s".into() };
        history.push(Role::Assistant, &thinking);
        history.push(Role::Assistant, &Block::text(format!("{agent} is at work.")));
        history.push(Role::User, &Block::text("And now?"));
        let prefix = Arc::new(RequestPrefix::new(vec![], vec![]));
        let (model, _) = providers.resolve(NAME).unwrap();
        let items: Vec<_> =
            model.stream_reply(Arc::new(Request::new("m", prefix, history.snapshot()))).collect().await;
        items.into_iter().all(|item| item.is_ok())
    };
    assert!(is_answered(&recording_providers(&path, json!(["One."])), "ac7e76fd0", "ac7e76fd0").await);
    assert!(is_answered(&replaying_providers(&path), "ac7e76fd0", "a1490b8c6").await);
}
