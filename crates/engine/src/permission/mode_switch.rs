//! The switch of a session's mode, for the tools that turn it: whoever turns it, the host is told.

use whimbrel_wire::permission::PermissionMode;
use whimbrel_wire::system::Status;

use crate::frame_sender::FrameSender;
use crate::permission::PermissionState;
use crate::settings::Trust;

/// Turns the mode of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ModeSwitch {
    permissions: PermissionState,
    frames: FrameSender,
}

impl ModeSwitch {
    /// The switch of these rights.
    pub fn new(permissions: PermissionState, frames: FrameSender) -> Self {
        Self { permissions, frames }
    }

    /// The mode.
    pub fn mode(&self) -> PermissionMode {
        self.permissions.mode()
    }

    /// How far the project is trusted that the session works in.
    pub fn trust(&self) -> Trust {
        self.permissions.settings().trust()
    }

    /// Begins plan mode.
    pub async fn enter_plan(&self) {
        self.permissions.set_mode(PermissionMode::Plan);
        self.notify_host().await;
    }

    /// Ends plan mode. If somebody has ended it already, the mode stays as they set it.
    pub async fn leave_plan(&self) {
        if self.mode() == PermissionMode::Plan {
            self.permissions.leave_plan();
            self.notify_host().await;
        }
    }

    /// Tells the host what the mode is.
    pub async fn notify_host(&self) {
        let permission_mode = Some(self.mode());
        self.frames.notify(Status { permission_mode, ..Status::default() }).await;
    }

    /// A switch that no host hears of: for tests of tools.
    #[cfg(test)]
    pub(crate) fn for_tests(workspace: &std::sync::Arc<crate::workspace::Workspace>) -> Self {
        Self::new(PermissionState::for_tests(workspace), FrameSender::disconnected())
    }
}
