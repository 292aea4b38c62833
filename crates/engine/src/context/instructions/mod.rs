//! Instruction files: what the person and the project want every session to know (`CLAUDE.md`, `AGENTS.md`).
//!
//! They are told to the model before the first prompt and again after a compaction; those of a folder below the session's
//! own when a file there is read. Rooms: `places` (which files there may be), `read` (one of them), `gather` (all of them and
//! what they import), `tell` (as the model reads them).

mod load;
mod locations;
mod read;
mod render;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use whimbrel_wire::hook::InstructionsLoaded;

use crate::files;
use crate::config_locations::ConfigLocations;
use load::InstructionLoader;

/// Whose an instruction file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionKind {
    /// An administrator's.
    Managed,
    /// The person's, for all projects.
    User,
    /// The project's.
    Project,
    /// The person's, for this project.
    Local,
}

impl InstructionKind {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "Managed",
            Self::User => "User",
            Self::Project => "Project",
            Self::Local => "Local",
        }
    }
}

/// Why a file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadReason {
    /// The session began.
    SessionStart,
    /// The conversation was replaced by a summary, so that all must be told anew.
    Compact,
    /// A file below its folder was read.
    Nested,
    /// Another file imports it.
    Include,
}

impl LoadReason {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::Compact => "compact",
            Self::Nested => "nested_traversal",
            Self::Include => "include",
        }
    }
}

/// A file that the model was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// The file.
    pub path: PathBuf,
    /// Whose it is.
    pub kind: InstructionKind,
    /// Why it was read.
    pub reason: LoadReason,
    /// The file that made it matter.
    pub trigger: Option<PathBuf>,
    /// The file that imports it.
    pub parent: Option<PathBuf>,
    /// How many bytes of it the model was told.
    pub bytes: usize,
}

impl InstructionFile {
    /// The file as hooks are told of it.
    pub fn to_hook_input(&self) -> InstructionsLoaded {
        let text = |path: &PathBuf| path.display().to_string();
        InstructionsLoaded {
            file_path: text(&self.path),
            memory_type: self.kind.name().into(),
            load_reason: self.reason.name().into(),
            trigger_file_path: self.trigger.as_ref().map(text),
            parent_file_path: self.parent.as_ref().map(text),
            ..InstructionsLoaded::default()
        }
    }
}

/// What happened since somebody asked last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstructionUpdates {
    /// Files that were read, for hooks.
    pub loaded: Vec<InstructionFile>,
    /// What the host should know. Each is said once in a session.
    pub warnings: Vec<String>,
}

/// What an agent knows of the instruction files. A clone for another agent of the session knows nothing yet.
#[derive(Debug)]
pub struct Instructions {
    config_locations: Arc<ConfigLocations>,
    home: Option<Arc<Path>>,
    managed: Arc<[PathBuf]>,
    /// Warnings that the host has heard, from whichever agent.
    sent_warnings: Arc<Mutex<HashSet<String>>>,
    /// Whether the files of the start were told before.
    has_loaded: bool,
    /// What the model knows, links followed.
    known_paths: HashSet<PathBuf>,
    files: Vec<InstructionFile>,
    /// Folders below the session's own that were looked at.
    visited_dirs: HashSet<PathBuf>,
    /// Files that the model asked to see and that may make others matter.
    watched_paths: Vec<String>,
    updates: InstructionUpdates,
}

impl Instructions {
    /// The instruction files of a session; `~` in an import is `home`.
    pub fn new(config_locations: Arc<ConfigLocations>, home: Option<&Path>) -> Self {
        let managed = ["/etc/claude-code/CLAUDE.md", "/etc/whimbrel/CLAUDE.md"].map(PathBuf::from);
        Self {
            config_locations,
            home: home.map(Into::into),
            managed: managed.into(),
            sent_warnings: Arc::default(),
            has_loaded: false,
            known_paths: HashSet::new(),
            files: Vec::new(),
            visited_dirs: HashSet::new(),
            watched_paths: Vec::new(),
            updates: InstructionUpdates::default(),
        }
    }

    /// For another agent of the same session, or for the same one that has forgotten everything.
    pub fn for_new_agent(&self) -> Self {
        Self {
            managed: Arc::clone(&self.managed),
            sent_warnings: Arc::clone(&self.sent_warnings),
            ..Self::new(Arc::clone(&self.config_locations), self.home.as_deref())
        }
    }

    /// What the model is told at the start, and again when it has forgotten it. Touches the disk.
    pub fn load_initial(&mut self) -> Option<String> {
        let reason = if mem::replace(&mut self.has_loaded, true) { LoadReason::Compact } else { LoadReason::SessionStart };
        self.known_paths.clear();
        self.visited_dirs.clear();
        self.files.clear();
        let places = locations::initial_files(&self.config_locations, &self.managed);
        self.load_files(&places, reason, None).and_then(|told| render::render_initial(&told))
    }

    /// Notes a call that shows the model a file, or changes one.
    pub fn watch_call(&mut self, tool: &str, input: &Value) {
        let field = match tool {
            "Read" | "Edit" | "Write" => "file_path",
            "NotebookEdit" => "notebook_path",
            _ => return,
        };
        self.watched_paths.extend(input[field].as_str().map(str::to_owned));
    }

    /// Takes the paths of such calls, as they were written.
    pub fn take_watched_paths(&mut self) -> Vec<String> {
        mem::take(&mut self.watched_paths)
    }

    /// What the model is told because it saw a file: the instructions of the folders that it lies in. Touches the disk.
    /// Each is a text of its own, so that one that was told in an earlier run is known again.
    pub fn load_nested(&mut self, file: &Path) -> Vec<String> {
        let Some(file) = files::real_path(file) else { return Vec::new() };
        let Some(folder) = file.parent().map(Path::to_owned) else { return Vec::new() };
        if !self.visited_dirs.insert(folder) {
            return Vec::new();
        }
        let places = locations::nested_files(&self.config_locations, &file);
        let told = self.load_files(&places, LoadReason::Nested, Some(&file)).unwrap_or_default();
        told.chunks(1).filter_map(render::render_nested).collect()
    }

    /// The files that the model was told.
    pub fn files(&self) -> &[InstructionFile] {
        &self.files
    }

    /// What happened since this was asked last.
    pub fn take_updates(&mut self) -> InstructionUpdates {
        let mut news = mem::take(&mut self.updates);
        let mut said = self.sent_warnings.lock().unwrap_or_else(PoisonError::into_inner);
        news.warnings.retain(|warning| said.insert(warning.clone()));
        news
    }

    fn load_files(
        &mut self,
        places: &[locations::CandidateFile],
        reason: LoadReason,
        trigger: Option<&Path>,
    ) -> Option<Vec<load::InstructionText>> {
        let so_far = self.files.iter().map(|file| file.bytes).sum();
        let mut gatherer = InstructionLoader::new(&self.config_locations, self.home.as_deref(), &mut self.known_paths, so_far);
        for place in places {
            gatherer.load(place, reason, trigger);
        }
        let (told, warnings) = (gatherer.loaded, gatherer.warnings);
        let files = told.iter().map(|told| told.file.clone());
        self.files.extend(files.clone());
        self.updates.loaded.extend(files);
        self.updates.warnings.extend(warnings);
        (!told.is_empty()).then_some(told)
    }
}
