//! State of a resumed session after clear, compaction and fork, and sessions that cannot be saved.

use serde_json::{Value, json};
use whimbrel_testkit::Reply;
use whimbrel_wire::Usage;
use whimbrel_wire::control::{GetContextUsage, RewindFiles};
use whimbrel_wire::message::{Outcome, User};
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

use super::fixture::{SessionDirs, resume_options};

const PROMPT_UUID: &str = "aaaaaaaa-2222-4333-8444-555555555555";

fn user_with_uuid(uuid: &str, text: &str) -> User {
    User { uuid: Some(uuid.into()), ..User::prompt(text.to_owned()) }
}

/// A reply whose usage nearly fills the context.
fn context_filling_reply(text: &str) -> Reply {
    Reply::text(text).usage(Usage { input_tokens: 180_000, output_tokens: 10, ..Usage::default() })
}

#[tokio::test]
async fn cleared_history_stays_cleared_and_runs_hooks() {
    let home = SessionDirs::new();
    let heard = home.root.path().join("heard");
    let says = |field: &str| {
        let told = format!(
            "sed 's/.*\"{field}\":\"\\([a-z]*\\)\".*/HOOK-{field}-\\1/' | tee -a {}",
            heard.display()
        );
        json!([{"hooks": [{"type": "command", "command": told}]}])
    };
    let hooks = json!({"hooks": {"SessionStart": says("source"), "SessionEnd": says("reason")}});
    let settings = Some(hooks.to_string());
    let script = [Reply::text("One."), Reply::text("Two.")];
    let options = Options { settings: settings.clone(), ..Options::default() };
    let mut host = home.host_with_script(script, options).start().await.unwrap();
    host.run("BEFORE").await.unwrap();
    let session = host.run("/clear").await.unwrap().session_id;
    host.run("BETWEEN").await.unwrap();
    let asked = &host.model_requests()[1];
    let texts = ["BEFORE", "HOOK-source-startup", "HOOK-source-clear", "BETWEEN"];
    assert_eq!(
        texts.map(|text| asked.contains_text(text)),
        [false, false, true, true],
        "{:?}",
        asked.messages()
    );
    host.run("/clear").await.unwrap();
    host.finish().await.unwrap();
    let told = std::fs::read_to_string(heard).unwrap();
    let order =
        ["source-startup", "reason-clear", "source-clear", "reason-clear", "source-clear", "reason-other"];
    assert_eq!(told.lines().collect::<Vec<_>>(), order.map(|name| format!("HOOK-{name}")));

    let mut host =
        home.host_with_script([Reply::text("Three.")], resume_options(&session)).start().await.unwrap();
    host.run("AFTER").await.unwrap();
    let asked = &host.model_requests()[0];
    assert_eq!(["BEFORE", "BETWEEN", "AFTER"].map(|text| asked.contains_text(text)), [false, false, true]);
}

#[tokio::test]
async fn prompt_after_compaction_can_be_resumed_by_uuid() {
    let home = SessionDirs::new();
    let script =
        [context_filling_reply("One."), Reply::text("SUMMARY"), Reply::text("Two."), Reply::text("Three.")];
    let mut host = home.host_with_script(script, Options::default()).start().await.unwrap();
    host.run("FIRST").await.unwrap();
    host.send_frame(user_with_uuid(PROMPT_UUID, "SECOND")).await.unwrap();
    let session = host.next_result().await.unwrap().session_id;
    host.run("THIRD").await.unwrap();
    host.finish().await.unwrap();
    let rows = [
        (
            Options { resume_session_at: Some(PROMPT_UUID.into()), ..resume_options(&session) },
            [false, true, true, false],
        ),
        (resume_options(&session), [false, true, true, true]),
    ];
    for (options, expected) in rows {
        let options = Options { fork_session: true, ..options };
        let mut host = home.host_with_script([Reply::text("Four.")], options).start().await.unwrap();
        host.run("FOURTH").await.unwrap();
        let asked = &host.model_requests()[0];
        assert_eq!(["FIRST", "SUMMARY", "SECOND", "THIRD"].map(|text| asked.contains_text(text)), expected);
        host.finish().await.unwrap();
    }
}

#[tokio::test]
async fn turn_after_compaction_can_be_dropped() {
    let home = SessionDirs::new();
    let script = [context_filling_reply("One."), Reply::text("SUMMARY"), Reply::text("Two.")];
    let mut host = home.host_with_script(script, Options::default()).start().await.unwrap();
    host.run("FIRST").await.unwrap();
    host.send_frame(user_with_uuid(PROMPT_UUID, "SECOND")).await.unwrap();
    let session = host.next_result().await.unwrap().session_id;
    host.finish().await.unwrap();
    let options = Options { resume_drops_turn: Some(PROMPT_UUID.into()), ..resume_options(&session) };
    let mut host = home.host_with_script([Reply::text("Three.")], options).start().await.unwrap();
    host.run("THIRD").await.unwrap();
    let asked = &host.model_requests()[0];
    assert_eq!(
        ["SUMMARY", "SECOND", "Two.", "THIRD"].map(|text| asked.contains_text(text)),
        [true, false, false, true]
    );
}

#[tokio::test]
async fn fork_keeps_file_checkpoints() {
    let home = SessionDirs::new();
    let file = home.root.path().join("work/a.txt");
    std::fs::write(&file, "old\n").unwrap();
    let editing = || Options {
        enable_file_checkpointing: true,
        permission_mode: Some(PermissionMode::AcceptEdits),
        ..Options::default()
    };
    let script = [
        Reply::tool("Read", json!({"file_path": file})),
        Reply::tool("Edit", json!({"file_path": file, "old_string": "old", "new_string": "new"})),
        Reply::text("Done."),
    ];
    let mut host = home.host_with_script(script, editing()).start().await.unwrap();
    host.send_frame(user_with_uuid(PROMPT_UUID, "Change it.")).await.unwrap();
    let session = host.next_result().await.unwrap().session_id;
    host.finish().await.unwrap();
    let rows = [
        Options { resume: Some(session.to_uppercase()), ..editing() },
        Options { continue_conversation: true, ..editing() },
    ];
    for options in rows {
        let options = Options { fork_session: true, ..options };
        let mut host = home.host_with_script([Reply::text("Yes.")], options).start().await.unwrap();
        host.run("Go on.").await.unwrap();
        let question = RewindFiles { user_message_id: PROMPT_UUID.into(), dry_run: Some(true) };
        let answer = host.send_request(question).await.unwrap();
        assert!(answer.can_rewind, "{answer:?}");
        assert_eq!(answer.files_changed.unwrap().len(), 1);
        host.finish().await.unwrap();
    }
}

#[tokio::test]
async fn context_usage_is_known_before_the_first_turn() {
    let home = SessionDirs::new();
    let mut host =
        home.host_with_script([context_filling_reply("One.")], Options::default()).start().await.unwrap();
    let session = host.run("FIRST").await.unwrap().session_id;
    let during = host.send_request(GetContextUsage::default()).await.unwrap();
    assert!(during.is_auto_compact_enabled);
    assert_eq!(during.auto_compact_threshold, Some(167_000.0));
    host.finish().await.unwrap();
    let mut host =
        home.host_with_script([Reply::text("Two.")], resume_options(&session)).start().await.unwrap();
    let usage = host.send_request(GetContextUsage::default()).await.unwrap();
    assert!(usage.total_tokens >= 180_000, "{}", usage.total_tokens);
}

#[tokio::test]
async fn compaction_beyond_the_budget_ends_the_turn() {
    let home = SessionDirs::new();
    let options = Options { max_budget_usd: Some(0.01), ..Options::default() };
    let mut host = home.host_with_script([context_filling_reply("One.")], options).start().await.unwrap();
    host.run("FIRST").await.unwrap();
    assert_eq!(host.run("/compact").await.unwrap().subtype, Outcome::ErrorMaxBudgetUsd);
}

#[tokio::test]
async fn strict_durability_blocks_calls_that_cannot_be_recorded() {
    for (durability, persists, made) in
        [("strict", true, false), ("strict", false, true), ("none", true, true)]
    {
        let home = SessionDirs::new();
        std::fs::write(home.root.path().join("config"), "a file in the folder's place").unwrap();
        let file = home.root.path().join("work/made.txt");
        let options = Options {
            permission_mode: Some(PermissionMode::AcceptEdits),
            persist_session: (!persists).then_some(false),
            ..Options::default()
        };
        let script = [Reply::tool("Write", json!({"file_path": file, "content": "x"})), Reply::text("Well.")];
        let mut host = home
            .host_with_script(script, options)
            .env("WHIMBREL_DURABILITY", durability)
            .start()
            .await
            .unwrap();
        host.run("Write it.").await.unwrap();
        let name = format!("{durability}, {persists}");
        assert_eq!(
            (file.exists(), host.model_requests()[1].contains_text("Not made: its start cannot be recorded")),
            (made, !made),
            "{name}"
        );
        let warned = |heard: &Value| heard.to_string().contains("Nothing of this session is kept on disk");
        assert_eq!(host.received().iter().any(|heard| warned(&heard.json)), persists, "{name}");
    }
}
