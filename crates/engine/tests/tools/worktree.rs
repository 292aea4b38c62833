//! A session that enters a worktree and leaves it.

use serde_json::json;
use whimbrel_testkit::{Host, HostResponse, Reply};
use whimbrel_wire::control::Initialize;
use whimbrel_wire::options::Options;
use whimbrel_wire::permission::PermissionMode;

const CREATE_REPOSITORY: &str = "git init -q -b main . && echo one > a.txt && git add a.txt && git -c user.name=a -c user.email=a@b.c commit -q -m one";

#[tokio::test]
async fn working_directory_follows_the_worktree() {
    let script = [
        Reply::bash(CREATE_REPOSITORY),
        Reply::tool("EnterWorktree", json!({"name": "try"})),
        Reply::tool("Write", json!({"file_path": "new.txt", "content": "two\n"})),
        Reply::bash("cd /; true"),
        Reply::bash("cat new.txt; git branch --show-current"),
        Reply::text("There."),
        Reply::tool("ExitWorktree", json!({"action": "remove"})),
        Reply::tool("ExitWorktree", json!({"action": "remove", "discard_changes": true})),
        Reply::bash("ls; git worktree list | wc -l"),
        Reply::text("Back."),
    ];
    let options = Options { permission_mode: Some(PermissionMode::BypassPermissions), ..Options::default() };
    let mut host = Host::with_script(script).options(options).env("IS_SANDBOX", "1").start().await.unwrap();
    host.run("Go.").await.unwrap();
    host.run("Return.").await.unwrap();
    let text = |index: usize| host.model_requests()[index].last_text();
    assert!(text(5).contains("two\nworktree-try"), "the shell returns to the worktree: {}", text(5));
    assert!(text(7).contains("would lose 1 file"), "{}", text(7));
    assert!(text(8).contains("was removed with 1 file"), "{}", text(8));
    assert!(text(9).contains("a.txt\n1"), "{}", text(9));
    let inits = host.received().iter().filter(|received| received.json["subtype"] == "init");
    let dirs: Vec<String> = inits.map(|received| received.json["cwd"].as_str().unwrap().to_owned()).collect();
    assert!(dirs[1].ends_with("/.claude/worktrees/try"), "{dirs:?}");
    assert!(!host.dirs().workspace().join(".claude/worktrees/try").exists());
}

#[tokio::test]
async fn hooks_can_create_and_remove_worktrees() {
    let script = [
        Reply::tool("EnterWorktree", json!({"name": "try"})),
        Reply::bash("pwd"),
        Reply::tool("ExitWorktree", json!({"action": "remove"})),
        Reply::text("Done."),
    ];
    let (sender, inputs) = std::sync::mpsc::channel();
    let mut host = Host::with_script(script)
        .file("made/by/hook.txt", "x")
        .on_request(move |request| {
            let input = serde_json::to_value(request).unwrap()["input"].clone();
            let event = input["hook_event_name"].as_str().unwrap_or_default().to_owned();
            let made = json!({"hookEventName": "WorktreeCreate", "worktreePath": "made/by"});
            let reply = match event.as_str() {
                "WorktreeCreate" => json!({"hookSpecificOutput": made}),
                _ => json!({}),
            };
            sender.send((event, input)).unwrap();
            HostResponse::Success(reply)
        })
        .start()
        .await
        .unwrap();
    let hook = json!([{"hookCallbackIds": ["h"]}]);
    let hooks = json!({"hooks": {"WorktreeCreate": hook, "WorktreeRemove": hook, "CwdChanged": hook}});
    host.send_request(serde_json::from_value::<Initialize>(hooks).unwrap()).await.unwrap();
    host.run("Go.").await.unwrap();
    let dir = host.dirs().workspace().canonicalize().unwrap().join("made/by").display().to_string();
    assert!(host.model_requests()[2].last_text().contains(&dir), "{}", host.model_requests()[2].last_text());
    let inputs: Vec<_> = inputs.try_iter().collect();
    let events: Vec<&str> = inputs.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(events, ["WorktreeCreate", "CwdChanged", "WorktreeRemove", "CwdChanged"]);
    assert_eq!((&inputs[0].1["name"], &inputs[2].1["worktree_path"]), (&json!("try"), &json!(dir)));
}
