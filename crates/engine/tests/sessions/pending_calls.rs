//! `resume_pending_calls`: calls that were recorded but never started, because their engine was killed, are asked for
//! again. Without the request, a resumed session behaves as before.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, HostResponse, Reply, SessionDirs};
use whimbrel_wire::control::{Interrupt, PendingCall, Response, ResumePendingCalls};
use whimbrel_wire::options::{Options, PermissionPromptTool};
use whimbrel_wire::permission::PermissionResult;

use super::fixture::{joined_texts, resume_options};

/// A reply with two commands, each of which needs permission.
fn two_commands() -> Reply {
    Reply::text("I begin.")
        .and_tool("Bash", touch("one"))
        .tool_use_id("call_1")
        .and_tool("Bash", touch("two"))
        .tool_use_id("call_2")
}

fn touch(name: &str) -> Value {
    json!({"command": format!("touch {name}"), "description": "Create a file"})
}

/// A session whose engine was killed after it had recorded these calls; only the named ones had started.
async fn killed_session(dirs: &SessionDirs, started: &[&str]) -> String {
    let mut host = dirs
        .host([two_commands(), Reply::text("Done.")], Options::default())
        .can_use_tool(|_| PermissionResult::deny("No."))
        .start()
        .await
        .unwrap();
    let session = host.run("Go.").await.unwrap().session_id;
    host.finish().await.unwrap();
    let lines = dirs.read_transcript(&session).unwrap();
    let last_call =
        lines.iter().rposition(|line| line["message"]["content"][0]["type"] == "tool_use").unwrap();
    let starts =
        started.iter().map(|call| json!({"type": "tool-start", "toolUseID": call, "sessionId": session}));
    let kept: Vec<Value> = lines[..=last_call].iter().cloned().chain(starts).collect();
    let text: String = kept.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&dirs.transcript_paths().unwrap()[0], text).unwrap();
    session
}

/// A host that resumes the session and allows every call.
fn resuming_host(dirs: &SessionDirs, session: &str) -> HostBuilder {
    let script = [Reply::text("Done."), Reply::text("And again.")];
    dirs.host(script, resume_options(session)).can_use_tool(|_| PermissionResult::allow())
}

fn asked_calls(host: &Host) -> Vec<&Value> {
    host.permission_requests().into_iter().map(|request| &request["tool_use_id"]).collect()
}

/// Types of the blocks in the last message of the last model request, and the results among them.
fn last_blocks(host: &Host) -> (Vec<String>, Vec<String>) {
    let requests = host.model_requests();
    let blocks = requests.last().unwrap().messages().last().unwrap()["content"].as_array().unwrap().clone();
    let types = blocks.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect();
    let results = blocks.iter().filter_map(|block| block["content"].as_str()).map(str::to_owned).collect();
    (types, results)
}

#[tokio::test]
async fn calls_that_never_started_are_asked_again() {
    let dirs = SessionDirs::new().unwrap();
    let session = killed_session(&dirs, &[]).await;
    let context =
        json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "echo CONTEXT"}]}]}});
    let mut host = resuming_host(&dirs, &session)
        .configure(|options| options.settings = Some(context.to_string()))
        .start()
        .await
        .unwrap();
    let calls = host.send_request(ResumePendingCalls {}).await.unwrap().calls;
    let pending = |id: &str, name: &str| PendingCall {
        tool_use_id: id.into(),
        tool_name: "Bash".into(),
        input: touch(name),
    };
    assert_eq!(calls, [pending("call_1", "one"), pending("call_2", "two")]);
    let result = host.next_result().await.unwrap();
    assert_eq!((result.result.as_deref(), result.session_id.as_str()), (Some("Done."), session.as_str()));
    assert_eq!(asked_calls(&host), ["call_1", "call_2"]);
    assert!(["one", "two"].iter().all(|name| dirs.work_dir().join(name).exists()));
    assert_eq!(host.model_requests().len(), 1, "the model is called with the results only");
    assert!(host.model_requests()[0].contains_text("CONTEXT"));
    let (types, _) = last_blocks(&host);
    assert_eq!(types[..2], ["tool_result", "tool_result"], "providers want the results first: {types:?}");
    let again = host.send_request(ResumePendingCalls {}).await.unwrap();
    assert_eq!(again.calls, []);
    host.run("Next.").await.unwrap();
    host.finish().await.unwrap();
    let mut host = resuming_host(&dirs, &session).start().await.unwrap();
    host.run("Last.").await.unwrap();
    let body = host.model_requests()[0].body.clone();
    assert!(joined_texts(&body).ends_with("Done. Next. And again. Last."), "{body}");
    assert!(!body.to_string().contains("No result"), "{body}");
}

#[tokio::test]
async fn calls_that_had_started_are_not_run_again() {
    let dirs = SessionDirs::new().unwrap();
    let session = killed_session(&dirs, &["call_1"]).await;
    let mut host = resuming_host(&dirs, &session).start().await.unwrap();
    assert_eq!(host.send_request(ResumePendingCalls {}).await.unwrap().calls.len(), 1);
    host.next_result().await.unwrap();
    assert_eq!(asked_calls(&host), ["call_2"]);
    assert_eq!(["one", "two"].map(|name| dirs.work_dir().join(name).exists()), [false, true]);
    let (_, results) = last_blocks(&host);
    assert!(results[0].starts_with("Outcome unknown"), "{results:?}");
    let shown = host.received().iter().find(|received| received.json["type"] == "user").unwrap();
    assert_eq!(shown.json["message"]["content"][0]["tool_use_id"], "call_1", "the host learns of it");

    let dirs = SessionDirs::new().unwrap();
    let session = killed_session(&dirs, &["call_1", "call_2"]).await;
    let mut host = resuming_host(&dirs, &session).start().await.unwrap();
    assert_eq!(host.send_request(ResumePendingCalls {}).await.unwrap().calls, []);
    assert_eq!(host.finish().await.unwrap().code, 0);
    assert_eq!(host.system_frames("init").len(), 0, "no turn starts");
}

#[tokio::test]
async fn prompt_after_resume_asks_for_no_old_call() {
    let dirs = SessionDirs::new().unwrap();
    let session = killed_session(&dirs, &[]).await;
    let mut host = resuming_host(&dirs, &session).start().await.unwrap();
    host.run("Do something else.").await.unwrap();
    assert_eq!(asked_calls(&host), [""; 0]);
    let (_, results) = last_blocks(&host);
    assert!(
        results.len() == 2 && results.iter().all(|result| result.starts_with("No result")),
        "{results:?}"
    );
    assert_eq!(
        host.send_request(ResumePendingCalls {}).await.unwrap().calls,
        [],
        "the prompt has replaced them"
    );
}

#[tokio::test]
async fn interrupted_question_ends_the_call() {
    let dirs = SessionDirs::new().unwrap();
    let session = killed_session(&dirs, &[]).await;
    let options =
        Options { permission_prompt_tool: Some(PermissionPromptTool::Stdio), ..resume_options(&session) };
    let mut host = dirs
        .host([Reply::text("Done.")], options)
        .on_request(|_| HostResponse::NoResponse)
        .start()
        .await
        .unwrap();
    host.send_request(ResumePendingCalls {}).await.unwrap();
    host.next_matching(&json!({"type": "control_request"})).await.unwrap();
    let error = host.send_raw_request(json!({"subtype": "resume_pending_calls"})).await.unwrap();
    assert!(
        matches!(&error, Response::Error { error_code, .. } if error_code.as_deref() == Some("turn_running"))
    );
    host.send_request(Interrupt::default()).await.unwrap();
    assert!(host.next_result().await.unwrap().is_error);
    host.run("Next.").await.unwrap();
    let (types, results) = last_blocks(&host);
    assert_eq!(types[..2], ["tool_result", "tool_result"]);
    assert!(results.iter().all(|result| result.contains("Not started")), "{results:?}");
}

#[tokio::test]
async fn pending_calls_need_a_transcript() {
    let dirs = SessionDirs::new().unwrap();
    let session = killed_session(&dirs, &[]).await;
    let mut host = resuming_host(&dirs, &session)
        .configure(|options| options.persist_session = Some(false))
        .start()
        .await
        .unwrap();
    let response = host.send_raw_request(json!({"subtype": "resume_pending_calls"})).await.unwrap();
    assert!(
        matches!(&response, Response::Error { error, .. } if error.starts_with("This session is not stored")),
        "{response:?}"
    );
    let mut new = dirs.host([Reply::text("Hi.")], Options::default()).start().await.unwrap();
    assert_eq!(new.send_request(ResumePendingCalls {}).await.unwrap().calls, []);
}

#[tokio::test]
async fn stopped_session_leaves_its_questions_open() {
    let dirs = SessionDirs::new().unwrap();
    let options = Options { permission_prompt_tool: Some(PermissionPromptTool::Stdio), ..Options::default() };
    let mut host =
        dirs.host([two_commands()], options).on_request(|_| HostResponse::NoResponse).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    let session = host.next_matching(&json!({"subtype": "init"})).await.unwrap()["session_id"].clone();
    host.next_matching(&json!({"type": "control_request"})).await.unwrap();
    // Stops the session, as a program does that is told to end.
    drop(host);
    let mut host = resuming_host(&dirs, session.as_str().unwrap()).start().await.unwrap();
    assert_eq!(host.send_request(ResumePendingCalls {}).await.unwrap().calls.len(), 2);
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Done."));
    let body = host.model_requests()[0].body.to_string();
    assert!(!body.contains("interrupted"), "{body}");
}
