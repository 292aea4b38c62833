//! Changes of files: what changed, and how it is shown.
//!
//! - [`FileDiff`]: hunks of a file, from two texts or from the patch of a tool's result
//! - [`render`]: numbered lines with changed words marked

mod file_diff;
mod render;
mod words;

pub(crate) use file_diff::{FileChange, FileDiff};
pub(crate) use render::{Fold, render};
