//! Teammates: order of their messages, notifications of their commands, stopping, and the files they leave.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, ModelRequest, Reply, Script};
use whimbrel_wire::control::StopTask;
use whimbrel_wire::options::Options;

use super::{agent_input, nth_tool_use_result};

fn host(script: impl Into<Script>) -> HostBuilder {
    let options = Options { allowed_tools: vec!["Bash".into(), "Monitor".into()], ..Options::default() };
    Host::with_script(script).options(options).env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
}

/// A team of one teammate, `m1`; `lead` and `teammate` give the remaining replies.
fn team_script(lead: fn(&str) -> Reply, teammate: fn(&str) -> Reply) -> Script {
    Script::from_fn(move |request| {
        let text = request.last_text();
        match is_teammate(request) {
            true => teammate(&text),
            false if text.contains("Created the team") => start_teammate(),
            false if text.contains("Go.") => create_team(),
            false => lead(&text),
        }
    })
}

fn create_team() -> Reply {
    Reply::tool("TeamCreate", json!({"team_name": "my crew"}))
}

fn start_teammate() -> Reply {
    Reply::tool(
        "Agent",
        agent_input("Work.", json!({"name": "m1", "team_name": "my crew", "model": "haiku"})),
    )
}

fn is_teammate(request: &ModelRequest) -> bool {
    request.system_prompt().contains("You are m1,")
}

fn message_lead(content: &str) -> Reply {
    Reply::tool("SendMessage", json!({"recipient": "team-lead", "content": content}))
}

/// The text that the lead, or `m1`, has read.
fn request_texts(host: &Host, of_teammate: bool) -> String {
    let requests = host.model_requests();
    requests
        .iter()
        .filter(|request| is_teammate(request) == of_teammate)
        .map(ModelRequest::last_text)
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn message_arrives_before_the_idle_notification_of_its_sender() {
    let teammate = |text: &str| match text.contains("Delivered") {
        true => Reply::text("Done."),
        false => message_lead("FINDINGS"),
    };
    let lead = |text: &str| {
        let mailbox = "\"$HOME/.claude/teams/my-crew/inboxes/team-lead.json\"";
        let wait_for_idle =
            format!("until grep -q idle_notification {mailbox}; do sleep 0.05; done; echo It is idle.");
        if text.contains("has joined") {
            Reply::tool("Bash", json!({"command": wait_for_idle}))
        } else if text.contains("It is idle.") {
            Reply::text("Busy.")
        } else {
            Reply::text("Noted.")
        }
    };
    let mut host = host(team_script(lead, teammate)).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    for expected in ["Busy.", "Noted."] {
        let result = host.next_result().await.unwrap();
        assert_eq!(result.result.as_deref(), Some(expected));
        assert_eq!(result.origin.map(|origin| origin.kind), (expected == "Noted.").then(|| "peer".into()));
    }
    let lead_texts = request_texts(&host, false);
    let position = |part: &str| lead_texts.find(part).unwrap_or_else(|| panic!("{part}: {lead_texts}"));
    assert!(position("FINDINGS") < position("idle_notification"), "{lead_texts}");
}

#[tokio::test]
async fn command_notification_wakes_only_its_teammate() {
    let teammate = |text: &str| {
        if text.contains("<task-notification>") {
            message_lead("It is built.")
        } else if text.contains("Work.") {
            Reply::tool("Bash", json!({"command": "true", "run_in_background": true}))
                .and_tool("Monitor", json!({"description": "log", "command": "echo LINE; sleep 1"}))
        } else {
            Reply::text("I wait.")
        }
    };
    let mut host = host(team_script(|_| Reply::text("Noted."), teammate)).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    let (lead, teammate) = (request_texts(&host, false), request_texts(&host, true));
    assert!(teammate.contains("completed with exit code 0") && teammate.contains("\nLINE\n"), "{teammate}");
    assert!(!lead.contains("<task-notification>") && lead.contains("It is built."), "{lead}");
    let notifications = host.system_frames("task_notification").into_iter().map(|end| end["status"].clone());
    assert_eq!(
        notifications.collect::<Vec<Value>>(),
        ["completed", "completed", "completed"],
        "the host is notified of all"
    );
}

#[tokio::test]
async fn teammate_can_be_stopped_by_name() {
    let lead = |text: &str| match text.contains("has joined") {
        true => Reply::tool("TaskStop", json!({"task_id": "m1@my-crew"})),
        false => Reply::text("Fine."),
    };
    let mut host = host(team_script(lead, |_| Reply::text("never").hold_until("m1"))).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let task = nth_tool_use_result(&host, 1)["task_id"].as_str().unwrap().to_owned();
    let lead_texts = request_texts(&host, false);
    assert!(
        lead_texts.contains(&format!("(task {task})")) && lead_texts.contains(&format!("Stopped {task}")),
        "{lead_texts}"
    );
    assert_eq!(host.system_frames("task_notification")[0]["status"], "stopped");
    host.send_request(StopTask { task_id: "m1".into() }).await.unwrap();
}

#[tokio::test]
async fn finished_teammate_leaves_output_and_metadata() {
    let mut host =
        host(team_script(|_| Reply::text("Fine."), |_| Reply::text("My report."))).start().await.unwrap();
    host.run("Go.").await.unwrap();
    host.next_result().await.unwrap();
    let joined = nth_tool_use_result(&host, 1);
    let config = host.dirs().home().join(".claude/teams/my-crew/config.json");
    let config: Value = serde_json::from_slice(&std::fs::read(config).unwrap()).unwrap();
    let requests = host.model_requests();
    let model = &requests.iter().find(|request| is_teammate(request)).unwrap().body["model"];
    assert_eq!((&joined["model"], &config["members"][1]["model"]), (model, model));
    assert_ne!(model, &requests[0].body["model"]);
    assert_eq!(host.finish().await.unwrap().code, 0);
    let end = host.system_frames("task_notification").pop().unwrap();
    assert_eq!(end["status"], "completed");
    assert_eq!(std::fs::read_to_string(end["output_file"].as_str().unwrap()).unwrap(), "My report.");
    let projects = host.dirs().home().join(".claude/projects");
    let project = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
    let file = format!("agent-{}.meta.json", joined["task_id"].as_str().unwrap());
    let session =
        std::fs::read_dir(&project).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
    let metadata = std::fs::read(session.unwrap().join("subagents").join(file)).unwrap();
    let metadata: Value = serde_json::from_slice(&metadata).unwrap();
    assert_eq!(
        (&metadata["agentType"], &metadata["name"], &metadata["teamName"], &metadata["spawnDepth"]),
        (&json!("general-purpose"), &json!("m1"), &json!("my-crew"), &json!(1))
    );
}

#[tokio::test]
async fn team_has_its_own_task_list_with_hooks() {
    let teammate = |text: &str| {
        if text.contains("Work.") {
            Reply::tool("TaskUpdate", json!({"taskId": "1", "status": "completed"}))
        } else {
            Reply::text("Done.")
        }
    };
    let script = Script::from_fn(move |request| {
        let text = request.last_text();
        match is_teammate(request) {
            true => teammate(&text),
            false if text.contains("Created the team") => {
                Reply::tool("TaskCreate", json!({"subject": "S", "description": "D"}))
            }
            false if text.contains("Added task") => start_teammate(),
            false if text.contains("idle_notification") => {
                Reply::tool("TeamDelete", json!({})).hold_until("end")
            }
            false if text.contains("Go.") => create_team(),
            false => Reply::text("Fine."),
        }
    });
    let record_hook =
        |event: &str| json!([{"hooks": [{"type": "command", "command": format!("cat > {event}.json")}]}]);
    let hooks =
        json!({"hooks": {"TaskCreated": record_hook("created"), "TaskCompleted": record_hook("completed")}});
    let mut host =
        host(script).configure(|options| options.settings = Some(hooks.to_string())).start().await.unwrap();
    host.run("Go.").await.unwrap();
    host.next_matching(&json!({"type": "system", "subtype": "init"})).await.unwrap();
    let list = host.dirs().home().join(".claude/tasks/my-crew");
    let task: Value = serde_json::from_slice(&std::fs::read(list.join("1.json")).unwrap()).unwrap();
    assert_eq!(task["status"], "completed");
    host.api().unwrap().release("end");
    assert_eq!(host.finish().await.unwrap().code, 0);
    assert!(!list.exists(), "the task list is deleted with the team");
    let team_fields = |event: &str| -> (Value, Value) {
        let bytes = std::fs::read(host.dirs().workspace().join(format!("{event}.json"))).unwrap();
        let input: Value = serde_json::from_slice(&bytes).unwrap();
        (input["teammate_name"].clone(), input["team_name"].clone())
    };
    assert_eq!(team_fields("created"), (Value::Null, json!("my-crew")), "by the lead");
    assert_eq!(team_fields("completed"), (json!("m1"), json!("my-crew")));
}
