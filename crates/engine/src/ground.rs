//! Where a session finds the files that the person and the project wrote for it (instructions, commands), which of them
//! were asked for, and how far the project is trusted.

pub(crate) mod search;
#[cfg(test)]
pub(crate) mod site;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whimbrel_wire::options::SettingSource;

use crate::files::{self, Kind};
use crate::settings::tracked::is_tracked;
use crate::settings::{Scope, Trust};

/// The ground that a session stands on.
#[derive(Debug, Clone, Default)]
pub struct Ground {
    /// The person's configuration folder.
    pub config: Option<PathBuf>,
    /// Where the session works, links followed.
    pub root: PathBuf,
    /// The folder that holds the project's `.claude`.
    pub project: PathBuf,
    /// Whose files are read.
    pub sources: BTreeSet<SettingSource>,
    /// How far the project is trusted.
    pub trust: Trust,
}

impl Ground {
    /// Whether files of this source are read.
    pub fn asks(&self, source: SettingSource) -> bool {
        self.sources.contains(&source)
    }

    /// The top of the project: the root of the repository that the session works in, or the folder where it works.
    pub fn top(&self) -> &Path {
        let is_repository = |folder: &&Path| !matches!(files::kind(&folder.join(".git")), Ok(Kind::Missing));
        self.root.ancestors().find(is_repository).unwrap_or(&self.root)
    }

    /// Where the project may have something by this name, the nearest first: where its `.claude` is, and from where the
    /// session works up to the top. None if the project's files are not asked for.
    pub fn project_folders(&self, name: &str) -> Vec<PathBuf> {
        if !self.asks(SettingSource::Project) {
            return Vec::new();
        }
        let top = self.top();
        let above = self.root.ancestors().take_while(|folder| folder.starts_with(top));
        let mut folders: Vec<PathBuf> = std::iter::once(self.project.as_path())
            .chain(above)
            .map(|folder| folder.join(name))
            .filter(|folder| !self.is_configuration(folder))
            .collect();
        folders.dedup();
        folders
    }

    /// Whether a path lies in the person's configuration folder: such files are the person's and nobody else's.
    pub fn is_configuration(&self, path: &Path) -> bool {
        let real = |path: &Path| files::real_path(path).unwrap_or_else(|| files::tidy(path));
        self.config.as_ref().is_some_and(|config| real(path).starts_with(real(config)))
    }

    /// Whose word a file is. A file of one's own that came with the repository is the project's, and so is one where nobody
    /// vouches for the project: it may have come with an archive.
    pub fn scope(&self, source: SettingSource, file: &Path) -> Scope {
        match source {
            SettingSource::User => Scope::Person,
            SettingSource::Project => Scope::Project,
            SettingSource::Local => {
                let is_own =
                    self.trust >= Trust::Customary && files::link_target(file).is_none() && !is_tracked(file);
                if is_own { Scope::Person } else { Scope::Project }
            }
        }
    }

    /// Whether something of this scope may have `real` read, a path without links. What came with a project may not reach
    /// beyond `within` unless the project is trusted: it could show a model what is not the project's.
    pub fn reaches(&self, scope: Scope, within: &Path, real: &Path) -> bool {
        scope == Scope::Person || self.trust == Trust::Full || real.starts_with(within)
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
        let ground = Ground { root: root.clone(), ..Ground::default() };
        assert_eq!(ground.top(), root, "no repository");
        fs::create_dir(top.join("repository/.git")).unwrap();
        assert_eq!(ground.top(), top.join("repository"));
        let within = ground.top();
        let rows = [
            (Scope::Project, "/etc/passwd", false),
            (Scope::Person, "/etc/passwd", true),
            (Scope::Project, root.to_str().unwrap(), true),
        ];
        for (scope, path, expected) in rows {
            assert_eq!(ground.reaches(scope, within, Path::new(path)), expected, "{path}");
        }
        let trusted = Ground { trust: Trust::Full, ..ground.clone() };
        assert!(trusted.reaches(Scope::Project, within, Path::new("/etc/passwd")));
    }

    #[test]
    fn a_local_file_is_the_persons_only_where_somebody_vouches_for_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("CLAUDE.local.md");
        fs::write(&file, "").unwrap();
        let scope = |trust| Ground { trust, ..Ground::default() }.scope(SettingSource::Local, &file);
        assert_eq!(scope(Trust::Unknown), Scope::Project);
        assert_eq!(scope(Trust::Full), Scope::Person);
    }

    #[test]
    fn what_lies_in_the_configuration_folder_is_the_persons() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir(home.join(".claude")).unwrap();
        std::os::unix::fs::symlink(".claude", home.join("link")).unwrap();
        let ground = Ground { config: Some(home.join("link")), ..Ground::default() };
        assert!(ground.is_configuration(&home.join(".claude/CLAUDE.md")));
        assert!(!ground.is_configuration(&home.join("CLAUDE.md")));
        assert!(!Ground::default().is_configuration(&home));
    }
}
