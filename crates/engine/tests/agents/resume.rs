//! Resuming agents of a previous process.

#![expect(clippy::unwrap_used, reason = "what helps a test fails as a test does")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use whimbrel_testkit::{Host, HostBuilder, ModelRequest, Reply, Script};
use whimbrel_wire::options::Options;

use super::{agent_input, nth_tool_use_result};

/// Directories that outlive a host.
struct SessionDirs {
    root: TempDir,
}

/// Ids left by a previous run.
struct PreviousRun {
    session: String,
    agent: String,
}

impl SessionDirs {
    /// Runs and finishes a session in which one agent received a task.
    async fn with_finished_agent() -> (Self, PreviousRun) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        let here = Self { root };
        let script = [
            Reply::tool("Agent", agent_input("Remember TULIP.", json!({"name": "scout", "model": "opus"}))),
            Reply::text("I will."),
            Reply::text("It knows."),
        ];
        let mut host = here.start(Script::from(script), None).await;
        let session = host.run("Go.").await.unwrap().session_id;
        let agent = nth_tool_use_result(&host, 0)["agentId"].as_str().unwrap().to_owned();
        host.finish().await.unwrap();
        (here, PreviousRun { session, agent })
    }

    async fn start(&self, script: impl Into<Script>, resume: Option<&str>) -> Host {
        self.host(script, resume).start().await.unwrap()
    }

    fn host(&self, script: impl Into<Script>, resume: Option<&str>) -> HostBuilder {
        let work = self.root.path().join("work").canonicalize().unwrap();
        let options = Options {
            cwd: Some(work.to_string_lossy().into_owned()),
            resume: resume.map(Into::into),
            ..Options::default()
        };
        Host::with_script(script)
            .options(options)
            .env("CLAUDE_CONFIG_DIR", self.root.path().join("config").to_string_lossy())
            .env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
    }

    /// Path of a file of the agent.
    fn agent_file(&self, left: &PreviousRun, ending: &str) -> PathBuf {
        let projects = std::fs::read_dir(self.root.path().join("config/projects")).unwrap();
        let project = projects.map(|entry| entry.unwrap().path()).next().unwrap();
        project.join(&left.session).join("subagents").join(format!("agent-{}{ending}", left.agent))
    }

    /// Resumes the session, makes the model call the agent and returns the result of that call.
    async fn run_resumed(&self, left: &PreviousRun, call: Value) -> String {
        let script = Script::from_fn(move |asked| match () {
            () if asked.last_text().starts_with("Which flower?") => recall_reply(asked),
            () if asked.last_text().contains("Go on.") => Reply::tool("Agent", call.clone()),
            () => Reply::text("Done."),
        });
        let mut host = self.start(script, Some(&left.session)).await;
        host.run("Go on.").await.unwrap();
        host.model_requests().last().unwrap().last_text()
    }
}

fn recall_reply(asked: &ModelRequest) -> Reply {
    let knows = asked.contains_text("Remember TULIP.") && asked.contains_text("I will.");
    Reply::text(if knows { "It was TULIP." } else { "I do not know." })
}

fn resume_input(left: &PreviousRun) -> Value {
    agent_input("Which flower?", json!({"resume": left.agent}))
}

#[tokio::test]
async fn resumed_agent_keeps_its_history_and_model() {
    let (home, left) = SessionDirs::with_finished_agent().await;
    let before = std::fs::read_to_string(home.agent_file(&left, ".jsonl")).unwrap().lines().count();
    let call = resume_input(&left);
    let script = Script::from_fn(move |asked| match () {
        () if asked.last_text().starts_with("Which flower?") => recall_reply(asked),
        () if asked.last_text().contains("Go on.") => Reply::tool("Agent", call.clone()),
        () => Reply::text("Done."),
    });
    let mut host = home.start(script, Some(&left.session)).await;
    host.run("Go on.").await.unwrap();
    assert_eq!(nth_tool_use_result(&host, 0)["agentId"], left.agent.as_str());
    assert!(host.model_requests().last().unwrap().last_text().contains("It was TULIP."));
    let below = host
        .model_requests()
        .into_iter()
        .find(|asked| asked.last_text().starts_with("Which flower?"))
        .unwrap();
    assert!(below.body["model"].as_str().unwrap().contains("opus"), "on the terms of its first errand");
    host.finish().await.unwrap();
    let after = std::fs::read_to_string(home.agent_file(&left, ".jsonl")).unwrap().lines().count();
    assert!(after > before, "its transcript goes on");
}

#[tokio::test]
async fn message_resumes_agent_by_id_or_name() {
    for by_name in [false, true] {
        let (home, left) = SessionDirs::with_finished_agent().await;
        let to = if by_name { "scout".to_owned() } else { left.agent.clone() };
        let script = Script::from_fn(move |asked| {
            let text = asked.last_text();
            match () {
                () if text.starts_with("Which flower?") => recall_reply(asked),
                () if text.contains("Go on.") => {
                    Reply::tool("SendMessage", json!({"to": to, "message": "Which flower?"}))
                }
                () if text.contains("<result>It was TULIP.</result>") => Reply::text("TULIP"),
                () => Reply::text("Sent."),
            }
        });
        let mut host = home.start(script, Some(&left.session)).await;
        host.send_prompt("Go on.").await.unwrap();
        for expected in ["Sent.", "TULIP"] {
            assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some(expected));
        }
    }
}

#[tokio::test]
async fn torn_transcript_loses_only_the_torn_line() {
    let (home, left) = SessionDirs::with_finished_agent().await;
    let path = home.agent_file(&left, ".jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"type\":\"assistant\",\"uuid\":\"x\",\"mess");
    std::fs::write(&path, text).unwrap();
    assert!(home.run_resumed(&left, resume_input(&left)).await.contains("It was TULIP."));
}

#[tokio::test]
async fn failed_resume_names_the_reason() {
    type Spoil = fn(&Path, &Path);
    let rows: [(&str, Spoil, &str); 6] = [
        ("no file beside it", |_, about| std::fs::remove_file(about).unwrap(), "is not there"),
        ("a spoilt file beside it", |_, about| std::fs::write(about, "{").unwrap(), "is spoilt"),
        (
            "a kind that is gone",
            |_, about| std::fs::write(about, r#"{"agentType":"gardener"}"#).unwrap(),
            "no agent type 'gardener'",
        ),
        (
            "a denial that cannot be read",
            |_, about| {
                let skill = json!({"file": "SKILL.md", "disallowedTools": ["Bash(ls"]});
                let about_it = json!({"agentType": "general-purpose", "skill": skill});
                std::fs::write(about, about_it.to_string()).unwrap();
            },
            "Bash(ls",
        ),
        ("an empty transcript", |path, _| std::fs::write(path, "").unwrap(), "nothing in it"),
        (
            "a folder in its place",
            |path, _| {
                std::fs::remove_file(path).unwrap();
                std::fs::create_dir(path).unwrap();
            },
            "cannot go on",
        ),
    ];
    for (name, spoil, part) in rows {
        let (home, left) = SessionDirs::with_finished_agent().await;
        spoil(&home.agent_file(&left, ".jsonl"), &home.agent_file(&left, ".meta.json"));
        let said = home.run_resumed(&left, resume_input(&left)).await;
        assert!(said.contains(part), "{name}: {said}");
    }
}

#[tokio::test]
async fn agent_cannot_resume_an_agent_of_another_parent() {
    let (home, left) = SessionDirs::with_finished_agent().await;
    let call = agent_input("MINE NOW", json!({"resume": left.agent, "subagent_type": "relay"}));
    let script = Script::from_fn(move |asked| match asked.last_text() {
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
    let host = home.host(script, Some(&left.session));
    let mut host =
        host.configure(|options| drop(options.agents.insert("relay".into(), relay))).start().await.unwrap();
    let told = host.run("Go on.").await.unwrap().result.unwrap();
    assert!(told.contains("was sent by somebody else"), "{told}");
}

#[tokio::test]
async fn lost_background_agents_are_reported_once_on_resume() {
    let (home, left) = SessionDirs::with_finished_agent().await;
    let script = Script::from_fn(|asked| match asked.last_text() {
        text if text.contains("Stay.") => Reply::text("never").hold_until("for ever"),
        text if text.contains("Go on.") => {
            Reply::tool("Agent", agent_input("Stay.", json!({"run_in_background": true})))
        }
        _ => Reply::text("Launched."),
    });
    let host = home.host(script, Some(&left.session)).env("WHIMBREL_BACKGROUND_AT_END", "stop");
    let mut host = host.start().await.unwrap();
    host.run("Go on.").await.unwrap();
    let agent = nth_tool_use_result(&host, 0)["agentId"].as_str().unwrap().to_owned();
    host.finish().await.unwrap();
    let said = format!("you have not heard what became of them: {agent}. No news");
    for run in ["the next one", "the one after"] {
        let mut host = home.start([Reply::text("I see.")], Some(&left.session)).await;
        host.run("Where is it?").await.unwrap();
        let heard = json!(host.model_requests()[0].messages()).to_string();
        assert_eq!(heard.matches(&said).count(), 1, "{run}: {heard}");
        host.finish().await.unwrap();
    }
}

#[tokio::test]
async fn previous_team_is_reported_on_resume() {
    let (home, left) = SessionDirs::with_finished_agent().await;
    let mate = agent_input("Wait.", json!({"name": "ann"}));
    let script = Script::from_fn(move |asked| match () {
        () if asked.system_prompt().contains("You are ann,") => Reply::text("Here.").hold_until("ann"),
        () if asked.last_text().contains("is founded") => Reply::tool("Agent", mate.clone()),
        () if asked.last_text().contains("Found one.") => {
            Reply::tool("TeamCreate", json!({"team_name": "crew"}))
        }
        () => Reply::text("Done."),
    });
    let mut host = home.start(script, Some(&left.session)).await;
    host.run("Found one.").await.unwrap();
    // Simulates a kill: restores the file as it was at the time of the result.
    let teams = home.root.path().join("config/teams");
    let kept = std::fs::read(teams.join("crew/config.json")).unwrap();
    host.api().unwrap().release("ann");
    host.finish().await.unwrap();
    std::fs::create_dir_all(teams.join("crew")).unwrap();
    std::fs::write(teams.join("crew/config.json"), kept).unwrap();
    let mut host = home.start([Reply::text("I see.")], Some(&left.session)).await;
    host.run("Where are they?").await.unwrap();
    let asked = &host.model_requests()[0];
    assert!(asked.contains_text("The team crew of this session ended"), "{:?}", asked.messages());
    assert!(asked.contains_text("in the middle of their work: ann"), "{:?}", asked.messages());
}
