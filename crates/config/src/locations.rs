//! Config locations of a session: where the user's and the project's files (instructions, commands) are, which sources
//! are enabled, and how far the project is trusted.

pub mod file_search;
mod shared_dirs;
#[cfg(any(test, feature = "test-support"))]
pub mod test_project;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whimbrel_os::files;
use whimbrel_wire::options::SettingSource;

use crate::settings::trust::git_index::is_tracked;
use crate::settings::{LayerScope, Trust, repository_root};
pub use shared_dirs::SharedDirs;

/// Config locations of a session.
#[derive(Debug, Clone, Default)]
pub struct ConfigLocations {
    /// The user's config directory.
    pub user_dir: Option<PathBuf>,
    /// Working directory of the session, links resolved.
    pub working_dir: PathBuf,
    /// Directory that holds the project's `.claude`.
    pub project_dir: PathBuf,
    /// Further directories whose instruction files count.
    pub instruction_dirs: SharedDirs,
    /// Further directories whose commands and skills count.
    pub skill_dirs: SharedDirs,
    /// Directories of skills that the host has named, in place of the user's and the project's; none: those are searched.
    pub named_skill_dirs: Vec<PathBuf>,
    /// Enabled setting sources.
    pub sources: BTreeSet<SettingSource>,
    pub trust: Trust,
}

impl ConfigLocations {
    pub fn includes(&self, source: SettingSource) -> bool {
        self.sources.contains(&source)
    }

    /// Root of the repository that contains the working directory, or the working directory itself.
    pub fn repo_root(&self) -> &Path {
        repository_root(&self.working_dir).unwrap_or(&self.working_dir)
    }

    /// Paths of this name in the project, nearest first: beside its `.claude`, and from the working directory up to the
    /// repository root. Empty if project sources are disabled.
    pub fn project_dirs(&self, name: &str) -> Vec<PathBuf> {
        if !self.includes(SettingSource::Project) {
            return Vec::new();
        }
        let top = self.repo_root();
        let above = self.working_dir.ancestors().take_while(|dir| dir.starts_with(top));
        let mut dirs: Vec<PathBuf> = std::iter::once(self.project_dir.as_path())
            .chain(above)
            .map(|dir| dir.join(name))
            .filter(|dir| !self.is_user_config(dir))
            .collect();
        dirs.dedup();
        dirs
    }

    /// Returns true for paths in the user's config directory, which never count as the project's.
    pub fn is_user_config(&self, path: &Path) -> bool {
        let real = |path: &Path| files::real_path(path).unwrap_or_else(|| files::normalize_path(path));
        self.user_dir.as_ref().is_some_and(|config| real(path).starts_with(real(config)))
    }

    /// Scope of a file. A local file counts as the project's if it is tracked, is a link, or the project is not
    /// trusted: it may have come with an archive.
    pub fn scope(&self, source: SettingSource, file: &Path) -> LayerScope {
        match source {
            SettingSource::User => LayerScope::User,
            SettingSource::Project => LayerScope::Project,
            SettingSource::Local => {
                let is_own =
                    self.trust >= Trust::Limited && files::link_target(file).is_none() && !is_tracked(file);
                if is_own { LayerScope::User } else { LayerScope::Project }
            }
        }
    }

    /// Returns true if a file of this scope may cause `real`, a path without links, to be read. Files of an untrusted
    /// project must not reach beyond `within`: they could show the model other files.
    pub fn may_read(&self, scope: LayerScope, within: &Path, real: &Path) -> bool {
        scope == LayerScope::User || self.trust == Trust::Full || real.starts_with(within)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_project_ends_at_the_repository_root() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let root = top.join("repository/deep/below");
        fs::create_dir_all(&root).unwrap();
        let locations = ConfigLocations { working_dir: root.clone(), ..ConfigLocations::default() };
        assert_eq!(locations.repo_root(), root, "no repository");
        fs::create_dir(top.join("repository/.git")).unwrap();
        assert_eq!(locations.repo_root(), top.join("repository"));
        let within = locations.repo_root();
        let rows = [
            (LayerScope::Project, "/etc/passwd", false),
            (LayerScope::User, "/etc/passwd", true),
            (LayerScope::Project, root.to_str().unwrap(), true),
        ];
        for (scope, path, expected) in rows {
            assert_eq!(locations.may_read(scope, within, Path::new(path)), expected, "{path}");
        }
        let trusted = ConfigLocations { trust: Trust::Full, ..locations.clone() };
        assert!(trusted.may_read(LayerScope::Project, within, Path::new("/etc/passwd")));
    }

    #[test]
    fn a_local_file_is_the_users_only_in_trusted_projects() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("CLAUDE.local.md");
        fs::write(&file, "").unwrap();
        let scope = |trust| {
            ConfigLocations { trust, ..ConfigLocations::default() }.scope(SettingSource::Local, &file)
        };
        assert_eq!(scope(Trust::Untrusted), LayerScope::Project);
        assert_eq!(scope(Trust::Full), LayerScope::User);
    }

    #[test]
    fn files_in_the_config_directory_are_the_users() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        fs::create_dir(home.join(".claude")).unwrap();
        std::os::unix::fs::symlink(".claude", home.join("link")).unwrap();
        let locations = ConfigLocations { user_dir: Some(home.join("link")), ..ConfigLocations::default() };
        assert!(locations.is_user_config(&home.join(".claude/CLAUDE.md")));
        assert!(!locations.is_user_config(&home.join("CLAUDE.md")));
        assert!(!ConfigLocations::default().is_user_config(&home));
    }
}
