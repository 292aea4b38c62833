//! Agents that run in the background.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::control::{BackgroundTasks, Interrupt, StopTask};
use whimbrel_wire::message::Outcome;
use whimbrel_wire::options::{AgentDefinition, Options};
use whimbrel_wire::permission::PermissionResult;
use whimbrel_wire::{Frame, Usage};

use super::{agent_input, call_agent, find_agent_id, nth_tool_use_result};

fn in_background() -> Value {
    json!({"run_in_background": true})
}

/// One background agent whose reply is held until released.
fn script() -> Script {
    Script::from_fn(|request| {
        let text = request.last_text();
        if text.contains("Look.") {
            Reply::text("Late news.").hold_until("agent")
        } else if text.contains("<task-notification>") {
            Reply::text("Noticed.")
        } else if text.contains("in the background") {
            Reply::text("Launched.")
        } else if text.contains("Go.") {
            call_agent("Look.", in_background()).tool_use_id("call_1")
        } else {
            Reply::text("Meanwhile.")
        }
    })
}

#[tokio::test]
async fn background_agent_returns_at_once_and_reports_later() {
    let mut host = Host::with_script(script()).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Launched."));
    let launched = nth_tool_use_result(&host, 0);
    let id = launched["agentId"].as_str().unwrap();
    assert_eq!((&launched["status"], &launched["isAsync"]), (&json!("async_launched"), &json!(true)));
    assert_eq!(host.run("How are you?").await.unwrap().result.as_deref(), Some("Meanwhile."));
    host.api().unwrap().release("agent");
    let last = host.next_result().await.unwrap();
    assert_eq!(last.result.as_deref(), Some("Noticed."));
    assert_eq!(last.origin.unwrap().kind, "task-notification");
    let text = host.model_requests().last().unwrap().last_text();
    for part in [id, "<status>completed</status>", "<result>Late news.</result>", "call_1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let end = &host.system_frames("task_notification")[0];
    assert_eq!(
        (&end["task_id"], &end["status"], &end["tool_use_id"]),
        (&json!(id), &json!("completed"), &json!("call_1"))
    );
    let file = end["output_file"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "Late news.");
    let lists: Vec<usize> = host
        .system_frames("background_tasks_changed")
        .iter()
        .map(|notice| notice["tasks"].as_array().unwrap().len())
        .collect();
    assert_eq!(lists, [1, 0]);
    assert_eq!(host.finish().await.unwrap().code, 0);
}

#[tokio::test]
async fn notification_waits_for_the_next_prompt_if_the_host_wants() {
    let host = Host::with_script(script()).env("WHIMBREL_NOTIFICATION_TURNS", "0");
    let mut host = host.start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Launched."));
    host.api().unwrap().release("agent");
    host.next_matching(&json!({"subtype": "task_notification"})).await.unwrap();
    let result = host.run("How are you?").await.unwrap();
    assert!(result.origin.is_none(), "the turn answers the prompt");
    let request = host.model_requests().last().unwrap().clone();
    assert!(request.contains_text("Late news.") && request.contains_text("How are you?"));
    assert_eq!(host.system_frames("init").len(), 2, "the notification starts no turn");
}

#[tokio::test]
async fn closed_input_still_delivers_background_results() {
    let mut host = Host::with_script(script()).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.finish_input();
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Launched."));
    host.api().unwrap().release("agent");
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Noticed."));
    assert_eq!(host.finish().await.unwrap().code, 0);
}

#[tokio::test]
async fn interrupt_keeps_background_agents_running() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        if text.contains("Look.") {
            Reply::text("Late news.").hold_until("agent")
        } else if text.contains("<task-notification>") {
            Reply::text("Noticed.")
        } else if text.contains("in the background") {
            Reply::text("A long story.").stall_after(2)
        } else {
            call_agent("Look.", in_background())
        }
    });
    let options = Options { include_partial_messages: true, ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.next_matching(&json!({"type": "user", "tool_use_result": {"status": "async_launched"}}))
        .await
        .unwrap();
    host.next_matching(&json!({"type": "stream_event", "event": {"type": "content_block_start"}}))
        .await
        .unwrap();
    host.send_request(Interrupt::default()).await.unwrap();
    assert_eq!(host.next_result().await.unwrap().subtype, Outcome::ErrorDuringExecution);
    host.api().unwrap().release("agent");
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Noticed."));
}

#[tokio::test]
async fn agent_stopped_by_host_is_reported_with_the_next_prompt() {
    let mut host = Host::with_script(script()).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let id = nth_tool_use_result(&host, 0)["agentId"].as_str().unwrap().to_owned();
    host.send_request(StopTask { task_id: id.clone() }).await.unwrap();
    let end = host.next_matching(&json!({"subtype": "task_notification"})).await.unwrap();
    assert_eq!((&end["task_id"], &end["status"]), (&json!(id), &json!("stopped")));
    let next = host.run("How are you?").await.unwrap();
    assert_eq!((next.result.as_deref(), next.origin), (Some("Noticed."), None));
    let requests = host.model_requests();
    assert!(
        requests.last().unwrap().contains_text("<status>stopped</status>")
            && requests.last().unwrap().contains_text(&id)
    );
    assert_eq!(host.finish().await.unwrap().code, 0);
    assert_eq!(host.system_frames("init").len(), 2, "the notification starts no turn");
}

#[tokio::test]
async fn model_polls_and_stops_a_background_agent() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        let id = find_agent_id(&text);
        if text.contains("Look.") {
            Reply::text("never").hold_until("agent")
        } else if let Some(id) = id {
            Reply::tool("TaskOutput", json!({"task_id": id, "block": false}))
        } else if let Some((id, _)) = text.split_once(": running.") {
            Reply::tool("TaskStop", json!({"task_id": id}))
        } else if text.contains("Stopped") {
            Reply::text("Done.")
        } else {
            call_agent("Look.", in_background())
        }
    });
    let mut host = Host::with_script(script).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let (look, stop) = (nth_tool_use_result(&host, 1), nth_tool_use_result(&host, 2));
    assert_eq!(
        (&look["task"]["task_type"], &look["task"]["status"]),
        (&json!("local_agent"), &json!("running"))
    );
    assert_eq!(look["task"]["output"], "", "it has not reported yet");
    assert_eq!(stop["task_type"], "local_agent");
    host.run("How are you?").await.unwrap();
    assert!(
        !host.model_requests().last().unwrap().contains_text("<status>stopped</status>"),
        "it stopped the agent itself"
    );
    assert_eq!(host.finish().await.unwrap().code, 0);
}

#[tokio::test]
async fn agent_cannot_stop_or_read_tasks_of_others() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        let id =
            |before: &str| text.split(before).nth(1).map(|rest| rest.chars().take(9).collect::<String>());
        if text.contains("Look.") {
            Reply::text("never").hold_until("agent")
        } else if let Some(id) = id("Meddle with ") {
            Reply::tool("TaskStop", json!({"task_id": id})).and_tool("TaskOutput", json!({"task_id": id}))
        } else if text.contains("belongs to another agent") {
            Reply::text("I may not.")
        } else if let Some(id) = id("agentId: ").filter(|_| !text.contains("I may not.")) {
            call_agent(&format!("Meddle with {id}"), json!({}))
        } else if text.contains("I may not.") {
            Reply::text("Done.")
        } else {
            call_agent("Look.", in_background())
        }
    });
    let mut host = Host::with_script(script).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let id = nth_tool_use_result(&host, 0)["agentId"].as_str().unwrap().to_owned();
    let answers: Vec<String> =
        super::subagent_messages(&host).iter().map(|user| user.message.content.joined_text()).collect();
    assert_eq!(
        host.system_frames("task_notification").len(),
        1,
        "only the meddling agent has ended: {answers:?}"
    );
    host.send_request(StopTask { task_id: id }).await.unwrap();
}

#[tokio::test]
async fn host_moves_a_foreground_agent_to_the_background() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        if text.contains("Look.") {
            Reply::text("Late news.").hold_until("agent")
        } else if text.contains("<task-notification>") {
            Reply::text("Noticed.")
        } else if text.contains("in the background") {
            Reply::text("Launched.")
        } else {
            call_agent("Look.", json!({})).tool_use_id("call_1")
        }
    });
    let mut host = Host::with_script(script).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.next_matching(&json!({"subtype": "task_started", "is_backgrounded": false})).await.unwrap();
    host.send_request(BackgroundTasks { tool_use_id: Some("another".into()) }).await.unwrap();
    assert!(host.system_frames("task_updated").is_empty(), "the command is not affected");
    host.send_request(BackgroundTasks { tool_use_id: Some("call_1".into()) }).await.unwrap();
    let changed = host.next_matching(&json!({"subtype": "task_updated"})).await.unwrap();
    assert_eq!(changed["patch"]["is_backgrounded"], true);
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Launched."));
    assert_eq!(nth_tool_use_result(&host, 0)["status"], "async_launched");
    host.api().unwrap().release("agent");
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Noticed."));
}

#[tokio::test]
async fn tasks_of_a_subagent_cannot_be_backgrounded_alone() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        if text.contains("Look.") {
            Reply::text("Late news.").hold_until("agent")
        } else if text.contains("Relay.") {
            call_agent("Look.", json!({})).tool_use_id("inner")
        } else if text.contains("<task-notification>") {
            Reply::text("Noticed.")
        } else if text.contains("Late news.") {
            Reply::text("Relayed.")
        } else if text.contains("in the background") {
            Reply::text("Launched.")
        } else {
            call_agent("Relay.", json!({"subagent_type": "relay"})).tool_use_id("outer")
        }
    });
    let relay = AgentDefinition {
        description: "Relays".into(),
        prompt: "YOU RELAY".into(),
        tools: Some(vec!["Agent".into()]),
        ..AgentDefinition::default()
    };
    let options = Options { agents: [("relay".to_owned(), relay)].into(), ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.next_matching(&json!({"subtype": "task_started", "tool_use_id": "inner"})).await.unwrap();
    let inner = BackgroundTasks { tool_use_id: Some("inner".into()) };
    assert_eq!(host.send_request(inner).await.unwrap().backgrounded, Some(false));
    assert_eq!(host.send_request(BackgroundTasks::default()).await.unwrap().backgrounded, Some(true));
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Launched."));
    let patched = host.system_frames("task_updated");
    assert_eq!(patched.len(), 1, "{patched:?}");
    host.api().unwrap().release("agent");
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Noticed."));
    let output = host.model_requests().last().unwrap().last_text();
    assert!(output.contains("<result>Relayed.</result>"), "TaskOutput returns the report: {output}");
    assert_eq!(host.finish().await.unwrap().code, 0);
}

#[tokio::test]
async fn host_moves_a_foreground_command_to_the_background() {
    let command = "echo before; until [ -e gate ]; do sleep 0.02; done; echo after";
    let script = Script::from_fn(move |request| {
        let text = request.last_text();
        if text.contains("<task-notification>") {
            Reply::text("Noticed.")
        } else if text.contains("to the background") {
            Reply::text("Going on.")
        } else {
            Reply::tool("Bash", json!({"command": command, "description": "wait"})).tool_use_id("call_1")
        }
    });
    let options = Options { allowed_tools: vec!["Bash".into()], ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    // Requests before the command runs have no effect, so they are repeated until it has started.
    let started = loop {
        host.send_request(BackgroundTasks { tool_use_id: Some("call_1".into()) }).await.unwrap();
        if let Some(started) = host.system_frames("task_started").pop() {
            break started.clone();
        }
    };
    assert_eq!((&started["is_backgrounded"], &started["description"]), (&json!(true), &json!("wait")));
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Going on."));
    let meta = nth_tool_use_result(&host, 0);
    assert_eq!((&meta["backgroundTaskId"], &meta["backgroundedByUser"]), (&started["task_id"], &json!(true)));
    std::fs::write(host.dirs().workspace().join("gate"), "").unwrap();
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Noticed."));
    let end = host.system_frames("task_notification").pop().unwrap();
    assert_eq!(end["status"], "completed");
    let printed = std::fs::read_to_string(end["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(printed, "before\nafter\n", "no output is lost");
}

#[tokio::test]
async fn permission_request_names_the_background_agent() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        if text.contains("Look.") {
            Reply::tool("Bash", json!({"command": "touch made"})).hold_until("agent")
        } else if text.contains("<task-notification>") {
            Reply::text("Noticed.")
        } else if text.contains("in the background") {
            Reply::text("Launched.")
        } else if text.contains("Go.") {
            call_agent("Look.", in_background())
        } else {
            Reply::text(text)
        }
    });
    let mut host = Host::with_script(script)
        .can_use_tool(|request| {
            assert!(request.agent_id.as_deref().is_some_and(|id| id.starts_with('a')));
            PermissionResult::allow()
        })
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    host.api().unwrap().release("agent");
    host.next_result().await.unwrap();
    assert!(host.dirs().files().unwrap().contains_key("made"));
}

#[tokio::test]
async fn exhausted_budget_stops_all_background_agents() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        let expensive = Usage { output_tokens: 80_000, ..Usage::default() };
        if text.contains("Spend.") {
            Reply::tool("Read", json!({"file_path": "x"})).usage(expensive).hold_until("spender")
        } else if text.contains("Wait.") {
            Reply::tool("Bash", json!({"command": "sleep 60"}))
        } else if text.contains("in the background") {
            Reply::text("Launched.").hold_until("lead")
        } else {
            call_agent("Spend.", in_background()).and_tool("Agent", agent_input("Wait.", in_background()))
        }
    });
    let options =
        Options { max_budget_usd: Some(1.0), allowed_tools: vec!["Bash".into()], ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.next_matching(&json!({"message": {"content": [{"type": "tool_use", "name": "Bash"}]}}))
        .await
        .unwrap();
    host.api().unwrap().release("lead");
    host.next_result().await.unwrap();
    host.api().unwrap().release("spender");
    assert_eq!(host.next_result().await.unwrap().subtype, Outcome::ErrorMaxBudgetUsd);
    assert_eq!(host.finish().await.unwrap().code, 1);
    assert_eq!(host.system_frames("task_notification").len(), 2);
    for end in host.system_frames("task_notification") {
        let outcome = (&end["status"], end["summary"].as_str().unwrap().contains("budget"));
        assert_eq!(outcome, (&json!("failed"), true), "{end}");
    }
    let results = host.frames().filter(|frame| matches!(frame, Frame::Result(_))).count();
    assert_eq!(results, 2, "the exhausted budget is reported once");
}

#[tokio::test]
async fn message_to_a_running_agent_extends_its_report() {
    for send_more in [
        |id: &str| Reply::tool("SendMessage", json!({"to": id, "message": "More."})),
        |id: &str| call_agent("More.", json!({"resume": id})),
    ] {
        let script = Script::from_fn(move |request| {
            let text = request.last_text();
            if text.contains("Look.") {
                Reply::text("FIRST.").hold_until("agent")
            } else if text.starts_with("More.") {
                Reply::text("SECOND.")
            } else if text.contains("<task-notification>") {
                Reply::text(text)
            } else if let Some(id) = text.split("in the background. agentId: ").nth(1)
                && request.messages().len() == 3
            {
                send_more(id.split('.').next().unwrap())
            } else if text.contains("Go.") {
                call_agent("Look.", in_background())
            } else {
                Reply::text("Away.")
            }
        });
        let mut host = Host::with_script(script).start().await.unwrap();
        host.run("Go.").await.unwrap();
        let last_message = host.model_requests().last().unwrap().messages().last().cloned().unwrap();
        assert_ne!(last_message["content"][0]["is_error"], true, "{last_message}");
        host.api().unwrap().release("agent");
        let report = host.next_result().await.unwrap().result.unwrap();
        assert!(report.contains("<result>FIRST.\n\nSECOND.</result>"), "{report}");
        let file = host.system_frames("task_notification")[0]["output_file"].as_str().unwrap().to_owned();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "FIRST.\n\nSECOND.");
    }
}

#[tokio::test]
async fn budget_exhausted_in_background_ends_the_session_with_a_result() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        let expensive = Usage { output_tokens: 80_000, ..Usage::default() };
        if text.contains("Look.") {
            Reply::tool("Read", json!({"file_path": "x"})).usage(expensive).hold_until("agent")
        } else if text.contains("in the background") {
            Reply::text("Launched.")
        } else {
            call_agent("Look.", in_background())
        }
    });
    let options = Options { max_budget_usd: Some(1.0), ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.finish_input();
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Launched."));
    host.api().unwrap().release("agent");
    let last = host.next_result().await.unwrap();
    assert_eq!((last.subtype, last.total_cost_usd > 1.0), (Outcome::ErrorMaxBudgetUsd, true));
    assert_eq!(host.system_frames("task_notification")[0]["status"], "failed");
    assert_eq!(host.finish().await.unwrap().code, 1);
    let results = host.frames().filter(|frame| matches!(frame, Frame::Result(_))).count();
    assert_eq!((results, host.model_requests().len()), (2, 3), "no further request is sent");
}
