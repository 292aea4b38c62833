//! Copies of files as they were at each prompt: whether they are wanted, and where they go.

use std::path::Path;

use whimbrel_wire::options::Options;

use crate::session::checkpoint::{self, Checkpoints};

/// Where copies of files go if they are wanted: below the settings, or beside the tool output when nothing is kept.
pub(super) fn create_checkpoints(
    options: &Options,
    config: Option<&Path>,
    spill: &Path,
    session: &str,
) -> Option<Checkpoints> {
    let folder = || match config {
        Some(config) => checkpoint::checkpoint_dir(config, session),
        None => spill.join("file-history"),
    };
    options.enable_file_checkpointing.then(|| Checkpoints::new(folder()))
}

/// A fork takes over the copies of the session that it is a fork of; says so if it cannot.
pub(super) fn inherit_checkpoints(
    forked_from: Option<&str>,
    checkpoints: Option<&Checkpoints>,
    config: Option<&Path>,
) -> Option<String> {
    let (Some(checkpoints), Some(config), Some(from)) = (checkpoints, config, forked_from) else {
        return None;
    };
    let copied = checkpoints.inherit(&checkpoint::checkpoint_dir(config, from));
    copied.err().map(|error| {
        format!("Files cannot be put back to prompts before the fork: their copies could not be taken over ({error}).")
    })
}
