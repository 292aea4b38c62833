//! A place for tests: a person's home, and a repository with an app in it, where the session works.

use std::path::PathBuf;

use whimbrel_wire::options::SettingSource;

use super::ConfigLocations;
use crate::settings::Trust;

/// The place. It is gone when this is dropped.
pub(crate) struct TestProject {
    /// Where everything lies: `home/.claude`, `code/.git`, `code/app`.
    pub(crate) root: PathBuf,
    /// The ground of a session in `code/app` that reads the person's and the project's files.
    pub(crate) locations: ConfigLocations,
    _folder: tempfile::TempDir,
}

/// A place with these files.
pub(crate) fn test_project<T: AsRef<str>>(files: &[(&str, T)]) -> TestProject {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let always = ["home/.claude/x", "code/.git/HEAD", "code/app/x"].map(|path| (path, ""));
    let given = files.iter().map(|(path, text)| (*path, text.as_ref()));
    for (path, text) in always.into_iter().chain(given) {
        let path = top.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let ground = ConfigLocations {
        user_dir: Some(top.join("home/.claude")),
        working_dir: top.join("code/app"),
        project_dir: top.join("code/app"),
        sources: [SettingSource::User, SettingSource::Project].into(),
        trust: Trust::Untrusted,
    };
    TestProject { root: top, locations: ground, _folder: folder }
}
