//! Which folders the person trusts, and which MCP servers they have added. The official engine keeps this in
//! `.claude.json` when a person says so at the terminal: `{"projects": {"/folder": {"hasTrustDialogAccepted": true}}}`.
//!
//! Trust in a folder holds for what is below it, but not for another repository there: whoever trusts a folder of clones
//! has not looked into each of them. What cannot be read vouches for nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::sources::{home_dir, explicit_config_dir};
use crate::files::{self, FileKind};

/// How large that file may be: it holds more than trust.
const MAX_FILE_SIZE: u64 = 64 * 1024 * 1024;

#[derive(Deserialize, Default)]
struct UserState {
    #[serde(default)]
    projects: BTreeMap<PathBuf, Value>,
}

/// Whether the person trusts a folder. Touches the disk.
pub fn is_trusted_dir(env: &BTreeMap<String, String>, folder: &Path) -> bool {
    let Some(folder) = files::real_path(folder) else { return false };
    let kept = user_state_file(env)
        .and_then(|file| files::read(&file, MAX_FILE_SIZE).ok())
        .and_then(|(bytes, _)| serde_json::from_slice::<UserState>(&bytes).ok())
        .unwrap_or_default();
    if kept.projects.is_empty() {
        return false;
    }
    let is_repository = |folder: &Path| !matches!(files::file_kind(&folder.join(".git")), Ok(FileKind::Missing));
    is_covered(&kept, &folder, &is_repository)
}

/// MCP servers that the person has added, as they are written.
#[derive(Debug, Default)]
pub struct UserMcpServers {
    /// For all projects.
    pub user: Map<String, Value>,
    /// For this folder.
    pub local: Map<String, Value>,
}

/// The person's MCP servers for a folder. Touches the disk.
pub fn user_servers(env: &BTreeMap<String, String>, folder: &Path) -> UserMcpServers {
    let kept = user_state_file(env)
        .and_then(|file| files::read(&file, MAX_FILE_SIZE).ok())
        .and_then(|(bytes, _)| serde_json::from_slice::<Value>(&bytes).ok())
        .unwrap_or_default();
    let of = |value: &Value| value.get("mcpServers").and_then(Value::as_object).cloned().unwrap_or_default();
    let here = files::real_path(folder).and_then(|real| kept.get("projects")?.get(real.to_str()?));
    UserMcpServers { user: of(&kept), local: here.map(of).unwrap_or_default() }
}

/// The file: in the configuration folder if the environment names one, else at home.
pub fn user_state_file(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let home = || home_dir(env.get("HOME").map(String::as_str));
    Some(explicit_config_dir(env).or_else(home)?.join(".claude.json"))
}

/// Whether the folder, or one above it in the same repository, is trusted.
fn is_covered(kept: &UserState, folder: &Path, is_repository: &impl Fn(&Path) -> bool) -> bool {
    for folder in folder.ancestors() {
        let trusted = kept.projects.get(folder).and_then(|project| project.get("hasTrustDialogAccepted"));
        if trusted == Some(&Value::Bool(true)) {
            return true;
        }
        if is_repository(folder) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn trust_holds_below_a_folder_but_not_for_another_repository() {
        let kept: UserState = serde_json::from_value(json!({"projects": {
            "/code": {"hasTrustDialogAccepted": true},
            "/other": {"hasTrustDialogAccepted": false},
            "/odd": 5,
        }}))
        .unwrap();
        let repositories = ["/code/clone", "/code/mine"].map(PathBuf::from);
        let is_repository = |folder: &Path| repositories.iter().any(|repository| repository == folder);
        let rows = [
            ("/code", true),
            ("/code/notes/deep", true),
            ("/code/clone", false),
            ("/code/clone/src", false),
            ("/codex", false),
            ("/other", false),
            ("/odd", false),
            ("/", false),
        ];
        for (folder, expected) in rows {
            assert_eq!(is_covered(&kept, Path::new(folder), &is_repository), expected, "{folder}");
        }
    }

    #[test]
    fn what_is_kept_is_found_by_the_real_path() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("project")).unwrap();
        std::os::unix::fs::symlink("project", root.join("link")).unwrap();
        let env = |name: &str| BTreeMap::from([(name.to_owned(), root.to_str().unwrap().to_owned())]);
        assert!(!is_trusted_dir(&env("HOME"), &root.join("project")));
        fs::write(root.join(".claude.json"), "broken").unwrap();
        assert!(!is_trusted_dir(&env("HOME"), &root.join("project")));
        let projects =
            json!({"projects": {root.join("project").to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
        fs::write(root.join(".claude.json"), projects.to_string()).unwrap();
        for name in ["HOME", "CLAUDE_CONFIG_DIR", "WHIMBREL_CONFIG_DIR"] {
            assert!(is_trusted_dir(&env(name), &root.join("project")), "{name}");
            assert!(is_trusted_dir(&env(name), &root.join("link")), "{name}");
        }
        assert!(!is_trusted_dir(&BTreeMap::new(), &root.join("project")));
    }
}
