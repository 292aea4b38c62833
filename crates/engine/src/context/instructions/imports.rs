//! `@path` imports of instruction files: resolves and loads the imported files, up to a depth, and reports those that
//! are missing or outside the project.

use std::path::{Path, PathBuf};

use whimbrel_os::files;

use super::LoadReason;
use super::load::InstructionLoader;
use super::locations::CandidateFile;
use crate::context::mentions::{self, MAX_MENTIONS, Mention};

const MAX_IMPORT_DEPTH: usize = 5;

/// Why a file is loaded, and the files that import it.
pub(super) struct ImportChain<'a> {
    pub(super) reason: LoadReason,
    /// The accessed file that caused the load.
    pub(super) trigger: Option<&'a Path>,
    /// The chain of importing files, outermost first.
    pub(super) parents: Vec<PathBuf>,
}

impl InstructionLoader<'_> {
    /// Finds the imports in the text of a file; warns if there are more than are read.
    pub(super) fn find_imports(&mut self, candidate: &CandidateFile, text: &str) -> Vec<Mention> {
        let (imports, has_more) = mentions::find_mentions(text);
        if has_more {
            self.warnings.push(format!("{} imports more than {MAX_MENTIONS} files: the rest are not read. Merge some of them, or import some from an imported file.", candidate.path.display()));
        }
        imports
    }

    /// Loads the files that a file imports.
    pub(super) fn load_imports(
        &mut self,
        candidate: &CandidateFile,
        imports: &[Mention],
        chain: &ImportChain<'_>,
    ) {
        for mention in imports {
            self.load_import(candidate, mention, chain);
        }
    }

    /// Loads the file that a mention imports, if it names one.
    fn load_import(&mut self, candidate: &CandidateFile, mention: &Mention, chain: &ImportChain<'_>) {
        let paths = mention.candidates().map(|mentioned| self.resolve_import(&candidate.path, mentioned));
        let Some((path, real_path)) =
            paths.flatten().find_map(|path| Some((path.clone(), files::real_path(&path)?)))
        else {
            // Most `@name` mentions are people or packages, so only Markdown files are reported.
            if mention.candidates().any(|mentioned| mentioned.ends_with(".md")) {
                self.warnings.push(format!(
                    "{} imports {}, which does not exist.",
                    candidate.path.display(),
                    mention.path
                ));
            }
            return;
        };
        let is_markdown = path.extension().is_some_and(|end| end == "md");
        if !is_markdown && matches!(files::file_kind(&real_path), Ok(files::FileKind::Directory)) {
            return;
        }
        let mut parents = chain.parents.clone();
        parents.push(candidate.path.clone());
        if parents.len() > MAX_IMPORT_DEPTH {
            if !self.known_paths.contains(&real_path) {
                self.warnings.push(format!(
                    "{} is not read: imports are nested more than {MAX_IMPORT_DEPTH} deep.",
                    path.display()
                ));
            }
            return;
        }
        let candidate = CandidateFile { path, real_path: None, ..candidate.clone() };
        self.load_resolved(
            &candidate,
            &real_path,
            &ImportChain { reason: LoadReason::Include, trigger: chain.trigger, parents },
        );
    }

    /// Resolves the path of an import, relative to the importing file or to `~`.
    fn resolve_import(&self, file: &Path, mentioned: &str) -> Option<PathBuf> {
        let path = match mentioned.strip_prefix("~/") {
            Some(rest) => self.home?.join(rest),
            None => file.parent()?.join(mentioned),
        };
        Some(files::normalize_path(&path))
    }

    /// Warns that an import, or the target of a symlink, is outside the project and is not read.
    pub(super) fn warn_outside_project(
        &mut self,
        candidate: &CandidateFile,
        real_path: &Path,
        chain: &ImportChain<'_>,
    ) {
        let shown = candidate.path.display();
        self.warnings.push(match chain.parents.last() {
            Some(parent) => format!("{} imports {shown}, which is outside the project and is not read. Trust the project, or import it from your own instruction file.", parent.display()),
            None => format!("{shown} is a symlink to {}, which is outside the project and is not read. Trust the project, or replace the symlink with a file.", real_path.display()),
        });
    }
}
