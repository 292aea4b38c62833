use super::*;

fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

#[test]
fn configuration_directory_follows_precedence() {
    let rows: [(&[_], _); 5] = [
        (&[("WHIMBREL_CONFIG_DIR", "/w"), ("CLAUDE_CONFIG_DIR", "/c"), ("HOME", "/h")], Some("/w")),
        (&[("CLAUDE_CONFIG_DIR", "/c"), ("HOME", "/h")], Some("/c")),
        (&[("CLAUDE_CONFIG_DIR", ""), ("HOME", "/h")], Some("/h/.claude")),
        (&[("HOME", "/h")], Some("/h/.claude")),
        (&[], None),
    ];
    for (given, expected) in rows {
        assert_eq!(config_dir(&env(given)).as_deref(), expected.map(Path::new), "{given:?}");
    }
}

#[test]
fn host_settings_are_json_or_a_file() {
    let cwd = Path::new("/there");
    assert_eq!(host_settings_file(" {\"a\":1}", cwd), None);
    assert_eq!(host_settings_file("s.json", cwd).unwrap(), Path::new("/there/s.json"));
    assert_eq!(host_settings_file("/s.json", cwd).unwrap(), Path::new("/s.json"));
}

#[test]
fn requested_files_are_listed_weakest_first() {
    let all = SettingsRequest {
        config_dir: Some("/home/.claude".into()),
        project_root: "/p".into(),
        local_root: "/p".into(),
        cwd: "/p/sub".into(),
        sources: [SettingSource::Local, SettingSource::User, SettingSource::Project].into(),
        ..SettingsRequest::default()
    };
    let row = |source, file: &str, base: &str| (source, PathBuf::from(file), PathBuf::from(base));
    let user = row(LayerSource::User, "/home/.claude/settings.json", "/home/.claude");
    let project = row(LayerSource::Project, "/p/.claude/settings.json", "/p");
    let local = row(LayerSource::Local, "/p/.claude/settings.local.json", "/p/sub");
    assert_eq!(all.setting_files(), [user, project.clone(), local]);
    assert_eq!(
        SettingsRequest { sources: [SettingSource::Project].into(), ..all.clone() }.setting_files(),
        [project]
    );
    assert_eq!(SettingsRequest { sources: BTreeSet::new(), ..all.clone() }.setting_files(), []);
    assert_eq!(SettingsRequest { config_dir: None, ..all }.setting_files().len(), 2);
}

#[test]
fn project_in_home_directory_is_read_as_users() {
    let at_home = SettingsRequest {
        config_dir: Some("/home/.claude".into()),
        project_root: "/home".into(),
        sources: [SettingSource::User, SettingSource::Project].into(),
        ..SettingsRequest::default()
    };
    let sources: Vec<LayerSource> = at_home.setting_files().into_iter().map(|(source, ..)| source).collect();
    assert_eq!(sources, [LayerSource::User]);
}

#[test]
fn later_managed_parts_are_stronger() {
    let dir = tempfile::tempdir().unwrap();
    let parts = dir.path().join("managed-settings.d");
    fs::create_dir(&parts).unwrap();
    for name in ["10-a.json", "20-b.json", "notes.txt", ".hidden.json"] {
        fs::write(parts.join(name), "{}").unwrap();
    }
    let main = dir.path().join("managed-settings.json");
    let expected = [parts.join("20-b.json"), parts.join("10-a.json"), main.clone()];
    assert_eq!(managed_files_in(dir.path()).unwrap(), expected);
    fs::remove_dir_all(&parts).unwrap();
    assert_eq!(managed_files_in(dir.path()).unwrap(), [main]);
    std::os::unix::fs::symlink("managed-settings.d", &parts).unwrap();
    assert!(managed_files_in(dir.path()).unwrap_err().to_string().contains("managed-settings.d"));
}
