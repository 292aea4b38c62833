//! Instruction files of user and project (`CLAUDE.md`, `AGENTS.md`).
//!
//! They are injected before the first prompt and again after a compaction; those of subdirectories when the model
//! accesses a file there. Modules: `locations` (candidate files), `bounded_read` (one file), `load` (all files),
//! `imports` (files that they import), `nested` (files of subdirectories).

mod bounded_read;
mod imports;
mod load;
mod locations;
mod nested;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use whimbrel_config::locations::ConfigLocations;
use whimbrel_wire::hook::InstructionsLoaded;

use load::{InstructionLoader, InstructionText};

/// Owner of an instruction file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionKind {
    /// Of the administrator.
    Managed,
    /// Of the user, for all projects.
    User,
    /// Of the project.
    Project,
    /// Of the user, for this project.
    Local,
}

impl InstructionKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "Managed",
            Self::User => "User",
            Self::Project => "Project",
            Self::Local => "Local",
        }
    }
}

/// Reason why a file was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadReason {
    SessionStart,
    /// The conversation was compacted, so everything is injected anew.
    Compact,
    /// A file in or below its directory was accessed.
    Nested,
    /// Another file imports it.
    Include,
}

impl LoadReason {
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::Compact => "compact",
            Self::Nested => "nested_traversal",
            Self::Include => "include",
        }
    }
}

/// An instruction file that was injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    pub path: PathBuf,
    pub kind: InstructionKind,
    pub reason: LoadReason,
    /// The accessed file that caused the load.
    pub trigger: Option<PathBuf>,
    /// The file that imports it.
    pub parent: Option<PathBuf>,
    /// Number of bytes injected.
    pub bytes: usize,
}

impl InstructionFile {
    /// Input of the `InstructionsLoaded` hooks.
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

/// Files and warnings since the last query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstructionUpdates {
    /// Files that were loaded, for hooks.
    pub loaded: Vec<InstructionFile>,
    /// Warnings for the host, each once per session.
    pub warnings: Vec<String>,
}

/// Instruction files of one agent.
#[derive(Debug)]
pub struct Instructions {
    config_locations: Arc<ConfigLocations>,
    home: Option<Arc<Path>>,
    managed: Arc<[PathBuf]>,
    /// Warnings that the host got already, from any agent of the session.
    sent_warnings: Arc<Mutex<HashSet<String>>>,
    /// Whether the initial files were loaded before.
    has_loaded: bool,
    /// Real paths of the files the model has.
    known_paths: HashSet<PathBuf>,
    files: Vec<InstructionFile>,
    /// Subdirectories that were searched already.
    visited_dirs: HashSet<PathBuf>,
    /// Number of further directories that were searched already.
    added_dirs: usize,
    /// Paths of tool calls that may cause nested files to be loaded.
    watched_paths: Vec<String>,
    updates: InstructionUpdates,
}

impl Instructions {
    /// Creates an empty set; `home` resolves `~` in imports.
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
            added_dirs: 0,
            watched_paths: Vec::new(),
            updates: InstructionUpdates::default(),
        }
    }

    /// An empty set for another agent of the same session.
    pub fn for_new_agent(&self) -> Self {
        Self {
            managed: Arc::clone(&self.managed),
            sent_warnings: Arc::clone(&self.sent_warnings),
            ..Self::new(Arc::clone(&self.config_locations), self.home.as_deref())
        }
    }

    /// Loads the initial files, and loads them again after a compaction; returns their text. Blocking.
    pub fn load_initial(&mut self) -> Option<String> {
        let reason = if mem::replace(&mut self.has_loaded, true) {
            LoadReason::Compact
        } else {
            LoadReason::SessionStart
        };
        self.known_paths.clear();
        self.visited_dirs.clear();
        self.files.clear();
        self.added_dirs = self.config_locations.instruction_dirs.len();
        let candidates = locations::initial_files(&self.config_locations, &self.managed);
        self.load_files(&candidates, reason, None).and_then(|texts| render_initial(&texts))
    }

    /// Loads the files of directories that were added since; returns their text. Blocking.
    pub fn load_added(&mut self) -> Option<String> {
        let count = self.config_locations.instruction_dirs.len();
        // The initial files include those of all directories so far.
        if !self.has_loaded || mem::replace(&mut self.added_dirs, count) == count {
            return None;
        }
        let candidates = locations::added_files(&self.config_locations);
        self.load_files(&candidates, LoadReason::Nested, None).and_then(|texts| render_initial(&texts))
    }

    /// The files that were injected.
    pub fn files(&self) -> &[InstructionFile] {
        &self.files
    }

    /// Takes files and warnings since the last call.
    pub fn take_updates(&mut self) -> InstructionUpdates {
        let mut updates = mem::take(&mut self.updates);
        let mut sent = self.sent_warnings.lock().unwrap_or_else(PoisonError::into_inner);
        updates.warnings.retain(|warning| sent.insert(warning.clone()));
        updates
    }

    fn load_files(
        &mut self,
        candidates: &[locations::CandidateFile],
        reason: LoadReason,
        trigger: Option<&Path>,
    ) -> Option<Vec<InstructionText>> {
        let injected_bytes = self.files.iter().map(|file| file.bytes).sum();
        let mut loader = InstructionLoader::new(
            &self.config_locations,
            self.home.as_deref(),
            &mut self.known_paths,
            injected_bytes,
        );
        for candidate in candidates {
            loader.load(candidate, reason, trigger);
        }
        let (texts, warnings) = (loader.loaded, loader.warnings);
        let files = texts.iter().map(|texts| texts.file.clone());
        self.files.extend(files.clone());
        self.updates.loaded.extend(files);
        self.updates.warnings.extend(warnings);
        (!texts.is_empty()).then_some(texts)
    }
}

/// Renders the initial files; `None` if there are none.
fn render_initial(texts: &[InstructionText]) -> Option<String> {
    let head = "Instructions from the user and the project, for every task here. Follow them where they apply; they override your defaults.";
    render_files(head, texts)
}

fn render_files(head: &str, texts: &[InstructionText]) -> Option<String> {
    if texts.is_empty() {
        return None;
    }
    let files: Vec<String> = texts.iter().map(render_file).collect();
    Some(format!("<system-reminder>\n{head}\n\n{}\n</system-reminder>", files.join("\n\n")))
}

fn render_file(instructions: &InstructionText) -> String {
    let InstructionText { file, text, full_size } = instructions;
    let owner = match file.kind {
        InstructionKind::Managed => "from the administrator",
        InstructionKind::User => "from the user, for all projects",
        InstructionKind::Project => "from the project",
        InstructionKind::Local => "from the user, for this project",
    };
    let imported =
        file.parent.as_ref().map(|parent| format!(", imported by {}", parent.display())).unwrap_or_default();
    let rest = full_size
        .map(|size| format!("\n(Truncated: the file has {size} bytes. Read it if you need the rest.)"))
        .unwrap_or_default();
    format!("{} ({owner}{imported}):\n{text}{rest}", file.path.display())
}
