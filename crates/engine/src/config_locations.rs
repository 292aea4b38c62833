//! Where a session finds the files that the person and the project wrote for it (instructions, commands), which of them
//! were asked for, and how far the project is trusted.

pub(crate) mod file_search;
#[cfg(test)]
pub(crate) mod test_project;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whimbrel_wire::options::SettingSource;

use crate::files::{self, FileKind};
use crate::settings::git_index::is_tracked;
use crate::settings::{LayerScope, Trust};

/// The ground that a session stands on.
#[derive(Debug, Clone, Default)]
pub struct ConfigLocations {
    /// The person's configuration folder.
    pub user_dir: Option<PathBuf>,
    /// Where the session works, links followed.
    pub working_dir: PathBuf,
    /// The folder that holds the project's `.claude`.
    pub project_dir: PathBuf,
    /// Whose files are read.
    pub sources: BTreeSet<SettingSource>,
    /// How far the project is trusted.
    pub trust: Trust,
}

impl ConfigLocations {
    /// Whether files of this source are read.
    pub fn includes(&self, source: SettingSource) -> bool {
        self.sources.contains(&source)
    }

    /// The top of the project: the root of the repository that the session works in, or the folder where it works.
    pub fn repo_root(&self) -> &Path {
        let is_repository = |folder: &&Path| !matches!(files::file_kind(&folder.join(".git")), Ok(FileKind::Missing));
        self.working_dir.ancestors().find(is_repository).unwrap_or(&self.working_dir)
    }

    /// Where the project may have something by this name, the nearest first: where its `.claude` is, and from where the
    /// session works up to the top. None if the project's files are not asked for.
    pub fn project_dirs(&self, name: &str) -> Vec<PathBuf> {
        if !self.includes(SettingSource::Project) {
            return Vec::new();
        }
        let top = self.repo_root();
        let above = self.working_dir.ancestors().take_while(|folder| folder.starts_with(top));
        let mut folders: Vec<PathBuf> = std::iter::once(self.project_dir.as_path())
            .chain(above)
            .map(|folder| folder.join(name))
            .filter(|folder| !self.is_user_config(folder))
            .collect();
        folders.dedup();
        folders
    }

    /// Whether a path lies in the person's configuration folder: such files are the person's and nobody else's.
    pub fn is_user_config(&self, path: &Path) -> bool {
        let real = |path: &Path| files::real_path(path).unwrap_or_else(|| files::normalize_path(path));
        self.user_dir.as_ref().is_some_and(|config| real(path).starts_with(real(config)))
    }

    /// Whose word a file is. A file of one's own that came with the repository is the project's, and so is one where nobody
    /// vouches for the project: it may have come with an archive.
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

    /// Whether something of this scope may have `real` read, a path without links. What came with a project may not reach
    /// beyond `within` unless the project is trusted: it could show a model what is not the project's.
    pub fn may_read(&self, scope: LayerScope, within: &Path, real: &Path) -> bool {
        scope == LayerScope::User || self.trust == Trust::Full || real.starts_with(within)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_project_ends_where_the_repository_does() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("repository/deep/below");
        fs::create_dir_all(&root).unwrap();
        let ground = ConfigLocations { working_dir: root.clone(), ..ConfigLocations::default() };
        assert_eq!(ground.repo_root(), root, "no repository");
        fs::create_dir(top.join("repository/.git")).unwrap();
        assert_eq!(ground.repo_root(), top.join("repository"));
        let within = ground.repo_root();
        let rows = [
            (LayerScope::Project, "/etc/passwd", false),
            (LayerScope::User, "/etc/passwd", true),
            (LayerScope::Project, root.to_str().unwrap(), true),
        ];
        for (scope, path, expected) in rows {
            assert_eq!(ground.may_read(scope, within, Path::new(path)), expected, "{path}");
        }
        let trusted = ConfigLocations { trust: Trust::Full, ..ground.clone() };
        assert!(trusted.may_read(LayerScope::Project, within, Path::new("/etc/passwd")));
    }

    #[test]
    fn a_local_file_is_the_persons_only_where_somebody_vouches_for_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("CLAUDE.local.md");
        fs::write(&file, "").unwrap();
        let scope = |trust| ConfigLocations { trust, ..ConfigLocations::default() }.scope(SettingSource::Local, &file);
        assert_eq!(scope(Trust::Untrusted), LayerScope::Project);
        assert_eq!(scope(Trust::Full), LayerScope::User);
    }

    #[test]
    fn what_lies_in_the_configuration_folder_is_the_persons() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir(home.join(".claude")).unwrap();
        std::os::unix::fs::symlink(".claude", home.join("link")).unwrap();
        let ground = ConfigLocations { user_dir: Some(home.join("link")), ..ConfigLocations::default() };
        assert!(ground.is_user_config(&home.join(".claude/CLAUDE.md")));
        assert!(!ground.is_user_config(&home.join("CLAUDE.md")));
        assert!(!ConfigLocations::default().is_user_config(&home));
    }
}
