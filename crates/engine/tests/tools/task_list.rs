//! Task lists: TodoWrite or task tools, persistence and hooks.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostResponse, Reply, SessionDirs};
use whimbrel_wire::control::Initialize;
use whimbrel_wire::options::Options;

fn session_tools(host: &Host) -> Vec<String> {
    let init = host.init_frame().unwrap();
    serde_json::from_value(init["tools"].clone()).unwrap()
}

/// The `tool_use_result` of every call so far.
fn tool_use_results(host: &Host) -> Vec<Value> {
    let results = host.received().iter().filter(|received| !received.json["tool_use_result"].is_null());
    results.map(|received| received.json["tool_use_result"].clone()).collect()
}

fn create_task(subject: &str) -> Reply {
    Reply::tool("TaskCreate", json!({"subject": subject, "description": "d"}))
}

#[tokio::test]
async fn session_offers_either_todo_or_task_tools() {
    for (variable, todo) in [(None, false), (Some("1"), false), (Some("0"), true), (Some("false"), true)] {
        let mut host = Host::with_script([Reply::text("1")]);
        if let Some(value) = variable {
            host = host.env("CLAUDE_CODE_ENABLE_TASKS", value);
        }
        let mut host = host.start().await.unwrap();
        host.run("Hi.").await.unwrap();
        let tools = session_tools(&host);
        let has_tool = |name: &str| tools.iter().any(|tool| tool == name);
        assert_eq!(
            (has_tool("TodoWrite"), has_tool("TaskCreate"), has_tool("TaskList")),
            (todo, !todo, !todo),
            "{variable:?}"
        );
        assert_eq!(host.model_requests()[0].tool_names().contains(&"TodoWrite"), todo, "{variable:?}");
    }
}

#[tokio::test]
async fn task_list_survives_resume() {
    let dirs = SessionDirs::new().unwrap();
    let script = [create_task("Build"), create_task("Test"), Reply::text("1")];
    let mut host = dirs.host(script, Options::default()).start().await.unwrap();
    let session = host.run("Plan it.").await.unwrap().session_id;
    host.finish().await.unwrap();
    assert!(dirs.config_dir().join("tasks").join(&session).join("2.json").exists());
    let script = [
        Reply::tool("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
        Reply::tool("TaskList", json!({})),
        Reply::text("2"),
    ];
    let options = Options { resume: Some(session), ..Options::default() };
    let mut host = dirs.host(script, options).start().await.unwrap();
    host.run("Go on.").await.unwrap();
    let results = tool_use_results(&host);
    let change = json!({"from": "pending", "to": "completed"});
    let updated =
        json!({"success": true, "taskId": "1", "updatedFields": ["status"], "statusChange": change});
    assert_eq!(results[0], updated);
    let task = |id: &str, subject: &str, status: &str| json!({"id": id, "subject": subject, "status": status, "blockedBy": []});
    assert_eq!(results[1], json!({"tasks": [task("1", "Build", "completed"), task("2", "Test", "pending")]}));
}

#[tokio::test]
async fn task_list_of_unsaved_session_stays_in_memory() {
    let options = Options { persist_session: Some(false), ..Options::default() };
    let script = [create_task("Build"), Reply::tool("TaskGet", json!({"taskId": "1"})), Reply::text("1")];
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.run("Plan it.").await.unwrap();
    assert_eq!(tool_use_results(&host)[1]["task"]["subject"], "Build");
    assert!(!host.dirs().home().join(".claude/tasks").exists());
}

#[tokio::test]
async fn hooks_can_block_task_creation_and_completion() {
    let script = [
        create_task("Nonsense"),
        create_task("Sense"),
        Reply::tool("TaskUpdate", json!({"taskId": "2", "status": "completed"})),
        Reply::tool("TaskList", json!({})),
        Reply::text("1"),
    ];
    let mut host = Host::with_script(script)
        .on_request(|request| {
            let request_json = serde_json::to_value(request).unwrap();
            let input = &request_json["input"];
            let is_blocked =
                input["task_subject"] == "Nonsense" || input["hook_event_name"] == "TaskCompleted";
            HostResponse::Success(if is_blocked {
                json!({"decision": "block", "reason": "not like this"})
            } else {
                json!({})
            })
        })
        .start()
        .await
        .unwrap();
    let hook = json!([{"hookCallbackIds": ["h"]}]);
    let hooks = json!({"hooks": {"TaskCreated": hook, "TaskCompleted": hook}});
    host.send_request(serde_json::from_value::<Initialize>(hooks).unwrap()).await.unwrap();
    host.run("Plan it.").await.unwrap();
    let results = tool_use_results(&host);
    assert!(results[0].as_str().unwrap().contains("not like this"), "{results:?}");
    assert!(results[2].as_str().unwrap().contains("not like this"), "{results:?}");
    assert_eq!(results[3]["tasks"][0]["subject"], "Sense");
    assert_eq!(results[3]["tasks"].as_array().unwrap().len(), 1);
}
