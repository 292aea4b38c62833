//! Finds Markdown files of users, projects and plugins (commands, skills, agents): sorted by name, each directory once
//! even with links, with a maximum depth, and only where the author may read.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use whimbrel_os::files::{self, FileKind};
use whimbrel_wire::options::SettingSource;

use crate::locations::ConfigLocations;

/// Maximum number of names read from a directory.
const MAX_NAMES: usize = 10_000;

/// Maximum nesting of directories.
const MAX_DEPTH: usize = 8;

/// Search for one type of file.
pub struct FileSearch<'a> {
    pub locations: &'a ConfigLocations,
    /// Plural noun for messages, e.g. `commands`.
    what: &'static str,
    /// Warnings for the host.
    pub warnings: Vec<String>,
    /// Visited directories, links resolved; protects against link cycles.
    visited: HashSet<PathBuf>,
}

/// Author of the files, which decides where links may lead.
#[derive(Debug, Clone, Copy)]
pub enum FileAuthor<'a> {
    /// Owner of a setting source.
    Source(SettingSource),
    /// Untrusted; links must stay in this directory.
    Within(&'a Path),
    /// The host; links may lead anywhere.
    Host,
}

#[derive(Debug, PartialEq, Eq)]
pub struct FoundFile {
    pub path: PathBuf,
    /// Parent directories below the start, and the name without `.md`.
    pub parts: Vec<String>,
}

impl<'a> FileSearch<'a> {
    pub fn new(locations: &'a ConfigLocations, what: &'static str) -> Self {
        Self { locations, what, warnings: Vec::new(), visited: HashSet::new() }
    }

    /// Finds the Markdown files in a directory and below.
    pub fn find_markdown(&mut self, author: FileAuthor<'_>, dir: &Path) -> Vec<FoundFile> {
        let mut found = Vec::new();
        self.walk(author, dir, &[], &mut found);
        found
    }

    fn walk(&mut self, author: FileAuthor<'_>, dir: &Path, above: &[String], found: &mut Vec<FoundFile>) {
        if above.len() > MAX_DEPTH || !self.enter(author, dir) {
            return;
        }
        for name in sorted_names(dir) {
            let path = dir.join(&name);
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

    /// Enters a directory: returns true if it may be read and was not visited before, and marks it as visited.
    pub fn enter(&mut self, author: FileAuthor<'_>, dir: &Path) -> bool {
        let Some(real) = self.resolve(author, dir) else { return false };
        matches!(files::file_kind(&real), Ok(FileKind::Directory)) && self.visited.insert(real)
    }

    /// Resolves a path; `None` if it is missing, or with a warning if the author may not read there.
    pub fn resolve(&mut self, author: FileAuthor<'_>, path: &Path) -> Option<PathBuf> {
        let real = files::real_path(path)?;
        let locations = self.locations;
        let may_read = match author {
            FileAuthor::Source(source) => {
                locations.may_read(locations.scope(source, path), locations.repo_root(), &real)
                    || real.starts_with(&locations.project_dir)
            }
            FileAuthor::Within(dir) => files::real_path(dir).is_some_and(|dir| real.starts_with(dir)),
            FileAuthor::Host => true,
        };
        if may_read {
            return Some(real);
        }
        self.warnings.push(format!(
            "{} links to {}, where its author may not read: no {} are loaded from there. Trust the project, or replace \
             the link by a file.",
            path.display(),
            real.display(),
            self.what
        ));
        None
    }
}

/// Names in a directory, sorted.
pub fn sorted_names(dir: &Path) -> Vec<String> {
    let mut names = files::entry_names(dir, MAX_NAMES);
    names.sort();
    names
}

/// File name without `.md`; `None` for other files.
pub fn markdown_stem(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".md").filter(|stem| !stem.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::locations::test_project::test_project;

    #[test]
    fn files_are_found_once_and_only_where_allowed() {
        let deep = format!("code/app/notes/{}x.md", "d/".repeat(MAX_DEPTH + 1));
        let project = test_project(&[
            ("code/app/notes/b.md", ""),
            ("code/app/notes/a/z.md", ""),
            ("code/app/notes/a/c.txt", ""),
            ("code/app/notes/.md", ""),
            (deep.as_str(), ""),
            ("elsewhere/secret.md", ""),
        ]);
        let dir = project.root.join("code/app/notes");
        symlink("..", dir.join("a/circle")).unwrap();
        symlink(project.root.join("elsewhere"), dir.join("out")).unwrap();
        let names = |author| {
            let mut search = FileSearch::new(&project.locations, "notes");
            let found = search.find_markdown(author, &dir);
            let names: Vec<String> = found.iter().map(|found| found.parts.join("/")).collect();
            (names.join(" "), search.warnings.join(" "))
        };
        let (of_project, text) = names(FileAuthor::Source(SettingSource::Project));
        assert_eq!(of_project, "a/z b");
        assert!(text.contains("/out links to") && text.contains("no notes are loaded"), "{text}");
        assert_eq!(names(FileAuthor::Within(&dir)), (of_project, text));
        assert_eq!(names(FileAuthor::Host), ("a/z b out/secret".into(), String::new()));
    }
}
