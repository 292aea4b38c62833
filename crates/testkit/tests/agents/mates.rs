//! What becomes of teammates and their work: what the lead and the host hear of it, and what is kept.

use serde_json::{Value, json};
use whimbrel_testkit::{Asked, Host, HostBuilder, Reply, Script};
use whimbrel_wire::control::StopTask;
use whimbrel_wire::options::Options;

use super::{errand, meta, notices};

fn host(script: impl Into<Script>) -> HostBuilder {
    let options = Options { allowed_tools: vec!["Bash".into(), "Monitor".into()], ..Options::default() };
    Host::with(script).options(options).env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
}

/// A team of one: what m1 and the lead answer beyond that is up to the test.
fn led(lead: fn(&str) -> Reply, mate: fn(&str) -> Reply) -> Script {
    Script::by(move |asked| {
        let text = asked.last_text();
        match is_mate(asked) {
            true => mate(&text),
            false if text.contains("is founded") => start(),
            false if text.contains("Go.") => found(),
            false => lead(&text),
        }
    })
}

fn found() -> Reply {
    Reply::tool("TeamCreate", json!({"team_name": "my crew"}))
}

fn start() -> Reply {
    Reply::tool("Agent", errand("Work.", json!({"name": "m1", "team_name": "my crew", "model": "haiku"})))
}

fn is_mate(asked: &Asked) -> bool {
    asked.system().contains("You are m1,")
}

fn mail(content: &str) -> Reply {
    Reply::tool("SendMessage", json!({"recipient": "team-lead", "content": content}))
}

/// What the lead, or m1, has read.
fn heard(host: &Host, by_mate: bool) -> String {
    let asked = host.asked();
    asked
        .iter()
        .filter(|asked| is_mate(asked) == by_mate)
        .map(Asked::last_text)
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn the_lead_reads_a_letter_before_it_reads_that_its_writer_rests() {
    let mate = |text: &str| match text.contains("Delivered") {
        true => Reply::text("Done."),
        false => mail("LETTER"),
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
    let mut host = host(led(lead, mate)).start().await.unwrap();
    host.say("Go.").await.unwrap();
    for expected in ["Busy.", "Noted."] {
        let result = host.result().await.unwrap();
        assert_eq!(result.result.as_deref(), Some(expected));
        assert_eq!(result.origin.map(|origin| origin.kind), (expected == "Noted.").then(|| "peer".into()));
    }
    let told = heard(&host, false);
    let at = |part: &str| told.find(part).unwrap_or_else(|| panic!("{part}: {told}"));
    assert!(at("LETTER") < at("idle_notification"), "{told}");
}

#[tokio::test]
async fn news_of_a_teammates_command_wake_the_teammate_and_not_the_lead() {
    let mate = |text: &str| {
        if text.contains("<task-notification>") {
            mail("It is built.")
        } else if text.contains("Work.") {
            Reply::tool("Bash", json!({"command": "true", "run_in_background": true}))
                .and_tool("Monitor", json!({"description": "log", "command": "echo LINE; sleep 1"}))
        } else {
            Reply::text("I wait.")
        }
    };
    let mut host = host(led(|_| Reply::text("Noted."), mate)).start().await.unwrap();
    host.say("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    let (lead, mate) = (heard(&host, false), heard(&host, true));
    assert!(mate.contains("completed with exit code 0") && mate.contains("\nLINE\n"), "{mate}");
    assert!(!lead.contains("<task-notification>") && lead.contains("It is built."), "{lead}");
    let ends = notices(&host, "task_notification").into_iter().map(|end| end["status"].clone());
    assert_eq!(
        ends.collect::<Vec<Value>>(),
        ["completed", "completed", "completed"],
        "the host hears of all"
    );
}

#[tokio::test]
async fn a_teammate_is_stopped_by_its_name_and_known_by_its_task() {
    let lead = |text: &str| match text.contains("has joined") {
        true => Reply::tool("TaskStop", json!({"task_id": "m1@my-crew"})),
        false => Reply::text("Fine."),
    };
    let mut host = host(led(lead, |_| Reply::text("never").hold("m1"))).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let task = meta(&host, 1)["task_id"].as_str().unwrap().to_owned();
    let told = heard(&host, false);
    assert!(
        told.contains(&format!("as task {task}.")) && told.contains(&format!("Stopped {task}")),
        "{told}"
    );
    assert_eq!(notices(&host, "task_notification")[0]["status"], "stopped");
    host.ask(StopTask { task_id: "m1".into() }).await.unwrap();
}

#[tokio::test]
async fn who_has_done_its_work_has_completed_it_and_leaves_its_words_and_what_it_was() {
    let mut host = host(led(|_| Reply::text("Fine."), |_| Reply::text("My report."))).start().await.unwrap();
    host.run("Go.").await.unwrap();
    host.result().await.unwrap();
    let joined = meta(&host, 1);
    let config = host.stage().home().join(".claude/teams/my-crew/config.json");
    let config: Value = serde_json::from_slice(&std::fs::read(config).unwrap()).unwrap();
    let asked = host.asked();
    let model = &asked.iter().find(|asked| is_mate(asked)).unwrap().body["model"];
    assert_eq!((&joined["model"], &config["members"][1]["model"]), (model, model));
    assert_ne!(model, &asked[0].body["model"]);
    assert_eq!(host.finish().await.unwrap().code, 0);
    let end = notices(&host, "task_notification").pop().unwrap();
    assert_eq!(end["status"], "completed");
    assert_eq!(std::fs::read_to_string(end["output_file"].as_str().unwrap()).unwrap(), "My report.");
    let projects = host.stage().home().join(".claude/projects");
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
async fn the_tasks_of_a_team_are_in_its_own_list_and_hooks_hear_who_does_them() {
    let mate = |text: &str| {
        if text.contains("Work.") {
            Reply::tool("TaskUpdate", json!({"taskId": "1", "status": "completed"}))
        } else {
            Reply::text("Done.")
        }
    };
    let script = Script::by(move |asked| {
        let text = asked.last_text();
        match is_mate(asked) {
            true => mate(&text),
            false if text.contains("is founded") => {
                Reply::tool("TaskCreate", json!({"subject": "S", "description": "D"}))
            }
            false if text.contains("is on the list") => start(),
            false if text.contains("idle_notification") => Reply::tool("TeamDelete", json!({})).hold("end"),
            false if text.contains("Go.") => found(),
            false => Reply::text("Fine."),
        }
    });
    let note =
        |event: &str| json!([{"hooks": [{"type": "command", "command": format!("cat > {event}.json")}]}]);
    let hooks = json!({"hooks": {"TaskCreated": note("created"), "TaskCompleted": note("completed")}});
    let mut host =
        host(script).change(|options| options.settings = Some(hooks.to_string())).start().await.unwrap();
    host.run("Go.").await.unwrap();
    host.next_like(&json!({"type": "system", "subtype": "init"})).await.unwrap();
    let list = host.stage().home().join(".claude/tasks/my-crew");
    let item: Value = serde_json::from_slice(&std::fs::read(list.join("1.json")).unwrap()).unwrap();
    assert_eq!(item["status"], "completed");
    host.api().unwrap().release("end");
    assert_eq!(host.finish().await.unwrap().code, 0);
    assert!(!list.exists(), "it is gone with the team");
    let told = |event: &str| -> (Value, Value) {
        let bytes = std::fs::read(host.stage().workspace().join(format!("{event}.json"))).unwrap();
        let told: Value = serde_json::from_slice(&bytes).unwrap();
        (told["teammate_name"].clone(), told["team_name"].clone())
    };
    assert_eq!(told("created"), (Value::Null, json!("my-crew")), "by the lead");
    assert_eq!(told("completed"), (json!("m1"), json!("my-crew")));
}
