//! State of a resumed session after clear, compaction and fork, and sessions that cannot be saved.

use serde_json::{Value, json};
use whimbrel_testkit::{Reply, SessionDirs};
use whimbrel_wire::Usage;
use whimbrel_wire::control::{GetContextUsage, RewindFiles};
use whimbrel_wire::message::{Outcome, User};
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

use super::fixture::resume_options;

const PROMPT_UUID: &str = "aaaaaaaa-2222-4333-8444-555555555555";

fn user_with_uuid(uuid: &str, text: &str) -> User {
    User { uuid: Some(uuid.into()), ..User::prompt(text.to_owned()) }
}

/// A reply whose usage nearly fills the context.
fn context_filling_reply(text: &str) -> Reply {
    Reply::text(text).usage(Usage { input_tokens: 180_000, output_tokens: 10, ..Usage::default() })
}

#[tokio::test]
async fn clear_runs_the_hooks_of_both_sessions() {
    let dirs = SessionDirs::new().unwrap();
    let hook_log = dirs.root().join("hook-log");
    let log_hook = |field: &str| {
        let command = format!(
            "sed 's/.*\"{field}\":\"\\([a-z]*\\)\".*/HOOK-{field}-\\1/' | tee -a {}",
            hook_log.display()
        );
        json!([{"hooks": [{"type": "command", "command": command}]}])
    };
    let hooks = json!({"hooks": {"SessionStart": log_hook("source"), "SessionEnd": log_hook("reason")}});
    let settings = Some(hooks.to_string());
    let script = [Reply::text("One."), Reply::text("Two.")];
    let options = Options { settings: settings.clone(), ..Options::default() };
    let mut host = dirs.host(script, options).start().await.unwrap();
    host.run("BEFORE").await.unwrap();
    let session = host.run("/clear").await.unwrap().session_id;
    host.run("BETWEEN").await.unwrap();
    let request = &host.model_requests()[1];
    let texts = ["BEFORE", "HOOK-source-startup", "HOOK-source-clear", "BETWEEN"];
    assert_eq!(
        texts.map(|text| request.contains_text(text)),
        [false, false, true, true],
        "{:?}",
        request.messages()
    );
    host.run("/clear").await.unwrap();
    host.finish().await.unwrap();
    let log = std::fs::read_to_string(hook_log).unwrap();
    let order =
        ["source-startup", "reason-clear", "source-clear", "reason-clear", "source-clear", "reason-other"];
    assert_eq!(log.lines().collect::<Vec<_>>(), order.map(|name| format!("HOOK-{name}")));

    let mut host = dirs.host([Reply::text("Three.")], resume_options(&session)).start().await.unwrap();
    host.run("AFTER").await.unwrap();
    let request = &host.model_requests()[0];
    assert_eq!(["BEFORE", "BETWEEN", "AFTER"].map(|text| request.contains_text(text)), [false, true, true]);
}

#[tokio::test]
async fn prompt_after_compaction_can_be_resumed_by_uuid() {
    let dirs = SessionDirs::new().unwrap();
    let script =
        [context_filling_reply("One."), Reply::text("SUMMARY"), Reply::text("Two."), Reply::text("Three.")];
    let mut host = dirs.host(script, Options::default()).start().await.unwrap();
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
        let mut host = dirs.host([Reply::text("Four.")], options).start().await.unwrap();
        host.run("FOURTH").await.unwrap();
        let request = &host.model_requests()[0];
        assert_eq!(["FIRST", "SUMMARY", "SECOND", "THIRD"].map(|text| request.contains_text(text)), expected);
        host.finish().await.unwrap();
    }
}

#[tokio::test]
async fn turn_after_compaction_can_be_dropped() {
    let dirs = SessionDirs::new().unwrap();
    let script = [context_filling_reply("One."), Reply::text("SUMMARY"), Reply::text("Two.")];
    let mut host = dirs.host(script, Options::default()).start().await.unwrap();
    host.run("FIRST").await.unwrap();
    host.send_frame(user_with_uuid(PROMPT_UUID, "SECOND")).await.unwrap();
    let session = host.next_result().await.unwrap().session_id;
    host.finish().await.unwrap();
    let options = Options { resume_drops_turn: Some(PROMPT_UUID.into()), ..resume_options(&session) };
    let mut host = dirs.host([Reply::text("Three.")], options).start().await.unwrap();
    host.run("THIRD").await.unwrap();
    let request = &host.model_requests()[0];
    assert_eq!(
        ["SUMMARY", "SECOND", "Two.", "THIRD"].map(|text| request.contains_text(text)),
        [true, false, false, true]
    );
}

#[tokio::test]
async fn fork_keeps_file_checkpoints() {
    let dirs = SessionDirs::new().unwrap();
    let file = dirs.work_dir().join("a.txt");
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
    let mut host = dirs.host(script, editing()).start().await.unwrap();
    host.send_frame(user_with_uuid(PROMPT_UUID, "Change it.")).await.unwrap();
    let session = host.next_result().await.unwrap().session_id;
    host.finish().await.unwrap();
    let rows = [
        Options { resume: Some(session.to_uppercase()), ..editing() },
        Options { continue_conversation: true, ..editing() },
    ];
    for options in rows {
        let options = Options { fork_session: true, ..options };
        let mut host = dirs.host([Reply::text("Yes.")], options).start().await.unwrap();
        host.run("Go on.").await.unwrap();
        let request = RewindFiles { user_message_id: PROMPT_UUID.into(), dry_run: Some(true) };
        let answer = host.send_request(request).await.unwrap();
        assert!(answer.can_rewind, "{answer:?}");
        assert_eq!(answer.files_changed.unwrap().len(), 1);
        host.finish().await.unwrap();
    }
}

#[tokio::test]
async fn context_usage_is_known_before_the_first_turn() {
    let dirs = SessionDirs::new().unwrap();
    let mut host = dirs.host([context_filling_reply("One.")], Options::default()).start().await.unwrap();
    let session = host.run("FIRST").await.unwrap().session_id;
    let during = host.send_request(GetContextUsage::default()).await.unwrap();
    assert!(during.is_auto_compact_enabled);
    assert_eq!(during.auto_compact_threshold, Some(167_000.0));
    host.finish().await.unwrap();
    let mut host = dirs.host([Reply::text("Two.")], resume_options(&session)).start().await.unwrap();
    let usage = host.send_request(GetContextUsage::default()).await.unwrap();
    assert!(usage.total_tokens >= 180_000, "{}", usage.total_tokens);
}

#[tokio::test]
async fn compaction_beyond_the_budget_ends_the_turn() {
    let dirs = SessionDirs::new().unwrap();
    let options = Options { max_budget_usd: Some(0.01), ..Options::default() };
    let mut host = dirs.host([context_filling_reply("One.")], options).start().await.unwrap();
    host.run("FIRST").await.unwrap();
    assert_eq!(host.run("/compact").await.unwrap().subtype, Outcome::ErrorMaxBudgetUsd);
}

#[tokio::test]
async fn strict_durability_blocks_calls_that_cannot_be_recorded() {
    for (durability, persists, made) in
        [("strict", true, false), ("strict", false, true), ("none", true, true)]
    {
        let dirs = SessionDirs::new().unwrap();
        std::fs::write(dirs.config_dir(), "a file instead of the directory").unwrap();
        let file = dirs.work_dir().join("made.txt");
        let options = Options {
            permission_mode: Some(PermissionMode::AcceptEdits),
            persist_session: (!persists).then_some(false),
            ..Options::default()
        };
        let script = [Reply::tool("Write", json!({"file_path": file, "content": "x"})), Reply::text("Well.")];
        let mut host =
            dirs.host(script, options).env("WHIMBREL_DURABILITY", durability).start().await.unwrap();
        host.run("Write it.").await.unwrap();
        let name = format!("{durability}, {persists}");
        assert_eq!(
            (
                file.exists(),
                host.model_requests()[1].contains_text("Not run: the start of the call cannot be recorded")
            ),
            (made, !made),
            "{name}"
        );
        let is_warning = |frame: &Value| frame.to_string().contains("This session is not saved");
        assert_eq!(host.received().iter().any(|received| is_warning(&received.json)), persists, "{name}");
    }
}
