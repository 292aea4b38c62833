//! Creates the file checkpoints of a session.

use std::path::Path;

use whimbrel_session_store::checkpoint::{self, Checkpoints};
use whimbrel_wire::options::Options;

/// The checkpoints, if enabled: below the configuration directory, or next to the tool output of a session that is not
/// stored.
pub(super) fn create_checkpoints(
    options: &Options,
    config: Option<&Path>,
    output_dir: &Path,
    session: &str,
) -> Option<Checkpoints> {
    let dir = || match config {
        Some(config) => checkpoint::checkpoint_dir(config, session),
        None => output_dir.join("file-history"),
    };
    options.enable_file_checkpointing.then(|| Checkpoints::new(dir()))
}

/// Copies the checkpoints of the session that this one was forked from. Returns a warning on failure.
pub(super) fn inherit_checkpoints(
    forked_from: Option<&str>,
    checkpoints: Option<&Checkpoints>,
    config: Option<&Path>,
) -> Option<String> {
    let (Some(checkpoints), Some(config), Some(from)) = (checkpoints, config, forked_from) else {
        return None;
    };
    let result = checkpoints.inherit(&checkpoint::checkpoint_dir(config, from));
    result.err().map(|error| {
        format!("Files cannot be rewound to prompts before the fork: the checkpoints could not be copied ({error}).")
    })
}
