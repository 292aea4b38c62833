//! The worktree of a session that asks for one (`--worktree`). It is created before anything else is resolved, because
//! it is the working directory of the session.

use std::path::Path;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use whimbrel_config::settings::repository_root;
use whimbrel_os::ids;
use whimbrel_tools::internal_events::{EventReceiver, event_channel};
use whimbrel_tools::tasks::TaskRegistry;
use whimbrel_tools::workspace::worktree::Worktree;
use whimbrel_tools::worktrees::Worktrees;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_transport::host_requests::HostRequests;
use whimbrel_wire::Frame;
use whimbrel_wire::options::Options;

use super::build_hooks;
use crate::engine::Engine;
use crate::setup::session_request::working_directory;
use crate::setup::{SessionRequest, Setup, SetupError};

/// Capacity of the channel of discarded frames.
const FRAME_CHANNEL_CAPACITY: usize = 16;

/// The request with the worktree as its working directory, and a notice for the user that names it. The settings stay
/// those of the directory in which the session was started: what it denies holds in its worktrees, too.
pub(super) async fn enter_worktree(
    engine: &Engine,
    mut request: SessionRequest,
) -> Result<(SessionRequest, Option<String>), SetupError> {
    let Some(name) = request.options.worktree.take() else { return Ok((request, None)) };
    request.read_settings()?;
    let start_dir = working_directory(&request.options)?;
    let options = &mut request.options;
    resolve_paths(options, &start_dir);
    if options.session_id.is_none() && options.resume.is_none() && !options.continue_conversation {
        // Hooks that create the worktree get the id of the session that will use it.
        options.session_id = Some(ids::new_uuid());
    }
    let worktree = create_worktree(engine, request.clone(), &name).await?;
    request.options.cwd = Some(worktree.path.display().to_string());
    Ok((request, Some(render_notice(&worktree))))
}

/// Makes the paths of the options absolute: the user named them where the program was started.
fn resolve_paths(options: &mut Options, start_dir: &Path) {
    let plugins = options.plugins.iter_mut().map(|plugin| &mut plugin.path);
    let paths =
        options.additional_directories.iter_mut().chain(plugins).chain(&mut options.project_config_root);
    for path in paths.filter(|path| *path != "~" && !path.starts_with("~/")) {
        *path = start_dir.join(&path).display().to_string();
    }
}

/// Creates the worktree in the repository of the working directory.
async fn create_worktree(
    engine: &Engine,
    request: SessionRequest,
    name: &str,
) -> Result<Worktree, SetupError> {
    // In the root of the repository, where the rules for files of the project find their copies in a worktree.
    let dir = working_directory(&request.options)?;
    let root = repository_root(&dir).unwrap_or(&dir);
    let options = Options {
        cwd: Some(root.display().to_string()),
        persist_session: Some(false),
        resume: None,
        continue_conversation: false,
        fork_session: false,
        resume_session_at: None,
        resume_drops_turn: None,
        ..request.options
    };
    let setup = Setup::resolve(engine, SessionRequest { options, store: None, ..request })?;
    let cancel = CancellationToken::new();
    let (frames, frame_receiver) = mpsc::channel(FRAME_CHANNEL_CAPACITY);
    let (event_sender, events) = event_channel();
    let _drain = AbortOnDropHandle::new(tokio::spawn(discard(frame_receiver, events)));
    let frame_sender = FrameSender::new(setup.session.id.as_str().into(), frames, cancel.clone());
    let (requests, tasks) = (HostRequests::new(frame_sender.clone()), TaskRegistry::new(event_sender));
    // Ends git if this future is dropped.
    let _guard = tasks.close_on_drop();
    let hooks = build_hooks(&setup, &requests, &tasks, &frame_sender);
    let trust = setup.config_locations.trust;
    let worktrees = Worktrees::new(&setup.session.workspace, tasks.clone(), hooks, trust, cancel);
    let name = Some(name.trim()).filter(|name| !name.is_empty());
    let created = worktrees.create(name).await;
    tasks.shutdown().await;
    // The session must not start elsewhere.
    created.map_err(|error| SetupError::Invalid(format!("--worktree: no worktree was created: {error}.")))
}

/// Receives frames and events, so that their channels do not fill up.
async fn discard(mut frames: mpsc::Receiver<Frame>, mut events: EventReceiver) {
    tokio::join!(async { while frames.recv().await.is_some() {} }, async {
        while events.recv().await.is_some() {}
    });
}

fn render_notice(worktree: &Worktree) -> String {
    let path = worktree.path.display();
    match &worktree.branch {
        Some(branch) => format!(
            "The session works in the git worktree {path} on the branch {branch}. The worktree stays when the session \
             ends; `git worktree remove` removes it."
        ),
        None => format!("The session works in {path}, which stays when the session ends."),
    }
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::options::PluginConfig;

    use super::*;

    #[test]
    fn relative_paths_begin_at_the_start_directory() {
        let mut options = Options {
            additional_directories: ["../lib", "/abs", "~/own"].map(String::from).into(),
            plugins: vec![PluginConfig::local("plugin")],
            project_config_root: Some("config".into()),
            ..Options::default()
        };
        resolve_paths(&mut options, Path::new("/start"));
        assert_eq!(options.additional_directories, ["/start/../lib", "/abs", "~/own"]);
        assert_eq!(options.plugins, [PluginConfig::local("/start/plugin")]);
        assert_eq!(options.project_config_root.as_deref(), Some("/start/config"));
    }
}
