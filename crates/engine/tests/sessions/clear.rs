//! `/clear` ends the session and starts a new one in the same process.

use serde_json::{Value, json};
use whimbrel_testkit::{Reply, SessionDirs};
use whimbrel_wire::Usage;
use whimbrel_wire::control::RewindFiles;
use whimbrel_wire::message::User;
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

use super::fixture::resume_options;

const PROMPT_UUID: &str = "aaaaaaaa-2222-4333-8444-555555555555";

fn priced(text: &str) -> Reply {
    Reply::text(text).usage(Usage { input_tokens: 1_000, output_tokens: 100, ..Usage::default() })
}

#[tokio::test]
async fn clear_starts_a_new_session() {
    let dirs = SessionDirs::new().unwrap();
    let script = [priced("One."), priced("Two.")];
    let mut host = dirs.host(script, Options::default()).start().await.unwrap();
    let first = host.run("BEFORE").await.unwrap();
    let prompt = User { uuid: Some(PROMPT_UUID.into()), ..User::prompt("/clear") };
    host.send_frame(prompt).await.unwrap();
    let cleared = host.next_result().await.unwrap();
    assert_ne!(cleared.session_id, first.session_id);
    assert_eq!(
        (cleared.num_turns, cleared.result.as_deref(), cleared.local_command.as_deref(), cleared.is_error),
        (0, Some(""), Some("clear"), false)
    );
    assert!(cleared.total_cost_usd == 0.0 && cleared.model_usage.is_empty());
    let frames: Vec<&Value> = host.received().iter().map(|received| &received.json).collect();
    let reset = frames.iter().find(|frame| frame["type"] == "conversation_reset").unwrap();
    assert_eq!(
        (&reset["session_id"], &reset["trigger"], &reset["user_message_uuid"]),
        (&json!(first.session_id), &json!("clear"), &json!(PROMPT_UUID))
    );
    assert_eq!(reset["new_conversation_id"], cleared.session_id.as_str());
    let inits: Vec<&Value> =
        frames.iter().filter(|frame| frame["subtype"] == "init").map(|frame| &frame["session_id"]).collect();
    assert_eq!(inits, [first.session_id.as_str(), cleared.session_id.as_str()]);
    let answers = frames.iter().filter(|frame| frame["type"] == "assistant").count();
    assert_eq!(answers, 1, "the command has no answer");

    let second = host.run("AFTER").await.unwrap();
    assert_eq!(second.session_id, cleared.session_id);
    assert!((second.total_cost_usd - first.total_cost_usd).abs() < 1e-9, "the cost begins anew");
    host.finish().await.unwrap();
    let rows = [(&first.session_id, [true, false]), (&second.session_id, [false, true])];
    for (session, expected) in rows {
        let mut host = dirs.host([Reply::text("Three.")], resume_options(session)).start().await.unwrap();
        host.run("AGAIN").await.unwrap();
        let request = &host.model_requests()[0];
        assert_eq!(["BEFORE", "AFTER"].map(|text| request.contains_text(text)), expected);
        host.finish().await.unwrap();
    }
}

#[tokio::test]
async fn files_can_be_rewound_in_the_new_session() {
    let dirs = SessionDirs::new().unwrap();
    let file = |name: &str| dirs.work_dir().join(name);
    let write = |name: &str| Reply::tool("Write", json!({"file_path": file(name), "content": "x"}));
    let script = [write("old"), Reply::text("One."), write("new"), Reply::text("Two.")];
    let options = || Options {
        enable_file_checkpointing: true,
        permission_mode: Some(PermissionMode::AcceptEdits),
        ..Options::default()
    };
    let mut host = dirs.host(script, options()).start().await.unwrap();
    host.run("First.").await.unwrap();
    host.run("/clear").await.unwrap();
    host.send_frame(User { uuid: Some(PROMPT_UUID.into()), ..User::prompt("Second.") }).await.unwrap();
    let session = host.next_result().await.unwrap().session_id;
    host.finish().await.unwrap();
    assert!(file("new").exists());
    let resumed = Options { resume: Some(session), ..options() };
    let mut host = dirs.host([Reply::text("Three.")], resumed).start().await.unwrap();
    host.run("Third.").await.unwrap();
    host.send_request(RewindFiles { user_message_id: PROMPT_UUID.into(), ..RewindFiles::default() })
        .await
        .unwrap();
    host.finish().await.unwrap();
    assert_eq!(["old", "new"].map(|name| file(name).exists()), [true, false]);
}
