//! Forked skills: tools denied by a skill stay denied until its subagent ends.

use serde_json::json;
use whimbrel_testkit::{Reply, Script, SessionDirs};
use whimbrel_wire::options::{Options, SettingSource};
use whimbrel_wire::permission::PermissionMode;

use super::{agent_input, nth_tool_use_result};

const SKILL: &str = "---\ndescription: d\ncontext: fork\ndisallowed-tools: Write\n---\nDo the skill.";

/// A script whose subagent tries to write on every prompt.
fn script(resume_reply: impl Fn() -> Reply + Send + Sync + 'static) -> Script {
    Script::from_fn(move |request| {
        let text = request.last_text();
        match () {
            () if text.contains("Do the skill.") || text.starts_with("Once more.") => {
                Reply::tool("Write", json!({"file_path": "made", "content": "x"}))
            }
            () if request.contains_text("Do the skill.") => Reply::text("I have tried."),
            () if text.contains("Go.") => Reply::tool("Skill", json!({"skill": "it"})),
            () if text.contains("Again.") => resume_reply(),
            () => Reply::text("Done."),
        }
    })
}

#[tokio::test]
async fn forked_skill_denials_survive_resume_and_restart() {
    let dirs = SessionDirs::new().unwrap();
    let skill_dir = dirs.work_dir().join(".claude/skills/it");
    std::fs::create_dir_all(&skill_dir).unwrap();
    std::fs::write(skill_dir.join("SKILL.md"), SKILL).unwrap();
    let options = |resume: Option<String>| Options {
        setting_sources: Some(vec![SettingSource::Project]),
        permission_mode: Some(PermissionMode::AcceptEdits),
        resume,
        ..Options::default()
    };
    let id = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let resumed_id = std::sync::Arc::clone(&id);
    let resume_reply = move || {
        Reply::tool("Agent", agent_input("Once more.", json!({"resume": *resumed_id.lock().unwrap()})))
    };
    let mut session = None;
    for run in ["first", "second"] {
        let host = dirs.host(script(resume_reply.clone()), options(session.clone()));
        let mut host = host.start().await.unwrap();
        if session.is_none() {
            session = Some(host.run("Go.").await.unwrap().session_id);
            *id.lock().unwrap() = nth_tool_use_result(&host, 0)["agentId"].as_str().unwrap().to_owned();
        }
        host.run("Again.").await.unwrap();
        let requests = host.model_requests();
        let was_resumed = requests
            .iter()
            .any(|request| request.contains_text("Once more.") && request.contains_text("I have tried."));
        assert!(was_resumed, "{run}");
        assert!(!dirs.work_dir().join("made").exists(), "{run}");
        host.finish().await.unwrap();
    }
}
