//! The switch of a session's mode, for the tools that turn it: whoever turns it, the host is told.

use whimbrel_wire::permission::PermissionMode;
use whimbrel_wire::system::Status;

use crate::outbox::Outbox;
use crate::permission::Rights;
use crate::settings::Trust;

/// Turns the mode of a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ModeSwitch {
    rights: Rights,
    outbox: Outbox,
}

impl ModeSwitch {
    /// The switch of these rights.
    pub fn new(rights: Rights, outbox: Outbox) -> Self {
        Self { rights, outbox }
    }

    /// The mode.
    pub fn mode(&self) -> PermissionMode {
        self.rights.mode()
    }

    /// How far the project is trusted that the session works in.
    pub fn trust(&self) -> Trust {
        self.rights.settings().trust()
    }

    /// Begins plan mode.
    pub async fn enter_plan(&self) {
        self.rights.set_mode(PermissionMode::Plan);
        self.tell().await;
    }

    /// Ends plan mode. If somebody has ended it already, the mode stays as they set it.
    pub async fn leave_plan(&self) {
        if self.mode() == PermissionMode::Plan {
            self.rights.leave_plan();
            self.tell().await;
        }
    }

    /// Tells the host what the mode is.
    pub async fn tell(&self) {
        let permission_mode = Some(self.mode());
        self.outbox.notify(Status { permission_mode, ..Status::default() }).await;
    }

    /// A switch that no host hears of: for tests of tools.
    #[cfg(test)]
    pub(crate) fn unheard(workspace: &std::sync::Arc<crate::workspace::Workspace>) -> Self {
        Self::new(Rights::usual(workspace), Outbox::unheard())
    }
}
