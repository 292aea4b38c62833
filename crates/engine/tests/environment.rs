//! Environment variables of a session: what they change in requests, tools and commands.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, Reply};
use whimbrel_wire::control::BackgroundTasks;
use whimbrel_wire::options::{Options, SettingSource};
use whimbrel_wire::permission::PermissionResult;

/// A host whose model runs this command and then ends.
fn host_running(command: &str) -> HostBuilder {
    let script = [Reply::tool("Bash", json!({"command": command})), Reply::text("Done.")];
    Host::with_script(script).can_use_tool(|_| PermissionResult::allow())
}

/// What the model reads as the result of the command.
async fn command_output(builder: HostBuilder) -> String {
    let mut host = builder.start().await.unwrap();
    host.run("Go.").await.unwrap();
    host.model_requests()[1].last_text()
}

fn warnings(host: &Host) -> String {
    let lines = host.received().iter().map(|received| &received.json);
    lines.filter(|line| line["level"] == "warning").map(|line| line["content"].to_string()).collect()
}

#[tokio::test]
async fn settings_pass_key_variables_on() {
    let command = "echo \"$ANTHROPIC_API_KEY,$OPENAI_API_KEY\"";
    let keys = |builder: HostBuilder| builder.env("ANTHROPIC_API_KEY", "a").env("OPENAI_API_KEY", "o");
    let pass = json!({"passEnv": ["OPENAI_API_KEY"]}).to_string();
    assert_eq!(command_output(keys(host_running(command))).await, ",");
    let by_env = keys(host_running(command)).env("WHIMBREL_PASS_ENV", "ANTHROPIC_API_KEY");
    assert_eq!(command_output(by_env).await, "a,");
    let by_flag = keys(host_running(command)).configure(|options| options.settings = Some(pass.clone()));
    assert_eq!(command_output(by_flag).await, ",o");
    let by_project = keys(host_running(command))
        .configure(|options| options.setting_sources = Some(vec![SettingSource::Project]))
        .file(".claude/settings.json", pass);
    assert_eq!(command_output(by_project).await, ",", "no project may pass keys on");
}

#[tokio::test]
async fn simple_and_safe_mode_read_no_files() {
    for (name, value, is_read) in [
        ("CLAUDE_CODE_SIMPLE", "1", false),
        ("CLAUDE_CODE_SAFE_MODE", "true", false),
        ("CLAUDE_CODE_SIMPLE", "0", true),
    ] {
        let hook = json!({"SessionStart": [{"hooks": [{"type": "command", "command": "echo from-a-hook"}]}]});
        let mut host = Host::with_script([Reply::text("hi")])
            .configure(|options| {
                options.setting_sources = Some(vec![SettingSource::User, SettingSource::Project]);
            })
            .file("CLAUDE.md", "Rule of the project.")
            .file(".claude/settings.json", json!({"hooks": hook}).to_string())
            .env("IS_SANDBOX", "1")
            .env(name, value)
            .start()
            .await
            .unwrap();
        host.run("Go.").await.unwrap();
        for text in ["Rule of the project.", "from-a-hook"] {
            assert_eq!(host.model_requests()[0].contains_text(text), is_read, "{name}={value}: {text}");
        }
    }
}

#[tokio::test]
async fn key_helper_gets_the_whole_environment() {
    let settings = json!({"apiKeyHelper": "echo \"key-$OPENAI_API_KEY\""}).to_string();
    let mut host = Host::with_script([Reply::text("hi")])
        .options(Options { settings: Some(settings), ..Options::default() })
        .env("ANTHROPIC_API_KEY", "")
        .env("CLAUDE_CODE_OAUTH_TOKEN", "not used")
        .env("OPENAI_API_KEY", "o")
        .start()
        .await
        .unwrap();
    host.run("Go.").await.unwrap();
    assert_eq!(host.api().unwrap().requests()[0].headers["x-api-key"], "key-o");
    assert_eq!(host.init_frame().unwrap()["apiKeySource"], "apiKeyHelper");
}

#[tokio::test]
async fn oauth_token_is_the_last_credential() {
    for (key, expected) in
        [("", ("oauth", Some("Bearer token"), None)), ("k", ("ANTHROPIC_API_KEY", None, Some("k")))]
    {
        let mut host = Host::with_script([Reply::text("hi")])
            .env("ANTHROPIC_API_KEY", key)
            .env("CLAUDE_CODE_OAUTH_TOKEN", "token")
            .start()
            .await
            .unwrap();
        host.run("Go.").await.unwrap();
        let headers = host.api().unwrap().requests()[0].headers.clone();
        let header = |name: &str| headers.get(name).map(String::as_str);
        let source = host.init_frame().unwrap()["apiKeySource"].as_str().unwrap().to_owned();
        assert_eq!((source.as_str(), header("authorization"), header("x-api-key")), expected);
    }
}

#[tokio::test]
async fn session_start_hooks_set_variables_for_commands() {
    let hook = "echo 'export FROM_HOOK=\"$FROM_USER and hook\"' >> \"$CLAUDE_ENV_FILE\"";
    let settings = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": hook}]}]}});
    let builder = host_running("echo \"$FROM_HOOK\"")
        .configure(|options| options.settings = Some(settings.to_string()))
        .file("user.sh", "FROM_USER=user")
        .env("CLAUDE_ENV_FILE", "user.sh");
    assert_eq!(command_output(builder).await, "user and hook");
}

#[tokio::test]
async fn missing_env_file_is_reported() {
    let mut host =
        Host::with_script([Reply::text("hi")]).env("CLAUDE_ENV_FILE", "/no/such/file").start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(warnings(&host).contains("CLAUDE_ENV_FILE: /no/such/file cannot be read"), "{}", warnings(&host));
}

#[tokio::test]
async fn background_tasks_can_be_disabled() {
    for (value, expected) in [("0", true), ("1", false)] {
        let call = json!({"description": "look", "prompt": "Look.", "run_in_background": true});
        let script =
            [Reply::tool("Agent", call), Reply::text("Report."), Reply::text("Done."), Reply::text("Seen.")];
        let mut host = Host::with_script(script)
            .can_use_tool(|_| PermissionResult::allow())
            .env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", value)
            .start()
            .await
            .unwrap();
        host.run("Go.").await.unwrap();
        let requests = host.model_requests();
        let tools = requests[0].body["tools"].as_array().unwrap();
        let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
        for name in ["Bash", "Agent"] {
            assert_eq!(tool(name).to_string().contains("background"), expected, "{name}, {value}");
        }
        let is_offered = host.init_frame().unwrap()["tools"].as_array().unwrap().contains(&json!("Monitor"));
        assert_eq!(is_offered, expected, "{value}");
        let launched =
            requests.iter().any(|request| request.contains_text("The agent works in the background"));
        assert_eq!(launched, expected, "{value}");
        let moved = host.send_request(BackgroundTasks::default()).await;
        assert_eq!(moved.is_ok(), expected, "{value}: {moved:?}");
    }
}

#[tokio::test]
async fn timer_tools_can_be_disabled() {
    let mut host =
        Host::with_script([Reply::text("hi")]).env("CLAUDE_CODE_DISABLE_CRON", "1").start().await.unwrap();
    host.run("Go.").await.unwrap();
    let tools = host.init_frame().unwrap()["tools"].to_string();
    assert!(!tools.contains("Cron") && !tools.contains("ScheduleWakeup"), "{tools}");
}

#[tokio::test]
async fn instructions_of_additional_directories_are_optional() {
    for (value, expected) in [("0", false), ("1", true)] {
        let more = tempfile::tempdir().unwrap();
        std::fs::write(more.path().join("CLAUDE.md"), "MORE-RULE").unwrap();
        let mut host = Host::with_script([Reply::text("hi")])
            .configure(|options| options.additional_directories = vec![more.path().display().to_string()])
            .env("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", value)
            .start()
            .await
            .unwrap();
        host.run("Go.").await.unwrap();
        assert_eq!(host.model_requests()[0].contains_text("MORE-RULE"), expected, "{value}");
    }
}

/// The error of a session that cannot start.
async fn start_error(name: &str, value: &str) -> String {
    let mut host = Host::with_script([Reply::text("hi")]).env(name, value).start().await.unwrap();
    let result: Value = serde_json::to_value(host.run("Go.").await.unwrap()).unwrap();
    assert_eq!(host.model_requests().len(), 0);
    result["errors"].to_string()
}

#[tokio::test]
async fn variables_prevent_the_start_where_requests_would_be_wrong() {
    let rows = [
        ("CLAUDE_CODE_USE_BEDROCK", "1", "CLAUDE_CODE_USE_BEDROCK is set, but"),
        ("CLAUDE_CODE_EXTRA_BODY", "[]", "CLAUDE_CODE_EXTRA_BODY is not a JSON object"),
        ("CLAUDE_CODE_EFFORT_LEVEL", "much", "CLAUDE_CODE_EFFORT_LEVEL must be"),
    ];
    for (name, value, expected) in rows {
        let error = start_error(name, value).await;
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[tokio::test]
async fn unsupported_variable_is_reported() {
    let mut host =
        Host::with_script([Reply::text("hi")]).env("CLAUDE_CODE_SHELL", "zsh").start().await.unwrap();
    host.run("Go.").await.unwrap();
    assert!(warnings(&host).contains("CLAUDE_CODE_SHELL has no effect"), "{}", warnings(&host));
}
