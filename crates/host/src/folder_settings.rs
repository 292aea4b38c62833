//! What the settings of a folder would do: shown before a person trusts it. Only names are read; nothing is run.

use std::io::Read as _;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value as Json};

/// Files of a folder that count only if it is trusted.
const SETTINGS_FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
const SERVERS_FILE: &str = ".mcp.json";

/// A larger file is named, but not read.
const MAX_FILE: u64 = 1024 * 1024;

/// What trust in a folder adds.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct FolderSettings {
    files: Vec<String>,
    /// Commands that run by themselves, with their event.
    hooks: Vec<String>,
    /// Servers that are started or connected to.
    servers: Vec<String>,
    /// Rules that allow calls without asking.
    allow: Vec<String>,
    /// Names of other settings.
    other: Vec<String>,
}

impl FolderSettings {
    pub(crate) fn read(folder: &Path) -> Self {
        let mut found = Self::default();
        for name in SETTINGS_FILES {
            if let Some(settings) = found.read_file(folder, name) {
                found.add_settings(&settings);
            }
        }
        if let Some(servers) = found.read_file(folder, SERVERS_FILE) {
            found.add_servers(&servers);
        }
        found
    }

    /// The members of a file; empty if it is damaged.
    fn read_file(&mut self, folder: &Path, name: &str) -> Option<Map<String, Json>> {
        let file = std::fs::File::open(folder.join(name)).ok()?;
        self.files.push(name.to_owned());
        let mut text = String::new();
        file.take(MAX_FILE).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn add_settings(&mut self, settings: &Map<String, Json>) {
        for (key, value) in settings {
            match key.as_str() {
                "$schema" => {}
                "hooks" => self.add_hooks(value),
                "permissions" => {
                    self.allow.extend(texts(&value["allow"]));
                    let others = value.as_object().into_iter().flatten().filter(|(key, _)| *key != "allow");
                    self.other.extend(others.map(|(key, _)| format!("permissions.{key}")));
                }
                key => self.other.push(key.to_owned()),
            }
        }
    }

    fn add_hooks(&mut self, events: &Json) {
        for (event, groups) in events.as_object().into_iter().flatten() {
            let hooks = groups.as_array().into_iter().flatten();
            let hooks = hooks.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
            self.hooks.extend(hooks.map(|hook| {
                let what = ["command", "url", "prompt"].into_iter().find_map(|field| hook[field].as_str());
                format!("{event}: {}", what.unwrap_or("a hook"))
            }));
        }
    }

    fn add_servers(&mut self, file: &Map<String, Json>) {
        let servers = file.get("mcpServers").and_then(Json::as_object).into_iter().flatten();
        self.servers.extend(servers.map(|(name, server)| {
            let what = server["url"].as_str().or(server["command"].as_str()).unwrap_or_default();
            format!("{name}: {what}")
        }));
    }
}

fn texts(list: &Json) -> impl Iterator<Item = String> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_folder_are_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".claude")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            ".claude/settings.json",
            r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "beep"}]}]},
                "permissions": {"allow": ["Bash(ls)"], "deny": ["Read(x)"]}, "model": "haiku"}"#,
        );
        write(".mcp.json", r#"{"mcpServers": {"files": {"command": "serve-files"}}}"#);
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let expected = FolderSettings {
            files: texts(&[".claude/settings.json", ".mcp.json"]),
            hooks: texts(&["Stop: beep"]),
            servers: texts(&["files: serve-files"]),
            allow: texts(&["Bash(ls)"]),
            other: texts(&["permissions.deny", "model"]),
        };
        assert_eq!(sorted(FolderSettings::read(folder.path())), sorted(expected));
        write(".claude/settings.json", "damaged");
        assert_eq!(FolderSettings::read(folder.path()).hooks, [""; 0]);
    }

    /// The order of members is that of the parser.
    fn sorted(mut settings: FolderSettings) -> FolderSettings {
        settings.other.sort();
        settings
    }
}
