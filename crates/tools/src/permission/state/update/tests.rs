//! Tests of permission updates with their settings files.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use whimbrel_config::settings::{Settings, SettingsRequest, Trust};
use whimbrel_policy::{Decision, ToolProperties};
use whimbrel_wire::options::SettingSource;
use whimbrel_wire::permission::PermissionMode;

use super::super::{Bypass, InitialPermissions};
use super::*;
use crate::workspace::Workspace;

const LOCAL: &str = "project/.claude/settings.local.json";
const PROJECT: &str = "project/.claude/settings.json";
const USER: &str = "home/.claude/settings.json";

/// Temporary directory with a home and a project.
struct TestDir(TempDir);

impl TestDir {
    fn new() -> Self {
        let fixture = Self(TempDir::new().unwrap());
        fs::create_dir_all(fixture.path("project/.claude")).unwrap();
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, value: &Value) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), value.to_string()).unwrap();
    }

    fn state(&self, request: SettingsRequest, initial: InitialPermissions) -> PermissionState {
        let settings = Settings::load(SettingsRequest {
            config_dir: Some(self.path("home/.claude")),
            project_root: self.path("project"),
            local_root: self.path("project"),
            cwd: self.path("project"),
            sources: SettingSource::ALL.iter().copied().collect(),
            ..request
        })
        .unwrap();
        let workspace = Workspace::new(self.path("project"), self.path("spill"), Default::default());
        PermissionState::build(Arc::new(workspace), settings, initial, Bypass::Unavailable).unwrap().state
    }

    fn untrusted(&self) -> PermissionState {
        self.state(SettingsRequest::default(), InitialPermissions::default())
    }
}

fn update(value: Value) -> PermissionUpdate {
    serde_json::from_value(value).unwrap()
}

fn rules(kind: &str, behavior: &str, destination: &str, command: &str) -> PermissionUpdate {
    let rules = json!([{"toolName": "Bash", "ruleContent": command}]);
    update(json!({"type": kind, "behavior": behavior, "destination": destination, "rules": rules}))
}

fn decision(permissions: &PermissionState, command: &str) -> &'static str {
    let properties = ToolProperties::for_tool("Bash", &["command"]);
    match permissions.decide("Bash", &properties, &json!({"command": command}), None).decision {
        Decision::Allow(_) => "allow",
        Decision::Ask(_) => "ask",
        Decision::Deny(_) => "deny",
    }
}

#[test]
fn an_update_to_plan_mode_can_be_left() {
    let fixture = TestDir::new();
    let initial = InitialPermissions { mode: PermissionMode::AcceptEdits, ..InitialPermissions::default() };
    let permissions = fixture.state(SettingsRequest::default(), initial);
    let plan = update(json!({"type": "setMode", "mode": "plan", "destination": "session"}));
    assert_eq!(permissions.apply_updates(&[plan]), Vec::<String>::new());
    assert_eq!(permissions.mode(), PermissionMode::Plan);
    permissions.leave_plan();
    assert_eq!(permissions.mode(), PermissionMode::AcceptEdits);
}

#[test]
fn an_allow_is_applied_and_persisted() {
    let fixture = TestDir::new();
    let permissions = fixture.untrusted();
    assert_eq!(permissions.apply_updates(&[rules("addRules", "allow", "localSettings", "touch *")]), [""; 0]);
    assert_eq!(decision(&permissions, "touch a"), "allow");
    assert_eq!(decision(&fixture.untrusted(), "touch a"), "allow", "the file is the user's own");
    assert_eq!(permissions.apply_updates(&[rules("addRules", "allow", "localSettings", "mkdir *")]), [""; 0]);
    assert_eq!(decision(&fixture.untrusted(), "mkdir a"), "allow", "a later update keeps it");
    assert_eq!(
        permissions.apply_updates(&[rules("removeRules", "allow", "localSettings", "touch *")]),
        [""; 0]
    );
    assert_eq!(
        (decision(&permissions, "touch a"), decision(&fixture.untrusted(), "touch a")),
        ("ask", "ask")
    );
}

#[test]
fn an_update_of_an_untrusted_project_holds_for_the_session() {
    let rows = [
        ("a project's file", "projectSettings", None),
        ("a local file of the repository", "localSettings", Some(LOCAL)),
    ];
    for (name, destination, existing_file) in rows {
        let fixture = TestDir::new();
        if let Some(file) = existing_file {
            fixture.write(file, &json!({"permissions": {"allow": ["Bash(rm *)"]}}));
        }
        let permissions = fixture.untrusted();
        let warnings = permissions.apply_updates(&[rules("addRules", "allow", destination, "touch *")]);
        let [warnings] = &warnings[..] else { panic!("{name}: {warnings:?}") };
        assert!(
            warnings.contains("applies to this session") && warnings.contains("not trusted"),
            "{name}: {warnings}"
        );
        assert_eq!(
            (decision(&permissions, "touch a"), decision(&permissions, "rm a")),
            ("allow", "ask"),
            "{name}"
        );
        // A later update reads the file again; the earlier allow stays.
        assert_eq!(
            permissions.apply_updates(&[rules("addRules", "deny", destination, "mkdir *")]),
            [""; 0],
            "{name}"
        );
        assert_eq!(
            (decision(&permissions, "touch a"), decision(&permissions, "mkdir a")),
            ("allow", "deny"),
            "{name}"
        );
        let next = fixture.untrusted();
        assert_eq!((decision(&next, "touch a"), decision(&next, "mkdir a")), ("ask", "deny"), "{name}");
        // An allow can be removed for good.
        let further_updates = [
            rules("addRules", "allow", destination, "cp *"),
            rules("removeRules", "allow", destination, "cp *"),
        ];
        permissions.apply_updates(&further_updates);
        permissions.apply_updates(&[rules("addRules", "deny", destination, "ln *")]);
        let decisions = ["touch a", "cp a b", "ln a b"].map(|command| decision(&permissions, command));
        assert_eq!(decisions, ["allow", "ask", "deny"], "{name}");
        let trusted = next.if_trusted().unwrap();
        assert_eq!((decision(&trusted, "touch a"), decision(&next, "touch a")), ("allow", "ask"), "{name}");
        let fully_trusted = fixture.state(
            SettingsRequest { trust: Trust::Full, ..SettingsRequest::default() },
            InitialPermissions::default(),
        );
        assert_eq!(decision(&fully_trusted, "touch a"), "allow", "{name}");
    }
}

#[test]
fn an_update_that_cannot_be_written_holds_for_the_session() {
    let fixture = TestDir::new();
    fs::remove_dir(fixture.path("project/.claude")).unwrap();
    fs::write(fixture.path("project/.claude"), "not a directory").unwrap();
    let permissions = fixture.state(SettingsRequest::default(), InitialPermissions::default());
    let warnings = permissions.apply_updates(&[rules("addRules", "allow", "localSettings", "touch *")]);
    assert!(warnings.len() == 1 && warnings[0].contains("to this session only"), "{warnings:?}");
    assert_eq!(decision(&permissions, "touch a"), "allow");
}

#[test]
fn changes_of_other_processes_are_merged() {
    let fixture = TestDir::new();
    fixture.write(USER, &json!({"permissions": {"allow": ["Bash(mkdir *)"]}}));
    let permissions = fixture.untrusted();
    assert_eq!(decision(&permissions, "mkdir a"), "allow");
    fixture.write(USER, &json!({"permissions": {"deny": ["Bash(mkdir *)"]}}));
    fixture.write(PROJECT, &json!({"permissions": {"deny": ["Bash(rm *)"]}}));
    permissions
        .apply_host_settings(json!({"permissions": {"deny": ["Bash(touch b)"]}}).as_object().unwrap().clone())
        .unwrap();
    assert_eq!(permissions.apply_updates(&[rules("addRules", "allow", "localSettings", "touch *")]), [""; 0]);
    let decisions = ["mkdir a", "rm a", "touch b", "touch a"].map(|command| decision(&permissions, command));
    assert_eq!(decisions, ["deny", "deny", "deny", "allow"]);
}

#[test]
fn an_unreadable_rule_of_another_process_changes_nothing() {
    let fixture = TestDir::new();
    fixture.write(USER, &json!({"permissions": {"deny": ["Bash(rm *)"]}}));
    let permissions = fixture.untrusted();
    fixture.write(USER, &json!({"permissions": {"deny": ["Bash(rm *"]}}));
    let warnings = permissions.apply_updates(&[rules("addRules", "allow", "localSettings", "touch *")]);
    assert!(warnings.len() == 1 && warnings[0].contains("cannot be applied"), "{warnings:?}");
    assert_eq!((decision(&permissions, "rm a"), decision(&permissions, "touch a")), ("deny", "allow"));
}

#[test]
fn concurrent_updates_all_apply() {
    let fixture = TestDir::new();
    let permissions = fixture.untrusted();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let permissions = permissions.clone();
            scope.spawn(move || {
                for number in 0..3 {
                    let destination = if writer % 2 == 0 { "localSettings" } else { "userSettings" };
                    let command = format!("touch {writer}x{number}");
                    assert_eq!(
                        permissions.apply_updates(&[rules("addRules", "allow", destination, &command)]),
                        [""; 0]
                    );
                }
            });
        }
    });
    for writer in 0..4 {
        for number in 0..3 {
            let command = format!("touch {writer}x{number}");
            assert_eq!(
                (decision(&permissions, &command), decision(&fixture.untrusted(), &command)),
                ("allow", "allow")
            );
        }
    }
}

#[test]
fn decisions_do_not_wait_for_file_writes() {
    let fixture = TestDir::new();
    fixture.write(LOCAL, &json!({}));
    let permissions = fixture.untrusted();
    // Holding the directory lock makes the writer wait.
    let dir = fs::File::open(fixture.path("project/.claude")).unwrap();
    dir.lock().unwrap();
    std::thread::scope(|scope| {
        let writer = permissions.clone();
        let written = scope
            .spawn(move || writer.apply_updates(&[rules("addRules", "deny", "localSettings", "touch *")]));
        while decision(&permissions, "touch a") != "deny" {
            std::thread::yield_now();
        }
        // The update applies before it is written, and the settings are not locked.
        assert!(permissions.set_mode(PermissionMode::Plan));
        assert_eq!(permissions.settings().effective().rules.len(), 0);
        dir.unlock().unwrap();
        assert_eq!(written.join().unwrap(), [""; 0]);
    });
    assert_eq!(permissions.settings().effective().rules.len(), 1);
}

#[test]
fn valid_parts_of_an_update_are_kept() {
    let fixture = TestDir::new();
    let permissions = fixture.state(
        SettingsRequest { trust: Trust::Full, ..SettingsRequest::default() },
        InitialPermissions::default(),
    );
    let rules =
        json!([{"toolName": "Edit", "ruleContent": "!x"}, {"toolName": "Bash", "ruleContent": "zap *"}]);
    let deny =
        json!({"type": "addRules", "behavior": "deny", "destination": "localSettings", "rules": rules});
    let more = fixture.path("more");
    fs::create_dir(&more).unwrap();
    let directories =
        json!({"type": "addDirectories", "destination": "localSettings", "directories": [more, "relative"]});
    let errors = permissions.apply_updates(&[update(deny), update(directories)]);
    assert_eq!(errors.len(), 2, "{errors:?}");
    let stored: Value = serde_json::from_str(&fs::read_to_string(fixture.path(LOCAL)).unwrap()).unwrap();
    let expected = json!({"deny": ["Bash(zap *)"], "additionalDirectories": [more]});
    assert_eq!(stored["permissions"], expected);
    assert_eq!(decision(&permissions, "zap x"), "deny");
    // The written file can be read again, now and in the next session.
    assert_eq!(
        permissions.apply_updates(&[self::rules("addRules", "allow", "localSettings", "make")]),
        [""; 0]
    );
    assert_eq!(
        decision(&fixture.state(SettingsRequest::default(), InitialPermissions::default()), "zap x"),
        "deny"
    );
}

#[test]
fn a_disabled_mode_is_left() {
    let fixture = TestDir::new();
    let bypass =
        InitialPermissions { mode: PermissionMode::BypassPermissions, ..InitialPermissions::default() };
    let permissions = fixture.state(SettingsRequest::default(), bypass);
    assert_eq!(permissions.mode(), PermissionMode::BypassPermissions);
    let off = json!({"permissions": {"disableBypassPermissionsMode": "disable"}});
    permissions.apply_host_settings(off.as_object().unwrap().clone()).unwrap();
    assert_eq!(permissions.mode(), PermissionMode::Default);
}

#[test]
fn a_directory_of_two_files_is_removed_with_both() {
    let fixture = TestDir::new();
    let more = fixture.path("more");
    fs::create_dir(&more).unwrap();
    let named = json!({"permissions": {"additionalDirectories": [more]}});
    fixture.write(LOCAL, &named);
    fixture.write(USER, &named);
    let permissions = fixture.state(
        SettingsRequest { trust: Trust::Full, ..SettingsRequest::default() },
        InitialPermissions::default(),
    );
    let read = format!("cat {}/x", more.display());
    let remove = |destination: &str| {
        update(json!({"type": "removeDirectories", "directories": [more], "destination": destination}))
    };
    permissions.apply_updates(&[remove("localSettings")]);
    assert_eq!(decision(&permissions, &read), "allow", "the user's own file still names it");
    permissions.apply_updates(&[remove("userSettings")]);
    assert_eq!(decision(&permissions, &read), "ask");
}

/// Applies an update; returns `permissions` of its file.
fn apply_and_read(
    fixture: &TestDir,
    permissions: &PermissionState,
    file: Option<&str>,
    change: &Value,
) -> Value {
    let warnings = permissions.apply_updates(&[update(change.clone())]);
    assert_eq!(warnings, [""; 0], "{change}");
    let Some(file) = file else { return Value::Null };
    let mut stored: Value = serde_json::from_str(&fs::read_to_string(fixture.path(file)).unwrap()).unwrap();
    assert_eq!(stored["unknown"], json!({"b": 1, "a": [2]}), "{change}: unknown fields stay");
    assert_eq!(stored["permissions"]["other"], 1, "{change}");
    let permissions = stored["permissions"].as_object_mut().unwrap();
    permissions.remove("other");
    permissions.retain(|_, list| *list != json!([]));
    stored["permissions"].take()
}

#[test]
fn every_update_type_works_for_every_destination() {
    let files = [
        ("session", None),
        ("cliArg", None),
        ("localSettings", Some(LOCAL)),
        ("projectSettings", Some(PROJECT)),
        ("userSettings", Some(USER)),
    ];
    for (destination, file) in files {
        let fixture = TestDir::new();
        if let Some(file) = file {
            fixture.write(file, &json!({"unknown": {"b": 1, "a": [2]}, "permissions": {"other": 1}}));
        }
        let more = fixture.path("more");
        fs::create_dir(&more).unwrap();
        let trusted = || {
            fixture.state(
                SettingsRequest { trust: Trust::Full, ..SettingsRequest::default() },
                InitialPermissions::default(),
            )
        };
        let permissions = trusted();
        let stored = |json: Value| if file.is_some() { json } else { Value::Null };
        let rules = |kind: &str, behavior: &str, commands: &[&str]| {
            let rules: Vec<Value> =
                commands.iter().map(|command| json!({"toolName": "Bash", "ruleContent": command})).collect();
            json!({"type": kind, "behavior": behavior, "destination": destination, "rules": rules})
        };
        let directories =
            |kind: &str| json!({"type": kind, "destination": destination, "directories": [more]});
        let change = |json: Value| apply_and_read(&fixture, &permissions, file, &json);
        let now = |command: &str| decision(&permissions, command);

        for (behavior, verdict) in [("allow", "allow"), ("ask", "ask"), ("deny", "deny")] {
            let warnings = change(rules("addRules", behavior, &["zap a", "zap b"]));
            assert_eq!(
                warnings,
                stored(json!({ behavior: ["Bash(zap a)", "Bash(zap b)"] })),
                "{destination}"
            );
            assert_eq!((now("zap a"), now("zap b")), (verdict, verdict), "{destination}");
            let warnings = change(rules("replaceRules", behavior, &["zap c"]));
            assert_eq!(warnings, stored(json!({ behavior: ["Bash(zap c)"] })), "{destination}");
            assert_eq!((now("zap a"), now("zap c")), ("ask", verdict), "{destination}");
            if file.is_some() {
                assert_eq!(decision(&trusted(), "zap c"), verdict, "{destination}: in the next session");
            }
            let warnings = change(rules("removeRules", behavior, &["zap c"]));
            assert_eq!((warnings, now("zap c")), (stored(json!({})), "ask"), "{destination}");
        }

        let read = format!("cat {}/x", more.display());
        let warnings = change(directories("addDirectories"));
        assert_eq!(warnings, stored(json!({"additionalDirectories": [more]})), "{destination}");
        assert_eq!(now(&read), "allow", "{destination}");
        let warnings = change(directories("removeDirectories"));
        assert_eq!((warnings, now(&read)), (stored(json!({})), "ask"), "{destination}");

        let warnings = change(json!({"type": "setMode", "mode": "acceptEdits", "destination": destination}));
        assert_eq!(warnings, stored(json!({"defaultMode": "acceptEdits"})), "{destination}");
        assert_eq!(
            (permissions.mode(), now("touch a")),
            (PermissionMode::AcceptEdits, "allow"),
            "{destination}"
        );
    }
}
