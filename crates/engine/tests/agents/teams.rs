//! Teams: named agents that stay alive between tasks and send each other messages.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, ModelRequest, Reply, Script};
use whimbrel_wire::control::StopTask;

use super::{agent_input, find_agent_id, nth_tool_use_result};

fn host(script: impl Into<Script>) -> HostBuilder {
    Host::with_script(script).env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
}

fn create_team() -> Reply {
    Reply::tool("TeamCreate", json!({"team_name": "crew", "description": "d"}))
}

fn teammate_input(name: &str, prompt: &str) -> Value {
    agent_input(prompt, json!({"name": name, "team_name": "crew"}))
}

fn message_input(to: &str, content: &str) -> Value {
    json!({"type": "message", "recipient": to, "content": content, "summary": "news"})
}

/// The teammate that makes the request; `None` for the lead.
fn teammate_name(request: &ModelRequest) -> Option<&'static str> {
    ["m1", "m2"].into_iter().find(|name| request.system_prompt().contains(&format!("You are {name},")))
}

/// The stored mailbox of a team member.
fn read_mailbox(host: &Host, name: &str) -> Vec<Value> {
    let path = host.dirs().home().join(".claude/teams/crew/inboxes").join(format!("{name}.json"));
    let bytes = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// The lead creates a team of two; each teammate sends a message once its reply is released.
fn two_teammates(request: &ModelRequest) -> Reply {
    let text = request.last_text();
    match teammate_name(request) {
        Some(name) if text.contains("Delivered") => Reply::text(format!("{name} is done.")),
        Some(name) => Reply::tool("SendMessage", message_input("team-lead", &format!("Found by {name}.")))
            .hold_until(name),
        None if text.contains("Created the team") => Reply::tool("Agent", teammate_input("m1", "Search."))
            .and_tool("Agent", teammate_input("m2", "Search.")),
        None if text.contains("has joined") => Reply::text("Dispatched."),
        None if text.contains("teammate-message") => Reply::text("Noted."),
        None => create_team(),
    }
}

#[tokio::test]
async fn message_wakes_the_lead_after_its_input_closed() {
    let mut host = host(Script::from_fn(two_teammates)).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    host.finish_input();
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Dispatched."));
    let joined = nth_tool_use_result(&host, 1);
    assert_eq!((&joined["status"], &joined["agent_id"]), (&json!("teammate_spawned"), &json!("m1@crew")));
    assert_eq!(host.system_frames("task_started")[0]["task_type"], "in_process_teammate");
    for name in ["m1", "m2"] {
        host.api().unwrap().release(name);
        let result = host.next_result().await.unwrap();
        assert_eq!(
            (result.result.as_deref(), result.origin.unwrap().kind.as_str()),
            (Some("Noted."), "peer")
        );
        let was_delivered = host.model_requests().iter().any(|request| {
            let text = request.last_text();
            text.contains(&format!("<teammate-message teammate_id=\"{name}\""))
                && text.contains(&format!("Found by {name}."))
        });
        assert!(was_delivered, "{name}");
    }
    assert_eq!(host.finish().await.unwrap().code, 0, "the session does not wait for idle teammates");
    let messages = read_mailbox(&host, "team-lead");
    let idle =
        messages.iter().filter(|message| message["text"].as_str().unwrap().contains("idle_notification"));
    assert_eq!((messages.len(), idle.count()), (4, 2), "{messages:?}");
    let first = host.model_requests().into_iter().find(|request| teammate_name(request).is_some()).unwrap();
    assert!(first.contains_text("<teammate-message teammate_id=\"team-lead\""), "{:?}", first.messages());
    let tools = first.tool_names();
    assert!(tools.contains(&"SendMessage"), "{tools:?}");
    for absent in ["TeamCreate", "TeamDelete", "Agent", "AskUserQuestion"] {
        assert!(!tools.contains(&absent), "{absent}");
    }
}

#[tokio::test]
async fn teammate_keeps_history_and_exits_on_approved_shutdown() {
    let script = Script::from_fn(|model_request| {
        let text = model_request.last_text();
        if teammate_name(model_request).is_some() {
            if text.contains("shutdown_request") {
                let request = text.split("\"requestId\":\"").nth(1).unwrap().split('"').next().unwrap();
                let input = json!({"type": "shutdown_response", "request_id": request, "approve": true});
                return Reply::tool("SendMessage", input);
            }
            if text.contains("Delivered") {
                return Reply::text("Good.");
            }
            let known = if model_request.contains_text("Remember TULIP.") { "TULIP" } else { "nothing" };
            return Reply::tool("SendMessage", message_input("team-lead", &format!("I know {known}.")));
        }
        if text.contains("Created the team") {
            return Reply::tool("Agent", teammate_input("m1", "Remember TULIP."));
        }
        if text.contains("shutdown_approved") {
            return Reply::tool("TeamDelete", json!({}));
        }
        if text.contains("Which flower?") {
            return Reply::tool("SendMessage", message_input("m1", "Which flower?"));
        }
        if text.contains("Shut it down.") {
            return Reply::tool(
                "SendMessage",
                json!({"type": "shutdown_request", "recipient": "m1", "content": "done"}),
            );
        }
        match text.contains("Go.") {
            true => create_team(),
            false => Reply::text("Fine."),
        }
    });
    let mut host = host(script).start().await.unwrap();
    for prompt in ["Go.", "Which flower?"] {
        host.run(prompt).await.unwrap();
        let result = host.next_result().await.unwrap();
        assert_eq!(result.origin.unwrap().kind, "peer", "{prompt}");
    }
    assert!(
        host.model_requests()
            .iter()
            .any(|request| teammate_name(request).is_none() && request.contains_text("I know TULIP."))
    );
    host.run("Shut it down.").await.unwrap();
    host.finish().await.unwrap();
    let notifications = host.system_frames("task_notification");
    assert_eq!((notifications.len(), &notifications[0]["status"]), (1, &json!("completed")));
    assert!(!host.dirs().home().join(".claude/teams/crew").exists(), "the files of the team are deleted");
}

#[tokio::test]
async fn message_limit_ends_endless_exchange() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        match teammate_name(request) {
            Some(_) if text.contains("reached its limit") => Reply::text("Enough."),
            Some("m1") => Reply::tool("SendMessage", message_input("m2", "ping")),
            Some(_) => Reply::tool("SendMessage", message_input("m1", "pong")),
            None if text.contains("Created the team") => Reply::tool("Agent", teammate_input("m1", "Talk."))
                .and_tool("Agent", teammate_input("m2", "Talk.")),
            None if text.contains("Go.") => create_team(),
            None => Reply::text("Fine."),
        }
    });
    let mut host = host(script).env("WHIMBREL_TEAM_MAX_MESSAGES", "12").start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    assert!(host.model_requests().len() < 60, "{}", host.model_requests().len());
}

#[tokio::test]
async fn failed_and_stopped_teammates_are_reported_to_the_lead() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        match teammate_name(request) {
            Some("m1") => Reply::empty().status(400).error("invalid_request_error", "no more"),
            Some(_) => Reply::text("never").hold_until("m2"),
            None if text.contains("Created the team") => Reply::tool("Agent", teammate_input("m1", "Fail."))
                .and_tool("Agent", teammate_input("m2", "Hang.")),
            None if text.contains("Go.") => create_team(),
            None => Reply::text(text),
        }
    });
    let mut host = host(script).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let result = host.next_result().await.unwrap().result.unwrap();
    assert!(result.contains("teammate_id=\"m1\"") && result.contains("no more"), "{result}");
    let hanging = nth_tool_use_result(&host, 2)["task_id"].as_str().unwrap().to_owned();
    host.send_request(StopTask { task_id: hanging.clone() }).await.unwrap();
    let end = host.next_matching(&json!({"subtype": "task_notification", "task_id": hanging})).await.unwrap();
    assert_eq!(end["status"], "stopped");
    host.run("And now?").await.unwrap();
    let output = host.model_requests().last().unwrap().last_text();
    assert!(
        output.contains("m2 was stopped and has left the team.") && output.contains("And now?"),
        "{output}"
    );
    assert_eq!(host.finish().await.unwrap().code, 0);
}

#[tokio::test]
async fn without_teams_named_agents_can_still_get_messages() {
    let mut without_teams = Host::with_script([Reply::text("Hello.")]).start().await.unwrap();
    without_teams.run("Hello?").await.unwrap();
    assert!(!without_teams.model_requests()[0].tool_names().contains(&"TeamCreate"));

    let script = Script::from_fn(|request| {
        let text = request.last_text();
        if text.contains("Remember TULIP.") {
            Reply::text("I will.")
        } else if text.contains("Which flower?") && text.starts_with("Which") {
            Reply::text(if request.contains_text("Remember TULIP.") { "TULIP" } else { "none" })
        } else if text.contains("<result>I will.</result>") {
            Reply::tool("SendMessage", json!({"to": "scout", "message": "Which flower?"}))
        } else if text.contains("<result>TULIP</result>") {
            Reply::text("It was TULIP.")
        } else if text.contains("Go.") {
            Reply::tool(
                "Agent",
                agent_input("Remember TULIP.", json!({"name": "scout", "run_in_background": true})),
            )
        } else {
            Reply::text("Away.")
        }
    });
    let mut host = Host::with_script(script).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    for expected in ["Away.", "Away.", "It was TULIP."] {
        assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some(expected));
    }
    let first = &host.model_requests()[0];
    assert!(
        !first.tool_names().contains(&"SendMessage") && first.contains_text("SendMessage"),
        "the tool is deferred"
    );
}

#[tokio::test]
async fn plan_mode_teammate_cannot_write_before_approval() {
    let write = || Reply::tool("Write", json!({"file_path": "made", "content": "x"}));
    let script = Script::from_fn(move |model_request| {
        let text = model_request.last_text();
        if teammate_name(model_request).is_some() {
            let starts = text.contains("Build it.") && model_request.messages().len() == 1;
            return if starts || text.contains("plan_approval_response") {
                write()
            } else if text.contains("Delivered") || model_request.contains_text("plan_approval_response") {
                Reply::text("So be it.")
            } else {
                Reply::tool("SendMessage", json!({"type": "plan_approval_request", "content": "THE PLAN"}))
            };
        }
        if text.contains("Created the team") {
            let first = json!({"name": "m1", "mode": "plan"});
            return Reply::tool("Agent", agent_input("Build it.", first));
        }
        match text.contains("THE PLAN") {
            true => {
                let request = text.split("\"requestId\":\"").nth(1).unwrap().split('"').next().unwrap();
                let stale = json!({"type": "plan_approval_response", "recipient": "m1", "request_id": "plan-1@m1", "approve": true});
                let approval = json!({"type": "plan_approval_response", "recipient": "m1", "request_id": request, "approve": true});
                Reply::tool("SendMessage", stale).and_tool("SendMessage", approval)
            }
            false if text.contains("Go.") => create_team(),
            false => Reply::text("Fine."),
        }
    });
    let mode = whimbrel_wire::permission::PermissionMode::AcceptEdits;
    let mut host =
        host(script).configure(|options| options.permission_mode = Some(mode)).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    assert_eq!(nth_tool_use_result(&host, 1)["plan_mode_required"], true);
    assert!(host.dirs().files().unwrap().contains_key("made"), "the file is written after approval");
    let requests = host.model_requests();
    let teammate_texts: Vec<String> = requests
        .iter()
        .filter(|request| teammate_name(request).is_some())
        .map(ModelRequest::last_text)
        .collect();
    assert!(
        !teammate_texts[1].contains("plan_approval_response"),
        "the first attempt is denied: {}",
        teammate_texts[1]
    );
    let lead_texts = requests
        .iter()
        .filter(|request| teammate_name(request).is_none())
        .map(ModelRequest::last_text)
        .collect::<String>();
    assert!(lead_texts.contains("plan-1@m1 is outdated"), "{lead_texts}");
    let teammate_messages =
        json!(requests.iter().rfind(|request| teammate_name(request).is_some()).unwrap().messages())
            .to_string();
    assert!(teammate_messages.contains("You are in plan mode: your lead wants"), "{teammate_messages}");
    assert!(teammate_messages.contains("Plan mode is over"), "{teammate_messages}");
    assert!(
        !teammate_messages.contains("the agent that started you makes the plan"),
        "the teammate writes its own plan: {teammate_messages}"
    );
}

#[tokio::test]
async fn teammate_of_a_planning_session_needs_no_plan() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        match teammate_name(request) {
            Some(_) if text.contains("Build it.") => {
                Reply::tool("SendMessage", json!({"type": "plan_approval_request", "content": "THE PLAN"}))
            }
            Some(_) => Reply::text("I see."),
            None if text.contains("Created the team") => {
                Reply::tool("Agent", teammate_input("m1", "Build it."))
            }
            None if text.contains("Go.") => create_team(),
            None => Reply::text("Fine."),
        }
    });
    let mode = whimbrel_wire::permission::PermissionMode::Plan;
    let mut host =
        host(script).configure(|options| options.permission_mode = Some(mode)).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    let requests = host.model_requests();
    let teammate_requests: Vec<&ModelRequest> =
        requests.iter().filter(|request| teammate_name(request).is_some()).collect();
    assert!(
        teammate_requests[0].contains_text("The session is in plan mode")
            && teammate_requests[0].contains_text("the agent that started you makes the plan")
    );
    assert!(
        teammate_requests[1].last_text().contains("Your lead requires no plan"),
        "{}",
        teammate_requests[1].last_text()
    );
}

#[tokio::test]
async fn team_fields_of_agent_tool_appear_only_with_teams() {
    let fields = |request: &ModelRequest| -> Vec<String> {
        let tools = request.body["tools"].as_array().unwrap();
        let agent = tools.iter().find(|tool| tool["name"] == "Agent").unwrap();
        agent["input_schema"]["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let mut lead = host([Reply::text("Hello.")]).start().await.unwrap();
    lead.run("Hello?").await.unwrap();
    let mut alone = Host::with_script([Reply::text("Hello.")]).start().await.unwrap();
    alone.run("Hello?").await.unwrap();
    let (lead, alone) = (fields(&lead.model_requests()[0]), fields(&alone.model_requests()[0]));
    for field in ["name", "team_name", "mode", "resume"] {
        assert!(lead.iter().any(|known| known == field), "{field}: {lead:?}");
        assert!(!alone.iter().any(|known| known == field), "{field}: {alone:?}");
    }
    assert!(alone.iter().all(|field| lead.contains(field)), "{alone:?}");
}

#[tokio::test]
async fn lead_without_teammates_cannot_send_messages() {
    let script = Script::from_fn(|request| match request.last_text() {
        text if text.contains("Created the team") => {
            Reply::tool("SendMessage", json!({"type": "broadcast", "content": "Hello?"}))
                .and_tool("SendMessage", json!({"type": "broadcast", "content": " "}))
                .and_tool("SendMessage", json!({"recipient": "m1"}))
        }
        text if text.contains("Go.") => create_team(),
        text => Reply::text(text),
    });
    let mut host = host(script).start().await.unwrap();
    let result = host.run("Go.").await.unwrap().result.unwrap();
    assert!(result.contains("no other members"), "{result}");
    assert_eq!(result.matches("`content` is missing").count(), 2, "{result}");
}

#[tokio::test]
async fn resumed_agent_does_not_join_the_team() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        let id = find_agent_id(&text);
        match id {
            _ if text.contains("Which flower?") => Reply::text("TULIP"),
            _ if text.contains("Look.") => Reply::text("Seen."),
            Some(id) if text.contains("Seen.") => {
                Reply::tool("Agent", agent_input("Which flower?", json!({"name": "m1", "resume": id})))
            }
            _ if text.contains("Created the team") => Reply::tool("Agent", agent_input("Look.", json!({}))),
            _ if text.contains("Go.") => create_team(),
            _ => Reply::text(text),
        }
    });
    let mut host = host(script).start().await.unwrap();
    let result = host.run("Go.").await.unwrap().result.unwrap();
    assert!(result.contains("TULIP"), "{result}");
    assert_eq!(
        (&nth_tool_use_result(&host, 2)["status"], &nth_tool_use_result(&host, 1)["agentId"]),
        (&json!("completed"), &nth_tool_use_result(&host, 2)["agentId"])
    );
}

#[tokio::test]
async fn identical_messages_are_both_delivered() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        match teammate_name(request) {
            Some(_) if text.contains("Delivered") => Reply::text("Told.").hold_until("never mind"),
            Some(_) => Reply::tool("SendMessage", message_input("team-lead", "ECHO"))
                .and_tool("SendMessage", message_input("team-lead", "ECHO")),
            None if text.contains("Created the team") => Reply::tool("Agent", teammate_input("m1", "Call.")),
            None if text.contains("has joined") => Reply::text("Busy.").hold_until("lead"),
            None if text.contains("Go.") => create_team(),
            None => Reply::text(text.matches("ECHO").count().to_string()),
        }
    });
    let mut host = host(script).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    for _ in 0..2 {
        host.next_matching(&json!({"type": "user", "tool_use_result": {"delivered": true}})).await.unwrap();
    }
    host.api().unwrap().release("lead");
    host.next_result().await.unwrap();
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("2"));
}

#[tokio::test]
async fn list_agents_shows_reachable_agents() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        match teammate_name(request) {
            Some(_) if text.contains("team lead") => Reply::text("Not alone."),
            Some(_) => Reply::tool("ListAgents", json!({})).hold_until("mate"),
            None if text.contains("Look.") => Reply::text("Seen."),
            None if text.contains("Created the team") => Reply::tool("Agent", teammate_input("m1", "Rest.")),
            None if text.contains("has joined") => Reply::tool("Agent", agent_input("Look.", json!({}))),
            None if text.contains("Seen.") => Reply::tool("ListAgents", json!({})),
            None if text.contains("Go.") => create_team(),
            None => Reply::text(text),
        }
    });
    let mut host = host(script).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    let listed = host.next_result().await.unwrap().result.unwrap();
    assert!(listed.contains("- m1, t") && listed.contains("teammate"), "{listed}");
    assert!(listed.contains("(general-purpose): ended, look"), "{listed}");
    host.api().unwrap().release("mate");
    assert_eq!(host.finish().await.unwrap().code, 0);
    let requests = host.model_requests();
    let listed = requests
        .iter()
        .filter(|request| teammate_name(request).is_some())
        .map(ModelRequest::last_text)
        .next_back()
        .unwrap();
    assert!(listed.contains("- team-lead (main): active, team lead"), "{listed}");
    assert!(
        !listed.contains("ended, look") && !listed.contains("m1"),
        "unreachable agents are not listed: {listed}"
    );
}

#[tokio::test]
async fn teammate_idle_hook_can_keep_it_working() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        match teammate_name(request) {
            Some(_) => Reply::text("Rested."),
            None if text.contains("Created the team") => Reply::tool("Agent", teammate_input("m1", "Look.")),
            None if text.contains("Go.") => create_team(),
            None => Reply::text("Fine."),
        }
    });
    let command = "test -e idle.json || { cat > idle.json; echo 'Look again.' >&2; exit 2; }";
    let hooks = json!({"hooks": {"TeammateIdle": [{"hooks": [{"type": "command", "command": command}]}]}});
    let host = host(script).configure(|options| options.settings = Some(hooks.to_string()));
    let mut host = host.start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    let requests = host.model_requests();
    let texts: Vec<String> = requests
        .iter()
        .filter(|request| teammate_name(request).is_some())
        .map(ModelRequest::last_text)
        .collect();
    assert!(texts.len() == 2 && texts[1].contains("Look again."), "{texts:?}");
    let input = std::fs::read(host.dirs().workspace().join("idle.json")).unwrap();
    let input: Value = serde_json::from_slice(&input).unwrap();
    assert_eq!(
        (&input["hook_event_name"], &input["teammate_name"], &input["team_name"]),
        (&json!("TeammateIdle"), &json!("m1"), &json!("crew"))
    );
}
