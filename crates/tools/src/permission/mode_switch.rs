//! Sets the permission mode of a session for tools and informs the host.

use whimbrel_config::settings::Trust;
use whimbrel_wire::permission::PermissionMode;
use whimbrel_wire::system::Status;

use crate::permission::PermissionState;
use whimbrel_transport::frame_sender::FrameSender;

/// Sets the mode. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ModeSwitch {
    permissions: PermissionState,
    frames: FrameSender,
}

impl ModeSwitch {
    pub fn new(permissions: PermissionState, frames: FrameSender) -> Self {
        Self { permissions, frames }
    }

    pub fn mode(&self) -> PermissionMode {
        self.permissions.mode()
    }

    /// Trust in the session's project.
    pub fn trust(&self) -> Trust {
        self.permissions.settings().trust()
    }

    pub async fn enter_plan(&self) {
        self.permissions.set_mode(PermissionMode::Plan);
        self.notify_host().await;
    }

    /// Leaves plan mode. If the mode has changed meanwhile, it stays.
    pub async fn leave_plan(&self) {
        if self.mode() == PermissionMode::Plan {
            self.permissions.leave_plan();
            self.notify_host().await;
        }
    }

    /// Sends the mode to the host.
    pub async fn notify_host(&self) {
        let permission_mode = Some(self.mode());
        self.frames.notify(Status { permission_mode, ..Status::default() }).await;
    }

    /// Without a host, for tests of tools.
    #[cfg(any(test, feature = "test-support"))]
    pub fn for_tests(workspace: &std::sync::Arc<crate::workspace::Workspace>) -> Self {
        Self::new(PermissionState::for_tests(workspace), FrameSender::disconnected())
    }
}
