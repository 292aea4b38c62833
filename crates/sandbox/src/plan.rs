//! The plan of mounts that carries out the file rules of a policy: which paths look different inside, in the order in
//! which they are mounted. Made by [`crate::resolve`], carried out by [`crate::launcher`].

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The mounts of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MountPlan {
    /// Parents come before what is below them.
    pub views: Vec<View>,
}

impl MountPlan {
    /// Returns the paths that can be written.
    pub fn writable_paths(&self) -> impl Iterator<Item = &Path> {
        let writable = |view: &&View| matches!(view.kind, ViewKind::Root { .. });
        self.views.iter().filter(writable).map(|view| view.path.as_path())
    }
}

/// A path that looks different inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Absolute, without links and dots.
    pub path: PathBuf,
    pub kind: ViewKind,
    pub presence: Presence,
}

/// How a path looks inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewKind {
    /// Writable. `pins` are the folders below it, relative and parents first, that must not be renamed.
    Root {
        pins: Vec<PathBuf>,
    },
    ReadOnly,
    /// A symbolic link that cannot be removed or replaced.
    ReadOnlyLink,
    /// Readable below a hidden path or in a fresh folder.
    Readable,
    HiddenFile,
    /// `placeholders` are the places below it at which other views are mounted.
    HiddenFolder {
        placeholders: Vec<Placeholder>,
    },
    /// An empty writable folder of the command's own.
    Fresh {
        placeholders: Vec<Placeholder>,
    },
}

/// An empty file or folder, on which another view is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placeholder {
    /// Relative to the view that has it.
    pub path: PathBuf,
    pub kind: PlaceholderKind,
}

/// Type of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlaceholderKind {
    File,
    Folder,
}

/// What happens if a path is gone when the command starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// The command does not start.
    Required,
    /// The view is left out.
    Optional,
}
