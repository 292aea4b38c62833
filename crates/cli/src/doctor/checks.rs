//! Checks of `whimbrel doctor`. Each returns what it found; none changes anything.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use whimbrel_config::settings::{Settings, Trust, config_dir};
use whimbrel_engine::setup::{Setup, SetupError};
use whimbrel_wire::PROTOCOL_VERSION;
use whimbrel_wire::options::{McpServerConfig, SettingSource};

use crate::credentials::{Credentials, KeyOrigin};
use crate::environment::Env;

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// What was checked.
    pub(super) name: String,
    pub(super) status: Status,
    /// What was found, and the remedy.
    pub(super) detail: String,
}

/// Status of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    /// Sessions work, but not everything in them.
    Warning,
    /// Sessions do not work.
    Error,
}

impl Finding {
    fn new(name: impl Into<String>, status: Status, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status, detail: detail.into() }
    }
}

/// Version and path of the program.
pub(super) fn check_version() -> Finding {
    let program = std::env::current_exe().map_or("unknown".into(), |path| path.display().to_string());
    let version = env!("CARGO_PKG_VERSION");
    Finding::new(
        "version",
        Status::Ok,
        format!("Whimbrel {version}, protocol {PROTOCOL_VERSION}, program {program}"),
    )
}

/// Model, provider, server and key.
pub(super) fn check_model(credentials: &Credentials, env: &Env) -> Vec<Finding> {
    let Credentials { model, provider, key } = credentials;
    let url = provider.url_variable().and_then(|variable| Some((variable, env.get(variable)?)));
    let server = match url.filter(|(_, url)| !url.trim().is_empty()) {
        Some((variable, url)) => format!(", server {} ({variable})", hide_user(url.trim())),
        None => String::new(),
    };
    let key = match key {
        KeyOrigin::Missing => Finding::new(
            "key",
            Status::Error,
            "none. Set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or apiKeyHelper in the settings.",
        ),
        found => Finding::new("key", Status::Ok, found.describe()),
    };
    vec![Finding::new("model", Status::Ok, format!("{model} ({}{server})", provider.name())), key]
}

/// Removes a user and password from a URL.
fn hide_user(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            match rest[..end].rfind('@') {
                Some(at) => format!("{scheme}://***@{}", &rest[at + 1..]),
                None => url.to_owned(),
            }
        }
        None => url.to_owned(),
    }
}

/// Settings files: which are read, and what is wrong with them.
pub(super) fn check_settings(settings: &Result<Settings, SetupError>) -> Vec<Finding> {
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => return vec![Finding::new("settings", Status::Error, error.to_string())],
    };
    let sources = [SettingSource::User, SettingSource::Project, SettingSource::Local];
    let mut findings: Vec<Finding> = sources
        .into_iter()
        .filter_map(|source| Some((source, settings.file_for(source)?)))
        .map(|(source, file)| {
            let is_read = settings.layers().iter().any(|layer| layer.origin.file.as_ref() == Some(&file));
            let state = match (is_read, file.exists()) {
                (true, _) => "read",
                (false, true) => "not read",
                (false, false) => "does not exist",
            };
            Finding::new(format!("{source} settings"), Status::Ok, format!("{} ({state})", file.display()))
        })
        .collect();
    let others = settings.layers().iter().filter(|layer| layer.origin.source.name() == "policySettings");
    findings.extend(
        others.map(|layer| Finding::new("managed settings", Status::Ok, layer.origin.display_name())),
    );
    let trust = match settings.trust() {
        Trust::Full => "this directory is trusted",
        _ => "this directory is not trusted: its settings can restrict, but not allow or run anything",
    };
    findings.push(Finding::new("trust", Status::Ok, trust));
    findings
}

/// Everything that a session needs: agents, plugins, hooks, rules. The setup also brings the warnings about settings.
pub(super) fn check_setup(setup: &Result<Setup, SetupError>) -> Vec<Finding> {
    match setup {
        Ok(setup) => {
            let warnings = setup.host.warning.iter().flat_map(|warning| warning.lines());
            warnings.map(|warning| Finding::new("session", Status::Warning, warning)).collect()
        }
        Err(error) => vec![Finding::new("session", Status::Error, error.to_string())],
    }
}

/// Configurations of MCP servers. No server is started.
pub(super) fn check_servers(setup: &Setup, env: &Env) -> Vec<Finding> {
    let check = |(name, entry): (&String, &whimbrel_mcp::ServerEntry)| {
        let name = format!("MCP server {name}");
        match &entry.config {
            Ok(McpServerConfig::Stdio(server)) => match find_program(&server.command, env) {
                Some(path) => Finding::new(name, Status::Ok, format!("program {}", path.display())),
                None => Finding::new(
                    name,
                    Status::Warning,
                    format!("the program {} is not found. Install it, or correct the entry.", server.command),
                ),
            },
            Ok(McpServerConfig::Http(server) | McpServerConfig::Sse(server)) => {
                Finding::new(name, Status::Ok, format!("server {}", hide_user(&server.url)))
            }
            Ok(McpServerConfig::Sdk(_)) => Finding::new(name, Status::Ok, "in the process of the host"),
            Err(error) => Finding::new(name, Status::Error, format!("invalid entry: {error}")),
        }
    };
    setup.mcp.servers.entries.iter().map(check).collect()
}

/// The configuration directory: sessions, credentials and settings are written there.
pub(super) fn check_config_dir(env: &Env) -> Finding {
    let Some(dir) = config_dir(env) else {
        return Finding::new(
            "configuration directory",
            Status::Error,
            "unknown. Set HOME or CLAUDE_CONFIG_DIR.",
        );
    };
    // A missing directory is created in the nearest one that exists.
    let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let is_writable = existing.is_dir() && access(existing, AccessFlags::W_OK | AccessFlags::X_OK).is_ok();
    match is_writable {
        true => Finding::new("configuration directory", Status::Ok, dir.display().to_string()),
        false => Finding::new(
            "configuration directory",
            Status::Error,
            format!(
                "{} is not a writable directory, so sessions are not stored. Make it writable, or set CLAUDE_CONFIG_DIR.",
                existing.display()
            ),
        ),
    }
}

/// Programs that tools use, and what is lost without each.
const PROGRAMS: [(&str, Status, &str); 3] = [
    ("bash", Status::Warning, "commands run with /bin/sh"),
    ("git", Status::Warning, "there are no worktrees and no git facts in the context"),
    ("rg", Status::Ok, "it is not needed: Grep and Glob are built in"),
];

/// Programs that tools use.
pub(super) fn check_programs(env: &Env) -> Vec<Finding> {
    let check = |(name, status, without): (&str, Status, &str)| match find_program(name, env) {
        Some(path) => Finding::new(name, Status::Ok, path.display().to_string()),
        None => Finding::new(name, status, format!("not found; {without}")),
    };
    PROGRAMS.into_iter().map(check).collect()
}

/// Finds a program by its path, or by its name in `PATH`.
fn find_program(name: &str, env: &Env) -> Option<PathBuf> {
    let is_executable = |path: &PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_executable);
    }
    std::env::split_paths(env.get("PATH")?).map(|dir| dir.join(name)).find(is_executable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Provider;

    #[test]
    fn password_in_a_url_is_hidden() {
        for (url, expected) in [
            ("https://x.test/v1", "https://x.test/v1"),
            ("https://me:secret@x.test/v1", "https://***@x.test/v1"),
            ("https://x.test/a@b", "https://x.test/a@b"),
            ("x.test", "x.test"),
        ] {
            assert_eq!(hide_user(url), expected);
        }
    }

    #[test]
    fn missing_key_is_an_error() {
        let credentials = |key| Credentials { model: "m".into(), provider: Provider::Messages, key };
        let env = Env::from([("ANTHROPIC_BASE_URL".to_owned(), "https://gw.test".to_owned())]);
        let found = check_model(&credentials(KeyOrigin::Missing), &env);
        assert_eq!(found[0].detail, "m (Messages API, server https://gw.test (ANTHROPIC_BASE_URL))");
        assert_eq!(found[1].status, Status::Error);
        let found = check_model(&credentials(KeyOrigin::Environment("ANTHROPIC_API_KEY".into())), &env);
        assert_eq!(
            (found[1].status, found[1].detail.as_str()),
            (Status::Ok, "ANTHROPIC_API_KEY of the environment")
        );
    }

    #[test]
    fn programs_are_found_in_path() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("git"), "").unwrap();
        std::fs::write(dir.path().join("bash"), "").unwrap();
        std::fs::set_permissions(dir.path().join("bash"), PermissionsExt::from_mode(0o755)).unwrap();
        let env = Env::from([("PATH".to_owned(), format!("/nowhere:{}", dir.path().display()))]);
        let statuses: Vec<Status> = check_programs(&env).into_iter().map(|finding| finding.status).collect();
        assert_eq!(
            statuses,
            [Status::Ok, Status::Warning, Status::Ok],
            "a file that cannot run is not a program"
        );
    }

    #[test]
    fn config_directory_must_be_writable() {
        let dir = tempfile::tempdir().unwrap();
        let env = |path: &Path| Env::from([("CLAUDE_CONFIG_DIR".to_owned(), path.display().to_string())]);
        assert_eq!(check_config_dir(&env(&dir.path().join("new/deep"))).status, Status::Ok);
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(check_config_dir(&env(&file)).status, Status::Error);
        assert_eq!(check_config_dir(&Env::new()).status, Status::Error);
    }
}
