//! Moves a running engine to a new session, as `/clear` does: the old one keeps its transcript, checkpoints and tasks.

use std::path::Path;

use whimbrel_session_store::checkpoint::{self, Checkpoints};

use super::{Setup, tools};

impl Setup {
    /// Replaces what belongs to one session. Working directory, permissions, servers and settings stay.
    pub(crate) fn begin_new_session(&mut self, id: String) {
        let workspace = &self.session.workspace;
        for (path, _) in workspace.seen_files() {
            workspace.forget_seen(&path);
        }
        let config: Option<&Path> =
            self.config_locations.user_dir.as_deref().filter(|_| self.session.transcript_dir.is_some());
        // Checkpoints of a session that is not stored are in the directory of its output, which stays.
        if let Some(config) = config.filter(|_| workspace.checkpoints().is_some()) {
            workspace.set_checkpoints(Checkpoints::new(checkpoint::checkpoint_dir(config, &id)));
        }
        self.tools.task_list = tools::open_task_list(config, &workspace.environment(), &id);
        self.session.resumed = None;
        self.session.title = None;
        self.session.id = id;
    }
}
