//! Directories that the host adds during a session.

use serde_json::json;
use whimbrel_testkit::{Host, HostResponse, Reply, Script, TestDirs};
use whimbrel_wire::control::{Initialize, ListPermissionRules, RegisterRepoRoot, Request};
use whimbrel_wire::message::TurnResult;

/// A repository beside the workspace.
struct Repository {
    dirs: TestDirs,
    root: String,
}

impl Repository {
    fn new() -> Self {
        let dirs = TestDirs::new().unwrap();
        let root = dirs.home().join("other");
        std::fs::create_dir_all(root.join(".claude/skills/tidy")).unwrap();
        std::fs::write(root.join("CLAUDE.md"), "OTHER-RULE").unwrap();
        let skill = "---\ndescription: Tidies up\nallowed-tools: Bash(touch *)\n---\nTidy.";
        std::fs::write(root.join(".claude/skills/tidy/SKILL.md"), skill).unwrap();
        let root = root.canonicalize().unwrap().display().to_string();
        Self { dirs, root }
    }

    fn read(&self) -> Reply {
        Reply::tool("Read", json!({"file_path": format!("{}/CLAUDE.md", self.root)}))
    }

    fn registration(&self) -> RegisterRepoRoot {
        RegisterRepoRoot { directory: self.root.clone(), ..RegisterRepoRoot::default() }
    }
}

fn denials(result: &TurnResult) -> usize {
    result.permission_denials.len()
}

#[tokio::test]
async fn registered_directory_is_a_working_directory() {
    let repository = Repository::new();
    let registration = repository.registration();
    let script = [repository.read(), Reply::text("No."), repository.read(), Reply::text("Yes.")];
    let mut host = Host::with_script(script).dirs(repository.dirs).start().await.unwrap();
    assert_eq!(denials(&host.run("Read.").await.unwrap()), 1);
    host.send_request(registration.clone()).await.unwrap();
    assert_eq!(denials(&host.run("Again.").await.unwrap()), 0);
    let state = host.send_request(ListPermissionRules {}).await.unwrap().state;
    assert_eq!(state.workspace_directories, [json!({"path": registration.directory, "source": "session"})]);
    let skills = host.init_frame().unwrap()["skills"].clone();
    assert_eq!(skills, json!([]), "only on request");
}

#[tokio::test]
async fn instructions_and_skills_are_loaded_on_request() {
    let repository = Repository::new();
    let registration = RegisterRepoRoot {
        reload_claude_md: Some(true),
        reload_skills: Some(true),
        ..repository.registration()
    };
    let script = [Reply::text("One."), Reply::text("Two."), Reply::bash("touch a"), Reply::text("Three.")];
    let mut host = Host::with_script(script).dirs(repository.dirs).start().await.unwrap();
    host.run("Hi.").await.unwrap();
    host.send_request(registration).await.unwrap();
    host.run("And now?").await.unwrap();
    let requests = host.model_requests();
    for text in ["OTHER-RULE", "- tidy: Tidies up"] {
        assert_eq!([0, 1].map(|index: usize| requests[index].contains_text(text)), [false, true], "{text}");
    }
    assert_eq!(host.system_frames("commands_changed").len(), 1);
    let result = host.run("/tidy").await.unwrap();
    assert!(host.model_requests()[2].contains_text("Tidy."));
    assert_eq!(denials(&result), 1, "its allow rules need trust");
}

#[tokio::test]
async fn hooks_learn_of_the_directory_before_the_answer() {
    let repository = Repository::new();
    let registration = repository.registration();
    let mut host = Host::with_script(Script::from([]))
        .dirs(repository.dirs)
        .on_request(|_: &Request| HostResponse::Success(json!({})))
        .start()
        .await
        .unwrap();
    let hooks = json!({"hooks": {"DirectoryAdded": [
        {"matcher": "register_repo_root", "hookCallbackIds": ["hook_0"]},
        {"matcher": "slash_command", "hookCallbackIds": ["hook_1"]}]}});
    host.send_request(serde_json::from_value::<Initialize>(hooks).unwrap()).await.unwrap();
    host.send_request(registration.clone()).await.unwrap();
    let calls: Vec<_> = host
        .received()
        .iter()
        .map(|received| &received.json["request"])
        .filter(|request| request["subtype"] == "hook_callback")
        .collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["callback_id"], "hook_0");
    assert_eq!(calls[0]["input"]["directory"], json!(registration.directory));
    assert_eq!(calls[0]["input"]["source"], "register_repo_root");
}

#[tokio::test]
async fn missing_directory_is_an_error() {
    let mut host = Host::with_script(Script::from([])).file("a.txt", "x").start().await.unwrap();
    for directory in ["nowhere", "a.txt"] {
        let request = RegisterRepoRoot { directory: directory.into(), ..RegisterRepoRoot::default() };
        let error = host.send_request(request).await.unwrap_err().to_string();
        assert!(error.contains("is not a directory"), "{error}");
    }
}
