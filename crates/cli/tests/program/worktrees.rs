//! Sessions that work in a git worktree of their own (`--worktree`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{RunOutput, TestDir, tool_call};

/// A repository in the working directory, with one commit.
struct Repository(TestDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(TestDir::new());
        fs::create_dir(repository.0.work_dir().join("part")).unwrap();
        fs::write(repository.0.work_dir().join("part/a.txt"), "one").unwrap();
        repository.git(&["init", "-q", "-b", "main"]);
        repository.git(&["add", "."]);
        let author = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
        repository.git(&[&author[..], &["commit", "-q", "-m", "one"]].concat());
        repository
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.0.work_dir()).env("HOME", self.0.temp_dir());
        let output = command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn root(&self) -> PathBuf {
        self.0.work_dir().canonicalize().unwrap()
    }

    fn worktree(&self, name: &str) -> PathBuf {
        self.root().join(".claude/worktrees").join(name)
    }

    /// Runs a prompt with this script and these flags, in a directory of the repository.
    fn run_in(&self, dir: &str, replies: &Value, flags: &[&str]) -> RunOutput {
        let model = self.0.write_script(replies);
        let args = [flags, &["--model", &model, "-p", "Go."]].concat();
        let mut command = self.0.command(&args);
        command.current_dir(self.0.work_dir().join(dir));
        crate::harness::run_command(command, "")
    }
}

fn write_new_file() -> Value {
    json!([tool_call("Bash", &json!({"command": "pwd && echo two > part/new.txt"})), "Done."])
}

#[test]
fn worktree_is_created_used_and_kept() {
    let repository = Repository::new();
    let bypass = "--permission-mode=acceptEdits";
    let output =
        repository.run_in("part", &write_new_file(), &["--worktree=fix", bypass, "--allowedTools=Bash"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Done.\n"), "{output:?}");
    let path = repository.worktree("fix");
    assert!(output.stderr.contains(&format!("{} on the branch worktree-fix", path.display())), "{output:?}");
    assert_eq!(fs::read_to_string(path.join("part/new.txt")).unwrap(), "two\n");
    assert!(!repository.root().join("part/new.txt").exists());
    assert_eq!(repository.git(&["status", "--porcelain"]), "", "the main checkout has no changes");

    // The same name again is the same worktree, with the session that is continued there.
    let output = repository.run_in("", &json!(["Again."]), &["--continue", "-w", "fix"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Again.\n"), "{output:?}");
    assert_eq!(
        repository.git(&["branch", "--list", "worktree-*", "--format=%(refname:short)"]),
        "worktree-fix"
    );
}

#[test]
fn worktree_without_a_name_gets_one() {
    let repository = Repository::new();
    let mut session = repository.0.start_session(&json!(["Done."]), &["--worktree"]);
    session.send_prompt("Go.");
    let cwd = session.next_frame("init")["cwd"].as_str().unwrap().to_owned();
    let branch = repository.git(&["branch", "--list", "worktree-*", "--format=%(refname:short)"]);
    assert_eq!(PathBuf::from(cwd), repository.worktree(branch.strip_prefix("worktree-").unwrap()));
    assert_eq!(session.finish().0, Some(0));
}

#[test]
fn session_without_its_worktree_does_not_start() {
    let test_dir = TestDir::new();
    let model = test_dir.write_script(&json!(["Done."]));
    for (name, cause) in [("fix", "is not in a git repository"), ("../away", "is not a valid worktree name")]
    {
        let worktree = format!("--worktree={name}");
        let output = test_dir.run(&[&worktree, "--model", &model, "-p", "Go."], "");
        assert_eq!((output.code, output.stdout.contains("Done.")), (Some(1), false));
        assert!(format!("{output:?}").contains(cause), "{output:?}");
    }
}

#[test]
fn settings_of_the_start_directory_hold_in_the_worktree() {
    let repository = Repository::new();
    fs::create_dir(repository.root().join(".claude")).unwrap();
    // Not committed, so the worktree does not have it.
    let deny = json!({"permissions": {"deny": ["Read(/part/**)"]}});
    fs::write(repository.root().join(".claude/settings.json"), deny.to_string()).unwrap();
    let replies = json!([tool_call("Read", &json!({"file_path": "part/a.txt"})), "Done."]);
    let flags = ["--worktree=fix", "--output-format=json"];
    let output = repository.run_in("", &replies, &flags);
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(result["permission_denials"][0]["tool_name"], "Read", "{result}");
}

#[test]
fn hook_creates_the_worktree() {
    let test_dir = TestDir::new();
    let command = "cat > event.json; mkdir -p copy; echo copy";
    let settings =
        json!({"hooks": {"WorktreeCreate": [{"hooks": [{"type": "command", "command": command}]}]}});
    let settings = settings.to_string();
    let mut session = test_dir.start_session(&json!(["Done."]), &["--worktree=fix", "--settings", &settings]);
    session.send_prompt("Go.");
    let init = session.next_frame("init");
    let root = test_dir.work_dir().canonicalize().unwrap();
    assert_eq!(init["cwd"], root.join("copy").to_str().unwrap());
    let event: Value = serde_json::from_slice(&fs::read(root.join("event.json")).unwrap()).unwrap();
    assert_eq!((&event["name"], &event["session_id"]), (&json!("fix"), &init["session_id"]));
    assert_eq!(session.finish().0, Some(0));
}
