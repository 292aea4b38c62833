//! Loads instruction files, each once, within a total limit. Files that they import are loaded by `imports`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::settings::LayerScope;
use whimbrel_os::files;

use super::bounded_read::{self, FileText, ReadOutcome};
use super::imports::ImportChain;
use super::locations::CandidateFile;
use super::{InstructionFile, InstructionKind, LoadReason};

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
    pub(super) home: Option<&'a Path>,
    /// Real paths of the files the model has already.
    pub(super) known_paths: &'a mut HashSet<PathBuf>,
    /// Bytes left of the total limit.
    remaining_bytes: usize,
    pub(super) loaded: Vec<InstructionText>,
    pub(super) warnings: Vec<String>,
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
        let Some(real_path) = candidate.real_path.clone().or_else(|| files::real_path(&candidate.path))
        else {
            return;
        };
        if self.is_foreign_owned(candidate, &real_path) {
            return self.warn_unreadable(candidate, "it is above the project and belongs to another user");
        }
        self.load_resolved(candidate, &real_path, &ImportChain { reason, trigger, parents: Vec::new() });
    }

    /// Loads a file whose path is resolved, and its imports.
    pub(super) fn load_resolved(
        &mut self,
        candidate: &CandidateFile,
        real_path: &Path,
        chain: &ImportChain<'_>,
    ) {
        if self.known_paths.contains(real_path) {
            return;
        }
        let shown = candidate.path.display();
        if !self.config_locations.may_read(candidate.scope, &candidate.boundary, real_path) {
            return self.warn_outside_project(candidate, real_path, chain);
        }
        let FileText { text, full_size } = match bounded_read::read_bounded(real_path) {
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
            self.warnings.push(format!("{shown} is too long for an instruction file ({size} bytes): only the first {} bytes are used. Shorten it, or move parts to files that are read when needed.", bounded_read::MAX_FILE_BYTES));
        }
        let file = InstructionFile {
            path: candidate.path.clone(),
            kind: candidate.kind,
            reason: chain.reason,
            trigger: chain.trigger.map(Path::to_owned),
            parent: chain.parents.last().cloned(),
            bytes: text.len(),
        };
        let imports = self.find_imports(candidate, &text);
        self.loaded.push(InstructionText { file, text, full_size });
        self.load_imports(candidate, &imports, chain);
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
