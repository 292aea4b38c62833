//! MCP servers of a session: those of the user, approved ones of the project, and those of plugins and the host. Later
//! ones replace earlier ones. With `--strict-mcp-config` only the host's are used and no file is read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::plugins::Plugins;
use whimbrel_config::settings::user_mcp_servers;
use whimbrel_config::settings::{Settings, Trust};
use whimbrel_mcp::config::parse_servers;
use whimbrel_mcp::{ProjectApproval, ServerConfigs, ServerOrigin, ServerPolicy};
use whimbrel_os::files;
use whimbrel_wire::options::{Options, SettingSource};

/// File with the project's servers.
pub(crate) const PROJECT_FILE: &str = ".mcp.json";

pub(crate) const MAX_FILE_SIZE: u64 = 4 << 20;

/// Collects the servers. Reads files.
pub(super) fn resolve_servers(
    options: &Options,
    env: &BTreeMap<String, String>,
    settings: &Settings,
    locations: &ConfigLocations,
    plugins: &Plugins,
) -> ServerConfigs {
    let variable = |name: &str| env.get(name).cloned();
    let mut servers = ServerConfigs {
        policy: ServerPolicy::from_settings(&settings.effective().values),
        ..ServerConfigs::default()
    };
    if !options.strict_mcp_config {
        let user_servers =
            match locations.includes(SettingSource::User) || locations.includes(SettingSource::Local) {
                true => user_mcp_servers::user_servers(env, &locations.working_dir),
                false => user_mcp_servers::UserMcpServers::default(),
            };
        if locations.includes(SettingSource::User) {
            servers.add_entries(ServerOrigin::User, user_servers.user, &variable);
        }
        if locations.includes(SettingSource::Project) {
            add_project_servers(&mut servers, settings, locations, &variable);
        }
        if locations.includes(SettingSource::Local) {
            servers.add_entries(ServerOrigin::Local, user_servers.local, &variable);
        }
        servers.add_configs(ServerOrigin::Dynamic, &plugins.mcp_servers(), &variable);
    }
    let configured = servers.entries.clone();
    servers.add_configs(ServerOrigin::Dynamic, &options.mcp_servers, &variable);
    let replaced: Vec<&str> = (configured.iter())
        .filter(|(name, entry)| servers.entries.get(*name).is_some_and(|now| now.config != entry.config))
        .map(|(name, _)| name.as_str())
        .collect();
    if !replaced.is_empty() {
        let text = format!(
            "MCP servers of the host replace configured ones of the same name: {}.",
            replaced.join(", ")
        );
        servers.warnings.push(text);
    }
    for (name, error) in &options.invalid_mcp_servers {
        servers.add_invalid(ServerOrigin::Dynamic, name, error);
    }
    servers
}

/// Adds the servers of the project's files; those of the nearest directory last.
fn add_project_servers(
    servers: &mut ServerConfigs,
    settings: &Settings,
    locations: &ConfigLocations,
    variable: &dyn Fn(&str) -> Option<String>,
) {
    let approval = project_approval(settings);
    let mut unknown = Vec::new();
    for file in project_files(locations) {
        let text = match files::read(&file, MAX_FILE_SIZE) {
            Ok((bytes, _)) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                servers.warnings.push(format!("{} cannot be read: {error}.", file.display()));
                continue;
            }
        };
        servers.add_project_json(&file.display().to_string(), &text, &approval, variable);
        let entries = parse_servers(&text).unwrap_or_default();
        let is_undecided = |name: &String| !approval.approves(name) && !approval.disabled.contains(name);
        unknown.extend(entries.into_iter().map(|(name, _)| name).filter(is_undecided));
    }
    if !unknown.is_empty() {
        servers.warnings.push(format!(
            "MCP servers of the project are not started, because they are not approved: {}. Add them to enabledMcpjsonServers in your settings.",
            unknown.join(", ")
        ));
    }
}

/// Files that may define project servers, the nearest last.
pub(crate) fn project_files(locations: &ConfigLocations) -> Vec<PathBuf> {
    let repo_root = locations.repo_root().to_path_buf();
    let mut dirs: Vec<_> =
        locations.working_dir.ancestors().take_while(|dir| dir.starts_with(&repo_root)).collect();
    if !dirs.contains(&locations.project_dir.as_path()) {
        dirs.insert(0, &locations.project_dir);
    }
    dirs.into_iter().rev().map(|dir| dir.join(PROJECT_FILE)).collect()
}

/// Approval of project servers: full trust in the project, or the servers named in settings.
fn project_approval(settings: &Settings) -> ProjectApproval {
    let typed = &settings.effective().typed;
    ProjectApproval {
        all: settings.trust() == Trust::Full || typed.enable_all_project_mcp_servers == Some(true),
        enabled: typed.enabled_mcpjson_servers.clone(),
        disabled: typed.disabled_mcpjson_servers.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};
    use whimbrel_config::plugins::enabled::EnabledPlugins;
    use whimbrel_wire::options::{McpServerConfig, PluginConfig};

    use super::*;
    use crate::setup::settings;

    /// Scope of each server, or `bad` for an invalid entry; and the problems.
    fn resolved(root: &Path, home: &Path, options: &Options) -> (Vec<(String, &'static str)>, String) {
        let env = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
        let settings = settings::load_settings(options, &env, root).unwrap();
        let locations = settings::config_locations(options, &settings, None, root);
        let servers = resolve_servers(options, &env, &settings, &locations, &Plugins::default());
        let scope = |(name, entry): (String, whimbrel_mcp::ServerEntry)| match entry.config {
            Ok(_) => (name, entry.origin.as_str()),
            Err(_) => (name, "bad"),
        };
        (servers.entries.into_iter().map(scope).collect(), servers.warnings.join("\n"))
    }

    fn options_with_settings(settings: &Value) -> Options {
        let entry = serde_json::from_value(json!({"command": "x"})).unwrap();
        Options {
            settings: Some(settings.to_string()),
            mcp_servers: [("flag".to_owned(), entry)].into(),
            invalid_mcp_servers: [("wrong".to_owned(), "no command".to_owned())].into(),
            ..Options::default()
        }
    }

    #[test]
    fn servers_come_from_user_project_and_host() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let (top, root) = (home.join("repository"), home.join("repository/deep"));
        fs::create_dir_all(root.join(".git").parent().unwrap()).unwrap();
        fs::create_dir(top.join(".git")).unwrap();
        let entry = json!({"command": "x"});
        let named = |names: &[&str]| json!({"mcpServers": names.iter().map(|name| ((*name).to_owned(), entry.clone())).collect::<serde_json::Map<_, _>>()});
        fs::write(top.join(".mcp.json"), named(&["above", "both"]).to_string()).unwrap();
        fs::write(root.join(".mcp.json"), named(&["here", "both"]).to_string()).unwrap();
        let mut user_servers = named(&["mine"]);
        user_servers["projects"] = json!({root.to_str().unwrap(): named(&["local"])});
        fs::write(home.join(".claude.json"), user_servers.to_string()).unwrap();
        let own = [("flag", "dynamic"), ("local", "local"), ("mine", "user"), ("wrong", "bad")];
        let with = |more: &[(&str, &'static str)]| {
            let all: BTreeMap<_, _> = own.iter().chain(more).copied().collect();
            all.into_iter().map(|(name, scope)| (name.to_owned(), scope)).collect::<Vec<_>>()
        };
        let project = [("above", "project"), ("both", "project"), ("here", "project")];
        let rows = [
            ("project not approved", json!({}), with(&[])),
            ("all approved", json!({"enableAllProjectMcpServers": true}), with(&project)),
            ("one approved", json!({"enabledMcpjsonServers": ["here"]}), with(&project[2..])),
            (
                "two disabled",
                json!({"enableAllProjectMcpServers": true, "disabledMcpjsonServers": ["above", "both"]}),
                with(&project[2..]),
            ),
        ];
        for (name, settings, expected) in rows {
            let (servers, problems) = resolved(&root, &home, &options_with_settings(&settings));
            assert_eq!(servers, expected, "{name}");
            assert_eq!(
                problems.contains("not approved"),
                !servers.contains(&("above".to_owned(), "project")) && name != "two disabled",
                "{name}: {problems}"
            );
        }
        let strict = Options {
            strict_mcp_config: true,
            ..options_with_settings(&json!({"enableAllProjectMcpServers": true}))
        };
        let host_servers = [("flag".to_owned(), "dynamic"), ("wrong".to_owned(), "bad")];
        assert_eq!(resolved(&root, &home, &strict), (host_servers.to_vec(), String::new()));
        let no_sources = Options { setting_sources: Some(Vec::new()), ..options_with_settings(&json!({})) };
        assert_eq!(resolved(&root, &home, &no_sources), (host_servers.to_vec(), String::new()));
        let trusted = Options {
            setting_sources: Some(vec![SettingSource::Project]),
            ..options_with_settings(&json!({}))
        };
        assert_eq!(
            resolved(&root, &home, &trusted).0.len(),
            5,
            "naming the project source trusts the project"
        );
    }

    #[test]
    fn plugin_servers_have_prefixed_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("birds")).unwrap();
        let entries = json!({"mcpServers": {"count": {"command": "${CLAUDE_PLUGIN_ROOT}/count"}, "bad": {"type": "pigeon"}}});
        fs::write(root.join("birds/.mcp.json"), entries.to_string()).unwrap();
        let plugins = Plugins::load(&[PluginConfig::local("birds")], &EnabledPlugins::default(), &root);
        let resolve = |strict_mcp_config| {
            let options = Options { strict_mcp_config, ..options_with_settings(&json!({})) };
            let settings = settings::load_settings(&options, &BTreeMap::new(), &root).unwrap();
            let locations = settings::config_locations(&options, &settings, None, &root);
            resolve_servers(&options, &BTreeMap::new(), &settings, &locations, &plugins).entries
        };
        let all = resolve(false);
        assert_eq!(all.keys().collect::<Vec<_>>(), ["flag", "plugin:birds:count", "wrong"]);
        let command = match &all["plugin:birds:count"].config {
            Ok(McpServerConfig::Stdio(server)) => server.command.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(Path::new(&command), root.join("birds/count"));
        assert_eq!(resolve(true).keys().collect::<Vec<_>>(), ["flag", "wrong"], "only servers of the host");
    }

    #[test]
    fn unreadable_file_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join(".mcp.json"), "{").unwrap();
        let (_, problems) = resolved(
            &root,
            &root.join("missing"),
            &options_with_settings(&json!({"enableAllProjectMcpServers": true})),
        );
        assert!(problems.contains(".mcp.json: "), "{problems}");
        fs::remove_file(root.join(".mcp.json")).unwrap();
        nix::unistd::mkfifo(&root.join(".mcp.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (_, problems) = resolved(&root, &root.join("missing"), &options_with_settings(&json!({})));
        assert!(problems.contains(".mcp.json cannot be read"), "{problems}");
    }

    #[test]
    fn servers_of_the_host_that_replace_others_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir_all(&home).unwrap();
        let configured =
            json!({"flag": {"command": "other"}, "same": {"command": "x"}, "mine": {"command": "x"}});
        fs::write(home.join(".claude.json"), json!({"mcpServers": configured}).to_string()).unwrap();
        let entry: McpServerConfig = serde_json::from_value(json!({"command": "x"})).unwrap();
        let options = Options {
            mcp_servers: [("flag".to_owned(), entry.clone()), ("same".to_owned(), entry)].into(),
            ..Options::default()
        };
        let (_, warnings) = resolved(dir.path(), &home, &options);
        assert_eq!(warnings, "MCP servers of the host replace configured ones of the same name: flag.");
    }
}
