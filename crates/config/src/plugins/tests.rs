//! Tests of loading plugins.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::*;

struct TestDir {
    root: PathBuf,
    _dir: tempfile::TempDir,
}

fn test_dir(files: &[(&str, &str)]) -> TestDir {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    for (path, text) in files {
        let path = top.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    TestDir { root: top, _dir: dir }
}

fn load(dir: &TestDir, paths: &[&str]) -> Plugins {
    let configs: Vec<PluginConfig> = paths.iter().map(|path| PluginConfig::local(*path)).collect();
    Plugins::load(&configs, &EnabledPlugins::default(), &dir.root)
}

const TEST_MANIFEST: &str = r#"{"name": "tools", "version": "1.2.3", "commands": ["./extra/one.md"]}"#;

#[test]
fn a_plugin_has_default_and_manifest_parts() {
    let hooks = json!({"description": "d", "hooks": {"Stop": [{"hooks": [
        {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/stop.sh"}]}]}});
    let servers = json!({"mcpServers": {
        "files": {"command": "${CLAUDE_PLUGIN_ROOT}/serve", "args": ["${CLAUDE_PLUGIN_ROOT}"]},
        "bad": {"type": "strange"}}});
    let dir = test_dir(&[
        ("p/.claude-plugin/plugin.json", TEST_MANIFEST),
        ("p/commands/go.md", "Go"),
        ("p/extra/one.md", "One"),
        ("p/agents/helper.md", "Help"),
        ("p/hooks/hooks.json", &hooks.to_string()),
        ("p/.mcp.json", &servers.to_string()),
    ]);
    let plugins = load(&dir, &["p"]);
    let root = dir.root.join("p");
    let [plugin] = plugins.all() else { panic!("{:?}", plugins.errors()) };
    assert_eq!(
        (plugin.name.as_str(), plugin.version.as_deref(), &plugin.root),
        ("tools", Some("1.2.3"), &root)
    );
    assert_eq!(plugin.commands, [root.join("commands"), root.join("extra/one.md")]);
    assert_eq!(plugins.agent_dirs(), [PluginAgents { prefix: "tools".into(), path: root.join("agents") }]);
    let commands: Vec<String> = plugins
        .hooks()
        .map(|(_, hook)| match &hook.entry.action {
            crate::settings::HookActionConfig::Command(command) => command.command.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(commands, [format!("{}/stop.sh", root.display())]);
    let entries = plugins.mcp_servers();
    let Some(McpServerConfig::Stdio(server)) = entries.get("plugin:tools:files") else {
        panic!("{entries:?}")
    };
    assert_eq!(server.command, root.join("serve").display().to_string());
    assert_eq!(server.args, [root.display().to_string()]);
    assert_eq!(server.env[ROOT_VARIABLE], root.display().to_string());
    let [error] = plugins.errors() else { panic!("{:?}", plugins.errors()) };
    assert_eq!((error.plugin.as_str(), &error.path), ("tools", &None));
    assert!(error.message.contains("the server bad") && error.message.contains("strange"), "{error:?}");
}

#[test]
fn a_broken_plugin_is_reported_and_others_are_loaded() {
    let dir = test_dir(&[
        ("bad/.claude-plugin/plugin.json", "{nope"),
        ("bare/commands/x.md", "x"),
        ("twin/bare/commands/x.md", "x"),
        ("empty/readme.txt", ""),
        ("file", ""),
        (
            "named/.claude-plugin/plugin.json",
            r#"{"name": "named", "skills": ["../bare", "./gone"], "hooks": "x.json"}"#,
        ),
        ("named/x.json", r#"{"Stop": [{}], "Strange": []}"#),
    ]);
    let plugins = load(&dir, &["bad", "bare", "gone", "empty", "file", "twin/bare", "named"]);
    let names: Vec<&str> = plugins.all().iter().map(|plugin| plugin.name.as_str()).collect();
    assert_eq!(names, ["bare", "named"]);
    let rows = [
        ("inline[0]", "manifest-validation-error", "not valid JSON"),
        ("inline[2]", "path-not-found", "directory does not exist"),
        ("inline[3]", "generic-error", "neither"),
        ("inline[4]", "generic-error", "not a directory"),
        ("inline[5]", "generic-error", "same name"),
        ("named", "path-not-found", "outside the plugin"),
        ("named", "path-not-found", "does not exist"),
        ("named", "hook-load-failed", "/hooks/Stop/0"),
        ("named", "hook-load-failed", "/hooks/Strange"),
    ];
    let found: Vec<String> = plugins.errors().iter().map(|error| format!("{error:?}")).collect();
    assert_eq!(found.len(), rows.len(), "{found:#?}");
    for ((name, kind, text), error) in rows.iter().zip(plugins.errors()) {
        assert_eq!((error.plugin.as_str(), error.kind.as_str()), (*name, *kind), "{error:?}");
        assert!(error.message.contains(text), "{error:?}");
        assert_eq!(error.path.is_some(), name.starts_with("inline"), "{error:?}");
    }
}

#[test]
fn mcp_discovery_can_be_skipped() {
    let dir =
        test_dir(&[("p/commands/x.md", "x"), ("p/.mcp.json", r#"{"mcpServers": {"a": {"command": "b"}}}"#)]);
    let config = PluginConfig { skip_mcp_discovery: true, ..PluginConfig::local("p") };
    let plugins = Plugins::load(std::slice::from_ref(&config), &EnabledPlugins::default(), &dir.root);
    assert!(plugins.mcp_servers().is_empty() && plugins.errors().is_empty());
    assert!(plugins.contains_all(&[config], &dir.root));
    assert!(!plugins.contains_all(&[PluginConfig::local("q")], &dir.root));
}

#[test]
fn hooks_of_an_entry_replace_those_of_the_manifest() {
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let manifest = json!({"name": "tools", "hooks": {"Stop": hook("manifest"), "SessionEnd": hook("end")}});
    let dir = test_dir(&[
        ("p/.claude-plugin/plugin.json", &manifest.to_string()),
        ("p/hooks/hooks.json", &json!({"Stop": hook("file")}).to_string()),
    ]);
    let entry = json!({"name": "tools", "source": "./p", "hooks": {"Stop": hook("entry")}});
    let shop = json!({"name": "shop", "plugins": [entry]}).to_string();
    let shop = marketplace::Marketplace::parse(&shop).unwrap();
    let checked = check_plugin(&dir.root.join("p"), shop.find("tools")).unwrap();
    assert_eq!(checked.errors, Vec::<String>::new());
    let mut commands: Vec<String> = checked
        .plugin
        .hooks
        .iter()
        .map(|hook| match &hook.entry.action {
            crate::settings::HookActionConfig::Command(command) => command.command.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    commands.sort();
    assert_eq!(commands, ["end", "entry", "file"]);
}
