//! Directories that the user trusts. The official engine stores them in `.claude.json` after a dialog at the
//! terminal: `{"projects": {"/folder": {"hasTrustDialogAccepted": true}}}`.
//!
//! Trust applies to subdirectories, but not to other repositories in them: a user who trusts a directory of clones has
//! not reviewed each of them. An unreadable file yields no trust.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use whimbrel_os::files;

use crate::settings::sources::{explicit_config_dir, home_dir, is_repository_root};

/// Size limit; the file contains more than trust.
pub(in crate::settings) const MAX_FILE_SIZE: u64 = 64 * 1024 * 1024;

#[derive(Deserialize, Default)]
struct UserState {
    #[serde(default)]
    projects: BTreeMap<PathBuf, Value>,
}

/// Whether the user trusts a directory. Reads a file.
pub fn is_trusted_dir(env: &BTreeMap<String, String>, dir: &Path) -> bool {
    let Some(dir) = files::real_path(dir) else { return false };
    let state = user_state_file(env)
        .and_then(|file| files::read(&file, MAX_FILE_SIZE).ok())
        .and_then(|(bytes, _)| serde_json::from_slice::<UserState>(&bytes).ok())
        .unwrap_or_default();
    if state.projects.is_empty() {
        return false;
    }
    is_covered(&state, &dir, &is_repository_root)
}

/// Path of `.claude.json`: in the configuration directory if the environment names one, else in the home directory.
pub fn user_state_file(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let home = || home_dir(env.get("HOME").map(String::as_str));
    Some(explicit_config_dir(env).or_else(home)?.join(".claude.json"))
}

/// Whether the directory or an ancestor within the same repository is trusted.
fn is_covered(state: &UserState, dir: &Path, is_repository: &impl Fn(&Path) -> bool) -> bool {
    for dir in dir.ancestors() {
        let trusted = state.projects.get(dir).and_then(|project| project.get("hasTrustDialogAccepted"));
        if trusted == Some(&Value::Bool(true)) {
            return true;
        }
        if is_repository(dir) {
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
    fn trust_covers_subdirectories_but_not_other_repositories() {
        let state: UserState = serde_json::from_value(json!({"projects": {
            "/code": {"hasTrustDialogAccepted": true},
            "/other": {"hasTrustDialogAccepted": false},
            "/odd": 5,
        }}))
        .unwrap();
        let repositories = ["/code/clone", "/code/mine"].map(PathBuf::from);
        let is_repository = |dir: &Path| repositories.iter().any(|repository| repository == dir);
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
        for (dir, expected) in rows {
            assert_eq!(is_covered(&state, Path::new(dir), &is_repository), expected, "{dir}");
        }
    }

    #[test]
    fn directories_are_looked_up_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
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
