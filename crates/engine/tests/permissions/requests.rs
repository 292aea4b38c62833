//! Permission requests, compared field by field.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use whimbrel_testkit::{Host, HostBuilder, HostResponse, Reply, TestDirs};
use whimbrel_wire::options::{Options, PermissionPromptTool, SettingSource};
use whimbrel_wire::permission::{PermissionMode, PermissionResult};

/// Tool, input, and the further fields of the permission request.
type Row = (&'static str, Value, Value);

/// Makes the calls in turn and compares each permission request as a whole.
async fn check_requests(rows: &[Row], prepare: impl FnOnce(HostBuilder) -> HostBuilder) {
    let calls = rows.iter().map(|(tool, input, _)| Reply::tool(*tool, input.clone()));
    let script: Vec<Reply> = calls.chain([Reply::text("Done.")]).collect();
    let host = prepare(Host::with_script(script)).can_use_tool(|_| PermissionResult::deny("no"));
    let mut host = host.start().await.unwrap();
    host.run("Go.").await.unwrap();
    let requests = host.permission_requests();
    assert_eq!(requests.len(), rows.len(), "{requests:#?}");
    for (index, (request, (tool, input, rest))) in requests.into_iter().zip(rows).enumerate() {
        let mut expected = json!({
            "subtype": "can_use_tool",
            "tool_name": tool,
            "display_name": tool,
            "input": input,
            "tool_use_id": format!("toolu_{}_1", index + 1),
        });
        expected.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        // No `title`: the host chooses how to present the request.
        assert_eq!(*request, expected, "{input}");
    }
}

fn bash_input(command: &str) -> Value {
    json!({ "command": command })
}

fn write_input(file: &str) -> Value {
    json!({"file_path": file, "content": "x"})
}

/// A suggestion to allow this permanently.
fn suggest_allow(tool: &str, content: &str) -> Value {
    let rule = json!({"toolName": tool, "ruleContent": content});
    json!({"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "localSettings"})
}

/// A suggestion to allow this for the session.
fn suggest_allow_for_session(tool: &str, content: &str) -> Value {
    let rule = json!({"toolName": tool, "ruleContent": content});
    json!({"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"})
}

fn suggest_accept_edits() -> Value {
    json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"})
}

/// Fields of a request that no rule change could answer.
fn without_suggestions(mut rest: Value) -> Value {
    let fields = json!({"permission_suggestions": [], "suppress_always_allow_rule": true});
    rest.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    rest
}

#[tokio::test]
async fn request_suggests_rules_that_would_allow_the_call() {
    let any = json!({"type": "addRules", "rules": [{"toolName": "WebSearch"}], "behavior": "allow", "destination": "localSettings"});
    let plain = json!({"permission_suggestions": [suggest_allow("Bash", "make it *")],
        "decision_reason_type": "other", "decision_reason": "Nothing allows this call in advance."});
    let described = json!({"description": "Makes it", "permission_suggestions": plain["permission_suggestions"],
        "decision_reason_type": "other", "decision_reason": plain["decision_reason"]});
    let both = json!({"type": "addRules", "behavior": "allow", "destination": "localSettings",
        "rules": [{"toolName": "Bash", "ruleContent": "make it *"}, {"toolName": "Bash", "ruleContent": "make that *"}]});
    let rows = [
        (
            "Write",
            write_input("deep/a.txt"),
            json!({"description": "deep/a.txt", "permission_suggestions": [suggest_accept_edits()]}),
        ),
        (
            "WebFetch",
            json!({"url": "https://example.com/x", "prompt": "p"}),
            json!({"description": "https://example.com/x", "permission_suggestions": [suggest_allow("WebFetch", "domain:example.com")]}),
        ),
        (
            "WebSearch",
            json!({"query": "curlew"}),
            json!({"description": "curlew", "permission_suggestions": [any]}),
        ),
        (
            "Skill",
            json!({"skill": "it"}),
            json!({"permission_suggestions": [suggest_allow("Skill", "it"), suggest_allow("Skill", "it:*")]}),
        ),
        ("Bash", bash_input("make it"), plain),
        ("Bash", json!({"command": "make it", "description": "Makes it"}), described),
        (
            "Bash",
            bash_input("make it && make that"),
            json!({"permission_suggestions": [both], "decision_reason_type": "subcommandResults",
                "decision_reason": "These parts of the command need approval: `make it`, `make that`."}),
        ),
        (
            "Bash",
            bash_input("$IT now"),
            without_suggestions(json!({"decision_reason_type": "other",
                "decision_reason": "The command has a variable with an unknown value, so it cannot be fully analyzed."})),
        ),
    ];
    check_requests(&rows, |host| {
        let skill = "---\ndescription: d\nallowed-tools: Bash(ls)\n---\nHi.";
        let options = Options { setting_sources: Some(vec![SettingSource::Project]), ..Options::default() };
        host.options(options).file(".claude/skills/it/SKILL.md", skill)
    })
    .await;
}

#[tokio::test]
async fn path_outside_the_workspace_is_resolved() {
    let dirs = TestDirs::new().unwrap();
    let dir = dirs.home().join("box");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("a.txt"), "x").unwrap();
    symlink(&dir, dirs.workspace().join("link")).unwrap();
    let (dir, file) = (dir.display().to_string(), dir.join("a.txt").display().to_string());
    let outside = |description: &str, suggestions: Value| {
        json!({"description": description, "permission_suggestions": suggestions, "blocked_path": file,
            "decision_reason_type": "workingDir",
            "decision_reason": format!("{file} is outside the working directories of this session.")})
    };
    let allow_read = suggest_allow_for_session("Read", &format!("/{dir}/**"));
    let add_dir = json!({"type": "addDirectories", "directories": [dir], "destination": "session"});
    let command = format!("cat {file}");
    let rows = [
        ("Read", json!({"file_path": file}), outside("~/box/a.txt", json!([allow_read]))),
        ("Read", json!({"file_path": "link/a.txt"}), outside("link/a.txt", json!([allow_read]))),
        ("Write", write_input(&file), outside("~/box/a.txt", json!([suggest_accept_edits(), add_dir]))),
        (
            "Bash",
            bash_input(&command),
            json!({"permission_suggestions": [suggest_allow("Bash", &command), allow_read], "blocked_path": file}),
        ),
    ];
    check_requests(&rows, |host| host.dirs(dirs)).await;
}

#[tokio::test]
async fn dangerous_calls_carry_safety_fields() {
    let dirs = TestDirs::new().unwrap();
    let within = |path: &str| dirs.workspace().join(path).display().to_string();
    let protected = "The call changes a file that decides what other programs run.";
    let safety = |reason: &str, approvable: bool| {
        let mut rest = json!({"decision_reason_type": "safetyCheck", "decision_reason": reason, "classifier_approvable": approvable});
        if !approvable {
            rest["default_to_no"] = json!(true);
        }
        rest
    };
    let with_fields = |mut rest: Value, fields: Value| {
        rest.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        rest
    };
    let skill = ".claude/skills/it/more.md";
    let removes = "The command removes a critical directory or everything in it.";
    let rows = [
        (
            "Write",
            write_input(".git/config"),
            without_suggestions(with_fields(
                safety(protected, true),
                json!({"blocked_path": within(".git/config"), "description": ".git/config"}),
            )),
        ),
        (
            "Write",
            write_input(skill),
            with_fields(
                safety(protected, true),
                json!({"blocked_path": within(skill), "description": skill,
                    "permission_suggestions": [suggest_allow_for_session("Edit", "/.claude/skills/it/**")]}),
            ),
        ),
        (
            "Bash",
            bash_input("make it && echo x > .git/config"),
            without_suggestions(with_fields(
                safety(protected, true),
                json!({"blocked_path": within(".git/config")}),
            )),
        ),
        (
            "Bash",
            bash_input("rm -rf ~"),
            without_suggestions(with_fields(safety(removes, false), json!({"blocked_path": dirs.home()}))),
        ),
        (
            "Write",
            write_input("con."),
            without_suggestions(with_fields(
                safety("The call writes a file name that file systems interpret differently.", false),
                json!({"blocked_path": within("con."), "description": "con."}),
            )),
        ),
        (
            "Bash",
            bash_input("make it &"),
            without_suggestions(safety(
                "The command starts a background process with `&`; use run_in_background instead.",
                false,
            )),
        ),
    ];
    check_requests(&rows, |host| host.dirs(dirs)).await;
}

#[tokio::test]
async fn request_names_the_ask_rule_or_hook() {
    let dirs = TestDirs::new().unwrap();
    let rule = |tool: &str, content: &str| json!({"source": "flagSettings", "tool_name": tool, "rule_content": content});
    let rows = [
        (
            "Bash",
            bash_input("git push"),
            without_suggestions(
                json!({"decision_reason_type": "rule", "matched_ask_rule": rule("Bash", "git push:*"),
                "decision_reason": "The ask rule `Bash(git push:*)` of flagSettings applies."}),
            ),
        ),
        (
            "WebSearch",
            json!({"query": "curlew"}),
            without_suggestions(json!({"decision_reason_type": "rule", "description": "curlew",
                "matched_ask_rule": {"source": "flagSettings", "tool_name": "WebSearch"},
                "decision_reason": "The ask rule `WebSearch` of flagSettings applies."})),
        ),
        // The safety check outranks the rule.
        (
            "Write",
            write_input(".git/config"),
            without_suggestions(json!({"decision_reason_type": "safetyCheck", "classifier_approvable": true,
                "decision_reason": "The call changes a file that decides what other programs run.",
                "matched_ask_rule": rule("Edit", ".git/config"), "description": ".git/config",
                "blocked_path": dirs.workspace().join(".git/config")})),
        ),
        (
            "Bash",
            bash_input("make it"),
            without_suggestions(
                json!({"decision_reason_type": "hook", "decision_reason": "The hook PreToolUse says: look twice"}),
            ),
        ),
    ];
    let output = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
        "permissionDecisionReason": "look\u{1b} twice"}});
    let hook = format!("if grep -q 'make it'; then echo '{output}'; fi");
    let settings = json!({
        "permissions": {"ask": ["Bash(git push:*)", "WebSearch", "Edit(.git/config)"]},
        "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": hook}]}]},
    });
    check_requests(&rows, |host| {
        host.dirs(dirs).configure(|options| options.settings = Some(settings.to_string()))
    })
    .await;
}

#[tokio::test]
async fn plan_mode_requests_name_the_mode() {
    let by_mode = json!({"decision_reason_type": "mode", "decision_reason": "The permission mode is plan."});
    let mut edit = by_mode.clone();
    edit["description"] = json!("a.txt");
    let question_input = json!({"question": "Which?", "header": "Color", "multiSelect": false,
        "options": [{"label": "Red", "description": "Warm"}, {"label": "Blue", "description": "Cool"}]});
    // No suggestions field at all, not even an empty list.
    let interactive = json!({"requires_user_interaction": true, "suppress_always_allow_rule": true});
    let rows = [
        ("Write", write_input("a.txt"), without_suggestions(edit)),
        ("Bash", bash_input("make it"), without_suggestions(by_mode)),
        ("AskUserQuestion", json!({"questions": [question_input]}), interactive.clone()),
        ("ExitPlanMode", json!({"plan": "1. Write."}), interactive),
    ];
    check_requests(&rows, |host| {
        host.configure(|options| options.permission_mode = Some(PermissionMode::Plan))
    })
    .await;
}

#[tokio::test]
async fn request_of_a_subagent_names_it() {
    let agent_input = json!({"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"});
    let make_call = || Reply::tool("Bash", bash_input("make it"));
    let script = [
        make_call(),
        Reply::tool("Agent", agent_input),
        make_call(),
        Reply::text("I may not."),
        Reply::text("Done."),
    ];
    let mut host =
        Host::with_script(script).can_use_tool(|_| PermissionResult::deny("no")).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let started = host.received().iter().find(|received| received.json["subtype"] == "task_started").unwrap();
    let agent = &started.json["task_id"];
    assert!(agent.is_string(), "{agent}");
    let requests = host.permission_requests();
    let mut expected = requests[0].clone();
    assert_eq!(expected.get("agent_id"), None, "the main agent has no agent id");
    expected["agent_id"] = agent.clone();
    expected["tool_use_id"] = json!("toolu_3_1");
    assert_eq!((requests.len(), requests[1]), (2, &expected), "all other fields are equal");
}

#[tokio::test]
async fn description_is_sanitized_and_input_is_verbatim() {
    let long = "x".repeat(20_000);
    let input = json!({"command": format!("make {long}"), "description": format!("\u{1b}[31mA\u{202e}ll\u{200b} {long}")});
    let script = [Reply::tool("Bash", input.clone()), Reply::text("Done.")];
    let mut host =
        Host::with_script(script).can_use_tool(|_| PermissionResult::deny("no")).start().await.unwrap();
    host.run("Go.").await.unwrap();
    let requests = host.permission_requests();
    assert_eq!(requests[0]["input"], input);
    let shown = format!("[31mAll {long}");
    assert_eq!(requests[0]["description"], shown[..500]);
}

#[tokio::test]
async fn unreadable_permission_response_denies_with_one_warning() {
    let rows = [
        ("no behavior", json!({"message": "sure"})),
        ("unknown behavior", json!({"behavior": "maybe"})),
        ("a list", json!(["allow"])),
        ("invalid input", json!({"behavior": "allow", "updatedInput": 5})),
    ];
    for (name, reply) in rows {
        let script = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
        let mut host = Host::with_script(script)
            .configure(|options| options.permission_prompt_tool = Some(PermissionPromptTool::Stdio))
            .on_request(move |_| HostResponse::Success(reply.clone()))
            .start()
            .await
            .unwrap();
        let result = host.run("Go.").await.unwrap();
        assert_eq!(result.permission_denials.len(), 1, "{name}");
        assert!(!host.dirs().workspace().join("made").exists(), "{name}");
        assert!(host.model_requests()[1].contains_text("Tool permission request failed"), "{name}");
        let lines = host.received().iter().map(|received| &received.json);
        let warnings = lines.filter(|line| line["subtype"] == "informational" && line["level"] == "warning");
        let texts: Vec<String> = warnings.map(|line| line["content"].to_string()).collect();
        assert!(
            texts.len() == 1 && texts[0].contains("the permission request for Bash is not valid"),
            "{name}: {texts:?}"
        );
    }
}
