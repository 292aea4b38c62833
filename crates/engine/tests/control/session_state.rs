//! Control requests that read or change session state: files, rules, settings, usage, pending permission requests.

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostResponse, Reply, Script};
use whimbrel_wire::control::{
    FileSuggestions, GetSettings, GetUsage, Initialize, ListPermissionRules, ReadFile, Response,
    SetHasSubscribers, UpdatePermissions,
};
use whimbrel_wire::message::User;
use whimbrel_wire::options::{PermissionPromptTool, SettingSource};
use whimbrel_wire::permission::{
    Destination, PermissionBehavior, PermissionMode, PermissionUpdate, RuleValue,
};

fn read_file(path: &str) -> ReadFile {
    ReadFile { path: path.into(), ..ReadFile::default() }
}

#[tokio::test]
async fn read_file_obeys_read_permissions() {
    let mut host = Host::with_script(Script::from([]))
        .file("a.txt", "grün\n")
        .file("b.bin", *b"a\xff\0")
        .file("secret.txt", "x")
        .configure(|options| options.disallowed_tools.push("Read(secret.txt)".into()))
        .start()
        .await
        .unwrap();
    let text = host.send_request(read_file("a.txt")).await.unwrap();
    assert_eq!((text.contents.as_str(), text.lossy, text.truncated), ("grün\n", Some(false), Some(false)));
    assert!(text.abs_path.ends_with("/a.txt") && text.abs_path.starts_with('/'), "{}", text.abs_path);
    let truncated = host.send_request(ReadFile { max_bytes: Some(3), ..read_file("a.txt") }).await.unwrap();
    assert_eq!(
        (truncated.contents.as_str(), truncated.lossy, truncated.truncated),
        ("gr\u{fffd}", Some(true), Some(true))
    );
    let bytes =
        host.send_request(ReadFile { encoding: Some("base64".into()), ..read_file("b.bin") }).await.unwrap();
    assert_eq!((bytes.contents.as_str(), bytes.encoding.as_deref()), ("Yf8A", Some("base64")));
    for (path, reason) in [
        ("secret.txt", "read denied"),
        ("/etc/passwd", "read denied"),
        ("/proc/self/environ", ""),
        ("none.txt", "cannot be read"),
        (".", "cannot be read"),
    ] {
        let error = host.send_request(read_file(path)).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{path}: {error}");
    }
}

#[tokio::test]
async fn file_suggestions_obey_read_permissions() {
    let mut host = Host::with_script(Script::from([]))
        .file("src/main.rs", "")
        .file("src/secret_main.rs", "")
        .file("notes.md", "")
        .configure(|options| options.disallowed_tools.push("Read(src/secret*)".into()))
        .start()
        .await
        .unwrap();
    for (query, expected) in [("main", vec!["src/main.rs"]), ("", vec!["src/", "notes.md"])] {
        let reply = host.send_request(FileSuggestions { query: query.into() }).await.unwrap();
        let paths: Vec<&str> =
            reply.suggestions.iter().map(|suggestion| suggestion["path"].as_str().unwrap()).collect();
        assert_eq!(paths, expected, "{query:?}");
        assert!(std::path::Path::new(&reply.cwd).is_absolute());
    }
}

#[tokio::test]
async fn title_is_generated_and_kept_on_request() {
    let script = [Reply::text("Done."), Reply::text("\"Fix the login bug.\"")];
    let mut host = Host::with_script(script).start().await.unwrap();
    let request =
        json!({"subtype": "generate_session_title", "description": "The login fails.", "persist": true});
    let early = host.send_raw_request(request.clone()).await.unwrap();
    assert!(matches!(early, Response::Error { .. }), "{early:?}");
    host.run("Go.").await.unwrap();
    let Response::Success { response, .. } = host.send_raw_request(request).await.unwrap() else {
        panic!("no title")
    };
    let reply: Value = response.unwrap().decode().unwrap();
    assert_eq!(reply, json!({"title": "Fix the login bug"}));
    assert!(host.model_requests()[1].contains_text("The login fails."));
    host.finish().await.unwrap();
    let projects = host.dirs().home().join(".claude/projects");
    let project = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
    let transcripts = std::fs::read_dir(project).unwrap().map(|file| file.unwrap().path());
    let text = std::fs::read_to_string(transcripts.last().unwrap()).unwrap();
    assert!(text.contains("\"customTitle\":\"Fix the login bug\""), "{text}");
}

#[tokio::test]
async fn long_file_is_truncated() {
    let mut host =
        Host::with_script(Script::from([])).file("a.txt", "\u{1}".repeat(900_000)).start().await.unwrap();
    let text = host.send_request(read_file("a.txt")).await.unwrap();
    assert_eq!(text.truncated, Some(true));
    assert!((100_000..160_000).contains(&text.contents.len()), "{}", text.contents.len());
}

#[tokio::test]
async fn permission_rules_are_listed_with_their_source() {
    let settings = json!({"permissions": {"ask": ["Bash(git push:*)"], "additionalDirectories": ["/opt"]}});
    let mut host = Host::with_script(Script::from([]))
        .configure(move |options| {
            options.allowed_tools.push("Bash(ls:*)".into());
            options.disallowed_tools.push("WebFetch(domain:a.example)".into());
            options.settings = Some(settings.to_string());
        })
        .start()
        .await
        .unwrap();
    let state = host.send_request(ListPermissionRules {}).await.unwrap().state;
    let rule = |behavior: &str, source: &str, rule: &str, editability: &str| json!({"behavior": behavior, "source": source, "rule": rule, "editability": editability});
    let expected = [
        rule("allow", "cliArg", "Bash(ls:*)", "session"),
        rule("deny", "cliArg", "WebFetch(domain:a.example)", "session"),
        rule("ask", "flagSettings", "Bash(git push:*)", "readonly"),
    ];
    assert_eq!(state.rules, expected);
    assert_eq!(state.workspace_directories, [json!({"path": "/opt", "source": "flagSettings"})]);
    assert!(!state.managed_only && !state.original_cwd.is_empty());
}

#[tokio::test]
async fn permission_rules_are_changed_while_the_session_runs() {
    let mut host = Host::with_script(Script::from([])).start().await.unwrap();
    let rules = || vec![RuleValue { tool_name: "Bash".into(), rule_content: Some("touch *".into()) }];
    let (behavior, destination) = (PermissionBehavior::Allow, Destination::Session);
    let add = PermissionUpdate::AddRules { rules: rules(), behavior, destination };
    host.send_request(UpdatePermissions { updates: vec![add] }).await.unwrap();
    let listed = host.send_request(ListPermissionRules {}).await.unwrap().state.rules;
    assert_eq!(listed.iter().map(|rule| &rule["rule"]).collect::<Vec<_>>(), ["Bash(touch *)"]);
    let remove = PermissionUpdate::RemoveRules { rules: rules(), behavior, destination };
    host.send_request(UpdatePermissions { updates: vec![remove] }).await.unwrap();
    assert_eq!(host.send_request(ListPermissionRules {}).await.unwrap().state.rules, [Value::Null; 0]);
    let bypass = PermissionUpdate::SetMode { mode: PermissionMode::BypassPermissions, destination };
    assert!(host.send_request(UpdatePermissions { updates: vec![bypass] }).await.is_err());
}

#[tokio::test]
async fn get_usage_reports_cost_and_line_counts() {
    let script = [
        Reply::tool("Write", json!({"file_path": "a.txt", "content": "one\ntwo\n"})),
        Reply::tool("Edit", json!({"file_path": "a.txt", "old_string": "two", "new_string": "2\n3"})),
        Reply::text("Done."),
    ];
    let mut host = Host::with_script(script)
        .configure(|options| options.allowed_tools.extend(["Write".into(), "Edit".into()]))
        .start()
        .await
        .unwrap();
    let before = host.send_request(GetUsage::default()).await.unwrap();
    assert_eq!((before.session.total_cost_usd, before.session.model_usage.len()), (0.0, 0));
    let result = host.run("Write.").await.unwrap();
    assert_eq!(result.queued_turn_count, Some(0));
    let report = host.send_request(GetUsage::default()).await.unwrap();
    let usage = report.session;
    assert_eq!(usage.total_cost_usd, result.total_cost_usd);
    assert_eq!((usage.total_lines_added, usage.total_lines_removed), (4, 1));
    assert_eq!(usage.model_usage.keys().collect::<Vec<_>>(), result.model_usage.keys().collect::<Vec<_>>());
    assert!(usage.total_duration_ms >= usage.total_api_duration_ms);
    assert!(!report.rate_limits_available && report.subscription_type.is_none());
}

#[tokio::test]
async fn refused_initialize_can_be_repeated_but_not_ignored() {
    let refused = [json!({"toolAliases": {"Bash": "mcp__box__bash"}}), json!({"systemPromptSnapshot": true})];
    for fields in refused {
        let name = fields.as_object().unwrap().keys().next().unwrap().clone();
        let mut request = fields;
        request["subtype"] = "initialize".into();
        let mut host = Host::with_script([Reply::text("hi")]).start().await.unwrap();
        let response = host.send_raw_request(request.clone()).await.unwrap();
        assert!(matches!(&response, Response::Error { error, .. } if error.contains(&name)), "{response:?}");
        let response = host.send_raw_request(json!({"subtype": "initialize"})).await.unwrap();
        assert!(matches!(response, Response::Success { .. }), "{response:?}");
        assert_eq!(host.run("Go.").await.unwrap().result.as_deref(), Some("hi"));

        let mut host = Host::with_script([Reply::text("hi")]).start().await.unwrap();
        host.send_raw_request(request).await.unwrap();
        let result = host.run("Go.").await.unwrap();
        assert!(result.is_error && result.errors.unwrap()[0].contains(&name));
        assert_eq!(host.model_requests().len(), 0, "nothing runs without what the host asked for");
    }
}

#[tokio::test]
async fn initialize_repeats_pending_permission_requests() {
    let script = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
    let mut host = Host::with_script(script)
        .configure(|options| options.permission_prompt_tool = Some(PermissionPromptTool::Stdio))
        .on_request(|_| HostResponse::NoResponse)
        .start()
        .await
        .unwrap();
    assert_eq!(
        open_permission_requests(&host.send_raw_request(json!({"subtype": "initialize"})).await.unwrap()),
        Vec::<Value>::new()
    );
    host.send_frame(User::prompt("Go.")).await.unwrap();
    let pattern = json!({"type": "control_request", "request": {"subtype": "can_use_tool"}});
    let request = host.next_matching(&pattern).await.unwrap().clone();
    let second = host.send_raw_request(json!({"subtype": "initialize"})).await.unwrap();
    assert_eq!(open_permission_requests(&second), std::slice::from_ref(&request));
    let allow = json!({"subtype": "success", "request_id": request["request_id"],
        "response": {"behavior": "allow", "updatedInput": {"command": "touch made"}}});
    host.send_line(&json!({"type": "control_response", "response": allow}).to_string()).await.unwrap();
    assert_eq!(host.next_result().await.unwrap().result.as_deref(), Some("Done."));
    assert_eq!(
        open_permission_requests(&host.send_raw_request(json!({"subtype": "initialize"})).await.unwrap()),
        Vec::<Value>::new()
    );
}

/// The pending permission requests in a response.
fn open_permission_requests(response: &Response) -> Vec<Value> {
    let answer = serde_json::to_value(response).unwrap_or_default();
    answer["pending_permission_requests"].as_array().cloned().unwrap_or_else(|| vec![answer])
}

#[tokio::test]
async fn init_frame_and_initialize_list_the_same_capabilities() {
    let mut host = Host::with_script([Reply::text("Hi.")]).start().await.unwrap();
    let reply = host.send_request(Initialize::default()).await.unwrap();
    host.send_request(SetHasSubscribers { has_subscribers: Some(true) }).await.unwrap();
    host.run("Hi.").await.unwrap();
    let init = host.init_frame().unwrap();
    assert_eq!(init["capabilities"], json!(reply.capabilities));
    assert!(reply.capabilities.unwrap().iter().any(|name| name == "interrupt_receipt_v1"));
}

#[tokio::test]
async fn flag_settings_are_merged_shown_and_removed() {
    let touch = || Reply::tool("Bash", json!({"command": "touch made"}));
    let script = [touch(), Reply::text("One."), touch(), Reply::text("Two.")];
    let settings = r#"{"permissions":{"allow":["Bash(touch *)"]},"theirs":{"kept":true}}"#;
    let host = Host::with_script(script)
        .configure(|options| options.setting_sources = Some(vec![SettingSource::Project]))
        .file(".claude/settings.json", settings);
    let mut host = host.start().await.unwrap();
    let apply_permissions = |permissions: Value| json!({"subtype": "apply_flag_settings", "settings": {"permissions": permissions}});
    host.send_raw_request(apply_permissions(json!({"deny": ["Bash(touch *)"]}))).await.unwrap();
    let shown = serde_json::to_value(host.send_request(GetSettings {}).await.unwrap()).unwrap();
    let effective = &shown["effective"];
    assert_eq!(effective["permissions"]["deny"], json!(["Bash(touch *)"]), "{shown}");
    assert_eq!(effective["permissions"]["allow"], json!(["Bash(touch *)"]), "{shown}");
    assert_eq!(effective["theirs"], json!({"kept": true}), "{shown}");
    let denied = host.run("Go.").await.unwrap();
    assert_eq!(denied.permission_denials.len(), 1);
    assert!(!host.dirs().workspace().join("made").exists());
    host.send_raw_request(apply_permissions(Value::Null)).await.unwrap();
    assert!(host.run("Again.").await.unwrap().permission_denials.is_empty());
    assert!(host.dirs().workspace().join("made").exists());
}
