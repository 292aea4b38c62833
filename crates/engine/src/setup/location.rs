//! Location of a session: which session it is, its working directory and its storage.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use whimbrel_config::settings;
use whimbrel_session_store::{Durability, TranscriptDir};
use whimbrel_tools::sandbox::SandboxProbe;
use whimbrel_tools::task_list::TaskList;
use whimbrel_tools::workspace::Workspace;
use whimbrel_wire::options::Options;

use super::session_request::working_directory;
use super::session_selection::{self, TranscriptWrites};
use super::setup_types::SessionSetup;
use super::store_resume::StoreResolvedSession;
use super::{SetupError, checkpoints, storage, tools};

/// A located session, its task list, and warnings for the host.
pub(super) struct ResolvedLocation {
    pub(super) session: SessionSetup,
    pub(super) task_list: TaskList,
    pub(super) warnings: Vec<String>,
}

/// Resolves the location; `stored` is a session selected from a store. Programs get the key variables in `pass_env`.
/// Accesses the disk.
pub(super) fn resolve_location(
    options: &Options,
    env: &BTreeMap<String, String>,
    pass_env: &[String],
    stored: Option<StoreResolvedSession>,
    sandbox_probe: &Arc<SandboxProbe>,
) -> Result<ResolvedLocation, SetupError> {
    let root = working_directory(options)?;
    let mut persistence = session_selection::resolve_persistence(options, env)?;
    let storage::TranscriptStorage { transcript_dir: storage_dir, error: storage_error } =
        storage::find_storage(env, &root);
    let is_ephemeral = options.persist_session == Some(false) || stored.is_some();
    let writes = if is_ephemeral || storage_error.is_some() {
        TranscriptWrites::Disabled
    } else {
        TranscriptWrites::Enabled
    };
    // Without `HOME` and configuration directory the session is not stored; that is an error only if durability is
    // strict.
    let is_required = storage_dir.is_none() && persistence.durability == Durability::Strict;
    let no_directory = || is_required.then(|| "neither HOME nor CLAUDE_CONFIG_DIR is set".into());
    let storage_error = storage_error.or_else(no_directory).filter(|_| !is_ephemeral);
    persistence.unavailable.clone_from(&storage_error);
    let session_selection::ResolvedSession { session, transcript_dir, resumed, origin, forked_from, warning } =
        match stored {
            Some(stored) => stored.into_resolved(&mut persistence),
            None => session_selection::resolve_session(options, storage_dir.as_ref(), writes, &persistence)?,
        };
    let output_dir = tool_output_dir(transcript_dir.as_ref(), env, &session);
    let config = settings::config_dir(env);
    let stored_config = config.as_deref().filter(|_| transcript_dir.is_some());
    let checkpoints = checkpoints::create_checkpoints(options, stored_config, &output_dir, &session);
    let copy_warning =
        checkpoints::inherit_checkpoints(forked_from.as_deref(), checkpoints.as_ref(), config.as_deref());
    let task_list = tools::open_task_list(stored_config, env, &session);
    let workspace = Workspace::new(root, output_dir, env.clone())
        .with_checkpoints(checkpoints)
        .with_passed_variables(pass_env)
        .with_sandbox_probe(Arc::clone(sandbox_probe));
    let workspace = Arc::new(workspace);
    let warnings = storage_error
        .as_deref()
        .map(storage::render_warning)
        .into_iter()
        .chain(warning)
        .chain(copy_warning)
        .collect();
    let session = SessionSetup {
        id: session,
        workspace,
        transcript_dir,
        persistence,
        resumed: resumed.map(Box::new),
        origin,
        is_ephemeral,
        title: options.title.clone(),
        entrypoint: env.get("CLAUDE_CODE_ENTRYPOINT").cloned().unwrap_or_else(|| "cli".into()),
    };
    Ok(ResolvedLocation { session, task_list, warnings })
}

/// Directory of long tool output: next to the transcript, or temporary if the session is not stored.
fn tool_output_dir(
    transcript_dir: Option<&TranscriptDir>,
    env: &BTreeMap<String, String>,
    session: &str,
) -> PathBuf {
    match transcript_dir {
        Some(transcript_dir) => transcript_dir.tool_results_dir(session),
        None => storage::temp_dir(env).join(format!("whimbrel-{session}")),
    }
}
