//! Tests of hook sets and their handlers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use whimbrel_wire::control::OnFailure;
use whimbrel_wire::hook::{
    HookBase, HookEvent, HookEventInput, HookInput, PreToolUse, SessionEnd, SessionStart, Stop,
};

use super::super::HookError;
use super::super::failure_policy::FailurePolicy;
use super::super::handler::{HookAction, HookHandler};
use super::super::hook_set::{CommandHook, HookSet};
use super::fixture::settings_origin;
use crate::workspace::Workspace;

fn from_host(hooks: &Value) -> Result<HookSet, HookError> {
    HookSet::from_initialize(&serde_json::from_value(json!({ "hooks": hooks })).unwrap())
}

fn command(command: &str) -> CommandHook {
    CommandHook { command: command.into(), ..CommandHook::default() }
}

fn commands(rows: &[(&str, Option<&str>, CommandHook)]) -> HookSet {
    let mut set = HookSet::default();
    for (event, matcher, hook) in rows {
        set.add_commands(event, *matcher, vec![hook.clone()], &settings_origin("the project's settings"))
            .unwrap();
    }
    set
}

fn handlers(set: &HookSet, input: &HookEventInput) -> Vec<HookHandler> {
    let input = HookInput { base: HookBase::default(), event: input.clone() };
    set.handlers(&input, &Workspace::new("/nowhere".into(), "/nowhere".into(), BTreeMap::new()))
}

fn tool(name: &str) -> HookEventInput {
    PreToolUse { tool_name: name.into(), ..PreToolUse::default() }.into()
}

#[test]
fn mistakes_in_hook_fields_are_reported() {
    let group = |key: &str, value: &str| json!({"Stop": [{"hookCallbackIds": ["h"], key: value}]});
    let error = from_host(&group("onFailure", "Block")).unwrap_err().to_string();
    assert!(error.contains("Stop") && error.contains("\"Block\"") && error.contains("\"block\""), "{error}");
    let set = from_host(&group("onfailure", "block")).unwrap();
    assert!(set.has_hooks(HookEvent::Stop));
    let [warning] = set.warnings() else { panic!("{:?}", set.warnings()) };
    assert!(warning.contains("`onfailure`"), "{warning}");
}

#[test]
fn callbacks_are_read_from_initialize() {
    let set = from_host(&json!({"PreToolUse": [
        {"matcher": "Bash", "hookCallbackIds": ["hook_0", "hook_1"], "timeout": 2.5, "onFailure": "block"},
        {"matcher": null, "hookCallbackIds": ["hook_2"]},
    ]}))
    .unwrap();
    let handler = |id: &str, limit, failure| HookHandler {
        action: HookAction::Callback(id.into()),
        timeout: Duration::from_secs_f64(limit),
        failure,
        environment: Arc::default(),
    };
    let all = [
        handler("hook_0", 2.5, FailurePolicy::Block),
        handler("hook_1", 2.5, FailurePolicy::Block),
        handler("hook_2", 60.0, FailurePolicy::Report),
    ];
    assert_eq!(handlers(&set, &tool("Bash")), all);
    assert_eq!(handlers(&set, &tool("Read")), all[2..]);
    assert_eq!(handlers(&set, &Stop::default().into()), []);
    assert!(set.has_hooks(HookEvent::PreToolUse) && !set.has_hooks(HookEvent::Stop));
}

#[test]
fn no_hooks_are_an_empty_set() {
    for hooks in [json!(null), json!({}), json!({"Stop": []}), json!({"Stop": [{"hookCallbackIds": []}]})] {
        assert!(from_host(&hooks).unwrap().is_empty(), "{hooks}");
    }
}

#[test]
fn an_invalid_matcher_names_event_origin_and_remedy() {
    let error =
        from_host(&json!({"PreToolUse": [{"matcher": "Bash(", "hookCallbackIds": ["h"]}]})).unwrap_err();
    let text = error.to_string();
    for part in ["`Bash(`", "PreToolUse", "the host (initialize)", "`Edit|Write`"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_unknown_event_gives_a_warning() {
    let set = from_host(&json!({"PreToolUsed": [{"hookCallbackIds": ["h"]}]})).unwrap();
    assert!(set.is_empty());
    assert!(set.warnings()[0].contains("`PreToolUsed`"), "{:?}", set.warnings());
}

#[test]
fn duplicates_are_merged_with_the_stricter_policy() {
    let strict = CommandHook { timeout: Some(900.0), on_failure: Some(OnFailure::Block), ..command("check") };
    let background = CommandHook { background: true, ..command("check") };
    let set = commands(&[
        ("PreToolUse", Some("Bash"), background),
        ("PreToolUse", None, strict),
        ("PreToolUse", Some("B.*"), command("check")),
        ("PreToolUse", None, command("other")),
    ]);
    let check = HookHandler {
        action: HookAction::Command("check".into()),
        timeout: Duration::from_secs(900),
        failure: FailurePolicy::Block,
        environment: Arc::default(),
    };
    let other = HookHandler {
        action: HookAction::Command("other".into()),
        timeout: Duration::from_secs(600),
        failure: FailurePolicy::Report,
        environment: Arc::default(),
    };
    assert_eq!(handlers(&set, &tool("Bash")), [check, other]);
}

#[test]
fn an_invalid_timeout_is_replaced_by_the_default() {
    for (timeout, expected) in [
        (None, 600),
        (Some(0.0), 600),
        (Some(-1.0), 600),
        (Some(f64::NAN), 600),
        (Some(5.0), 5),
        (Some(f64::INFINITY), 86_400),
    ] {
        let set = commands(&[("PreToolUse", None, CommandHook { timeout, ..command("x") })]);
        assert_eq!(handlers(&set, &tool("Bash"))[0].timeout, Duration::from_secs(expected), "{timeout:?}");
    }
}

#[test]
fn callbacks_are_not_run_at_session_start_and_end() {
    let mut set = from_host(
        &json!({"SessionStart": [{"hookCallbackIds": ["h"]}], "SessionEnd": [{"hookCallbackIds": ["h"]}]}),
    )
    .unwrap();
    set.append(commands(&[("SessionStart", None, command("c")), ("SessionEnd", None, command("c"))]));
    let start = |source: &str| SessionStart { source: source.into(), ..SessionStart::default() }.into();
    assert_eq!(handlers(&set, &start("startup")).len(), 1);
    assert_eq!(handlers(&set, &start("resume")).len(), 2);
    assert_eq!(handlers(&set, &SessionEnd::default().into()).len(), 1);
}

#[test]
fn an_older_tool_name_still_matches() {
    let set = commands(&[("PreToolUse", Some("Task"), command("c"))]);
    assert_eq!(handlers(&set, &tool("Agent")).len(), 1);
}

#[test]
fn a_command_is_shown_by_its_first_line() {
    let handler = |text: &str| HookHandler {
        action: HookAction::Command(text.into()),
        timeout: Duration::ZERO,
        failure: FailurePolicy::Report,
        environment: Arc::default(),
    };
    assert_eq!(&*handler("  check.sh\nmore").display_name(), "check.sh");
    assert_eq!(&*handler(&"ü".repeat(100)).display_name(), format!("{}...", "ü".repeat(80)));
}

#[test]
fn a_hook_that_runs_once_does() {
    let once = CommandHook { once: true, ..command("check") };
    let set = commands(&[("PreToolUse", Some("Bash"), once), ("PreToolUse", None, command("log"))]);
    let copy = set.clone();
    assert_eq!(handlers(&set, &tool("Read")).len(), 1, "the matcher does not match");
    assert_eq!(handlers(&set, &tool("Bash")).len(), 2);
    assert_eq!(handlers(&set, &tool("Bash")).len(), 1);
    assert_eq!(handlers(&copy, &tool("Bash")).len(), 1, "a clone shares the flag");
}

#[test]
fn a_condition_must_be_a_valid_rule() {
    let set_with = |event: &str, condition: &str| {
        let hook = CommandHook { condition: Some(condition.into()), ..command("check") };
        let mut set = HookSet::default();
        set.add_commands(event, None, vec![hook], &settings_origin("the user's settings")).map(|()| set)
    };
    let set = set_with("PreToolUse", "Bash(git *)").unwrap();
    let call = |command: &str| {
        let tool_input = json!({ "command": command });
        PreToolUse { tool_name: "Bash".into(), tool_input, ..PreToolUse::default() }.into()
    };
    assert_eq!(handlers(&set, &call("git push")).len(), 1);
    assert_eq!(handlers(&set, &call("ls")).len(), 0);
    let error = set_with("PreToolUse", "Bash(git").unwrap_err().to_string();
    assert!(error.contains("\"if\" of a PreToolUse hook from the user's settings"), "{error}");
    let set = set_with("Stop", "Bash").unwrap();
    assert!(handlers(&set, &Stop::default().into()).is_empty());
    assert!(set.warnings()[0].contains("never runs"), "{:?}", set.warnings());
}

#[test]
fn a_condition_uses_the_agents_working_directory() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let guard = CommandHook { condition: Some("Edit(a/b/**)".into()), ..command("exit 2") };
    let set = commands(&[("PreToolUse", None, guard)]);
    let workspace = Workspace::new(root.clone(), root.join("spill"), BTreeMap::new());
    // A relative path, as the model writes it.
    let write: HookEventInput = PreToolUse {
        tool_name: "Edit".into(),
        tool_input: json!({"file_path": "b/x", "old_string": "", "new_string": "y"}),
        ..PreToolUse::default()
    }
    .into();
    for (cwd, expected) in
        [("", 0), ("a", 1), (".claude/worktrees/w/a", 1), (".claude/worktrees/w", 0), ("b", 0)]
    {
        let base = HookBase { cwd: root.join(cwd).display().to_string(), ..HookBase::default() };
        let found = set.handlers(&HookInput { base, event: write.clone() }, &workspace);
        assert_eq!(found.len(), expected, "{cwd}");
    }
}
