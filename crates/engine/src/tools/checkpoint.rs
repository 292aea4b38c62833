//! Before a call changes files, they are kept, if the session keeps checkpoints. Every tool passes here.

use std::sync::Arc;

use super::{Touches, target};
use crate::files;
use crate::workspace::Workspace;

/// Keeps what a call is about to change.
pub(super) async fn keep(touches: Touches, workspace: &Arc<Workspace>) {
    let (Touches::Writes(paths), Some(checkpoints)) = (touches, workspace.checkpoints()) else { return };
    let workspace = Arc::clone(workspace);
    let keep = move || {
        let paths = paths.iter().map(|path| target::place(&workspace, path));
        paths.filter(|path| !target::is_off_limits(path)).for_each(|path| checkpoints.before_change(&path));
    };
    // Fails only if the program is about to end.
    let _ = files::aside(keep).await;
}
