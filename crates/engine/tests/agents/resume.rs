//! Resuming agents of a previous process.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use whimbrel_testkit::{HostBuilder, ModelRequest, Reply, Script, SessionDirs};
use whimbrel_wire::options::Options;

use super::{agent_input, nth_tool_use_result};

/// A finished session in which one agent ran, and its directories.
struct PreviousRun {
    dirs: SessionDirs,
    session: String,
    agent: String,
}

impl PreviousRun {
    /// Runs and finishes a session in which one agent received a task.
    async fn new() -> Self {
        let dirs = SessionDirs::new().unwrap();
        let script = [
            Reply::tool("Agent", agent_input("Remember TULIP.", json!({"name": "scout", "model": "opus"}))),
            Reply::text("I will."),
            Reply::text("It knows."),
        ];
        let mut host = dirs.host(script, Options::default()).start().await.unwrap();
        let session = host.run("Go.").await.unwrap().session_id;
        let agent = nth_tool_use_result(&host, 0)["agentId"].as_str().unwrap().to_owned();
        host.finish().await.unwrap();
        Self { dirs, session, agent }
    }

    /// A host that resumes the session.
    fn resume(&self, script: impl Into<Script>) -> HostBuilder {
        let options = Options { resume: Some(self.session.clone()), ..Options::default() };
        self.dirs.host(script, options).env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
    }

    /// Path of a file of the agent.
    fn agent_file(&self, ending: &str) -> PathBuf {
        let session_dir = self.dirs.transcript_paths().unwrap()[0].with_extension("");
        session_dir.join("subagents").join(format!("agent-{}{ending}", self.agent))
    }

    /// Input of a call that resumes the agent.
    fn resume_input(&self) -> Value {
        agent_input("Which flower?", json!({"resume": self.agent}))
    }

    /// Resumes the session, makes the model call the agent and returns the result of that call.
    async fn resume_agent(&self) -> String {
        let call = self.resume_input();
        let script = Script::from_fn(move |request| match () {
            () if request.last_text().starts_with("Which flower?") => recall_reply(request),
            () if request.last_text().contains("Go on.") => Reply::tool("Agent", call.clone()),
            () => Reply::text("Done."),
        });
        let mut host = self.resume(script).start().await.unwrap();
        host.run("Go on.").await.unwrap();
        host.model_requests().last().unwrap().last_text()
    }
}

fn recall_reply(request: &ModelRequest) -> Reply {
    let knows = request.contains_text("Remember TULIP.") && request.contains_text("I will.");
    Reply::text(if knows { "It was TULIP." } else { "I do not know." })
}

#[tokio::test]
async fn resumed_agent_keeps_its_history_and_model() {
    let previous = PreviousRun::new().await;
    let before = std::fs::read_to_string(previous.agent_file(".jsonl")).unwrap().lines().count();
    let call = previous.resume_input();
    let script = Script::from_fn(move |request| match () {
        () if request.last_text().starts_with("Which flower?") => recall_reply(request),
        () if request.last_text().contains("Go on.") => Reply::tool("Agent", call.clone()),
        () => Reply::text("Done."),
    });
    let mut host = previous.resume(script).start().await.unwrap();
    host.run("Go on.").await.unwrap();
    assert_eq!(nth_tool_use_result(&host, 0)["agentId"], previous.agent.as_str());
    assert!(host.model_requests().last().unwrap().last_text().contains("It was TULIP."));
    let agent_request = host
        .model_requests()
        .into_iter()
        .find(|request| request.last_text().starts_with("Which flower?"))
        .unwrap();
    assert!(
        agent_request.body["model"].as_str().unwrap().contains("opus"),
        "it keeps the model of its first task"
    );
    host.finish().await.unwrap();
    let after = std::fs::read_to_string(previous.agent_file(".jsonl")).unwrap().lines().count();
    assert!(after > before, "its transcript is continued");
}

#[tokio::test]
async fn message_resumes_agent_by_id_or_name() {
    for by_name in [false, true] {
        let previous = PreviousRun::new().await;
        let to = if by_name { "scout".to_owned() } else { previous.agent.clone() };
        let script = Script::from_fn(move |request| {
            let text = request.last_text();
            match () {
                () if text.starts_with("Which flower?") => recall_reply(request),
                () if text.contains("Go on.") => {
                    Reply::tool("SendMessage", json!({"to": to, "message": "Which flower?"}))
                }
                () if text.contains("<result>It was TULIP.</result>") => Reply::text("TULIP"),
                () => Reply::text("Sent."),
            }
        });
        let mut host = previous.resume(script).start().await.unwrap();
        host.send_prompt("Go on.").await.unwrap();
        for expected in ["Sent.", "TULIP"] {
            assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some(expected));
        }
    }
}

#[tokio::test]
async fn partial_transcript_loses_only_the_partial_line() {
    let previous = PreviousRun::new().await;
    let path = previous.agent_file(".jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"type\":\"assistant\",\"uuid\":\"x\",\"mess");
    std::fs::write(&path, text).unwrap();
    assert!(previous.resume_agent().await.contains("It was TULIP."));
}

#[tokio::test]
async fn failed_resume_names_the_reason() {
    type Damage = fn(&Path, &Path);
    let rows: [(&str, Damage, &str); 6] = [
        ("missing metadata", |_, meta_file| std::fs::remove_file(meta_file).unwrap(), "does not exist"),
        ("corrupt metadata", |_, meta_file| std::fs::write(meta_file, "{").unwrap(), "is not valid"),
        (
            "unknown agent type",
            |_, meta_file| std::fs::write(meta_file, r#"{"agentType":"gardener"}"#).unwrap(),
            "Unknown agent type 'gardener'",
        ),
        (
            "unreadable deny rule",
            |_, meta_file| {
                let skill = json!({"file": "SKILL.md", "disallowedTools": ["Bash(ls"]});
                let metadata = json!({"agentType": "general-purpose", "skill": skill});
                std::fs::write(meta_file, metadata.to_string()).unwrap();
            },
            "Bash(ls",
        ),
        ("empty transcript", |path, _| std::fs::write(path, "").unwrap(), "no readable messages"),
        (
            "directory instead of the transcript",
            |path, _| {
                std::fs::remove_file(path).unwrap();
                std::fs::create_dir(path).unwrap();
            },
            "cannot continue",
        ),
    ];
    for (name, damage, part) in rows {
        let previous = PreviousRun::new().await;
        damage(&previous.agent_file(".jsonl"), &previous.agent_file(".meta.json"));
        let text = previous.resume_agent().await;
        assert!(text.contains(part), "{name}: {text}");
    }
}

#[tokio::test]
async fn agent_cannot_resume_an_agent_of_another_parent() {
    let previous = PreviousRun::new().await;
    let call = agent_input("MINE NOW", json!({"resume": previous.agent, "subagent_type": "relay"}));
    let script = Script::from_fn(move |request| match request.last_text() {
        text if text.contains("Take it over.") => Reply::tool("Agent", call.clone()),
        text if text.contains("Go on.") => {
            Reply::tool("Agent", agent_input("Take it over.", json!({"subagent_type": "relay"})))
        }
        text => Reply::text(text),
    });
    let relay = whimbrel_wire::options::AgentDefinition {
        description: "d".into(),
        prompt: "p".into(),
        tools: Some(vec!["Agent".into()]),
        ..Default::default()
    };
    let host = previous.resume(script);
    let mut host =
        host.configure(|options| drop(options.agents.insert("relay".into(), relay))).start().await.unwrap();
    let result = host.run("Go on.").await.unwrap().result.unwrap();
    assert!(result.contains("was started by another agent"), "{result}");
}

#[tokio::test]
async fn lost_background_agents_are_reported_once_on_resume() {
    let previous = PreviousRun::new().await;
    let script = Script::from_fn(|request| match request.last_text() {
        text if text.contains("Stay.") => Reply::text("never").hold_until("for ever"),
        text if text.contains("Go on.") => {
            Reply::tool("Agent", agent_input("Stay.", json!({"run_in_background": true})))
        }
        _ => Reply::text("Launched."),
    });
    let host = previous.resume(script).env("WHIMBREL_BACKGROUND_AT_END", "stop");
    let mut host = host.start().await.unwrap();
    host.run("Go on.").await.unwrap();
    let agent = nth_tool_use_result(&host, 0)["agentId"].as_str().unwrap().to_owned();
    host.finish().await.unwrap();
    let notice = format!("before they reported: {agent}. They will not");
    for run in ["first resume", "second resume"] {
        let mut host = previous.resume([Reply::text("I see.")]).start().await.unwrap();
        host.run("Where is it?").await.unwrap();
        let messages = json!(host.model_requests()[0].messages()).to_string();
        assert_eq!(messages.matches(&notice).count(), 1, "{run}: {messages}");
        host.finish().await.unwrap();
    }
}

#[tokio::test]
async fn previous_team_is_reported_on_resume() {
    let previous = PreviousRun::new().await;
    let teammate = agent_input("Wait.", json!({"name": "ann"}));
    let script = Script::from_fn(move |request| match () {
        () if request.system_prompt().contains("You are ann,") => Reply::text("Here.").hold_until("ann"),
        () if request.last_text().contains("Created the team") => Reply::tool("Agent", teammate.clone()),
        () if request.last_text().contains("Found one.") => {
            Reply::tool("TeamCreate", json!({"team_name": "crew"}))
        }
        () => Reply::text("Done."),
    });
    let mut host = previous.resume(script).start().await.unwrap();
    host.run("Found one.").await.unwrap();
    // Simulates a kill: restores the file as it was at the time of the result.
    let teams = previous.dirs.config_dir().join("teams");
    let team_config = std::fs::read(teams.join("crew/config.json")).unwrap();
    host.api().unwrap().release("ann");
    host.finish().await.unwrap();
    std::fs::create_dir_all(teams.join("crew")).unwrap();
    std::fs::write(teams.join("crew/config.json"), team_config).unwrap();
    let mut host = previous.resume([Reply::text("I see.")]).start().await.unwrap();
    host.run("Where are they?").await.unwrap();
    let request = &host.model_requests()[0];
    assert!(request.contains_text("This session's team crew ended"), "{:?}", request.messages());
    assert!(request.contains_text("possibly before they finished: ann"), "{:?}", request.messages());
}
