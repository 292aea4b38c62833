//! Forked skills: tools denied by a skill stay denied for the life of its subagent.

use serde_json::json;
use whimbrel_testkit::{Host, Reply, Script};
use whimbrel_wire::options::{Options, SettingSource};
use whimbrel_wire::permission::PermissionMode;

use super::{agent_input, nth_tool_use_result};

const SKILL: &str = "---\ndescription: d\ncontext: fork\ndisallowed-tools: Write\n---\nDo the skill.";

/// A script whose subagent tries to write on every prompt.
fn script(again: impl Fn() -> Reply + Send + Sync + 'static) -> Script {
    Script::from_fn(move |asked| {
        let text = asked.last_text();
        match () {
            () if text.contains("Do the skill.") || text.starts_with("Once more.") => {
                Reply::tool("Write", json!({"file_path": "made", "content": "x"}))
            }
            () if asked.contains_text("Do the skill.") => Reply::text("I have tried."),
            () if text.contains("Go.") => Reply::tool("Skill", json!({"skill": "it"})),
            () if text.contains("Again.") => again(),
            () => Reply::text("Done."),
        }
    })
}

#[tokio::test]
async fn forked_skill_denials_survive_resume_and_restart() {
    let root = tempfile::tempdir().unwrap();
    let work = root.path().join("work");
    std::fs::create_dir_all(work.join(".claude/skills/it")).unwrap();
    std::fs::write(work.join(".claude/skills/it/SKILL.md"), SKILL).unwrap();
    let options = |resume: Option<String>| Options {
        cwd: Some(work.canonicalize().unwrap().to_string_lossy().into_owned()),
        setting_sources: Some(vec![SettingSource::Project]),
        permission_mode: Some(PermissionMode::AcceptEdits),
        resume,
        ..Options::default()
    };
    let config = root.path().join("config").to_string_lossy().into_owned();
    let id = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let known = std::sync::Arc::clone(&id);
    let again =
        move || Reply::tool("Agent", agent_input("Once more.", json!({"resume": *known.lock().unwrap()})));
    let mut session = None;
    for run in ["first", "second"] {
        let host = Host::with_script(script(again.clone())).options(options(session.clone()));
        let mut host = host.env("CLAUDE_CONFIG_DIR", config.clone()).start().await.unwrap();
        if session.is_none() {
            session = Some(host.run("Go.").await.unwrap().session_id);
            *id.lock().unwrap() = nth_tool_use_result(&host, 0)["agentId"].as_str().unwrap().to_owned();
        }
        host.run("Again.").await.unwrap();
        let asked = host.model_requests();
        let went_on = asked
            .iter()
            .any(|asked| asked.contains_text("Once more.") && asked.contains_text("I have tried."));
        assert!(went_on, "{run}");
        assert!(!work.join("made").exists(), "{run}");
        host.finish().await.unwrap();
    }
}
