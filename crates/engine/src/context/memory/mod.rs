//! Instruction files: what the person and the project want every session to know (`CLAUDE.md`, `AGENTS.md`).
//!
//! They are told to the model before the first prompt and again after a compaction; those of a folder below the session's
//! own when a file there is read. Rooms: `places` (which files there may be), `read` (one of them), `gather` (all of them and
//! what they import), `tell` (as the model reads them).

mod gather;
mod places;
mod read;
mod tell;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use whimbrel_wire::hook::InstructionsLoaded;

use crate::files;
use crate::ground::Ground;
use gather::Gatherer;

/// Whose an instruction file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An administrator's.
    Managed,
    /// The person's, for all projects.
    User,
    /// The project's.
    Project,
    /// The person's, for this project.
    Local,
}

impl Kind {
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
pub enum Reason {
    /// The session began.
    SessionStart,
    /// The conversation was replaced by a summary, so that all must be told anew.
    Compact,
    /// A file below its folder was read.
    Nested,
    /// Another file imports it.
    Include,
}

impl Reason {
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
pub struct Loaded {
    /// The file.
    pub path: PathBuf,
    /// Whose it is.
    pub kind: Kind,
    /// Why it was read.
    pub reason: Reason,
    /// The file that made it matter.
    pub trigger: Option<PathBuf>,
    /// The file that imports it.
    pub parent: Option<PathBuf>,
    /// How many bytes of it the model was told.
    pub bytes: usize,
}

impl Loaded {
    /// The file as hooks are told of it.
    pub fn for_hooks(&self) -> InstructionsLoaded {
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
pub struct News {
    /// Files that were read, for hooks.
    pub loaded: Vec<Loaded>,
    /// What the host should know. Each is said once in a session.
    pub warnings: Vec<String>,
}

/// What an agent knows of the instruction files. A clone for another agent of the session knows nothing yet.
#[derive(Debug)]
pub struct Memory {
    ground: Arc<Ground>,
    home: Option<Arc<Path>>,
    managed: Arc<[PathBuf]>,
    /// Warnings that the host has heard, from whichever agent.
    said: Arc<Mutex<HashSet<String>>>,
    /// Whether the files of the start were told before.
    begun: bool,
    /// What the model knows, links followed.
    known: HashSet<PathBuf>,
    files: Vec<Loaded>,
    /// Folders below the session's own that were looked at.
    visited: HashSet<PathBuf>,
    /// Files that the model asked to see and that may make others matter.
    watched: Vec<String>,
    news: News,
}

impl Memory {
    /// The instruction files of a session; `~` in an import is `home`.
    pub fn new(ground: Arc<Ground>, home: Option<&Path>) -> Self {
        let managed = ["/etc/claude-code/CLAUDE.md", "/etc/whimbrel/CLAUDE.md"].map(PathBuf::from);
        Self {
            ground,
            home: home.map(Into::into),
            managed: managed.into(),
            said: Arc::default(),
            begun: false,
            known: HashSet::new(),
            files: Vec::new(),
            visited: HashSet::new(),
            watched: Vec::new(),
            news: News::default(),
        }
    }

    /// For another agent of the same session, or for the same one that has forgotten everything.
    pub fn fresh(&self) -> Self {
        Self {
            managed: Arc::clone(&self.managed),
            said: Arc::clone(&self.said),
            ..Self::new(Arc::clone(&self.ground), self.home.as_deref())
        }
    }

    /// What the model is told at the start, and again when it has forgotten it. Touches the disk.
    pub fn begin(&mut self) -> Option<String> {
        let reason = if mem::replace(&mut self.begun, true) { Reason::Compact } else { Reason::SessionStart };
        self.known.clear();
        self.visited.clear();
        self.files.clear();
        let places = places::at_start(&self.ground, &self.managed);
        self.gather(&places, reason, None).and_then(|told| tell::at_start(&told))
    }

    /// Notes a call that shows the model a file, or changes one.
    pub fn watch(&mut self, tool: &str, input: &Value) {
        let field = match tool {
            "Read" | "Edit" | "Write" => "file_path",
            "NotebookEdit" => "notebook_path",
            _ => return,
        };
        self.watched.extend(input[field].as_str().map(str::to_owned));
    }

    /// Takes the paths of such calls, as they were written.
    pub fn take_watched(&mut self) -> Vec<String> {
        mem::take(&mut self.watched)
    }

    /// What the model is told because it saw a file: the instructions of the folders that it lies in. Touches the disk.
    /// Each is a text of its own, so that one that was told in an earlier run is known again.
    pub fn nested(&mut self, file: &Path) -> Vec<String> {
        let Some(file) = files::real_path(file) else { return Vec::new() };
        let Some(folder) = file.parent().map(Path::to_owned) else { return Vec::new() };
        if !self.visited.insert(folder) {
            return Vec::new();
        }
        let places = places::above(&self.ground, &file);
        let told = self.gather(&places, Reason::Nested, Some(&file)).unwrap_or_default();
        told.chunks(1).filter_map(tell::nested).collect()
    }

    /// The files that the model was told.
    pub fn files(&self) -> &[Loaded] {
        &self.files
    }

    /// What happened since this was asked last.
    pub fn take_news(&mut self) -> News {
        let mut news = mem::take(&mut self.news);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        news.warnings.retain(|warning| said.insert(warning.clone()));
        news
    }

    fn gather(
        &mut self,
        places: &[places::Place],
        reason: Reason,
        trigger: Option<&Path>,
    ) -> Option<Vec<gather::Told>> {
        let so_far = self.files.iter().map(|file| file.bytes).sum();
        let mut gatherer = Gatherer::new(&self.ground, self.home.as_deref(), &mut self.known, so_far);
        for place in places {
            gatherer.take(place, reason, trigger);
        }
        let (told, warnings) = (gatherer.told, gatherer.warnings);
        let files = told.iter().map(|told| told.file.clone());
        self.files.extend(files.clone());
        self.news.loaded.extend(files);
        self.news.warnings.extend(warnings);
        (!told.is_empty()).then_some(told)
    }
}
