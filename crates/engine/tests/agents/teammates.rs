//! Teammates: order of their messages, notifications of their commands, stopping, and the files they leave.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, ModelRequest, Reply, Script};
use whimbrel_wire::control::StopTask;
use whimbrel_wire::options::Options;

use super::{agent_input, nth_tool_use_result, system_frames};

fn host(script: impl Into<Script>) -> HostBuilder {
    let options = Options { allowed_tools: vec!["Bash".into(), "Monitor".into()], ..Options::default() };
    Host::with_script(script).options(options).env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
}

/// A team of one teammate, `m1`; `lead` and `mate` give the remaining replies.
fn team_script(lead: fn(&str) -> Reply, mate: fn(&str) -> Reply) -> Script {
    Script::from_fn(move |asked| {
        let text = asked.last_text();
        match is_teammate(asked) {
            true => mate(&text),
            false if text.contains("is founded") => start_teammate(),
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

fn is_teammate(asked: &ModelRequest) -> bool {
    asked.system_prompt().contains("You are m1,")
}

fn message_lead(content: &str) -> Reply {
    Reply::tool("SendMessage", json!({"recipient": "team-lead", "content": content}))
}

/// The text that the lead, or `m1`, has read.
fn request_texts(host: &Host, by_mate: bool) -> String {
    let asked = host.model_requests();
    asked
        .iter()
        .filter(|asked| is_teammate(asked) == by_mate)
        .map(ModelRequest::last_text)
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn message_arrives_before_the_idle_notification_of_its_sender() {
    let mate = |text: &str| match text.contains("Delivered") {
        true => Reply::text("Done."),
        false => message_lead("LETTER"),
    };
    let lead = |text: &str| {
        let mailbox = "\"$HOME/.claude/teams/my-crew/inboxes/team-lead.json\"";
        let until_it_rests =
            format!("until grep -q idle_notification {mailbox}; do sleep 0.05; done; echo It rests.");
        if text.contains("has joined") {
            Reply::tool("Bash", json!({"command": until_it_rests}))
        } else if text.contains("It rests.") {
            Reply::text("Busy.")
        } else {
            Reply::text("Noted.")
        }
    };
    let mut host = host(team_script(lead, mate)).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    for expected in ["Busy.", "Noted."] {
        let result = host.next_result().await.unwrap();
        assert_eq!(result.result.as_deref(), Some(expected));
        assert_eq!(result.origin.map(|origin| origin.kind), (expected == "Noted.").then(|| "peer".into()));
    }
    let told = request_texts(&host, false);
    let at = |part: &str| told.find(part).unwrap_or_else(|| panic!("{part}: {told}"));
    assert!(at("LETTER") < at("idle_notification"), "{told}");
}

#[tokio::test]
async fn command_notification_wakes_only_its_teammate() {
    let mate = |text: &str| {
        if text.contains("<task-notification>") {
            message_lead("It is built.")
        } else if text.contains("Work.") {
            Reply::tool("Bash", json!({"command": "true", "run_in_background": true}))
                .and_tool("Monitor", json!({"description": "log", "command": "echo LINE; sleep 1"}))
        } else {
            Reply::text("I wait.")
        }
    };
    let mut host = host(team_script(|_| Reply::text("Noted."), mate)).start().await.unwrap();
    host.send_prompt("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    let (lead, mate) = (request_texts(&host, false), request_texts(&host, true));
    assert!(mate.contains("completed with exit code 0") && mate.contains("\nLINE\n"), "{mate}");
    assert!(!lead.contains("<task-notification>") && lead.contains("It is built."), "{lead}");
    let ends = system_frames(&host, "task_notification").into_iter().map(|end| end["status"].clone());
    assert_eq!(
        ends.collect::<Vec<Value>>(),
        ["completed", "completed", "completed"],
        "the host hears of all"
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
    let told = request_texts(&host, false);
    assert!(
        told.contains(&format!("as task {task}.")) && told.contains(&format!("Stopped {task}")),
        "{told}"
    );
    assert_eq!(system_frames(&host, "task_notification")[0]["status"], "stopped");
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
    let asked = host.model_requests();
    let model = &asked.iter().find(|asked| is_teammate(asked)).unwrap().body["model"];
    assert_eq!((&joined["model"], &config["members"][1]["model"]), (model, model));
    assert_ne!(model, &asked[0].body["model"]);
    assert_eq!(host.finish().await.unwrap().code, 0);
    let end = system_frames(&host, "task_notification").pop().unwrap();
    assert_eq!(end["status"], "completed");
    assert_eq!(std::fs::read_to_string(end["output_file"].as_str().unwrap()).unwrap(), "My report.");
    let projects = host.dirs().home().join(".claude/projects");
    let project = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
    let file = format!("agent-{}.meta.json", joined["task_id"].as_str().unwrap());
    let session =
        std::fs::read_dir(&project).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
    let about = std::fs::read(session.unwrap().join("subagents").join(file)).unwrap();
    let about: Value = serde_json::from_slice(&about).unwrap();
    assert_eq!(
        (&about["agentType"], &about["name"], &about["teamName"], &about["spawnDepth"]),
        (&json!("general-purpose"), &json!("m1"), &json!("my-crew"), &json!(1))
    );
}

#[tokio::test]
async fn team_has_its_own_task_list_with_hooks() {
    let mate = |text: &str| {
        if text.contains("Work.") {
            Reply::tool("TaskUpdate", json!({"taskId": "1", "status": "completed"}))
        } else {
            Reply::text("Done.")
        }
    };
    let script = Script::from_fn(move |asked| {
        let text = asked.last_text();
        match is_teammate(asked) {
            true => mate(&text),
            false if text.contains("is founded") => {
                Reply::tool("TaskCreate", json!({"subject": "S", "description": "D"}))
            }
            false if text.contains("is on the list") => start_teammate(),
            false if text.contains("idle_notification") => {
                Reply::tool("TeamDelete", json!({})).hold_until("end")
            }
            false if text.contains("Go.") => create_team(),
            false => Reply::text("Fine."),
        }
    });
    let note =
        |event: &str| json!([{"hooks": [{"type": "command", "command": format!("cat > {event}.json")}]}]);
    let hooks = json!({"hooks": {"TaskCreated": note("created"), "TaskCompleted": note("completed")}});
    let mut host =
        host(script).configure(|options| options.settings = Some(hooks.to_string())).start().await.unwrap();
    host.run("Go.").await.unwrap();
    host.next_matching(&json!({"type": "system", "subtype": "init"})).await.unwrap();
    let list = host.dirs().home().join(".claude/tasks/my-crew");
    let item: Value = serde_json::from_slice(&std::fs::read(list.join("1.json")).unwrap()).unwrap();
    assert_eq!(item["status"], "completed");
    host.api().unwrap().release("end");
    assert_eq!(host.finish().await.unwrap().code, 0);
    assert!(!list.exists(), "it is gone with the team");
    let told = |event: &str| -> (Value, Value) {
        let bytes = std::fs::read(host.dirs().workspace().join(format!("{event}.json"))).unwrap();
        let told: Value = serde_json::from_slice(&bytes).unwrap();
        (told["teammate_name"].clone(), told["team_name"].clone())
    };
    assert_eq!(told("created"), (Value::Null, json!("my-crew")), "by the lead");
    assert_eq!(told("completed"), (json!("m1"), json!("my-crew")));
}
