//! What hooks of the host hear of agents and of their news.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use whimbrel_testkit::{Answer, Host, HostBuilder, Reply, Script};
use whimbrel_wire::control::Initialize;

use super::{meta, notices, send};

type Heard = Arc<Mutex<Vec<Value>>>;

/// Starts a host with hooks for these events; gives what they hear.
async fn hooked(host: HostBuilder, events: &[&str], answer: fn(&Value) -> Value) -> (Host, Heard) {
    let heard = Heard::default();
    let log = Arc::clone(&heard);
    let host = host.answer(move |request| {
        let input = serde_json::to_value(request).unwrap()["input"].clone();
        let reply = answer(&input);
        log.lock().unwrap().push(input);
        Answer::Reply(reply)
    });
    let mut host = host.start().await.unwrap();
    let hooks: Value =
        events.iter().map(|event| ((*event).to_owned(), json!([{"hookCallbackIds": ["h"]}]))).collect();
    host.ask(serde_json::from_value::<Initialize>(json!({"hooks": hooks})).unwrap()).await.unwrap();
    (host, heard)
}

/// One field of all that was heard.
fn each(heard: &Heard, field: &str) -> Vec<String> {
    heard.lock().unwrap().iter().map(|input| input[field].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn an_agent_begins_as_often_as_it_ends() {
    let script = Script::by(|asked| {
        let text = asked.last_text();
        let id = text.split("agentId: ").nth(1).map(|rest| rest.chars().take(9).collect::<String>());
        if asked.says("FROM-THE-HOOK") {
            Reply::text(if asked.says("Go on.") { "Twice." } else { "Once." })
        } else if let Some(id) = id.filter(|_| text.contains("Once.")) {
            send("Go on.", json!({"resume": id}))
        } else if text.contains("Twice.") {
            Reply::text("Done.")
        } else {
            send("Look.", json!({}))
        }
    });
    let (mut host, heard) = hooked(Host::with(script), &["SubagentStart", "SubagentStop"], |input| {
        let more = json!({"hookEventName": "SubagentStart", "additionalContext": "FROM-THE-HOOK"});
        match input["hook_event_name"] == "SubagentStart" {
            true => json!({"hookSpecificOutput": more}),
            false => json!({}),
        }
    })
    .await;
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let events = each(&heard, "hook_event_name");
    assert_eq!(events, ["SubagentStart", "SubagentStop", "SubagentStart", "SubagentStop"]);
    let ids = each(&heard, "agent_id");
    assert!(ids.iter().all(|id| *id == meta(&host, 0)["agentId"]), "{ids:?}");
}

#[tokio::test]
async fn a_teammate_begins_as_an_agent_does() {
    let script = Script::by(|asked| {
        let text = asked.last_text();
        if asked.system().contains("You are m1,") {
            Reply::text("Rested.")
        } else if text.contains("is founded") {
            send("Look.", json!({"name": "m1", "team_name": "crew", "subagent_type": "Explore"}))
        } else if text.contains("Go.") {
            Reply::tool("TeamCreate", json!({"team_name": "crew"}))
        } else {
            Reply::text("Fine.")
        }
    });
    let host = Host::with(script).env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1");
    let (mut host, heard) = hooked(host, &["SubagentStart"], |_| {
        json!({"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "FROM-THE-HOOK"}})
    })
    .await;
    host.run("Go.").await.unwrap();
    assert_eq!(host.finish().await.unwrap().code, 0);
    let task = meta(&host, 1)["task_id"].as_str().unwrap().to_owned();
    assert_eq!(each(&heard, "hook_event_name"), ["SubagentStart"]);
    assert_eq!(
        (each(&heard, "agent_id"), each(&heard, "agent_type")),
        (vec![task], vec!["Explore".to_owned()])
    );
    let asked = host.asked();
    let first = asked.iter().find(|asked| asked.system().contains("You are m1,")).unwrap();
    assert!(first.says("FROM-THE-HOOK"), "{:?}", first.messages());
}

/// An agent in the background that ends at once.
fn news() -> Script {
    Script::by(|asked| match asked.last_text() {
        text if text.contains("Look.") => Reply::text("Late news.").hold("agent"),
        text if text.contains("<task-notification>") => Reply::text("Noticed."),
        text if text.contains("in the background") => Reply::text("Launched."),
        _ => send("Look.", json!({"run_in_background": true})),
    })
}

#[tokio::test]
async fn news_that_starts_a_turn_is_a_prompt() {
    let (mut host, heard) = hooked(Host::with(news()), &["UserPromptSubmit"], |_| json!({})).await;
    host.run("Go.").await.unwrap();
    host.api().unwrap().release("agent");
    assert_eq!(host.result().await.unwrap().result.as_deref(), Some("Noticed."));
    assert_eq!(each(&heard, "source"), ["sdk", "system"]);
    assert!(each(&heard, "prompt")[1].contains("<result>Late news.</result>"));
}

#[tokio::test]
async fn news_that_a_hook_stops_is_told_to_the_host_alone() {
    let (mut host, _) = hooked(Host::with(news()), &["UserPromptSubmit"], |input| {
        let stops = input["source"] == "system";
        if stops { json!({"decision": "block", "reason": "not now"}) } else { json!({}) }
    })
    .await;
    host.run("Go.").await.unwrap();
    let asked = host.asked().len();
    host.api().unwrap().release("agent");
    let end = host.result().await.unwrap();
    assert_eq!(end.origin.unwrap().kind, "task-notification");
    assert!(end.result.unwrap().contains("not now"));
    let told = notices(&host, "informational");
    assert!(told.iter().any(|notice| notice["content"].as_str().unwrap().contains("not now")), "{told:?}");
    assert_eq!(host.asked().len(), asked, "the model was not asked");
}

#[tokio::test]
async fn a_call_that_is_refused_names_its_agent() {
    let write = Reply::tool("Write", json!({"file_path": "w.txt", "content": "x"}));
    let script = [send("Write.", json!({})), write, Reply::text("I may not."), Reply::text("Done.")];
    let mut host = Host::with(script).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let refused = notices(&host, "permission_denied");
    assert_eq!((refused.len(), &refused[0]["agent_id"]), (1, &meta(&host, 0)["agentId"]));
}
