//! Agents with `isolation: worktree`.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "this is all tests, and git makes the repository"
)]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostResponse, Reply, Script, TestDirs};
use whimbrel_wire::control::{Initialize, StopTask};
use whimbrel_wire::options::{AgentDefinition, Options, SettingSource};
use whimbrel_wire::permission::PermissionMode;

use super::{agent_input, call_agent, find_agent_id, nth_tool_use_result};

/// Directories whose workspace is a git repository with one commit of `a.txt`.
fn repository_dirs() -> TestDirs {
    let dirs = TestDirs::new().unwrap();
    let setup_command = "git init -q -b main . && echo one > a.txt && git add a.txt && git -c user.name=a -c user.email=a@b.c commit -q -m one";
    let status =
        Command::new("sh").args(["-c", setup_command]).current_dir(dirs.workspace()).status().unwrap();
    assert!(status.success());
    dirs
}

fn accept_edits() -> Options {
    Options { permission_mode: Some(PermissionMode::AcceptEdits), ..Options::default() }
}

fn isolated() -> Value {
    json!({"isolation": "worktree"})
}

fn write_call(path: &str) -> Reply {
    Reply::tool("Write", json!({"file_path": path, "content": "two\n"}))
}

fn list_branches(workspace: &Path) -> String {
    let listed = Command::new("git").args(["branch", "--list"]).current_dir(workspace).output().unwrap();
    String::from_utf8(listed.stdout).unwrap()
}

#[tokio::test]
async fn changes_stay_in_the_worktree_and_are_reported() {
    let script = [
        call_agent("Write.", isolated()),
        write_call("b.txt"),
        Reply::text("Written."),
        write_call("c.txt"),
        Reply::text("Done."),
    ];
    let mut host =
        Host::with_script(script).dirs(repository_dirs()).options(accept_edits()).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().permission_denials.len(), 0);
    let (meta, workspace) = (nth_tool_use_result(&host, 0), host.dirs().workspace());
    let worktree = Path::new(meta["worktreePath"].as_str().unwrap());
    let branch = meta["worktreeBranch"].as_str().unwrap();
    assert!(
        worktree.starts_with(workspace.canonicalize().unwrap().join(".claude/worktrees")),
        "{worktree:?}"
    );
    assert_eq!(std::fs::read_to_string(worktree.join("b.txt")).unwrap(), "two\n");
    assert!(!workspace.join("b.txt").exists() && !worktree.join("c.txt").exists());
    assert!(workspace.join("c.txt").exists(), "the session stays in its directory");
    let requests = host.model_requests();
    assert!(
        requests[1].contains_text(&format!("Working directory: {}", worktree.display())),
        "{:?}",
        requests[1].messages()
    );
    let text = requests[3].last_text() + &requests[3].messages().last().unwrap().to_string();
    assert!(text.contains(&worktree.display().to_string()) && text.contains(branch), "{text}");
}

#[tokio::test]
async fn unchanged_worktree_is_removed_with_its_branch() {
    let script = Script::from_fn(|request| match request.last_text() {
        text if text.contains("Look.") => Reply::tool("Read", json!({"file_path": "a.txt"})),
        text if text.contains("one") && request.messages().len() == 3 && request.contains_text("Look.") => {
            Reply::text("It is there.")
        }
        text if text.contains("Go.") => {
            call_agent("Look.", isolated()).and_tool("Agent", agent_input("Look.", isolated()))
        }
        _ => Reply::text("Done."),
    });
    let mut host = Host::with_script(script).dirs(repository_dirs()).start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert_eq!(host.system_frames("task_notification").len(), 2);
    let workspace = host.dirs().workspace();
    let entries = std::fs::read_dir(workspace.join(".claude/worktrees")).unwrap();
    let entries: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(entries, [".gitignore"]);
    assert_eq!(list_branches(&workspace), "* main\n");
    assert!(nth_tool_use_result(&host, 0)["worktreePath"].is_null());
}

#[tokio::test]
async fn resumed_agent_gets_a_worktree_again() {
    let script = Script::from_fn(|request| {
        let text = request.last_text();
        let id = find_agent_id(&text);
        if text.contains("Look.") {
            Reply::text("Looked.")
        } else if text.contains("Write.") {
            write_call("b.txt")
        } else if text.contains("b.txt") {
            Reply::text("Written.")
        } else if let Some(id) = id.filter(|_| text.contains("Looked.")) {
            call_agent("Write.", json!({"resume": id}))
        } else if text.contains("Go.") {
            call_agent("Look.", isolated())
        } else {
            Reply::text("Done.")
        }
    });
    let mut host =
        Host::with_script(script).dirs(repository_dirs()).options(accept_edits()).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let (first, second) = (nth_tool_use_result(&host, 0), nth_tool_use_result(&host, 1));
    assert!(first["worktreePath"].is_null(), "the worktree had no changes: {first}");
    let worktree = Path::new(second["worktreePath"].as_str().unwrap());
    assert!(worktree.join("b.txt").exists() && !host.dirs().workspace().join("b.txt").exists());
}

/// Calls the agent `smith`, which writes a file.
fn smith_script() -> [Reply; 4] {
    [
        call_agent("Write.", json!({"subagent_type": "smith"})),
        write_call("b.txt"),
        Reply::text("Written."),
        Reply::text("Done."),
    ]
}

#[tokio::test]
async fn agent_definition_can_require_a_worktree() {
    let file = "---\nname: smith\ndescription: Makes things\nisolation: worktree\n---\nYOU MAKE";
    let definition = AgentDefinition {
        description: "Makes things".into(),
        prompt: "YOU MAKE".into(),
        isolation: Some("worktree".into()),
        ..AgentDefinition::default()
    };
    let sources = Some(vec![SettingSource::Project]);
    let in_file = || Host::with_script(smith_script()).file(".claude/agents/smith.md", file);
    let agents = [("smith".to_owned(), definition)].into();
    let rows = [
        ("in a file", in_file().options(Options { setting_sources: sources, ..accept_edits() })),
        ("of the host", Host::with_script(smith_script()).options(Options { agents, ..accept_edits() })),
    ];
    for (name, host) in rows {
        let mut host = host.dirs(repository_dirs()).start().await.unwrap();
        host.run("Go.").await.unwrap();
        assert!(
            nth_tool_use_result(&host, 0)["worktreePath"].is_string(),
            "{name}: {}",
            nth_tool_use_result(&host, 0)
        );
        assert!(!host.dirs().workspace().join("b.txt").exists(), "{name}");
    }
}

#[tokio::test]
async fn agent_without_its_worktree_cannot_write_elsewhere() {
    let bash = |command: &str| Reply::tool("Bash", json!({"command": command}));
    let script = [
        call_agent("Tidy up.", isolated()),
        bash("git worktree remove --force \"$PWD\""),
        bash("touch b.txt"),
        bash("touch b.txt"),
        write_call("c.txt"),
        Reply::text("It is gone."),
        Reply::text("Done."),
    ];
    let options = Options { allowed_tools: vec!["Bash".into(), "Write".into()], ..Options::default() };
    let mut host = Host::with_script(script).dirs(repository_dirs()).options(options).start().await.unwrap();
    assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("Done."));
    let requests = host.model_requests();
    for denied in &requests[3..6] {
        assert!(denied.last_text().contains("no longer exists"), "{}", denied.last_text());
    }
    let files: Vec<String> = host.dirs().files().unwrap().into_keys().collect();
    assert!(!files.iter().any(|file| file.ends_with("b.txt") || file.ends_with("c.txt")), "{files:?}");
}

/// A host with an isolated background agent and a `WorktreeRemove` hook.
async fn host_with_remove_hook(answer: HostResponse, env: (&str, &str)) -> Host {
    let script = Script::from_fn(|request| match request.last_text() {
        text if text.contains("Look.") => Reply::text("never").hold_until("agent"),
        text if text.contains("in the background") => Reply::text("Launched."),
        _ => call_agent("Look.", json!({"isolation": "worktree", "run_in_background": true})),
    });
    let host = Host::with_script(script).dirs(repository_dirs()).env(env.0, env.1);
    let mut host = host.on_request(move |_| answer.clone()).start().await.unwrap();
    let hooks = json!({"hooks": {"WorktreeRemove": [{"hookCallbackIds": ["h"]}]}});
    host.send_request(serde_json::from_value::<Initialize>(hooks).unwrap()).await.unwrap();
    host.run("Go.").await.unwrap();
    host
}

#[tokio::test]
async fn remove_hook_runs_while_the_host_stops_the_agent() {
    let mut host = host_with_remove_hook(HostResponse::Success(json!({})), ("UNUSED", "")).await;
    let task_id = nth_tool_use_result(&host, 0)["agentId"].as_str().unwrap().to_owned();
    host.send_request(StopTask { task_id }).await.unwrap();
    let request_count =
        host.received().iter().filter(|received| received.json["request"]["callback_id"] == "h").count();
    assert_eq!((request_count, list_branches(&host.dirs().workspace()).as_str()), (1, "* main\n"));
    assert_eq!(host.finish().await.unwrap().code, 0);
}

#[tokio::test]
async fn worktree_is_removed_at_exit_despite_an_unanswered_hook() {
    let mut host =
        host_with_remove_hook(HostResponse::NoResponse, ("WHIMBREL_BACKGROUND_AT_END", "stop")).await;
    assert_eq!(host.finish().await.unwrap().code, 0);
    assert_eq!(list_branches(&host.dirs().workspace()), "* main\n");
}

#[tokio::test]
async fn agent_fails_if_no_worktree_can_be_created() {
    let rows = [("worktree", "not in a git repository"), ("moon", "Unknown isolation \"moon\"")];
    for (isolation, reason) in rows {
        let script = [call_agent("Write.", json!({"isolation": isolation})), Reply::text("Not done.")];
        let mut host = Host::with_script(script).start().await.unwrap();
        host.run("Go.").await.unwrap();
        let text = host.model_requests()[1].last_text();
        assert!(text.contains(reason), "{text}");
        assert!(host.system_frames("task_started").is_empty());
    }
}
