//! Command lines of each official SDK generation, of users, and invalid ones.

mod official;
mod page;

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};
use whimbrel_wire::options::{
    BackgroundAtEnd, Effort, McpServerConfig, OutputFormat as AnswerFormat, PermissionPromptTool,
    PluginConfig, SettingSource, SetupHooks, SystemPrompt, Thinking, ThinkingDisplay, ToolSet,
};
use whimbrel_wire::permission::PermissionMode;

use super::*;
use crate::caller::Caller;

fn no_files(_path: &str) -> io::Result<String> {
    Err(io::ErrorKind::NotFound.into())
}

fn parse_args(argv: &[&str], caller: Caller) -> Result<ParsedArgs, String> {
    let argv: Vec<String> = argv.iter().map(|argument| (*argument).to_owned()).collect();
    parse(&argv, caller, &no_files)
}

/// Returns the options of a session that an SDK starts with these flags. There must be no warnings.
fn sdk_options(argv: &[&str]) -> Options {
    let mut whole = vec!["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
    whole.extend(argv);
    let ParsedArgs { args, warnings } =
        parse_args(&whole, Caller::Sdk).unwrap_or_else(|error| panic!("{argv:?}: {error}"));
    assert_eq!(warnings, Vec::<String>::new(), "{argv:?}");
    assert_eq!((args.input_format, args.output_format), (InputFormat::StreamJson, OutputFormat::StreamJson));
    args.options
}

fn user_args(argv: &[&str]) -> Args {
    parse_args(argv, Caller::User).unwrap_or_else(|error| panic!("{argv:?}: {error}")).args
}

fn parse_error(argv: &[&str]) -> String {
    parse_args(argv, Caller::User).map(|parsed| parsed.args).expect_err("it was accepted")
}

fn compaction_window(tokens: &str) -> BTreeMap<String, String> {
    [("CLAUDE_CODE_AUTO_COMPACT_WINDOW".to_owned(), tokens.to_owned())].into()
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of every flag with a value that an SDK sends")]
fn value_as_two_arguments_equals_value_as_one() {
    let none = Options::default;
    let rows: Vec<(&str, &str, Options)> = vec![
        ("setting-sources", "", Options { setting_sources: Some(vec![]), ..none() }),
        (
            "setting-sources",
            "user,project,local",
            Options {
                setting_sources: Some(vec![
                    SettingSource::User,
                    SettingSource::Project,
                    SettingSource::Local,
                ]),
                ..none()
            },
        ),
        ("permission-mode", "default", Options { permission_mode: Some(PermissionMode::Default), ..none() }),
        ("permission-mode", "manual", Options { permission_mode: Some(PermissionMode::Default), ..none() }),
        ("permission-mode", "plan", Options { permission_mode: Some(PermissionMode::Plan), ..none() }),
        (
            "permission-prompt-tool",
            "stdio",
            Options { permission_prompt_tool: Some(PermissionPromptTool::Stdio), ..none() },
        ),
        (
            "permission-prompt-tool",
            "mcp__s__ask",
            Options {
                permission_prompt_tool: Some(PermissionPromptTool::Mcp("mcp__s__ask".into())),
                ..none()
            },
        ),
        ("permission-timeout-ms", "1500", Options { permission_timeout_ms: Some(1500), ..none() }),
        (
            "background-at-end",
            "detach",
            Options { background_at_end: Some(BackgroundAtEnd::Detach), ..none() },
        ),
        ("permission-prompts", "none", Options { permission_prompts: Some("none".into()), ..none() }),
        ("system-prompt", "", Options { system_prompt: Some("".into()), ..none() }),
        ("system-prompt", "be brief", Options { system_prompt: Some("be brief".into()), ..none() }),
        ("system-prompt", "- a\n- b", Options { system_prompt: Some("- a\n- b".into()), ..none() }),
        (
            "system-prompt-file",
            "/p",
            Options { system_prompt: Some(SystemPrompt::File { path: "/p".into() }), ..none() },
        ),
        (
            "append-system-prompt",
            "more",
            Options {
                system_prompt: Some(SystemPrompt::Preset {
                    append: Some("more".into()),
                    exclude_dynamic_sections: None,
                    snapshot: None,
                }),
                ..none()
            },
        ),
        (
            "append-subagent-system-prompt",
            "be kind",
            Options {
                extra_args: [("append-subagent-system-prompt".into(), Some("be kind".into()))].into(),
                ..none()
            },
        ),
        (
            "plan-mode-instructions",
            "risks",
            Options { plan_mode_instructions: Some("risks".into()), ..none() },
        ),
        ("autocompact", "200k", Options { env: compaction_window("200000"), ..none() }),
        ("autocompact", "1M", Options { env: compaction_window("1000000"), ..none() }),
        ("autocompact", "auto", Options { env: compaction_window(""), ..none() }),
        ("tools", "", Options { tools: Some(ToolSet::List(vec![])), ..none() }),
        ("tools", "default", Options { tools: Some(ToolSet::Default), ..none() }),
        ("tools", "Read,Bash", Options { tools: Some(ToolSet::List(strings(&["Read", "Bash"]))), ..none() }),
        (
            "allowedTools",
            "Read,Bash(a,b),Skill(x)",
            Options { allowed_tools: strings(&["Read", "Bash(a,b)", "Skill(x)"]), ..none() },
        ),
        ("allowed-tools", "Read", Options { allowed_tools: strings(&["Read"]), ..none() }),
        ("disallowedTools", "Bash(rm *)", Options { disallowed_tools: strings(&["Bash(rm *)"]), ..none() }),
        ("disallowed-tools", "Write", Options { disallowed_tools: strings(&["Write"]), ..none() }),
        ("max-turns", "3", Options { max_turns: Some(3), ..none() }),
        ("max-budget-usd", "0.5", Options { max_budget_usd: Some(0.5), ..none() }),
        ("task-budget", "1000", Options { task_budget: Some(1000), ..none() }),
        ("model", "opus", Options { model: Some("opus".into()), ..none() }),
        ("fallback-model", "haiku", Options { fallback_model: Some("haiku".into()), ..none() }),
        ("betas", "a,b", Options { betas: strings(&["a", "b"]), ..none() }),
        ("thinking", "adaptive", Options { thinking: Some(Thinking::Adaptive { display: None }), ..none() }),
        ("thinking", "disabled", Options { thinking: Some(Thinking::Disabled), ..none() }),
        ("max-thinking-tokens", "0", Options { max_thinking_tokens: Some(0), ..none() }),
        ("max-thinking-tokens", "4000", Options { max_thinking_tokens: Some(4000), ..none() }),
        (
            "thinking-display",
            "omitted",
            Options {
                thinking: Some(Thinking::Adaptive { display: Some(ThinkingDisplay::Omitted) }),
                ..none()
            },
        ),
        ("effort", "max", Options { effort: Some(Effort::Max), ..none() }),
        ("resume", "id", Options { resume: Some("id".into()), ..none() }),
        ("session-id", "id", Options { session_id: Some("id".into()), ..none() }),
        ("resume-session-at", "id", Options { resume_session_at: Some("id".into()), ..none() }),
        ("resume-drops-turn", "id", Options { resume_drops_turn: Some("id".into()), ..none() }),
        ("settings", "{\"sandbox\":{}}", Options { settings: Some("{\"sandbox\":{}}".into()), ..none() }),
        ("settings", "/s.json", Options { settings: Some("/s.json".into()), ..none() }),
        ("managed-settings", "{\"a\":1}", Options { managed_settings: Some(json!({"a": 1})), ..none() }),
        ("add-dir", "/a,b", Options { additional_directories: strings(&["/a,b"]), ..none() }),
        ("agent", "reviewer", Options { agent: Some("reviewer".into()), ..none() }),
        ("plugin-dir", "/p", Options { plugins: vec![PluginConfig::local("/p")], ..none() }),
        (
            "plugin-dir-no-mcp",
            "/p",
            Options {
                plugins: vec![PluginConfig { skip_mcp_discovery: true, ..PluginConfig::local("/p") }],
                ..none()
            },
        ),
        (
            "json-schema",
            "{\"type\":\"object\"}",
            Options {
                output_format: Some(AnswerFormat::JsonSchema { schema: json!({"type": "object"}) }),
                ..none()
            },
        ),
        ("record", "/t", Options { extra_args: [("record".into(), Some("/t".into()))].into(), ..none() }),
        ("replay", "/t", Options { extra_args: [("replay".into(), Some("/t".into()))].into(), ..none() }),
        ("debug-file", "/d", Options { debug: false, debug_file: Some("/d".into()), ..none() }),
        ("project-config-root", "/r", Options { project_config_root: Some("/r".into()), ..none() }),
        ("name", "a title", Options { title: Some("a title".into()), ..none() }),
    ];
    for (name, value, expected) in rows {
        assert_eq!(sdk_options(&[&format!("--{name}"), value]), expected, "--{name} {value:?}");
        assert_eq!(sdk_options(&[&format!("--{name}={value}")]), expected, "--{name}={value}");
    }
}

#[test]
fn every_switch_of_an_sdk_is_known() {
    let none = Options::default;
    let rows = [
        (
            "--allow-dangerously-skip-permissions",
            Options { allow_dangerously_skip_permissions: true, ..none() },
        ),
        (
            "--dangerously-skip-permissions",
            Options { permission_mode: Some(PermissionMode::BypassPermissions), ..none() },
        ),
        ("--tolerate-bad-settings", Options { tolerate_bad_settings: true, ..none() }),
        ("--continue", Options { continue_conversation: true, ..none() }),
        ("--fork-session", Options { fork_session: true, ..none() }),
        ("--no-session-persistence", Options { persist_session: Some(false), ..none() }),
        ("--session-mirror", Options { session_mirror: true, ..none() }),
        ("--strict-mcp-config", Options { strict_mcp_config: true, ..none() }),
        ("--include-partial-messages", Options { include_partial_messages: true, ..none() }),
        ("--include-hook-events", Options { include_hook_events: true, ..none() }),
        ("--replay-user-messages", Options { replay_user_messages: true, ..none() }),
        ("--forward-subagent-text", Options { forward_subagent_text: Some(true), ..none() }),
        ("--debug", Options { debug: true, ..none() }),
        ("--debug=api", Options { debug: true, ..none() }),
        ("--debug-to-stderr", Options { debug: true, ..none() }),
        ("-d2e", Options { debug: true, ..none() }),
        ("--bare", Options { setting_sources: Some(vec![]), ..none() }),
        ("--await-initialize", Options { extra_args: [("await-initialize".into(), None)].into(), ..none() }),
    ];
    for (flag, expected) in rows {
        assert_eq!(sdk_options(&[flag]), expected, "{flag}");
    }
}

#[test]
fn bare_accepts_the_empty_setting_sources_of_sdks() {
    let rows: [&[&str]; 3] = [
        &["--bare", "--setting-sources", ""],
        &["--setting-sources", "", "--bare"],
        &["--bare", "--setting-sources="],
    ];
    for args in rows {
        assert_eq!(sdk_options(args).setting_sources, Some(Vec::new()), "{args:?}");
    }
}

#[test]
fn options_of_our_own_sdk_round_trip() {
    let written = Options {
        model: Some("opus".into()),
        allowed_tools: strings(&["Read", "Bash(git log *)"]),
        disallowed_tools: strings(&["Bash(rm *)"]),
        permission_mode: Some(PermissionMode::AcceptEdits),
        setting_sources: Some(vec![]),
        tools: Some(ToolSet::List(vec![])),
        max_turns: Some(2),
        thinking: Some(Thinking::Adaptive { display: Some(ThinkingDisplay::Summarized) }),
        additional_directories: strings(&["/a", "/b"]),
        include_partial_messages: true,
        worktree: Some("fix".into()),
        setup_hooks: Some(SetupHooks::Maintenance),
        ..Options::default()
    };
    let argv = written.to_args();
    assert_eq!(parse(&argv, Caller::Sdk, &no_files).unwrap().args.options, written);
}

#[test]
fn whole_command_line_of_each_sdk_parses() {
    let typescript_02 = sdk_options(&[
        "--model",
        "opus",
        "--permission-prompt-tool",
        "stdio",
        "--setting-sources",
        "",
        "--permission-mode",
        "default",
        "--mcp-config",
        r#"{"mcpServers":{"s":{"type":"sdk","name":"s"}}}"#,
        "--include-partial-messages",
    ]);
    assert_eq!(typescript_02.permission_mode, Some(PermissionMode::Default));
    assert_eq!(typescript_02.setting_sources, Some(vec![]));
    assert!(matches!(&typescript_02.mcp_servers["s"], McpServerConfig::Sdk(server) if server.name == "s"));
    let typescript_03 = sdk_options(&[
        "--model=opus",
        "--max-turns=2",
        "--tools=",
        "--thinking=adaptive",
        "--settings",
        "{}",
    ]);
    assert_eq!((typescript_03.max_turns, typescript_03.settings.as_deref()), (Some(2), Some("{}")));
    let python = sdk_options(&[
        "--system-prompt",
        "",
        "--allowedTools",
        "Read,Edit",
        "--resume=id",
        "--setting-sources=",
        "--add-dir",
        "/a",
        "--add-dir",
        "/b",
        "--effort",
        "high",
    ]);
    assert_eq!(python.system_prompt, Some(SystemPrompt::Text(String::new())));
    assert_eq!(python.additional_directories, ["/a", "/b"]);
}

#[test]
fn prompt_is_found_at_any_position() {
    let rows: [(&[&str], Option<&str>); 18] = [
        (&["-p", "hi"], Some("hi")),
        (&["hi", "-p"], Some("hi")),
        (&["-p", "--model", "x", "hi"], Some("hi")),
        (&["-p", "--model=x", "hi"], Some("hi")),
        (&["-p", "--allowedTools", "Bash", "hi"], Some("hi")),
        (&["-p", "--allowedTools", "Bash(a b)", "Read", "mcp__s__t", "hi there"], Some("hi there")),
        (&["-p", "--add-dir", "src", "hi"], Some("hi")),
        (&["-p", "--add-dir", "../a", "/b", "hi"], Some("hi")),
        (&["-p", "--debug", "hi"], Some("hi")),
        (&["-p", "--debug", "api,hooks", "hi"], Some("hi")),
        (&["-p", "-d", "!frames", "hi"], Some("hi")),
        (&["-p", "--prompt-suggestions", "hi"], Some("hi")),
        (&["-p", "--", "update"], Some("update")),
        (&["-p", "--", "--hi"], Some("--hi")),
        (&["-p", "- one\n- two"], Some("- one\n- two")),
        (&["-p", "demo"], Some("demo")),
        (&["-p", ""], Some("")),
        (&["-p", "--model", "x"], None),
    ];
    for (argv, expected) in rows {
        let args = user_args(argv);
        assert_eq!(
            (args.prompt.as_deref(), args.print, args.command),
            (expected, true, CliCommand::Run),
            "{argv:?}"
        );
    }
}

#[test]
fn further_values_of_a_list_are_taken() {
    let args = user_args(&[
        "-p",
        "--allowedTools",
        "Bash(a,b) Edit",
        "Read",
        "--add-dir",
        "/a",
        "./b",
        "--allowedTools=Grep",
    ]);
    assert_eq!(args.options.allowed_tools, ["Bash(a,b)", "Edit", "Read", "Grep"]);
    assert_eq!(args.options.additional_directories, ["/a", "./b"]);
}

#[test]
fn command_is_the_first_argument() {
    let rows: [(&[&str], CliCommand); 7] = [
        (&["demo"], CliCommand::Demo),
        (&["help"], CliCommand::Help),
        (&["version"], CliCommand::Version),
        (&["--help"], CliCommand::Help),
        (&["-h"], CliCommand::Help),
        (&["-p", "--version"], CliCommand::Version),
        (&["-v"], CliCommand::Version),
    ];
    for (argv, expected) in rows {
        assert_eq!(user_args(argv).command, expected, "{argv:?}");
    }
}

#[test]
fn invalid_arguments_are_rejected_with_a_reason() {
    let rows: [(&[&str], &str); 36] = [
        (&["--no-such-flag", "hi"], "--no-such-flag"),
        (&["-x"], "-x"),
        (&["--model"], "--model needs a value"),
        (&["--model", "--verbose"], "--model needs a value"),
        (&["--verbose=yes"], "takes no value"),
        (&["--max-turns", "many"], "\"many\" is not a whole number"),
        (&["--max-turns", "-1"], "--max-turns: \"-1\" is not a whole number, 1 or more"),
        (&["--max-turns", "0"], "1 or more"),
        (&["--max-turns=99999999999"], "too large"),
        (&["--max-thinking-tokens", "x"], "--max-thinking-tokens: \"x\" is not a whole number"),
        (&["--max-thinking-tokens", "-1"], "0 or more"),
        (&["--input-format", "xml"], "is not text or stream-json"),
        (&["--tools", "Nope", "-p", "hi"], "--tools: there is no tool Nope"),
        (&["--tools=Raed"], "Did you mean Read?"),
        (&["--max-budget-usd", "NaN"], "NaN"),
        (&["--permission-mode", "yolo"], "`yolo`; expected one of: default, acceptEdits"),
        (&["--setting-sources", "user,mars"], "mars"),
        (&["--output-format", "xml"], "stream-json"),
        (&["-p", "--output-format", "stream-json", "hi"], "--verbose"),
        (&["--input-format", "stream-json"], "--output-format stream-json"),
        (&["--input-format=stream-json", "--output-format=json"], "--output-format stream-json"),
        (&["--input-format=stream-json", "--output-format=stream-json", "hi"], "\"hi\""),
        (&["-p", "one", "two"], "Put the prompt in quotes: \"one two\"."),
        (&["fix", "the", "build"], "\"fix the build\""),
        (&["--verbose", "update"], "\"update\" is a subcommand, which must be the first argument"),
        (&["--bare", "--setting-sources", "user"], "--bare reads no settings files"),
        (&["--system-prompt", "a", "--system-prompt-file", "b"], "only one of --system-prompt and"),
        (&["--append-system-prompt", "a", "--append-system-prompt-file", "b"], "Only one of"),
        (&["--append-subagent-system-prompt-file", "/nowhere"], "/nowhere cannot be read"),
        (&["--rewind-files", "x"], "--rewind-files needs --resume or --continue"),
        (&["--autocompact", "50k"], "from 100k to 1M"),
        (&["--autocompact", "many"], "\"many\" is not auto"),
        (&["--system-prompt-snapshot", "on"], "cannot be on"),
        (&["--json-schema", "[]"], "object"),
        (&["--mcp-config", "/nowhere.json"], "/nowhere.json cannot be read"),
        (&["--mcp-config", "{}"], "mcpServers"),
    ];
    for (argv, expected) in rows {
        let error = parse_error(argv);
        assert!(error.contains(expected), "{argv:?}: {error}");
    }
}

#[test]
fn unknown_sdk_flag_is_skipped_with_its_value() {
    let base = ["--input-format=stream-json", "--output-format=stream-json"];
    let rows: [&[&str]; 5] = [
        &["--brand-new", "--model", "opus"],
        &["--brand-new", "value", "--model", "opus"],
        &["--brand-new=value", "--model", "opus"],
        &["--brand-new=", "--model=opus"],
        &["--replay-user-messages", "true", "--model", "opus"],
    ];
    for more in rows {
        let ParsedArgs { args, warnings } = parse_args(&[&base[..], more].concat(), Caller::Sdk).unwrap();
        assert_eq!((args.options.model.as_deref(), warnings.len()), (Some("opus"), 1), "{more:?}");
    }
    let error = parse_args(&[&base[..], &["--deny-everything"]].concat(), Caller::Sdk).unwrap_err();
    assert!(error.contains("--deny-everything"), "{error}");
}

#[test]
fn files_named_by_flags_are_read() {
    let files = |path: &str| match path {
        "mcp.json" => Ok(r#"{"mcpServers":{"a":{"command":"x"}}}"#.to_owned()),
        "agents.json" => Ok(r#"{"r":{"description":"d","prompt":"p"}}"#.to_owned()),
        "prompt.md" => Ok("from a file".to_owned()),
        _ => no_files(path),
    };
    let argv = [
        "-p",
        "--mcp-config",
        "mcp.json",
        r#"{"mcpServers":{"b":{"command":"y"}}}"#,
        "--agents",
        "agents.json",
    ];
    let argv =
        [&argv[..], &["--system-prompt-file", "prompt.md", "--append-system-prompt", "more", "hi"]].concat();
    let args = parse(&strings(&argv), Caller::User, &files).unwrap().args;
    assert_eq!(args.options.mcp_servers.keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(args.options.agents["r"].prompt, "p");
    assert_eq!(args.options.system_prompt, Some("from a file\n\nmore".into()));
    assert_eq!(args.prompt.as_deref(), Some("hi"));
    let argv =
        ["--append-system-prompt-file", "prompt.md", "--append-subagent-system-prompt-file", "prompt.md"];
    let options = parse(&strings(&argv), Caller::User, &files).unwrap().args.options;
    let Some(SystemPrompt::Preset { append, .. }) = options.system_prompt else { panic!("no preset") };
    assert_eq!(append.as_deref(), Some("from a file"));
    assert_eq!(options.extra_args["append-subagent-system-prompt"].as_deref(), Some("from a file"));
}

#[test]
fn invalid_mcp_server_does_not_affect_the_others() {
    let servers = r#"{"mcpServers":{"good":{"command":"x"},"pigeon":{"type":"carrier-pigeon"},"bare":{}}}"#;
    let options = sdk_options(&["--mcp-config", servers, r#"{"mcpServers":{"bare":{"command":"y"}}}"#]);
    assert_eq!(options.mcp_servers.keys().collect::<Vec<_>>(), ["bare", "good"]);
    let bad: Vec<_> = options.invalid_mcp_servers.iter().collect();
    assert!(
        matches!(&bad[..], [(name, reason)] if *name == "pigeon" && reason.contains("carrier-pigeon")),
        "{bad:?}"
    );
}

#[test]
fn repeated_settings_are_merged() {
    let both = sdk_options(&["--settings", r#"{"a":1,"b":1}"#, "--settings", r#"{"b":2}"#]);
    assert_eq!(both.settings.as_deref(), Some(r#"{"a":1,"b":2}"#));
    let one = r#"{"permissions":{"deny":["A"],"allow":["B"]},"model":"a"}"#;
    let other = r#"{"permissions":{"deny":["C","A"]},"model":"b"}"#;
    let joined = json!({"permissions": {"deny": ["A", "C"], "allow": ["B"]}, "model": "b"});
    let both = sdk_options(&["--settings", one, "--settings", other]).settings.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&both).unwrap(), joined);
    let managed = sdk_options(&["--managed-settings", one, "--managed-settings", other]);
    assert_eq!(managed.managed_settings, Some(joined));
    let beside_a_file =
        sdk_options(&["--settings", "/s.json", "--settings", r#"{"sandbox":{"enabled":true}}"#]);
    assert_eq!(beside_a_file.settings.as_deref(), Some("/s.json"));
    assert_eq!(beside_a_file.sandbox, json!({"enabled": true}).as_object().cloned());
    assert!(parse_error(&["--settings", "/s.json", "--settings", "/t.json"]).contains("twice"));
}
