//! Loading and changing settings files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;
use whimbrel_wire::control::UpdateSettings;
use whimbrel_wire::options::SettingSource;
use whimbrel_wire::permission::PermissionUpdate;

use super::*;

/// A home directory and a project.
struct Fixture {
    dir: TempDir,
    trust: Trust,
    tolerance: Tolerance,
    flag: Option<String>,
    sources: BTreeSet<SettingSource>,
    named: BTreeSet<SettingSource>,
}

const USER: &str = "home/.claude/settings.json";
const PROJECT: &str = "project/.claude/settings.json";
const LOCAL: &str = "project/.claude/settings.local.json";
const MANAGED: &str = "etc/managed-settings.json";

impl Fixture {
    fn new(files: &[(&str, Value)]) -> Self {
        let fixture = Self {
            dir: TempDir::new().unwrap(),
            trust: Trust::Untrusted,
            tolerance: Tolerance::Strict,
            flag: None,
            sources: SettingSource::ALL.iter().copied().collect(),
            named: [SettingSource::Local].into(),
        };
        fs::create_dir(fixture.path("project")).unwrap();
        for (name, value) in files {
            fixture.write_file(name, &serde_json::to_string_pretty(value).unwrap());
        }
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write_file(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn request(&self) -> SettingsRequest {
        SettingsRequest {
            config_dir: Some(self.path("home/.claude")),
            project_root: self.path("project"),
            local_root: self.path("project"),
            cwd: self.path("project"),
            sources: self.sources.clone(),
            named_sources: self.named.clone(),
            trust: self.trust,
            flag: self.flag.clone(),
            flag_sandbox: None,
            managed_files: vec![self.path(MANAGED)],
            managed: None,
            tolerance: self.tolerance,
            plugin_dir: None,
        }
    }

    fn load(&self) -> Settings {
        Settings::load(self.request()).unwrap()
    }

    fn load_error(&self) -> String {
        Settings::load(self.request()).unwrap_err().to_string()
    }
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

fn allow_rule(rule: &str) -> Value {
    json!({"permissions": {"allow": [rule]}})
}

/// Writes an update and adopts the result.
fn apply_update(settings: &mut Settings, update: &PermissionUpdate) -> Result<UpdateReport, SettingsError> {
    Ok(settings.adopt_written(settings.draft_update(update)?.write()?))
}

fn effective_rules(settings: &Settings) -> Vec<String> {
    settings.effective().rules.iter().map(|rule| format!("{} {}", rule.behavior, rule.text)).collect()
}

fn add_rule(destination: &str, rule: &str) -> PermissionUpdate {
    serde_json::from_value(json!({
        "type": "addRules", "behavior": "allow", "destination": destination, "rules": [{"toolName": rule}],
    }))
    .unwrap()
}

#[test]
fn layers_apply_in_order_with_file_and_line() {
    let mut fixture = Fixture::new(&[
        (USER, allow_rule("User")),
        (PROJECT, json!({"permissions": {"deny": ["Project"], "allow": ["Held"]}})),
        (LOCAL, allow_rule("Local")),
        (MANAGED, allow_rule("Managed")),
    ]);
    fixture.flag = Some(allow_rule("Flag").to_string());
    let settings = fixture.load();
    assert_eq!(
        effective_rules(&settings),
        ["allow Managed", "allow Flag", "allow Local", "deny Project", "allow User"]
    );
    let local = &settings.effective().rules[2];
    assert_eq!(
        (local.file.clone(), local.line, &local.base),
        (Some(fixture.path(LOCAL)), Some(4), &fixture.path("project"))
    );
    let user = &settings.effective().rules[4];
    assert_eq!((user.source, &user.base), (LayerSource::User, &fixture.path("home/.claude")));
    let [warning] = settings.warnings() else { panic!("{:?}", settings.warnings()) };
    assert!(warning.contains("permissions.allow (Held)") && warning.contains(PROJECT), "{warning}");
}

#[test]
fn trusted_project_applies_in_full() {
    let mut fixture = Fixture::new(&[(PROJECT, allow_rule("P"))]);
    fixture.trust = Trust::Full;
    assert_eq!(
        (effective_rules(&fixture.load()), fixture.load().warnings()),
        (vec!["allow P".to_owned()], [].as_slice())
    );
}

#[test]
fn only_requested_sources_are_read() {
    let mut fixture = Fixture::new(&[]);
    assert_eq!(**fixture.load().effective(), EffectiveSettings::default());
    fixture.write_file(USER, "not even json");
    fixture.write_file(PROJECT, r#"{"model": "p"}"#);
    fixture.sources = [SettingSource::Project].into();
    assert_eq!(fixture.load().effective().typed.model.as_deref(), Some("p"));
    fixture.sources = BTreeSet::new();
    assert_eq!(**fixture.load().effective(), EffectiveSettings::default());
}

#[test]
fn unreadable_file_fails_unless_tolerated() {
    for name in [USER, PROJECT, LOCAL] {
        let mut fixture = Fixture::new(&[]);
        fixture.write_file(name, "{\n  \"permissions\": {\"deny\": [\"Bash\"],}\n}");
        let error = fixture.load_error();
        assert!(error.contains(name) && error.contains("line 2"), "{error}");
        fixture.tolerance = Tolerance::Tolerant;
        let warnings = fixture.load().warnings().to_vec();
        assert!(warnings.len() == 1 && warnings[0].contains(name), "{warnings:?}");
    }
    let mut managed = Fixture::new(&[]);
    managed.tolerance = Tolerance::Tolerant;
    managed.write_file(MANAGED, "{");
    assert!(managed.load_error().contains(MANAGED));
}

#[test]
fn skipped_files_of_the_repository_are_reported() {
    let (above, deep) = (".claude/settings.json", "project/.claude/settings.local.json");
    let fixture = Fixture::new(&[(above, allow_rule("A")), (deep, allow_rule("L"))]);
    assert_eq!(fixture.load().warnings(), [""; 0], "no repository");
    fs::create_dir(fixture.path(".git")).unwrap();
    let at_root = SettingsRequest { local_root: fixture.path(""), ..fixture.request() };
    let rows =
        [("for a host", fixture.request(), vec![above]), ("at the terminal", at_root, vec![deep, above])];
    for (name, request, expected) in rows {
        let warnings = Settings::load(request).unwrap().warnings().to_vec();
        let files: Vec<String> =
            expected.iter().map(|file| fixture.path(file).display().to_string()).collect();
        let text =
            format!("Not read, because the session started in another directory: {}.", files.join(", "));
        assert!(warnings.iter().any(|warning| warning.starts_with(&text)), "{name}: {warnings:?}");
    }
    let mut own = Fixture::new(&[(above, allow_rule("A"))]);
    fs::create_dir(own.path(".git")).unwrap();
    own.sources = [SettingSource::User].into();
    assert_eq!(own.load().warnings(), [""; 0], "the source is not requested");
}

#[test]
fn invalid_value_is_reported_with_file_key_and_line() {
    let mut fixture = Fixture::new(&[]);
    fixture.write_file(USER, "{\n  \"model\": 5,\n  \"permissions\": {\n    \"deny\": \"Bash\"\n  }\n}");
    fixture.write_file(PROJECT, "{\"permissions\": {\"ask\": [1]}}");
    let error = fixture.load_error();
    for part in
        [USER, "line 4: permissions.deny must be a list of strings", PROJECT, "line 1: permissions.ask.0"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    fixture.tolerance = Tolerance::Tolerant;
    let settings = fixture.load();
    assert_eq!((settings.warnings().len(), effective_rules(&settings).len()), (2, 0));
    assert!(settings.warnings()[0].contains("line 2: model must be a string"), "{:?}", settings.warnings());
}

#[test]
fn invalid_hooks_of_untrusted_project_only_warn() {
    let mut fixture = Fixture::new(&[(PROJECT, json!({"hooks": {"Stop": 5}}))]);
    assert_eq!(fixture.load().warnings().len(), 1);
    fixture.trust = Trust::Full;
    assert!(fixture.load_error().contains("hooks.Stop must be a list"));
}

#[test]
fn local_file_from_the_repository_counts_as_projects() {
    let mut fixture = Fixture::new(&[(LOCAL, allow_rule("L"))]);
    assert_eq!(effective_rules(&fixture.load()), ["allow L"], "the host asked for it by name");
    fixture.named = BTreeSet::new();
    assert_eq!(
        (effective_rules(&fixture.load()).len(), fixture.load().warnings().len()),
        (0, 1),
        "neither the host nor a record vouches for it"
    );
    fixture.trust = Trust::Limited;
    assert_eq!(effective_rules(&fixture.load()), ["allow L"], "the machine is disposable");
    (fixture.trust, fixture.named) = (Trust::Untrusted, [SettingSource::Local].into());

    fs::create_dir(fixture.path("project/.git")).unwrap();
    fs::write(fixture.path("project/.git/index"), "not an index").unwrap();
    assert_eq!((effective_rules(&fixture.load()).len(), fixture.load().warnings().len()), (0, 1));
    fs::remove_dir_all(fixture.path("project/.git")).unwrap();

    fs::rename(fixture.path(LOCAL), fixture.path("elsewhere.json")).unwrap();
    symlink(fixture.path("elsewhere.json"), fixture.path(LOCAL)).unwrap();
    assert_eq!((effective_rules(&fixture.load()).len(), fixture.load().warnings().len()), (0, 1));
    fs::remove_file(fixture.path(LOCAL)).unwrap();

    fs::remove_dir(fixture.path("project/.claude")).unwrap();
    fixture.write_file("shared/settings.local.json", &allow_rule("S").to_string());
    symlink("../shared", fixture.path("project/.claude")).unwrap();
    assert_eq!((effective_rules(&fixture.load()).len(), fixture.load().warnings().len()), (0, 1));
}

#[test]
fn host_settings_can_be_a_file() {
    let mut fixture = Fixture::new(&[("other/flags.json", allow_rule("F"))]);
    fixture.flag = Some("../other/flags.json".into());
    let settings = fixture.load();
    let rule = &settings.effective().rules[0];
    assert_eq!((rule.source, rule.line), (LayerSource::Flag, Some(4)));
    assert_eq!(rule.base.canonicalize().unwrap(), fixture.path("other"));
    fixture.flag = Some("none.json".into());
    assert!(fixture.load_error().contains("no such file"), "{}", fixture.load_error());
    fixture.flag = Some("{\"a\":".into());
    assert!(fixture.load_error().contains("--settings"), "{}", fixture.load_error());
}

#[test]
fn host_changes_its_layer_during_the_session() {
    let mut fixture = Fixture::new(&[(USER, json!({"model": "u"}))]);
    fixture.flag = Some(json!({"model": "f", "permissions": {"allow": ["A"], "deny": ["D"]}}).to_string());
    let mut settings = fixture.load();
    let model = |settings: &Settings| settings.effective().typed.model.clone().unwrap();
    assert_eq!(model(&settings), "f");
    let changed = settings.apply_host_changes(map(json!({"model": "g"}))).unwrap();
    assert_eq!(
        (model(&settings).as_str(), effective_rules(&settings).len(), changed),
        ("g", 2, [LayerSource::Flag].into())
    );
    settings.apply_host_changes(map(json!({"model": null, "permissions": {"deny": ["E"]}}))).unwrap();
    // Allow rules from the start are replaced; deny rules remain.
    assert_eq!(
        (model(&settings).as_str(), effective_rules(&settings).join(", ").as_str()),
        ("u", "deny E, deny D")
    );
    let before = settings.effective().clone();
    assert!(settings.apply_host_changes(map(json!({"model": "h", "permissions": {"deny": 5}}))).is_err());
    assert_eq!(settings.effective(), &before);
    fixture.write_file(USER, "broken meanwhile");
    settings.apply_host_changes(map(json!({"model": "i"}))).unwrap();
    assert_eq!(model(&settings), "i");
}

#[test]
fn update_is_written_and_in_force() {
    let fixture = Fixture::new(&[]);
    let mut settings = fixture.load();
    for (destination, name) in [("localSettings", LOCAL), ("userSettings", USER)] {
        let updated = apply_update(&mut settings, &add_rule(destination, destination)).unwrap();
        let expected = (&fixture.path(name), true, ChangeStatus::InForce);
        assert_eq!((&updated.file, updated.changed, updated.status), expected);
        let again = apply_update(&mut settings, &add_rule(destination, destination)).unwrap();
        assert_eq!((again.changed, again.status), (false, ChangeStatus::InForce));
    }
    assert_eq!(effective_rules(&settings), ["allow localSettings", "allow userSettings"]);
    let project = apply_update(&mut settings, &add_rule("projectSettings", "P")).unwrap();
    assert_eq!(
        (project.changed, project.status, effective_rules(&settings).len()),
        (true, ChangeStatus::NotTrusted, 2)
    );
    let plan = json!({"type": "setMode", "mode": "plan", "destination": "projectSettings"});
    let plan = apply_update(&mut settings, &serde_json::from_value(plan).unwrap()).unwrap();
    assert_eq!((plan.status, plan.sources), (ChangeStatus::InForce, [LayerSource::Project].into()));
    let mut unread =
        Settings::load(SettingsRequest { sources: BTreeSet::new(), ..fixture.request() }).unwrap();
    let updated = apply_update(&mut unread, &add_rule("localSettings", "X")).unwrap();
    assert_eq!((updated.changed, updated.status), (true, ChangeStatus::NotRead));
}

#[test]
fn directories_are_stored_resolved() {
    let fixture = Fixture::new(&[]);
    fs::create_dir(fixture.path("real")).unwrap();
    symlink("../real", fixture.path("project/link")).unwrap();
    let mut settings = fixture.load();
    let directories = |kind: &str| -> PermissionUpdate {
        let named = [fixture.path("project/link")];
        serde_json::from_value(json!({"type": kind, "directories": named, "destination": "localSettings"}))
            .unwrap()
    };
    apply_update(&mut settings, &directories("addDirectories")).unwrap();
    let real = AdditionalDirectory {
        path: fixture.path("real").to_str().unwrap().into(),
        source: LayerSource::Local,
    };
    assert_eq!(settings.effective().directories, [real]);
    apply_update(&mut settings, &directories("removeDirectories")).unwrap();
    assert_eq!(settings.effective().directories, []);
}

#[test]
fn forbidden_updates_are_rejected() {
    let fixture = Fixture::new(&[]);
    let mut settings = fixture.load();
    let bypass = json!({"type": "setMode", "mode": "bypassPermissions", "destination": "userSettings"});
    let replace = json!({
        "type": "replaceRules", "behavior": "deny", "destination": "userSettings", "rules": [{"toolName": "no rule"}],
    });
    for wanted in [bypass, replace] {
        let wanted = serde_json::from_value(wanted).unwrap();
        assert!(matches!(settings.draft_update(&wanted), Err(SettingsError::NotAllowed(_))));
    }
    assert!(matches!(settings.draft_update(&add_rule("session", "A")), Err(SettingsError::NotAllowed(_))));
    let skipped = apply_update(&mut settings, &add_rule("userSettings", "no rule")).unwrap();
    assert_eq!((skipped.changed, skipped.skipped.len(), fixture.path("home").exists()), (false, 1, false));

    fixture.write_file(MANAGED, &json!({"allowManagedPermissionRulesOnly": true}).to_string());
    let settings = fixture.load();
    assert!(matches!(
        settings.draft_update(&add_rule("userSettings", "A")),
        Err(SettingsError::NotAllowed(_))
    ));
    assert!(!fixture.path(USER).exists());
    let without_home =
        Settings::load(SettingsRequest { config_dir: None, managed_files: vec![], ..fixture.request() })
            .unwrap();
    assert!(
        without_home.draft_update(&add_rule("userSettings", "A")).unwrap_err().to_string().contains("HOME")
    );
}

#[test]
fn host_may_write_few_values() {
    let fixture = Fixture::new(&[(LOCAL, json!({"x": [1]}))]);
    let mut settings = fixture.load();
    let update =
        |source: &str, settings: Value| UpdateSettings { source: source.into(), settings: map(settings) };
    let wanted = update("localSettings", json!({"outputStyle": "brief"}));
    for draft in settings.draft_values(&wanted).unwrap() {
        settings.adopt_written(draft.write().unwrap());
    }
    assert_eq!(settings.effective().typed.output_style.as_deref(), Some("brief"));
    let rows = [
        update("localSettings", json!({"hooks": {}})),
        update("localSettings", json!({"outputStyle": null})),
        update("userSettings", json!({"outputStyle": "brief"})),
        update("projectSettings", json!({"outputStyle": "brief"})),
    ];
    for update in rows {
        assert!(settings.draft_values(&update).is_err(), "{update:?}");
    }
    let unread = Settings::load(SettingsRequest { sources: BTreeSet::new(), ..fixture.request() }).unwrap();
    assert!(unread.draft_values(&update("userSettings", json!({"effortLevel": "high"}))).is_err());
}

#[test]
fn user_sets_and_removes_entries() {
    let fixture = Fixture::new(&[]);
    let text = "{\n  \"odd\":   [1,2],\n  \"env\": {\"A\": \"1\"}\n}\n";
    fixture.write_file(USER, text);
    let mut settings = fixture.load();
    let path = |key: &str| key.split('.').map(str::to_owned).collect::<Vec<_>>();
    let mut write = |key: &str, value: Option<Value>| {
        let draft = settings.draft_entry(SettingSource::User, path(key), value)?;
        Ok::<_, SettingsError>(settings.adopt_written(draft.write()?).changed)
    };
    assert_eq!(write("model", Some(json!("opus"))), Ok(true));
    assert_eq!(write("env.B", Some(json!("2"))), Ok(true));
    assert_eq!(write("env.B", Some(json!("2"))), Ok(false));
    assert_eq!(write("env.A", None), Ok(true));
    assert_eq!(write("env.A", None), Ok(false));
    for (key, value, words) in [
        ("model", json!(4), "The setting model"),
        ("permissions.deny", json!("Bash"), "permissions.deny"),
        ("permissions.defaultMode", json!("yolo"), "permissions.defaultMode"),
        ("permissions.defaultMode", json!("bypassPermissions"), "never saved to a file"),
        ("odd.deeper", json!(1), "\"odd\" is not an object"),
    ] {
        let error = write(key, Some(value)).unwrap_err().to_string();
        assert!(error.contains(words), "{key}: {error}");
    }
    let written = fs::read_to_string(fixture.path(USER)).unwrap();
    assert!(written.starts_with("{\n  \"odd\":   [1,2],\n"), "the rest stays as it is: {written}");
    let values: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(values, json!({"odd": [1, 2], "env": {"B": "2"}, "model": "opus"}));
}

#[test]
fn host_can_supply_managed_settings() {
    let fixture = Fixture::new(&[(USER, allow_rule("U"))]);
    let managed = map(json!({"allowManagedPermissionRulesOnly": true, "permissions": {"deny": ["X"]}}));
    let settings = Settings::load(SettingsRequest { managed: Some(managed), ..fixture.request() }).unwrap();
    assert_eq!(effective_rules(&settings), ["deny X"]);
    let report = settings.report(Map::new());
    let sources: Vec<&str> = report.sources.iter().map(|source| source["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["userSettings", "policySettings"]);
}
