//! `whimbrel doctor`, `auth status`, `agents` and `config`: what is set up, without a session.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{RunOutput, TestDir, run_command};

fn user_file(test_dir: &TestDir, name: &str) -> PathBuf {
    let dir = test_dir.work_dir().join("../home/.claude");
    fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

#[track_caller]
fn run_ok(test_dir: &TestDir, args: &[&str]) -> String {
    let RunOutput { code, stdout, stderr } = test_dir.run(args, "");
    assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
    stdout
}

#[track_caller]
fn run_failing(test_dir: &TestDir, args: &[&str]) -> String {
    let out = test_dir.run(args, "");
    assert_eq!((out.code, out.stdout.as_str()), (Some(1), ""), "{args:?}");
    out.stderr
}

fn run_with_key(test_dir: &TestDir, args: &[&str]) -> RunOutput {
    let mut command = test_dir.command(args);
    command.env("ANTHROPIC_API_KEY", "sk-secret");
    run_command(command, "")
}

#[test]
fn auth_status_names_the_source_of_the_key() {
    let test_dir = TestDir::new();
    let out = test_dir.run(&["auth", "status", "--text"], "");
    assert_eq!(out.code, Some(1));
    assert!(
        out.stdout.contains("Key: none\n") && out.stdout.contains("export ANTHROPIC_API_KEY"),
        "{}",
        out.stdout
    );
    let out = run_with_key(&test_dir, &["auth", "status"]);
    let status: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(out.code, Some(0));
    assert_eq!(
        (&status["loggedIn"], &status["authMethod"], &status["apiKeySource"]),
        (&json!(true), &json!("api_key"), &json!("ANTHROPIC_API_KEY"))
    );
    assert!(!out.stdout.contains("sk-secret"));
    fs::write(user_file(&test_dir, "settings.json"), r#"{"apiKeyHelper": "echo key"}"#).unwrap();
    assert!(
        run_ok(&test_dir, &["auth", "status", "--text"])
            .contains("Key: the command apiKeyHelper of the settings")
    );
    let openai = run_ok(&test_dir, &["auth", "status", "--json", "--model", "openai:qwen"]);
    assert!(openai.contains("\"apiProvider\": \"openai\"") && openai.contains("openai:qwen"), "{openai}");
}

#[test]
fn agents_are_listed_with_source_and_model() {
    let test_dir = TestDir::new();
    let agent = |name: &str, more: &str| format!("---\nname: {name}\ndescription: looks\n{more}---\nLook.");
    let write = |path: PathBuf, text: String| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(user_file(&test_dir, "agents/mine.md"), agent("mine", "model: haiku\n"));
    write(test_dir.work_dir().join(".claude/agents/ours.md"), agent("ours", ""));
    let plugin = test_dir.work_dir().join("kit");
    write(plugin.join(".claude-plugin/plugin.json"), r#"{"name": "kit"}"#.into());
    write(plugin.join("agents/helper.md"), agent("helper", ""));
    let flags = ["agents", "--plugin-dir", plugin.to_str().unwrap()];
    let listed = run_ok(&test_dir, &flags);
    for part in [
        "6 agents\n",
        "\nUser:\n  mine · haiku · looks\n",
        "\nProject:\n  ours · inherit · looks\n",
        "\nPlugins:\n  kit:helper · inherit · looks\n",
        "\nBuilt in:\n",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let listed: Value =
        serde_json::from_str(&run_ok(&test_dir, &[&flags[..], &["--json"]].concat())).unwrap();
    let mine = listed.as_array().unwrap().iter().find(|agent| agent["name"] == "mine").unwrap();
    assert_eq!((&mine["source"], &mine["model"]), (&json!("user"), &json!("haiku")));
    assert!(run_failing(&test_dir, &["agents", "surplus"]).contains("\"surplus\" is not expected here"));
}

#[test]
fn config_changes_one_value_and_keeps_the_rest() {
    let test_dir = TestDir::new();
    let file = user_file(&test_dir, "settings.json");
    fs::write(&file, "{\n    \"cleanupPeriodDays\":   7\n}\n").unwrap();
    assert!(run_ok(&test_dir, &["config", "set", "model", "opus"]).starts_with("Set model to \"opus\" in "));
    run_ok(&test_dir, &["config", "set", "env.KEY", "secret"]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("{\n    \"cleanupPeriodDays\":   7,\n"), "{text}");
    assert_eq!(run_ok(&test_dir, &["config", "get", "model"]), "opus\n");
    assert_eq!(run_ok(&test_dir, &["config", "get", "env.KEY"]), "secret\n");
    let listed = run_ok(&test_dir, &["config", "list"]);
    assert!(listed.contains("model = \"opus\"\n") && !listed.contains("secret"), "{listed}");

    let set = run_ok(&test_dir, &["config", "set", "--scope", "local", "model", "haiku"]);
    assert!(set.contains("settings.local.json"), "{set}");
    let set = run_ok(&test_dir, &["config", "set", "model", "sonnet"]);
    assert!(set.contains("A stronger source of settings overrides it here."), "{set}");
    let json: Value = serde_json::from_str(&run_ok(&test_dir, &["config", "list", "--json"])).unwrap();
    assert_eq!((&json["model"], &json["cleanupPeriodDays"]), (&json!("haiku"), &json!(7)));
    assert_eq!(run_ok(&test_dir, &["config", "get", "model", "--scope", "user"]), "sonnet\n");

    assert!(run_ok(&test_dir, &["config", "remove", "model"]).starts_with("Removed model from "));
    assert!(run_failing(&test_dir, &["config", "remove", "model"]).contains("model is not set in "));
    assert!(run_failing(&test_dir, &["config", "get", "nothing"]).contains("nothing is not set."));
    assert!(
        run_failing(&test_dir, &["config", "set", "permissions.deny", "Bash"]).contains("permissions.deny")
    );
    fs::write(&file, "{").unwrap();
    assert!(run_failing(&test_dir, &["config", "set", "model", "opus"]).contains("settings.json"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "{");
}

#[test]
fn doctor_reports_what_is_set_up_and_what_is_wrong() {
    let test_dir = TestDir::new();
    let out = run_with_key(&test_dir, &["doctor"]);
    assert_eq!((out.code, out.stderr.as_str()), (Some(0), ""), "{}", out.stdout);
    for part in [
        "✓ version: Whimbrel 0.1.0, protocol 2.1.325",
        "✓ key: ANTHROPIC_API_KEY of the environment\n",
        "✓ user settings: ",
        "✓ configuration directory: ",
        "✓ bash: /",
    ] {
        assert!(out.stdout.contains(part), "{part}: {}", out.stdout);
    }
    assert!(!out.stdout.contains("sk-secret"));

    let out = test_dir.run(&["doctor"], "");
    assert!(out.code == Some(1) && out.stdout.contains("✗ key: none."), "{}", out.stdout);

    let servers = json!({"mcpServers": {"lost": {"command": "/no/such/program"}, "bad": {"type": "http"}}});
    fs::write(test_dir.work_dir().join("../home/.claude.json"), servers.to_string()).unwrap();
    let out = run_with_key(&test_dir, &["doctor", "--json"]);
    let report: Value = serde_json::from_str(&out.stdout).unwrap();
    let status = |name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).map(|check| check["status"].as_str().unwrap())
    };
    assert_eq!((out.code, &report["ok"]), (Some(1), &json!(false)));
    assert_eq!(
        (status("MCP server lost"), status("MCP server bad"), status("key")),
        (Some("warning"), Some("error"), Some("ok"))
    );

    fs::remove_file(test_dir.work_dir().join("../home/.claude.json")).unwrap();
    fs::write(user_file(&test_dir, "settings.json"), "{\n  \"model\": opus\n}").unwrap();
    let out = run_with_key(&test_dir, &["doctor"]);
    assert!(out.code == Some(1) && out.stdout.contains("line 2"), "{}", out.stdout);
}
