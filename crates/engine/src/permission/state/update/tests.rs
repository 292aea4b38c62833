//! Tests of permission updates with their settings files.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use whimbrel_config::settings::{Settings, SettingsRequest, Trust};
use whimbrel_policy::{Decision, ToolFacts};
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
        let bench = Self(TempDir::new().unwrap());
        fs::create_dir_all(bench.path("project/.claude")).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, value: &Value) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), value.to_string()).unwrap();
    }

    fn state(&self, request: SettingsRequest, grants: InitialPermissions) -> PermissionState {
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
        PermissionState::new(Arc::new(workspace), settings, grants, Bypass::Unavailable).unwrap().state
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

fn decision(rights: &PermissionState, command: &str) -> &'static str {
    let facts = ToolFacts::for_tool("Bash", &["command"]);
    match rights.decide("Bash", &facts, &json!({"command": command}), None).decision {
        Decision::Allow(_) => "allow",
        Decision::Ask(_) => "ask",
        Decision::Deny(_) => "deny",
    }
}

#[test]
fn an_update_to_plan_mode_can_be_left() {
    let bench = TestDir::new();
    let grants = InitialPermissions { mode: PermissionMode::AcceptEdits, ..InitialPermissions::default() };
    let rights = bench.state(SettingsRequest::default(), grants);
    let plan = update(json!({"type": "setMode", "mode": "plan", "destination": "session"}));
    assert_eq!(rights.apply_updates(&[plan]), Vec::<String>::new());
    assert_eq!(rights.mode(), PermissionMode::Plan);
    rights.leave_plan();
    assert_eq!(rights.mode(), PermissionMode::AcceptEdits);
}

#[test]
fn an_allow_is_applied_and_persisted() {
    let bench = TestDir::new();
    let rights = bench.untrusted();
    assert_eq!(rights.apply_updates(&[rules("addRules", "allow", "localSettings", "touch *")]), [""; 0]);
    assert_eq!(decision(&rights, "touch a"), "allow");
    assert_eq!(decision(&bench.untrusted(), "touch a"), "allow", "the file is the person's own");
    assert_eq!(rights.apply_updates(&[rules("addRules", "allow", "localSettings", "mkdir *")]), [""; 0]);
    assert_eq!(decision(&bench.untrusted(), "mkdir a"), "allow", "and stays it");
    assert_eq!(rights.apply_updates(&[rules("removeRules", "allow", "localSettings", "touch *")]), [""; 0]);
    assert_eq!((decision(&rights, "touch a"), decision(&bench.untrusted(), "touch a")), ("ask", "ask"));
}

#[test]
fn an_update_of_an_untrusted_project_holds_for_the_session() {
    let rows = [
        ("a project's file", "projectSettings", None),
        ("a local file that came along", "localSettings", Some(LOCAL)),
    ];
    for (name, destination, came_along) in rows {
        let bench = TestDir::new();
        if let Some(file) = came_along {
            bench.write(file, &json!({"permissions": {"allow": ["Bash(rm *)"]}}));
        }
        let rights = bench.untrusted();
        let told = rights.apply_updates(&[rules("addRules", "allow", destination, "touch *")]);
        let [told] = &told[..] else { panic!("{name}: {told:?}") };
        assert!(told.contains("counts for this session") && told.contains("not trusted"), "{name}: {told}");
        assert_eq!((decision(&rights, "touch a"), decision(&rights, "rm a")), ("allow", "ask"), "{name}");
        // A later update reads the file again; the earlier allow stays.
        assert_eq!(
            rights.apply_updates(&[rules("addRules", "deny", destination, "mkdir *")]),
            [""; 0],
            "{name}"
        );
        assert_eq!((decision(&rights, "touch a"), decision(&rights, "mkdir a")), ("allow", "deny"), "{name}");
        let next = bench.untrusted();
        assert_eq!((decision(&next, "touch a"), decision(&next, "mkdir a")), ("ask", "deny"), "{name}");
        // An allow can be removed for good.
        let more = [
            rules("addRules", "allow", destination, "cp *"),
            rules("removeRules", "allow", destination, "cp *"),
        ];
        rights.apply_updates(&more);
        rights.apply_updates(&[rules("addRules", "deny", destination, "ln *")]);
        let judgements = ["touch a", "cp a b", "ln a b"].map(|command| decision(&rights, command));
        assert_eq!(judgements, ["allow", "ask", "deny"], "{name}");
        let trusted = next.if_trusted().unwrap();
        assert_eq!((decision(&trusted, "touch a"), decision(&next, "touch a")), ("allow", "ask"), "{name}");
        let vouched_for = bench.state(
            SettingsRequest { trust: Trust::Full, ..SettingsRequest::default() },
            InitialPermissions::default(),
        );
        assert_eq!(decision(&vouched_for, "touch a"), "allow", "{name}");
    }
}

#[test]
fn an_update_that_cannot_be_written_holds_for_the_session() {
    let bench = TestDir::new();
    fs::remove_dir(bench.path("project/.claude")).unwrap();
    fs::write(bench.path("project/.claude"), "no folder").unwrap();
    let rights = bench.state(SettingsRequest::default(), InitialPermissions::default());
    let told = rights.apply_updates(&[rules("addRules", "allow", "localSettings", "touch *")]);
    assert!(told.len() == 1 && told[0].contains("for this session only"), "{told:?}");
    assert_eq!(decision(&rights, "touch a"), "allow");
}

#[test]
fn changes_of_other_processes_are_merged() {
    let bench = TestDir::new();
    bench.write(USER, &json!({"permissions": {"allow": ["Bash(mkdir *)"]}}));
    let rights = bench.untrusted();
    assert_eq!(decision(&rights, "mkdir a"), "allow");
    bench.write(USER, &json!({"permissions": {"deny": ["Bash(mkdir *)"]}}));
    bench.write(PROJECT, &json!({"permissions": {"deny": ["Bash(rm *)"]}}));
    rights
        .apply_host_settings(json!({"permissions": {"deny": ["Bash(touch b)"]}}).as_object().unwrap().clone())
        .unwrap();
    assert_eq!(rights.apply_updates(&[rules("addRules", "allow", "localSettings", "touch *")]), [""; 0]);
    let judgements = ["mkdir a", "rm a", "touch b", "touch a"].map(|command| decision(&rights, command));
    assert_eq!(judgements, ["deny", "deny", "deny", "allow"]);
}

#[test]
fn an_unreadable_rule_of_another_process_changes_nothing() {
    let bench = TestDir::new();
    bench.write(USER, &json!({"permissions": {"deny": ["Bash(rm *)"]}}));
    let rights = bench.untrusted();
    bench.write(USER, &json!({"permissions": {"deny": ["Bash(rm *"]}}));
    let told = rights.apply_updates(&[rules("addRules", "allow", "localSettings", "touch *")]);
    assert!(told.len() == 1 && told[0].contains("cannot be taken in"), "{told:?}");
    assert_eq!((decision(&rights, "rm a"), decision(&rights, "touch a")), ("deny", "allow"));
}

#[test]
fn concurrent_updates_all_apply() {
    let bench = TestDir::new();
    let rights = bench.untrusted();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let rights = rights.clone();
            scope.spawn(move || {
                for number in 0..3 {
                    let destination = if writer % 2 == 0 { "localSettings" } else { "userSettings" };
                    let command = format!("touch {writer}x{number}");
                    assert_eq!(
                        rights.apply_updates(&[rules("addRules", "allow", destination, &command)]),
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
                (decision(&rights, &command), decision(&bench.untrusted(), &command)),
                ("allow", "allow")
            );
        }
    }
}

#[test]
fn decisions_do_not_wait_for_file_writes() {
    let bench = TestDir::new();
    bench.write(LOCAL, &json!({}));
    let rights = bench.untrusted();
    // Holding the directory lock makes the writer wait.
    let folder = fs::File::open(bench.path("project/.claude")).unwrap();
    folder.lock().unwrap();
    std::thread::scope(|scope| {
        let writer = rights.clone();
        let written = scope
            .spawn(move || writer.apply_updates(&[rules("addRules", "deny", "localSettings", "touch *")]));
        while decision(&rights, "touch a") != "deny" {
            std::thread::yield_now();
        }
        // The update applies before it is written, and the settings are not locked.
        assert!(rights.set_mode(PermissionMode::Plan));
        assert_eq!(rights.settings().effective().rules.len(), 0);
        folder.unlock().unwrap();
        assert_eq!(written.join().unwrap(), [""; 0]);
    });
    assert_eq!(rights.settings().effective().rules.len(), 1);
}

#[test]
fn valid_parts_of_an_update_are_kept() {
    let bench = TestDir::new();
    let rights = bench.state(
        SettingsRequest { trust: Trust::Full, ..SettingsRequest::default() },
        InitialPermissions::default(),
    );
    let rules =
        json!([{"toolName": "Edit", "ruleContent": "!x"}, {"toolName": "Bash", "ruleContent": "zap *"}]);
    let deny =
        json!({"type": "addRules", "behavior": "deny", "destination": "localSettings", "rules": rules});
    let more = bench.path("more");
    fs::create_dir(&more).unwrap();
    let directories =
        json!({"type": "addDirectories", "destination": "localSettings", "directories": [more, "relative"]});
    let problems = rights.apply_updates(&[update(deny), update(directories)]);
    assert_eq!(problems.len(), 2, "{problems:?}");
    let kept: Value = serde_json::from_str(&fs::read_to_string(bench.path(LOCAL)).unwrap()).unwrap();
    let expected = json!({"deny": ["Bash(zap *)"], "additionalDirectories": [more]});
    assert_eq!(kept["permissions"], expected);
    assert_eq!(decision(&rights, "zap x"), "deny");
    // The written file can be read again, now and in the next session.
    assert_eq!(rights.apply_updates(&[self::rules("addRules", "allow", "localSettings", "make")]), [""; 0]);
    assert_eq!(
        decision(&bench.state(SettingsRequest::default(), InitialPermissions::default()), "zap x"),
        "deny"
    );
}

#[test]
fn a_disabled_mode_is_left() {
    let bench = TestDir::new();
    let bypass =
        InitialPermissions { mode: PermissionMode::BypassPermissions, ..InitialPermissions::default() };
    let rights = bench.state(SettingsRequest::default(), bypass);
    assert_eq!(rights.mode(), PermissionMode::BypassPermissions);
    let off = json!({"permissions": {"disableBypassPermissionsMode": "disable"}});
    rights.apply_host_settings(off.as_object().unwrap().clone()).unwrap();
    assert_eq!(rights.mode(), PermissionMode::Default);
}

#[test]
fn a_directory_of_two_files_is_removed_with_both() {
    let bench = TestDir::new();
    let more = bench.path("more");
    fs::create_dir(&more).unwrap();
    let named = json!({"permissions": {"additionalDirectories": [more]}});
    bench.write(LOCAL, &named);
    bench.write(USER, &named);
    let rights = bench.state(
        SettingsRequest { trust: Trust::Full, ..SettingsRequest::default() },
        InitialPermissions::default(),
    );
    let read = format!("cat {}/x", more.display());
    let remove = |destination: &str| {
        update(json!({"type": "removeDirectories", "directories": [more], "destination": destination}))
    };
    rights.apply_updates(&[remove("localSettings")]);
    assert_eq!(decision(&rights, &read), "allow", "the person's own file still names it");
    rights.apply_updates(&[remove("userSettings")]);
    assert_eq!(decision(&rights, &read), "ask");
}

/// Applies an update; returns `permissions` of its file.
fn apply_and_read(bench: &TestDir, rights: &PermissionState, file: Option<&str>, change: &Value) -> Value {
    let told = rights.apply_updates(&[update(change.clone())]);
    assert_eq!(told, [""; 0], "{change}");
    let Some(file) = file else { return Value::Null };
    let mut kept: Value = serde_json::from_str(&fs::read_to_string(bench.path(file)).unwrap()).unwrap();
    assert_eq!(kept["unknown"], json!({"b": 1, "a": [2]}), "{change}: what we do not know stays");
    assert_eq!(kept["permissions"]["other"], 1, "{change}");
    let permissions = kept["permissions"].as_object_mut().unwrap();
    permissions.remove("other");
    permissions.retain(|_, list| *list != json!([]));
    kept["permissions"].take()
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
        let bench = TestDir::new();
        if let Some(file) = file {
            bench.write(file, &json!({"unknown": {"b": 1, "a": [2]}, "permissions": {"other": 1}}));
        }
        let more = bench.path("more");
        fs::create_dir(&more).unwrap();
        let trusted = || {
            bench.state(
                SettingsRequest { trust: Trust::Full, ..SettingsRequest::default() },
                InitialPermissions::default(),
            )
        };
        let rights = trusted();
        let kept = |json: Value| if file.is_some() { json } else { Value::Null };
        let rules = |kind: &str, behavior: &str, commands: &[&str]| {
            let rules: Vec<Value> =
                commands.iter().map(|command| json!({"toolName": "Bash", "ruleContent": command})).collect();
            json!({"type": kind, "behavior": behavior, "destination": destination, "rules": rules})
        };
        let directories =
            |kind: &str| json!({"type": kind, "destination": destination, "directories": [more]});
        let change = |json: Value| apply_and_read(&bench, &rights, file, &json);
        let now = |command: &str| decision(&rights, command);

        for (behavior, verdict) in [("allow", "allow"), ("ask", "ask"), ("deny", "deny")] {
            let said = change(rules("addRules", behavior, &["zap a", "zap b"]));
            assert_eq!(said, kept(json!({ behavior: ["Bash(zap a)", "Bash(zap b)"] })), "{destination}");
            assert_eq!((now("zap a"), now("zap b")), (verdict, verdict), "{destination}");
            let said = change(rules("replaceRules", behavior, &["zap c"]));
            assert_eq!(said, kept(json!({ behavior: ["Bash(zap c)"] })), "{destination}");
            assert_eq!((now("zap a"), now("zap c")), ("ask", verdict), "{destination}");
            if file.is_some() {
                assert_eq!(decision(&trusted(), "zap c"), verdict, "{destination}: the next time");
            }
            let said = change(rules("removeRules", behavior, &["zap c"]));
            assert_eq!((said, now("zap c")), (kept(json!({})), "ask"), "{destination}");
        }

        let read = format!("cat {}/x", more.display());
        let said = change(directories("addDirectories"));
        assert_eq!(said, kept(json!({"additionalDirectories": [more]})), "{destination}");
        assert_eq!(now(&read), "allow", "{destination}");
        let said = change(directories("removeDirectories"));
        assert_eq!((said, now(&read)), (kept(json!({})), "ask"), "{destination}");

        let said = change(json!({"type": "setMode", "mode": "acceptEdits", "destination": destination}));
        assert_eq!(said, kept(json!({"defaultMode": "acceptEdits"})), "{destination}");
        assert_eq!((rights.mode(), now("touch a")), (PermissionMode::AcceptEdits, "allow"), "{destination}");
    }
}
