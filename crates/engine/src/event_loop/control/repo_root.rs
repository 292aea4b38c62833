//! Adds a directory to those that the session works in.

use tokio_util::sync::CancellationToken;
use whimbrel_os::links;
use whimbrel_wire::control::{ControlResponse, RegisterRepoRoot};
use whimbrel_wire::hook::{DirectoryAdded, HookEvent};
use whimbrel_wire::permission::{Destination, PermissionUpdate};

use crate::event_loop::Session;

/// Adds the directory, and its instructions and skills if the host asks for them. Responds when the hooks have run.
pub(super) async fn register_root(
    session: &mut Session,
    id: String,
    request: RegisterRepoRoot,
) -> Option<ControlResponse> {
    let root = links::resolve_links(&session.setup.session.workspace.resolve(&request.directory));
    if !root.is_dir() {
        let text = format!("{} is not a directory. Register an existing one.", root.display());
        return Some(ControlResponse::error(id, text));
    }
    let update = PermissionUpdate::AddDirectories {
        directories: vec![root.display().to_string()],
        destination: Destination::Session,
    };
    let rejections = session.setup.permissions.state.apply_updates(&[update]);
    if !rejections.is_empty() {
        return Some(ControlResponse::error(id, rejections.join(" ")));
    }
    let locations = &session.setup.config_locations;
    if request.reload_claude_md == Some(true) {
        locations.instruction_dirs.add(root.clone());
    }
    if request.reload_skills == Some(true) {
        locations.skill_dirs.add(root.clone());
    }
    if request.reload_skills == Some(true) || request.reload_plugins == Some(true) {
        session.reload_extensions(&[]).await;
    }
    let hooks = session.hooks.clone();
    let event = DirectoryAdded { directory: root.display().to_string(), source: "register_repo_root".into() };
    session.mcp.respond_later(async move {
        hooks
            .dispatch(
                HookEvent::DirectoryAdded,
                |input| input.build(event.clone()),
                &CancellationToken::new(),
            )
            .await;
        ControlResponse::ok(id)
    });
    None
}
