//! Agents that the turn waits for.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, ModelRequest, Reply, Script};
use whimbrel_wire::Frame;
use whimbrel_wire::control::Interrupt;
use whimbrel_wire::options::{AgentDefinition, Options};

use super::{call_agent, find_agent_id, nth_tool_use_result, subagent_messages};

#[tokio::test]
async fn host_receives_task_frames_of_an_agent() {
    let script = [
        call_agent("Look.", json!({})).tool_use_id("call_1"),
        Reply::tool("Read", json!({"file_path": "note"})),
        Reply::text("It says hello."),
        Reply::text("Done."),
    ];
    let mut host = Host::with_script(script).file("note", "hello").start().await.unwrap();
    host.run("Go.").await.unwrap();
    let meta = nth_tool_use_result(&host, 0);
    let id = meta["agentId"].as_str().unwrap();
    assert_eq!(
        (&meta["status"], &meta["totalToolUseCount"], &meta["content"][0]["text"]),
        (&json!("completed"), &json!(1), &json!("It says hello."))
    );
    assert!((meta["costUsd"].as_f64().unwrap() - 2.0 * (100.0 * 5.0 + 10.0 * 25.0) / 1e6).abs() < 1e-9);
    let task_frames = |subtype: &str| {
        let frames = host.system_frames(subtype);
        assert!(frames.iter().all(|frame| frame["task_id"] == id), "{subtype}: {frames:?}");
        frames
    };
    let started = task_frames("task_started")[0];
    assert_eq!(
        (
            &started["task_type"],
            &started["tool_use_id"],
            &started["is_backgrounded"],
            &started["spawn_depth"]
        ),
        (&json!("local_agent"), &json!("call_1"), &json!(false), &json!(1))
    );
    assert_eq!(task_frames("task_progress")[0]["last_tool_name"], "Read");
    assert_eq!(task_frames("task_updated")[0]["patch"]["status"], "completed");
    assert_eq!(task_frames("task_notification").len(), 1);
    assert!(host.system_frames("background_tasks_changed").is_empty(), "the turn waits for the agent");
    assert!(subagent_messages(&host).iter().all(|user| user.agent_id.as_deref() == Some(id)));
    assert_eq!(host.model_requests().len(), 4, "the main agent is notified once");
}

#[tokio::test]
async fn subagent_transcript_is_written_and_text_forwarded_on_request() {
    for forward_text in [false, true] {
        let script = [call_agent("Look.", json!({})), Reply::text("Seen."), Reply::text("Done.")];
        let options = Options { forward_subagent_text: Some(forward_text), ..Options::default() };
        let mut host = Host::with_script(script).options(options).start().await.unwrap();
        host.run("Go.").await.unwrap();
        let is_subagent_text = |frame: &Frame| match frame {
            Frame::Assistant(assistant) => assistant.parent_tool_use_id.is_some(),
            _ => false,
        };
        assert_eq!(host.frames().any(is_subagent_text), forward_text);
        let id = nth_tool_use_result(&host, 0)["agentId"].as_str().unwrap().to_owned();
        host.finish().await.unwrap();
        let projects = host.dirs().home().join(".claude/projects");
        let project = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
        let session =
            std::fs::read_dir(project).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
        let dir = session.unwrap().join("subagents");
        let metadata: Value =
            serde_json::from_slice(&std::fs::read(dir.join(format!("agent-{id}.meta.json"))).unwrap())
                .unwrap();
        assert_eq!((&metadata["agentType"], &metadata["spawnDepth"]), (&json!("general-purpose"), &json!(1)));
        let lines = std::fs::read_to_string(dir.join(format!("agent-{id}.jsonl"))).unwrap();
        assert!(lines.contains("\"isSidechain\":true") && lines.contains("Seen."), "{lines}");
    }
}

#[tokio::test]
async fn text_for_all_subagents_is_appended_to_their_prompts() {
    let script = [call_agent("Look.", json!({})), Reply::text("Seen."), Reply::text("Done.")];
    let options = Options {
        extra_args: [("append-subagent-system-prompt".into(), Some("Never guess.".into()))].into(),
        ..Options::default()
    };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let prompts: Vec<String> = host.model_requests().iter().map(ModelRequest::system_prompt).collect();
    let appended: Vec<bool> =
        prompts.iter().map(|prompt| prompt.trim_end().ends_with("\n\nNever guess.")).collect();
    assert_eq!(appended, [false, true, false], "{prompts:?}");
}

#[tokio::test]
async fn failed_agent_reports_partial_result_and_reason() {
    let failing = Reply::empty().status(400).error("invalid_request_error", "no more");
    let script = [
        call_agent("Look.", json!({})),
        Reply::text("Half of it.").and_tool("Read", json!({"file_path": "note"})),
        failing,
        Reply::text("Done."),
    ];
    let mut host = Host::with_script(script).file("note", "x").start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let text = host.model_requests()[3].last_text();
    assert!(text.contains("no more") && text.contains("Half of it."), "{text}");
    let end = &host.system_frames("task_notification")[0];
    assert_eq!(end["status"], "failed");
}

#[tokio::test]
async fn interrupt_stops_all_foreground_agents() {
    let script = Script::from_fn(|request| match request.contains_text("Look.") {
        true => Reply::tool("Bash", json!({"command": "sleep 600"})),
        false => call_agent("Look.", json!({})).and_tool("Agent", super::agent_input("Look.", json!({}))),
    });
    let options = Options { allowed_tools: vec!["Bash".into()], ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    for _ in 0..2 {
        let working = |frame: &Frame| matches!(frame, Frame::Assistant(assistant) if assistant.parent_tool_use_id.is_some());
        host.next_frame(working).await.unwrap();
    }
    host.send_request(Interrupt::default()).await.unwrap();
    let result = host.next_result().await.unwrap();
    assert!(result.is_error, "{result:?}");
    let notifications = host.system_frames("task_notification");
    assert_eq!(
        notifications.iter().map(|end| end["status"].as_str().unwrap()).collect::<Vec<_>>(),
        ["stopped"; 2]
    );
}

#[tokio::test]
async fn nested_agents_are_limited_in_depth() {
    let definition = AgentDefinition {
        description: "Passes it on".into(),
        prompt: "PASS ON".into(),
        tools: Some(vec!["Agent(relay)".into(), "Read".into()]),
        ..AgentDefinition::default()
    };
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        let last = text.lines().last().unwrap_or_default();
        match last.strip_prefix("Pass on ").and_then(|depth| depth.parse::<u32>().ok()) {
            Some(depth) => call_agent(&format!("Pass on {}", depth + 1), json!({"subagent_type": "relay"})),
            None if last == "Go." => call_agent("Pass on 1", json!({"subagent_type": "relay"})),
            None => Reply::text(text),
        }
    });
    let options = Options { agents: [("relay".to_owned(), definition)].into(), ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    let result = host.run("Go.").await.unwrap().result.unwrap();
    assert!(result.contains("An agent at nesting depth 4 cannot start another agent"), "{result}");
    let started = host.system_frames("task_started");
    let depths: Vec<u64> = started.iter().map(|started| started["spawn_depth"].as_u64().unwrap()).collect();
    assert_eq!(depths, [1, 2, 3, 4]);
    assert_eq!(started[1]["parent_task_id"], started[0]["task_id"]);
    assert_eq!(host.model_requests()[1].tool_names(), ["Agent", "Read"]);
}

#[tokio::test]
async fn general_purpose_agent_has_no_agent_tool() {
    let script = [
        call_agent("Look.", json!({})),
        call_agent("Look for me.", json!({})),
        Reply::text("Alone."),
        Reply::text("Done."),
    ];
    let mut host = Host::with_script(script).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(!host.model_requests()[1].tool_names().contains(&"Agent"));
    assert!(
        host.model_requests()[2].last_text().contains("No such tool"),
        "{}",
        host.model_requests()[2].last_text()
    );
}

#[tokio::test]
async fn finished_agent_resumes_with_its_history() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        let id = find_agent_id(&text);
        if text.contains("Remember TULIP.") {
            Reply::text("I will.")
        } else if text.contains("Which flower?") {
            Reply::text(if request.contains_text("Remember TULIP.") {
                "It was TULIP."
            } else {
                "I do not know."
            })
        } else if text.contains("It was TULIP.") {
            Reply::text("Done.")
        } else if let Some(id) = id {
            call_agent("Which flower?", json!({"resume": id})).tool_use_id("call_2")
        } else {
            call_agent("Remember TULIP.", json!({}))
        }
    });
    let mut host = Host::with_script(script).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let (first, second) = (nth_tool_use_result(&host, 0), nth_tool_use_result(&host, 1));
    assert_eq!(first["agentId"], second["agentId"]);
    assert_eq!(subagent_messages(&host).last().unwrap().parent_tool_use_id.as_deref(), Some("call_2"));
}

#[tokio::test]
async fn unknown_agent_cannot_be_resumed() {
    let script = [call_agent("Which flower?", json!({"resume": "a0"})), Reply::text("Not found.")];
    let mut host = Host::with_script(script).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(
        host.model_requests()[1].last_text().contains("There is no agent a0"),
        "{}",
        host.model_requests()[1].last_text()
    );
}

/// An agent that may start others of its type.
fn relay_agent() -> AgentDefinition {
    AgentDefinition {
        description: "Passes it on".into(),
        prompt: "PASS ON".into(),
        tools: Some(vec!["Agent(relay)".into(), "Read".into()]),
        ..AgentDefinition::default()
    }
}

#[tokio::test]
async fn agent_cannot_resume_agents_of_another_parent() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        match () {
            () if text.contains("Stay.") => Reply::text("Stayed.").hold_until("others"),
            () if text.contains("Look.") => Reply::text("Seen."),
            // The relay receives both ids and tries to resume them.
            () if text.contains("Take over ") => {
                let ids = text.split("Take over ").nth(1).unwrap().lines().next().unwrap().to_owned();
                ids.split(' ').fold(Reply::empty(), |reply, id| {
                    reply.and_tool(
                        "Agent",
                        super::agent_input("MINE NOW", json!({"resume": id, "subagent_type": "relay"})),
                    )
                })
            }
            () if request.system_prompt() == "PASS ON" => Reply::text(text),
            () if text.contains("task-notification") => Reply::text("Noticed."),
            () if text.contains("Go.") => call_agent("Look.", json!({})),
            () if text.contains("Seen.") => {
                let ended = find_agent_id(&text).unwrap();
                call_agent("Stay.", json!({"run_in_background": true, "description": ended}))
            }
            () if text.contains("in the background") => {
                let calls = json!(request.messages()).to_string();
                let ids = [find_agent_id(&calls), find_agent_id(&text)].map(Option::unwrap);
                call_agent(&format!("Take over {} {}", ids[0], ids[1]), json!({"subagent_type": "relay"}))
            }
            () => Reply::text(text),
        }
    });
    let options = Options { agents: [("relay".to_owned(), relay_agent())].into(), ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    let result = host.run("Go.").await.unwrap().result.unwrap();
    assert_eq!(result.matches("was started by another agent").count(), 2, "{result}");
    host.api().unwrap().release("others");
    assert_eq!(host.finish().await.unwrap().code, 0);
    let was_delivered =
        host.model_requests().iter().any(|request| request.last_text().starts_with("MINE NOW"));
    assert!(!was_delivered, "no other agent receives the prompt");
}

#[tokio::test]
async fn budget_exhausted_by_subagent_ends_the_turn() {
    let expensive = whimbrel_wire::Usage { output_tokens: 80_000, ..whimbrel_wire::Usage::default() };
    let script = Script::from_fn(move |request| {
        match request.contains_text("Look.") && !request.contains_text("Go.") {
            true => Reply::tool("Read", json!({"file_path": "x"})).usage(expensive.clone()),
            false => call_agent("Look.", json!({})),
        }
    });
    let options = Options { max_budget_usd: Some(1.0), ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    let result = host.run("Go.").await.unwrap();
    assert_eq!(result.subtype, whimbrel_wire::message::Outcome::ErrorMaxBudgetUsd);
    assert!(
        result.total_cost_usd > 1.0 && host.model_requests().len() == 2,
        "{} calls",
        host.model_requests().len()
    );
    assert_eq!(host.system_frames("task_notification").len(), 1, "the host is notified");
}

#[tokio::test]
async fn partial_messages_of_agents_follow_text_forwarding() {
    for forward in [false, true] {
        let script = [
            call_agent("Look.", json!({})).tool_use_id("call_1"),
            Reply::text("Hm.").and_tool("Read", json!({"file_path": "note"})),
            Reply::text("Seen."),
            Reply::text("Done."),
        ];
        let options = Options {
            include_partial_messages: true,
            forward_subagent_text: Some(forward),
            ..Default::default()
        };
        let mut host = Host::with_script(script).options(options).file("note", "x").start().await.unwrap();
        host.run("Go.").await.unwrap();
        let events: Vec<(String, bool)> = host
            .received()
            .iter()
            .map(|received| &received.json)
            .filter(|json| json["type"] == "stream_event" && json["event"]["type"] == "content_block_start")
            .map(|json| {
                let block = json["event"]["content_block"]["type"].as_str().unwrap().to_owned();
                (block, json["parent_tool_use_id"] == "call_1")
            })
            .collect();
        let expected: &[(&str, bool)] = match forward {
            true => {
                &[("tool_use", false), ("text", true), ("tool_use", true), ("text", true), ("text", false)]
            }
            false => &[("tool_use", false), ("tool_use", true), ("text", false)],
        };
        let expected: Vec<_> =
            expected.iter().map(|(block, from_subagent)| ((*block).to_owned(), *from_subagent)).collect();
        assert_eq!(events, expected, "forward: {forward}");
    }
}
