//! Looking for the Markdown files that people, projects and plugins write (commands, skills, agents): in the order of
//! their names, each folder once wherever links lead, not too deep, and nothing from where its author has no say.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use whimbrel_wire::options::SettingSource;

use super::ConfigLocations;
use crate::files::{self, FileKind};

/// How many names of one folder are looked at.
const MAX_NAMES: usize = 10_000;

/// How deep folders may lie in each other.
const MAX_DEPTH: usize = 8;

/// A search for one sort of files.
pub(crate) struct FileSearch<'a> {
    pub(crate) locations: &'a ConfigLocations,
    /// What is looked for, as people say it.
    what: &'static str,
    /// What the host should know.
    pub(crate) warnings: Vec<String>,
    /// Folders that were looked at, links followed: a link may lead in a circle.
    visited: HashSet<PathBuf>,
}

/// Who has a say in what is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FileAuthor<'a> {
    /// Whoever this source belongs to.
    Source(SettingSource),
    /// A stranger, in this folder only.
    Within(&'a Path),
    /// The host, wherever links lead.
    Host,
}

/// A file that was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    /// The folders that it lies in, and its own name without the ending.
    pub(crate) parts: Vec<String>,
}

impl<'a> FileSearch<'a> {
    /// Nothing found yet.
    pub(crate) fn new(locations: &'a ConfigLocations, what: &'static str) -> Self {
        Self { locations, what, warnings: Vec::new(), visited: HashSet::new() }
    }

    /// The Markdown files in a folder and those below it.
    pub(crate) fn find_markdown(&mut self, author: FileAuthor<'_>, folder: &Path) -> Vec<FoundFile> {
        let mut found = Vec::new();
        self.walk(author, folder, &[], &mut found);
        found
    }

    fn walk(&mut self, author: FileAuthor<'_>, folder: &Path, above: &[String], found: &mut Vec<FoundFile>) {
        if above.len() > MAX_DEPTH || !self.enter(author, folder) {
            return;
        }
        for name in sorted_names(folder) {
            let path = folder.join(&name);
            let parts = |last: &str| [above, &[last.to_owned()]].concat();
            match (markdown_stem(&path), files::file_kind(&path)) {
                (None, Ok(FileKind::Directory)) if !name.ends_with(".md") => {
                    self.walk(author, &path, &parts(&name), found);
                }
                (Some(stem), Ok(_)) => found.push(FoundFile { parts: parts(&stem), path }),
                _ => {}
            }
        }
    }

    /// Whether a folder can be looked at, and has not been yet.
    pub(crate) fn enter(&mut self, author: FileAuthor<'_>, folder: &Path) -> bool {
        let Some(real) = self.resolve(author, folder) else { return false };
        matches!(files::file_kind(&real), Ok(FileKind::Directory)) && self.visited.insert(real)
    }

    /// Where a path leads, if something is there that may be looked at; if it may not, that is said.
    pub(crate) fn resolve(&mut self, author: FileAuthor<'_>, path: &Path) -> Option<PathBuf> {
        let real = files::real_path(path)?;
        let ground = self.locations;
        let reaches = match author {
            FileAuthor::Source(source) => {
                ground.may_read(ground.scope(source, path), ground.repo_root(), &real)
                    || real.starts_with(&ground.project_dir)
            }
            FileAuthor::Within(folder) => files::real_path(folder).is_some_and(|folder| real.starts_with(folder)),
            FileAuthor::Host => true,
        };
        if reaches {
            return Some(real);
        }
        self.warnings.push(format!(
            "{} leads to {}, which is not its author's: no {} are taken from there. Trust the project, or put a file in its place.",
            path.display(),
            real.display(),
            self.what
        ));
        None
    }
}

/// The names in a folder, in order.
pub(crate) fn sorted_names(folder: &Path) -> Vec<String> {
    let mut names = files::entry_names(folder, MAX_NAMES);
    names.sort();
    names
}

/// The name of a Markdown file without its ending.
pub(crate) fn markdown_stem(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".md").filter(|stem| !stem.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::config_locations::test_project::test_project;

    #[test]
    fn files_are_found_in_order_once_and_only_where_their_author_has_a_say() {
        let deep = format!("code/app/notes/{}x.md", "d/".repeat(MAX_DEPTH + 1));
        let site = test_project(&[
            ("code/app/notes/b.md", ""),
            ("code/app/notes/a/z.md", ""),
            ("code/app/notes/a/c.txt", ""),
            ("code/app/notes/.md", ""),
            (deep.as_str(), ""),
            ("elsewhere/secret.md", ""),
        ]);
        let folder = site.root.join("code/app/notes");
        symlink("..", folder.join("a/circle")).unwrap();
        symlink(site.root.join("elsewhere"), folder.join("out")).unwrap();
        let names = |author| {
            let mut search = FileSearch::new(&site.locations, "notes");
            let found = search.find_markdown(author, &folder);
            let names: Vec<String> = found.iter().map(|found| found.parts.join("/")).collect();
            (names.join(" "), search.warnings.join(" "))
        };
        let (of_project, told) = names(FileAuthor::Source(SettingSource::Project));
        assert_eq!(of_project, "a/z b");
        assert!(told.contains("/out leads to") && told.contains("no notes are taken"), "{told}");
        assert_eq!(names(FileAuthor::Within(&folder)), (of_project, told));
        assert_eq!(names(FileAuthor::Host), ("a/z b out/secret".into(), String::new()));
    }
}
