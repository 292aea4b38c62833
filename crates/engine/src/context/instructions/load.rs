//! Loads instruction files with their imports, each once, within a total limit.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::settings::LayerScope;
use whimbrel_os::files;

use super::locations::CandidateFile;
use super::read::{self, FileText, ReadOutcome};
use super::{InstructionFile, InstructionKind, LoadReason};
use crate::context::mentions;

const MAX_IMPORT_DEPTH: usize = 5;

/// Limit on all files together.
const MAX_TOTAL_BYTES: usize = 256 * 1024;

/// A loaded file with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstructionText {
    pub(super) file: InstructionFile,
    pub(super) text: String,
    /// Size of the whole file, if the text is truncated.
    pub(super) full_size: Option<u64>,
}

pub(super) struct InstructionLoader<'a> {
    config_locations: &'a ConfigLocations,
    home: Option<&'a Path>,
    /// Real paths of the files the model has already.
    known_paths: &'a mut HashSet<PathBuf>,
    /// Bytes left of the total limit.
    remaining_bytes: usize,
    pub(super) loaded: Vec<InstructionText>,
    pub(super) warnings: Vec<String>,
}

/// Origin of a file.
struct ImportChain<'a> {
    reason: LoadReason,
    /// The accessed file that caused the load.
    trigger: Option<&'a Path>,
    /// The chain of importing files, outermost first.
    parents: Vec<PathBuf>,
}

impl<'a> InstructionLoader<'a> {
    /// Creates a loader, given the known files and the number of bytes injected so far.
    pub(super) fn new(
        config_locations: &'a ConfigLocations,
        home: Option<&'a Path>,
        known_paths: &'a mut HashSet<PathBuf>,
        injected_bytes: usize,
    ) -> Self {
        Self {
            config_locations,
            home,
            known_paths,
            remaining_bytes: MAX_TOTAL_BYTES.saturating_sub(injected_bytes),
            loaded: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Loads a candidate file, if it exists, and its imports.
    pub(super) fn load(&mut self, candidate: &CandidateFile, reason: LoadReason, trigger: Option<&Path>) {
        let Some(real_path) = candidate.real_path.clone().or_else(|| read::resolve(&candidate.path)) else {
            return;
        };
        if self.is_foreign_owned(candidate, &real_path) {
            return self.warn_unreadable(candidate, "it is above the project and belongs to another user");
        }
        self.load_resolved(candidate, &real_path, &ImportChain { reason, trigger, parents: Vec::new() });
    }

    fn load_resolved(&mut self, candidate: &CandidateFile, real_path: &Path, chain: &ImportChain<'_>) {
        if self.known_paths.contains(real_path) {
            return;
        }
        let shown = candidate.path.display();
        if !self.config_locations.may_read(candidate.scope, &candidate.boundary, real_path) {
            self.warnings.push(match chain.parents.last() {
                Some(parent) => format!("{} imports {shown}, which is outside the project and is not read. Trust the project, or import it from your own instruction file.", parent.display()),
                None => format!("{shown} is a symlink to {}, which is outside the project and is not read. Trust the project, or replace the symlink with a file.", real_path.display()),
            });
            return;
        }
        let FileText { text, full_size } = match read::read(real_path) {
            ReadOutcome::Text(text) => text,
            ReadOutcome::Missing => return,
            ReadOutcome::Directory => return self.warn_unreadable(candidate, "it is a directory"),
            ReadOutcome::Unreadable(why) => return self.warn_unreadable(candidate, &why),
        };
        self.known_paths.insert(real_path.to_owned());
        if text.is_empty() || self.loaded.iter().any(|loaded| loaded.text == text) {
            return;
        }
        let Some(remaining) = self.remaining_bytes.checked_sub(text.len()) else {
            self.warnings.push(format!("{shown} is left out: the instruction files exceed {MAX_TOTAL_BYTES} bytes in total. Shorten them."));
            return;
        };
        self.remaining_bytes = remaining;
        if let Some(size) = full_size {
            self.warnings.push(format!("{shown} is too long for an instruction file ({size} bytes): only the first {} bytes are used. Shorten it, or move parts to files that are read when needed.", read::MAX_FILE_BYTES));
        }
        let file = InstructionFile {
            path: candidate.path.clone(),
            kind: candidate.kind,
            reason: chain.reason,
            trigger: chain.trigger.map(Path::to_owned),
            parent: chain.parents.last().cloned(),
            bytes: text.len(),
        };
        let (imports, has_more) = mentions::find_mentions(&text);
        if has_more {
            self.warnings.push(format!("{shown} imports more than {} files: the rest are not read. Merge some of them, or import some from an imported file.", mentions::MAX_MENTIONS));
        }
        self.loaded.push(InstructionText { file, text, full_size });
        for mention in imports {
            self.import(candidate, &mention, chain);
        }
    }

    /// Loads the file that a mention imports, if it names one.
    fn import(&mut self, candidate: &CandidateFile, mention: &mentions::Mention, chain: &ImportChain<'_>) {
        let paths = mention.candidates().map(|mentioned| self.resolve_import(&candidate.path, mentioned));
        let Some((path, real_path)) =
            paths.flatten().find_map(|path| Some((path.clone(), read::resolve(&path)?)))
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

    /// Returns whether a file above the project belongs to another user; directories like `/tmp` are writable by all.
    fn is_foreign_owned(&self, candidate: &CandidateFile, real_path: &Path) -> bool {
        let ConfigLocations { working_dir: root, .. } = self.config_locations;
        let trusted_uids = [Some(nix::unistd::Uid::effective().as_raw()), Some(0), files::owner_uid(root)];
        matches!(candidate.kind, InstructionKind::Project | InstructionKind::Local)
            && !candidate.path.starts_with(self.config_locations.repo_root())
            && !trusted_uids.contains(&files::owner_uid(real_path))
    }

    fn warn_unreadable(&mut self, candidate: &CandidateFile, reason: &str) {
        let owner = if candidate.scope == LayerScope::User { "your" } else { "the project's" };
        self.warnings.push(format!(
            "{} cannot be read as one of {owner} instruction files: {reason}.",
            candidate.path.display()
        ));
    }
}
