//! Priority of prompts that arrive while a turn runs: `next` goes into the turn, `now` interrupts it, `later` waits.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, HostResponse, Reply, Script, SessionDirs};
use whimbrel_wire::Frame;
use whimbrel_wire::control::{CancelAsyncMessage, Initialize, McpStatus};
use whimbrel_wire::message::{Outcome, Priority, User};
use whimbrel_wire::options::Options;

/// A first reply that reads a file and is held, and two texts.
fn tool_script() -> [Reply; 3] {
    let read = Reply::tool("Read", json!({"file_path": "note"})).hold_until("first");
    [read, Reply::text("One."), Reply::text("Two.")]
}

/// A first text that is held, and another.
fn text_script() -> [Reply; 2] {
    [Reply::text("One.").hold_until("first"), Reply::text("Two.")]
}

fn host(script: impl Into<Script>) -> HostBuilder {
    Host::with_script(script).file("note", "the note")
}

fn prompt(text: &str, priority: Priority) -> User {
    User { uuid: Some(uuid_of(text)), ..User::prompt(text).with_priority(priority) }
}

/// A uuid that names the text.
fn uuid_of(text: &str) -> String {
    format!("11111111-1111-4111-8111-{:0>12}", text.len())
}

/// Starts a turn whose first model call is held.
async fn start_turn(builder: HostBuilder) -> Host {
    let mut host = builder.start().await.unwrap();
    host.send_frame(User { uuid: Some(uuid_of("")), ..User::prompt("Go.") }).await.unwrap();
    host.api().unwrap().wait_for_model_requests(1).await.unwrap();
    host
}

/// Sends prompts during the held call, and lets it go on once the engine has them.
async fn send_and_release(host: &mut Host, prompts: impl IntoIterator<Item = User>) {
    for prompt in prompts {
        host.send_frame(prompt).await.unwrap();
    }
    // Frames are handled in order.
    host.send_request(McpStatus::default()).await.unwrap();
    host.api().unwrap().release("first");
}

/// Kind and text of the blocks of the last message of a request, without reminders.
fn last_blocks(host: &Host, request: usize) -> Vec<(String, String)> {
    let requests = host.model_requests();
    let message = requests[request].messages().last().unwrap();
    let text = |block: &Value| match &block["text"] {
        Value::String(text) => text.clone(),
        _ => block["content"].as_str().unwrap_or_default().trim().to_owned(),
    };
    let blocks = message["content"].as_array().unwrap().iter();
    let blocks = blocks.map(|block| (block["type"].as_str().unwrap().to_owned(), text(block)));
    blocks.filter(|(_, text)| !text.starts_with("<system-reminder>")).collect()
}

fn block(kind: &str, text: &str) -> (String, String) {
    (kind.into(), text.into())
}

#[tokio::test]
async fn next_prompt_follows_the_tool_results() {
    let mut host = start_turn(host(tool_script())).await;
    send_and_release(&mut host, [prompt("Also this.", Priority::Next)]).await;
    let result = host.next_result().await.unwrap();
    assert_eq!(result.result.as_deref(), Some("One."));
    assert_eq!(result.user_message_uuid, Some(uuid_of("")));
    assert_eq!(result.user_message_uuids, Some(vec![uuid_of(""), uuid_of("Also this.")]));
    let blocks = last_blocks(&host, 1);
    assert_eq!((blocks.len(), blocks[0].0.as_str()), (2, "tool_result"), "{blocks:?}");
    assert_eq!(blocks[1], block("text", "Also this."));
    host.finish().await.unwrap();
    assert_eq!(host.model_requests().len(), 2);
}

#[tokio::test]
async fn next_prompt_is_valid_in_chat_completions() {
    let builder = host(tool_script()).configure(|options| options.model = Some("openai:m".into()));
    let mut host = start_turn(builder).await;
    send_and_release(&mut host, [prompt("Also this.", Priority::Next)]).await;
    host.next_result().await.unwrap();
    let requests = host.model_requests();
    let messages = requests[1].messages();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert!(roles.ends_with(&["assistant", "tool", "user"]), "{roles:?}");
    assert_eq!(requests[1].last_text(), "Also this.");
    host.finish().await.unwrap();
}

#[tokio::test]
async fn next_prompt_keeps_the_turn_from_ending() {
    let mut host = start_turn(host(text_script())).await;
    send_and_release(&mut host, [prompt("Also this.", Priority::Next)]).await;
    let result = host.next_result().await.unwrap();
    assert_eq!((result.result.as_deref(), result.queued_turn_count), (Some("Two."), Some(0)));
    assert_eq!(last_blocks(&host, 1), [block("text", "Also this.")]);
    assert_eq!(host.system_frames("init").len(), 1);
    host.finish().await.unwrap();
}

#[tokio::test]
async fn other_prompts_wait_for_the_end_of_the_turn() {
    let later = |text: &str| prompt(text, Priority::Later);
    let without = User::prompt("Then that.");
    let silent = User { should_query: Some(false), ..prompt("By the way.", Priority::Next) };
    let command = prompt("/cost", Priority::Next);
    let rows =
        [("later", later("This.")), ("no priority", without), ("no query", silent), ("a command", command)];
    for (name, waiting) in rows {
        let mut host = start_turn(host(text_script())).await;
        send_and_release(&mut host, [waiting]).await;
        let result = host.next_result().await.unwrap();
        assert_eq!((result.result.as_deref(), result.user_message_uuids), (Some("One."), None), "{name}");
        host.finish().await.unwrap();
        let expected = usize::from(matches!(name, "later" | "no priority")) + 1;
        assert_eq!(host.model_requests().len(), expected, "{name}");
    }
}

#[tokio::test]
async fn now_prompt_interrupts_and_comes_first() {
    let script = [Reply::text("Never.").hold_until("never"), Reply::text("Both.")];
    let mut host = start_turn(host(script)).await;
    host.send_frame(prompt("Later.", Priority::Later)).await.unwrap();
    host.send_frame(prompt("Stop, do this.", Priority::Now)).await.unwrap();
    let interrupted = host.next_result().await.unwrap();
    assert_eq!(interrupted.subtype, Outcome::ErrorDuringExecution);
    assert_eq!(interrupted.user_message_uuid, Some(uuid_of("")));
    let result = host.next_result().await.unwrap();
    assert_eq!(result.result.as_deref(), Some("Both."));
    assert_eq!(result.user_message_uuids, Some(vec![uuid_of("Stop, do this."), uuid_of("Later.")]));
    let blocks = last_blocks(&host, 1);
    let texts: Vec<&str> = blocks.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["Go.", "[Request interrupted by user]", "Stop, do this.", "Later."]);
    host.finish().await.unwrap();
}

#[tokio::test]
async fn next_prompt_can_be_taken_back_until_it_comes_in() {
    let mut host = start_turn(host(text_script())).await;
    let cancel = |text: &str| CancelAsyncMessage { message_uuid: uuid_of(text) };
    host.send_frame(prompt("Not this.", Priority::Next)).await.unwrap();
    assert!(host.send_request(cancel("Not this.")).await.unwrap().cancelled);
    send_and_release(&mut host, [prompt("Also this.", Priority::Next)]).await;
    host.next_result().await.unwrap();
    assert!(!host.send_request(cancel("Also this.")).await.unwrap().cancelled);
    assert_eq!(last_blocks(&host, 1), [block("text", "Also this.")]);
    host.finish().await.unwrap();
}

#[tokio::test]
async fn next_prompt_is_replayed_when_it_comes_in() {
    let builder = host(tool_script()).configure(|options| options.replay_user_messages = true);
    let mut host = start_turn(builder).await;
    let unnamed = User::prompt("And that.").with_priority(Priority::Next);
    send_and_release(&mut host, [prompt("Also this.", Priority::Next), unnamed]).await;
    host.next_result().await.unwrap();
    let users: Vec<&User> = host
        .frames()
        .filter_map(|frame| match frame {
            Frame::User(user) => Some(&**user),
            _ => None,
        })
        .collect();
    let texts: Vec<String> = users.iter().map(|user| user.message.content.joined_text()).collect();
    assert_eq!(texts, ["Go.", "", "Also this.", "And that."], "the second one is the tool result");
    assert_eq!(users[2].uuid, Some(uuid_of("Also this.")));
    assert!(users[2..].iter().all(|user| user.is_replay == Some(true) && user.uuid.is_some()));
    host.finish().await.unwrap();
}

/// A host whose `UserPromptSubmit` hook answers prompts with this text.
async fn host_with_prompt_hook(script: impl Into<Script>, text: &'static str, answer: Value) -> Host {
    let builder = host(script).on_request(move |request| {
        let request = serde_json::to_value(request).unwrap();
        let is_meant = request["input"]["prompt"] == text;
        HostResponse::Success(if is_meant { answer.clone() } else { json!({}) })
    });
    let mut host = builder.start().await.unwrap();
    let hooks = json!({"UserPromptSubmit": [{"hookCallbackIds": ["h"]}]});
    let initialize: Initialize = serde_json::from_value(json!({ "hooks": hooks })).unwrap();
    host.send_request(initialize).await.unwrap();
    host.send_frame(User { uuid: Some(uuid_of("")), ..User::prompt("Go.") }).await.unwrap();
    host.next_matching(&json!({"type": "control_request"})).await.unwrap();
    host.api().unwrap().wait_for_model_requests(1).await.unwrap();
    host
}

#[tokio::test]
async fn blocked_next_prompt_is_left_out_with_a_notice() {
    let block_prompt = json!({"decision": "block", "reason": "not allowed"});
    for (name, script) in [("before a call", tool_script().to_vec()), ("at the end", text_script().to_vec())]
    {
        let mut host = host_with_prompt_hook(script, "Secret.", block_prompt.clone()).await;
        send_and_release(&mut host, [prompt("Secret.", Priority::Next)]).await;
        let result = host.next_result().await.unwrap();
        assert_eq!(result.result.as_deref(), Some("One."), "{name}");
        assert_eq!(host.info_texts(), ["A hook blocked the prompt: not allowed"], "{name}");
        assert_eq!(result.user_message_uuids, Some(vec![uuid_of(""), uuid_of("Secret.")]), "{name}");
        host.finish().await.unwrap();
        let requests = host.model_requests();
        assert!(requests.iter().all(|request| !request.contains_text("Secret.")), "{name}");
    }
}

#[tokio::test]
async fn hook_of_a_next_prompt_adds_context_or_ends_the_turn() {
    let context = json!({"hookEventName": "UserPromptSubmit", "additionalContext": "CONTEXT"});
    let mut host =
        host_with_prompt_hook(tool_script(), "Also this.", json!({ "hookSpecificOutput": context })).await;
    send_and_release(&mut host, [prompt("Also this.", Priority::Next)]).await;
    host.next_result().await.unwrap();
    assert!(host.model_requests()[1].last_text().contains("CONTEXT"));
    host.finish().await.unwrap();
    for script in [tool_script().to_vec(), text_script().to_vec()] {
        let stop = json!({"continue": false, "stopReason": "enough"});
        let mut host = host_with_prompt_hook(script, "Stop it.", stop).await;
        send_and_release(&mut host, [prompt("Stop it.", Priority::Next)]).await;
        let result = host.next_result().await.unwrap();
        assert_eq!(json!(result.terminal_reason), "hook_stopped");
        host.finish().await.unwrap();
        assert_eq!(host.model_requests().len(), 1);
    }
}

#[tokio::test]
async fn resume_rebuilds_the_history_with_next_prompts() {
    let dirs = SessionDirs::new().unwrap();
    let mut host =
        dirs.host(tool_script().to_vec(), Options::default()).file("note", "the note").start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.api().unwrap().wait_for_model_requests(1).await.unwrap();
    send_and_release(&mut host, [prompt("Also this.", Priority::Next)]).await;
    let session = host.next_result().await.unwrap().session_id;
    let before = host.model_requests()[1].body.clone();
    host.finish().await.unwrap();
    let transcript = dirs.read_transcript(&session).unwrap();
    let messages = transcript.iter().filter(|line| line["message"].is_object() && line["isMeta"].is_null());
    let kinds: Vec<&str> =
        messages.map(|line| line["message"]["content"][0]["type"].as_str().unwrap_or("prompt")).collect();
    assert_eq!(kinds, ["prompt", "tool_use", "tool_result", "prompt", "text"]);
    let resume = Options { resume: Some(session), ..Options::default() };
    let mut host = dirs.host([Reply::text("Three.")].to_vec(), resume).start().await.unwrap();
    host.run("And now?").await.unwrap();
    let after = host.model_requests()[0].body.clone();
    host.finish().await.unwrap();
    let without_marks =
        |body: &Value| body["messages"].to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let before = without_marks(&before);
    let after = without_marks(&after);
    assert!(after.starts_with(before.strip_suffix(']').unwrap()), "{before}\n{after}");
}

#[tokio::test]
async fn next_prompt_makes_a_notification_turn_its_own() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        match request.number {
            0 => Reply::tool("Bash", json!({"command": "true", "run_in_background": true})),
            _ if text.contains("Also this.") => Reply::text("Both."),
            _ if text.contains("<task-notification>") => Reply::text("Noticed.").hold_until("first"),
            _ => Reply::text("Started."),
        }
    });
    let builder = host(script).can_use_tool(|_| whimbrel_wire::permission::PermissionResult::allow());
    let mut host = builder.start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Started."));
    host.api().unwrap().wait_for_model_requests(3).await.unwrap();
    send_and_release(&mut host, [prompt("Also this.", Priority::Next)]).await;
    let result = host.next_result().await.unwrap();
    assert_eq!((result.result.as_deref(), result.origin), (Some("Both."), None));
    assert_eq!(result.user_message_uuid, Some(uuid_of("Also this.")));
    host.finish().await.unwrap();
}
