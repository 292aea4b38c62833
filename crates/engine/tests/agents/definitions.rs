//! Agent definitions: their sources, and the prompt, tools, model, hooks and memory they give an agent.

use std::collections::BTreeMap;

use serde_json::json;
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::options::{AgentDefinition, Options, SettingSource};
use whimbrel_wire::permission::PermissionMode;

use super::call_agent;

fn reviewer() -> AgentDefinition {
    AgentDefinition {
        description: "Reviews code".into(),
        prompt: "YOU REVIEW".into(),
        tools: Some(vec!["Read".into(), "Grep".into()]),
        model: Some("haiku".into()),
        ..AgentDefinition::default()
    }
}

fn options_with_agents(agents: impl IntoIterator<Item = (&'static str, AgentDefinition)>) -> Options {
    let agents: BTreeMap<_, _> =
        agents.into_iter().map(|(name, definition)| (name.to_owned(), definition)).collect();
    Options { agents, ..Options::default() }
}

#[tokio::test]
async fn host_definition_sets_prompt_tools_and_model() {
    let script = [
        call_agent("Look.", json!({"subagent_type": "rev"})),
        Reply::tool("Write", json!({"file_path": "w", "content": "x"})),
        Reply::text("Reviewed."),
        Reply::text("Done."),
    ];
    let broken = AgentDefinition { prompt: String::new(), ..reviewer() };
    let mut host = Host::with_script(script)
        .options(options_with_agents([("rev", reviewer()), ("broken", broken)]))
        .start()
        .await
        .unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let requests = host.model_requests();
    assert!(requests[0].contains_text("- rev: Reviews code"), "the main agent sees the definition");
    let subagent_request = &requests[1];
    assert_eq!(
        (subagent_request.system_prompt().as_str(), subagent_request.tool_names()),
        ("YOU REVIEW", vec!["Read", "Grep"])
    );
    assert!(
        subagent_request.model().contains("haiku") && !subagent_request.contains_text("Go."),
        "{}",
        subagent_request.model()
    );
    assert!(host.dirs().files().unwrap().is_empty(), "it has only the listed tools");
    let init = host.init_frame().unwrap();
    assert_eq!(init["agents"], json!(["general-purpose", "Explore", "Plan", "rev"]));
    let has_warning = host
        .received()
        .iter()
        .any(|received| received.json.to_string().contains("\\\"broken\\\" is not used"));
    assert!(has_warning, "a warning names the invalid definition");
}

#[tokio::test]
async fn definition_files_load_only_from_enabled_sources() {
    let file = "---\nname: scribe\ndescription: Writes\ntools: Write\n---\nYOU WRITE";
    for (sources, known) in [(vec![SettingSource::Project], true), (vec![], false)] {
        let script = [
            call_agent("Write.", json!({"subagent_type": "scribe"})),
            Reply::text(if known { "Written." } else { "Sorry." }),
            Reply::text("Done."),
        ];
        let options = Options { setting_sources: Some(sources), ..Options::default() };
        let mut host = Host::with_script(script)
            .options(options)
            .file(".claude/agents/x.md", file)
            .start()
            .await
            .unwrap();
        host.run("Go.").await.unwrap();
        let requests = host.model_requests();
        match known {
            true => assert_eq!(
                (requests[1].system_prompt().as_str(), requests[1].tool_names()),
                ("YOU WRITE", vec!["Write"])
            ),
            false => {
                let text = requests[1].last_text();
                assert!(text.contains("'scribe'") && text.contains("Explore"), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn deny_rule_removes_an_agent_definition() {
    let script = [call_agent("Look.", json!({"subagent_type": "Explore"})), Reply::text("Alone, then.")];
    let options = Options { disallowed_tools: vec!["Agent(Explore)".into()], ..Options::default() };
    let mut host = Host::with_script(script).options(options).start().await.unwrap();
    let result = host.run("Go.").await.unwrap();
    assert_eq!(result.permission_denials.len(), 1);
    let init = host.init_frame().unwrap();
    assert_eq!(init["agents"], json!(["general-purpose", "Plan"]));
}

#[tokio::test]
async fn definition_mode_can_only_restrict() {
    let definition = |mode| AgentDefinition { permission_mode: Some(mode), tools: None, ..reviewer() };
    let rows = [
        ("narrower", PermissionMode::AcceptEdits, PermissionMode::DontAsk, 1),
        ("wider", PermissionMode::DontAsk, PermissionMode::BypassPermissions, 1),
        ("same", PermissionMode::AcceptEdits, PermissionMode::AcceptEdits, 0),
    ];
    for (name, session, agent_mode, denied) in rows {
        let script = [
            call_agent("Write.", json!({"subagent_type": "rev"})),
            Reply::tool("Write", json!({"file_path": "w", "content": "x"})),
            Reply::text("Below."),
            Reply::text("Done."),
        ];
        let options = Options {
            permission_mode: Some(session),
            ..options_with_agents([("rev", definition(agent_mode))])
        };
        let mut host = Host::with_script(script).options(options).start().await.unwrap();
        assert_eq!(host.run("Go.").await.unwrap().permission_denials.len(), denied, "{name}");
    }
}

#[tokio::test]
async fn definition_sets_max_turns_and_background() {
    let definition = AgentDefinition { max_turns: Some(1), tools: None, ..reviewer() };
    let script = [
        call_agent("Look.", json!({"subagent_type": "rev"})),
        Reply::text("So far.").and_tool("Read", json!({"file_path": "note"})),
        Reply::text("Done."),
    ];
    let mut host = Host::with_script(script)
        .options(options_with_agents([("rev", definition)]))
        .file("note", "x")
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    let result_text = host.model_requests()[2].last_text();
    assert!(result_text.contains("limit of model calls") && result_text.contains("So far."), "{result_text}");

    let definition = AgentDefinition { background: Some(true), ..reviewer() };
    let script = Script::from_fn(|request| match request.last_text() {
        text if text.contains("Look.") => Reply::text("Seen."),
        text if text.contains("task-notification") => Reply::text("Noted."),
        text if text.contains("in the background") => Reply::text("Away."),
        _ => call_agent("Look.", json!({"subagent_type": "rev"})),
    });
    let mut host =
        Host::with_script(script).options(options_with_agents([("rev", definition)])).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Away."));
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Noted."));
}

#[tokio::test]
async fn main_agent_can_use_a_definition() {
    let definition = AgentDefinition { initial_prompt: Some("Begin.".into()), ..reviewer() };
    let options =
        Options { agent: Some("rev".into()), model: None, ..options_with_agents([("rev", definition)]) };
    let mut host = Host::with_script([Reply::text("Reviewed.")]).options(options).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Reviewed."));
    let first = &host.model_requests()[0];
    assert_eq!(first.tool_names(), ["Read", "Grep"]);
    assert!(
        first.system_prompt().contains("YOU REVIEW") && first.contains_text("Begin."),
        "{:?}",
        first.messages()
    );

    let options = Options { agent: Some("missing".into()), ..Options::default() };
    let mut host = Host::with_script([Reply::text("never")]).options(options).start().await.unwrap();
    let text = host.run("Go.").await.unwrap().errors.unwrap().join(" ");
    assert!(text.contains("\"missing\"") && text.contains("Explore"), "{text}");
}

#[tokio::test]
async fn skills_of_a_definition_precede_the_task() {
    let skills = Some(vec!["knots".into(), "nothing".into()]);
    let definition = AgentDefinition { skills, ..reviewer() };
    let options = Options {
        setting_sources: Some(vec![SettingSource::Project]),
        ..options_with_agents([("rev", definition)])
    };
    let script =
        [call_agent("Tie it.", json!({"subagent_type": "rev"})), Reply::text("Tied."), Reply::text("Done.")];
    let skill = "---\nname: knots\ndescription: Ties\n---\nOVER AND UNDER";
    let host = Host::with_script(script).options(options).file(".claude/skills/knots/SKILL.md", skill);
    let mut host = host.start().await.unwrap();
    host.run("Go.").await.unwrap();
    let requests = host.model_requests();
    assert!(!requests[0].contains_text("OVER AND UNDER"), "the main agent does not get the skill");
    let text = requests[1].last_text();
    let (skill, task) = (text.find("OVER AND UNDER").unwrap(), text.find("Tie it.").unwrap());
    assert!(skill < task, "{text}");
    let mut text = host.received().iter().map(|received| received.json.to_string());
    assert!(text.any(|json| json.contains("without the skill nothing")), "the missing skill is reported");
}

#[tokio::test]
async fn trusted_definition_file_brings_its_hooks() {
    let file = "---\nname: scribe\ndescription: Writes\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: \"echo denied by the hook >&2; exit 2\"\n  Stop:\n    - hooks:\n        - type: command\n          command: \"touch stopped\"\n---\nYOU WRITE";
    let bash = || Reply::tool("Bash", json!({"command": "echo ran"}));
    let script = [
        call_agent("Write.", json!({"subagent_type": "scribe"})),
        bash(),
        Reply::text("Ended."),
        bash(),
        Reply::text("Done."),
    ];
    let options = Options {
        setting_sources: Some(vec![SettingSource::Project]),
        allowed_tools: vec!["Bash".into()],
        ..Options::default()
    };
    let host = Host::with_script(script).options(options).file(".claude/agents/x.md", file);
    let mut host = host.start().await.unwrap();
    host.run("Go.").await.unwrap();
    let requests = host.model_requests();
    assert!(requests[2].last_text().contains("denied by the hook"), "{}", requests[2].last_text());
    assert!(
        requests[4].last_text().contains("ran"),
        "the main agent has no such hook: {}",
        requests[4].last_text()
    );
    assert!(host.dirs().workspace().join("stopped").exists(), "the stop hook of the agent ran");
}

#[tokio::test]
async fn definition_with_memory_gets_its_content_and_file_tools() {
    let definition =
        AgentDefinition { memory: Some("project".into()), tools: Some(vec!["Grep".into()]), ..reviewer() };
    let script =
        [call_agent("Look.", json!({"subagent_type": "rev"})), Reply::text("Seen."), Reply::text("Done.")];
    let host = Host::with_script(script).options(options_with_agents([("rev", definition)]));
    let host = host.file(".claude/agent-memory/rev/MEMORY.md", "- details are in details.md\n");
    let mut host = host.start().await.unwrap();
    host.run("Go.").await.unwrap();
    let request = &host.model_requests()[1];
    let text = request.last_text();
    let (memory, task) = (text.find("- details are in details.md").unwrap(), text.find("Look.").unwrap());
    assert!(memory < task && text.contains(".claude/agent-memory/rev"), "{text}");
    for tool in ["Grep", "Read", "Write", "Edit"] {
        assert!(request.tool_names().contains(&tool), "{tool}: {:?}", request.tool_names());
    }
}

#[tokio::test]
async fn main_agent_gets_hooks_and_memory_of_its_definition() {
    let file = "---\nname: scribe\ndescription: Writes\ntools: Bash\nmemory: project\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: \"echo denied by the hook >&2; exit 2\"\n  Stop:\n    - hooks:\n        - type: command\n          command: \"touch stopped\"\n---\nYOU WRITE";
    let script = [Reply::tool("Bash", json!({"command": "touch ran"})), Reply::text("Done.")];
    let options = Options {
        setting_sources: Some(vec![SettingSource::Project]),
        allowed_tools: vec!["Bash".into()],
        agent: Some("scribe".into()),
        ..Options::default()
    };
    let host = Host::with_script(script).options(options).file(".claude/agents/x.md", file);
    let mut host = host
        .file(".claude/agent-memory/scribe/MEMORY.md", "- notes are in notes.md\n")
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    let requests = host.model_requests();
    assert!(
        requests[0].system_prompt().contains("- notes are in notes.md"),
        "{}",
        requests[0].system_prompt()
    );
    assert_eq!(requests[0].tool_names(), ["Bash", "Read", "Write", "Edit"], "memory adds the file tools");
    assert!(requests[1].last_text().contains("denied by the hook"), "{}", requests[1].last_text());
    let files = host.dirs().files().unwrap();
    assert!(files.contains_key("stopped") && !files.contains_key("ran"), "{:?}", files.keys());
}
