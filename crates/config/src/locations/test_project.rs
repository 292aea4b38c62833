//! Test directories: a home, and a repository with an app in which the session works.
#![expect(clippy::unwrap_used, reason = "test support fails as a test does")]

use std::path::PathBuf;

use whimbrel_wire::options::SettingSource;

use crate::locations::{ConfigLocations, SharedDirs};
use crate::settings::Trust;

/// Temporary directories, removed on drop.
pub struct TestProject {
    /// Contains `home/.claude`, `code/.git` and `code/app`.
    pub root: PathBuf,
    /// Locations of a session in `code/app` with user and project sources.
    pub locations: ConfigLocations,
    _dir: tempfile::TempDir,
}

/// Creates the directories with these files.
pub fn test_project<T: AsRef<str>>(files: &[(&str, T)]) -> TestProject {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let always = ["home/.claude/x", "code/.git/HEAD", "code/app/x"].map(|path| (path, ""));
    let given = files.iter().map(|(path, text)| (*path, text.as_ref()));
    for (path, text) in always.into_iter().chain(given) {
        let path = top.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let locations = ConfigLocations {
        user_dir: Some(top.join("home/.claude")),
        working_dir: top.join("code/app"),
        instruction_dirs: SharedDirs::default(),
        skill_dirs: SharedDirs::default(),
        named_skill_dirs: Vec::new(),
        project_dir: top.join("code/app"),
        sources: [SettingSource::User, SettingSource::Project].into(),
        trust: Trust::Untrusted,
    };
    TestProject { root: top, locations, _dir: dir }
}
