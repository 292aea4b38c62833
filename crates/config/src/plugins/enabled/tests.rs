//! Tests of plugins that settings enable.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use whimbrel_wire::options::{PluginConfig, SettingSource};

use super::*;
use crate::plugins::Plugins;
use crate::settings::{SettingsRequest, Trust};

/// A home with installed plugins, and a project.
struct TestHome {
    root: PathBuf,
    _dir: TempDir,
}

impl TestHome {
    /// `fmt@shop` is installed for the user, `lint@shop` for another project.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let home = Self { root, _dir: dir };
        home.write("plugins/cache/shop/fmt/1.0/commands/go.md", "Go");
        home.write("plugins/cache/shop/lint/1.0/commands/go.md", "Go");
        let record = |name: &str| {
            json!({"scope": "user", "version": "1.0",
                "installPath": home.root.join("plugins/cache/shop").join(name).join("1.0")})
        };
        let mut lint = record("lint");
        lint["scope"] = "project".into();
        lint["projectPath"] = "/elsewhere".into();
        let records = json!({"version": 2, "plugins": {"fmt@shop": [record("fmt")], "lint@shop": [lint], "gone@shop": [record("gone")]}});
        home.write("plugins/installed_plugins.json", &records.to_string());
        home.write("project/readme", "");
        home
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn request(&self, user: &Value) -> SettingsRequest {
        SettingsRequest {
            flag: Some(user.to_string()),
            project_root: self.root.join("project"),
            local_root: self.root.join("project"),
            cwd: self.root.join("project"),
            sources: [SettingSource::Project].into(),
            ..SettingsRequest::default()
        }
    }

    fn load(&self, request: SettingsRequest, configs: &[PluginConfig]) -> (Vec<String>, Vec<PluginError>) {
        let settings = Settings::load(request).unwrap();
        let enabled =
            EnabledPlugins::from_settings(&settings, Some(PluginDir::new(self.root.join("plugins"))));
        let plugins = Plugins::load(configs, &enabled, &self.root);
        let shown = |plugin: crate::plugins::InitPlugin| {
            format!("{} {} {}", plugin.name, plugin.version.unwrap_or_default(), plugin.path)
        };
        (plugins.init_plugins().into_iter().map(shown).collect(), plugins.errors().to_vec())
    }

    fn cache_path(&self, name: &str) -> String {
        self.root.join("plugins/cache/shop").join(name).join("1.0").display().to_string()
    }
}

fn on(ids: &[&str]) -> Value {
    let entries: Map<String, Value> = ids.iter().map(|id| ((*id).to_owned(), Value::Bool(true))).collect();
    json!({ENABLED_KEY: entries})
}

#[test]
fn installed_and_enabled_plugins_are_loaded_and_others_reported() {
    let home = TestHome::new();
    let fmt = format!("fmt 1.0 {}", home.cache_path("fmt"));
    assert_eq!(home.load(home.request(&json!({})), &[]), (vec![], vec![]));
    assert_eq!(home.load(home.request(&json!({ENABLED_KEY: {"fmt@shop": false}})), &[]), (vec![], vec![]));
    let wanted = ["fmt@shop", "lint@shop", "gone@shop", "none@shop", "../x@shop", "fmt@inline"];
    let (loaded, errors) = home.load(home.request(&on(&wanted)), &[]);
    assert_eq!(loaded, [fmt]);
    let causes = [
        ("lint@shop", "plugin-not-found", "not installed. Run: whimbrel plugin install lint@shop"),
        ("gone@shop", "plugin-not-found", "does not exist"),
        ("none@shop", "plugin-not-found", "not installed"),
        ("../x@shop", "generic-error", "not valid"),
        ("fmt@inline", "generic-error", "not a marketplace"),
    ];
    assert_eq!(errors.len(), causes.len(), "{errors:?}");
    for (error, (id, kind, cause)) in errors.iter().zip(causes) {
        assert_eq!((error.plugin.as_str(), error.kind.as_str()), (id, kind), "{error:?}");
        assert!(error.message.contains(cause), "{error:?}");
    }
}

#[test]
fn unreadable_records_are_reported() {
    let home = TestHome::new();
    home.write("plugins/installed_plugins.json", "{");
    let (loaded, errors) = home.load(home.request(&on(&["fmt@shop"])), &[]);
    assert_eq!(loaded, Vec::<String>::new());
    assert!(matches!(errors.as_slice(), [error] if error.message.contains("cannot be read")), "{errors:?}");
}

#[test]
fn a_project_enables_plugins_only_if_it_is_trusted() {
    let home = TestHome::new();
    home.write("project/.claude/settings.json", &on(&["fmt@shop"]).to_string());
    for (trust, expected) in [(Trust::Untrusted, 0), (Trust::Limited, 0), (Trust::Full, 1)] {
        let request = SettingsRequest { trust, ..home.request(&json!({})) };
        assert_eq!(home.load(request, &[]).0.len(), expected, "{trust:?}");
    }
}

#[test]
fn the_host_replaces_a_plugin_and_an_administrator_locks_it() {
    let home = TestHome::new();
    home.write("dev/fmt/commands/go.md", "Go");
    let configs = [PluginConfig::local("dev/fmt")];
    let (loaded, errors) = home.load(home.request(&on(&["fmt@shop"])), &configs);
    assert_eq!(loaded, [format!("fmt  {}", home.root.join("dev/fmt").display())]);
    assert_eq!(errors, []);
    for (is_enabled, expected) in [(true, 1), (false, 0)] {
        let managed = json!({ENABLED_KEY: {"fmt@shop": is_enabled}});
        let request =
            SettingsRequest { managed: managed.as_object().cloned(), ..home.request(&on(&["fmt@shop"])) };
        let (loaded, errors) = home.load(request, &configs);
        assert_eq!(loaded.len(), expected, "{loaded:?}");
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        let lock = json!({"plugin_enabled": is_enabled, "name": "fmt", "marketplace": "shop"});
        assert_eq!((error.plugin.as_str(), &error.managed_lock), ("inline[0]", &Some(lock)));
    }
}

#[test]
fn an_administrator_restricts_marketplaces() {
    let home = TestHome::new();
    let managed = json!({"strictKnownMarketplaces": [{"source": "github", "repo": "acme/shop"}]});
    let load = || {
        let request =
            SettingsRequest { managed: managed.as_object().cloned(), ..home.request(&on(&["fmt@shop"])) };
        home.load(request, &[])
    };
    assert!(matches!(load().1.as_slice(), [error] if error.message.contains("unknown")));
    for (repo, expected) in [("acme/shop", 1), ("mallory/shop", 0)] {
        let known = json!({"shop": {"source": {"source": "github", "repo": repo}, "installLocation": "/x"}});
        home.write("plugins/known_marketplaces.json", &known.to_string());
        assert_eq!(load().0.len(), expected, "{repo}");
    }
}

#[test]
fn the_entry_of_the_marketplace_describes_the_plugin() {
    let home = TestHome::new();
    let root = home.cache_path("fmt");
    let known = |source: Value| {
        let known = json!({"shop": {"source": source, "installLocation": home.root.join("shop")}});
        home.write("plugins/known_marketplaces.json", &known.to_string());
    };
    let marketplace = json!({"name": "shop", "plugins": [{"name": "fmt", "source": "./x", "version": "9"}]});
    for dir in ["shop", "plugins/marketplaces/shop"] {
        home.write(&format!("{dir}/{MARKETPLACE_PATH}"), &marketplace.to_string());
    }
    let load = || home.load(home.request(&on(&["fmt@shop"])), &[]).0;
    known(json!({"source": "directory", "path": home.root.join("shop")}));
    assert_eq!(load(), [format!("fmt 1.0 {root}")], "a directory that others may change does not count");
    known(json!({"source": "git", "url": "https://x.test/shop.git"}));
    assert_eq!(load(), [format!("fmt 9 {root}")]);
    let entry = json!({"name": "other", "version": "3"});
    home.write(&format!("plugins/cache/shop/fmt/1.0/{ENTRY_PATH}"), &entry.to_string());
    assert_eq!(load(), [format!("other 3 {root}")], "the entry at the time of the installation comes first");
    let entry = json!({"name": "fmt", "strict": false, "commands": "./x"});
    home.write(&format!("plugins/cache/shop/fmt/1.0/{ENTRY_PATH}"), &entry.to_string());
    home.write(&format!("plugins/cache/shop/fmt/1.0/{}", load::MANIFEST_PATH), r#"{"name": "fmt"}"#);
    let (loaded, errors) = home.load(home.request(&on(&["fmt@shop"])), &[]);
    assert_eq!(loaded, Vec::<String>::new());
    assert!(matches!(errors.as_slice(), [error] if error.message.contains("strict")), "{errors:?}");
}
