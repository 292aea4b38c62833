//! Permission mode of a session: the mode in effect, switching it, whether `bypassPermissions` is allowed, the
//! return from plan mode, and the lock that keeps an agent in plan mode.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use whimbrel_config::settings::Trust;
use whimbrel_policy::mode::choose_stricter_mode;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::permission::PermissionMode;
use whimbrel_wire::system::Status;

use super::PermissionState;

/// Modes besides the current one.
#[derive(Debug, Default)]
pub(super) struct Modes {
    /// Mode to return to after plan mode.
    before_plan: PermissionMode,
    /// Modes of single MCP servers, by tool prefix.
    by_server: BTreeMap<String, PermissionMode>,
}

/// Whether the session may switch to `bypassPermissions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bypass {
    /// Allowed by the start options.
    Available,
    Unavailable,
}

/// Keeps an agent in plan mode until its plan is approved, whatever the mode of the session. Cheap to clone; clones
/// share the lock.
#[derive(Debug, Clone, Default)]
pub struct PlanLock {
    approved: Arc<AtomicBool>,
}

impl PlanLock {
    pub fn is_held(&self) -> bool {
        !self.approved.load(Ordering::Acquire)
    }

    pub fn approve(&self) {
        self.approved.store(true, Ordering::Release);
    }
}

impl PermissionState {
    /// Mode in effect.
    pub fn mode(&self) -> PermissionMode {
        let mode = self.current.borrow().mode;
        let mode = self.mode_cap.map_or(mode, |cap| choose_stricter_mode(mode, cap));
        if self.needs_plan() { PermissionMode::Plan } else { supported_mode(mode) }
    }

    /// Returns true if a plan must be approved before anything may be changed.
    pub fn needs_plan(&self) -> bool {
        self.plan_lock.as_ref().is_some_and(PlanLock::is_held)
    }

    /// Mode for the tools of an MCP server: the host's override for that server, else the session's mode. Plan mode has
    /// no overrides.
    pub fn mode_for_server(&self, server: Option<&str>) -> PermissionMode {
        let server_mode = server.and_then(|server| self.modes().by_server.get(server).copied());
        match (self.mode(), server_mode) {
            (PermissionMode::Plan, _) | (_, None) => self.mode(),
            (_, Some(server_mode)) => supported_mode(
                self.mode_cap.map_or(server_mode, |cap| choose_stricter_mode(server_mode, cap)),
            ),
        }
    }

    /// Sets or clears the mode override of an MCP server.
    pub fn set_server_mode(&self, server: &str, mode: Option<PermissionMode>) {
        let by_server = &mut self.modes().by_server;
        match mode {
            Some(mode) => drop(by_server.insert(server.to_owned(), mode)),
            None => drop(by_server.remove(server)),
        }
    }

    /// Sets the mode. Returns false if the session may not use it.
    pub fn set_mode(&self, mode: PermissionMode) -> bool {
        if mode == PermissionMode::BypassPermissions && !self.can_bypass() {
            return false;
        }
        let previous = self.mode();
        self.current.send_modify(|permissions| Arc::make_mut(permissions).mode = mode);
        self.remember_mode_before_plan(previous);
        true
    }

    /// Returns true if the settings disable `bypassPermissions`.
    pub fn is_bypass_disabled(&self) -> bool {
        self.settings().effective().bypass_disabled
    }

    pub(super) fn can_bypass(&self) -> bool {
        self.shared.bypass == Bypass::Available && !self.is_bypass_disabled()
    }

    /// Leaves plan mode and restores the mode before it. Other modes stay.
    pub fn leave_plan(&self) {
        if self.mode() == PermissionMode::Plan {
            let before = self.modes().before_plan;
            // The previous mode may have been disabled meanwhile.
            if !self.set_mode(before) {
                self.set_mode(PermissionMode::Default);
            }
        }
    }

    /// Records the mode in which plan mode began.
    pub(super) fn remember_mode_before_plan(&self, previous: PermissionMode) {
        if previous != PermissionMode::Plan && self.mode() == PermissionMode::Plan {
            self.modes().before_plan = previous;
        }
    }

    /// Values are replaced whole, so a poisoned lock cannot hold a half-written one.
    fn modes(&self) -> MutexGuard<'_, Modes> {
        self.shared.modes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maps the unsupported mode `auto` to `default`.
fn supported_mode(mode: PermissionMode) -> PermissionMode {
    if mode == PermissionMode::Auto { PermissionMode::Default } else { mode }
}

/// Sets the mode of a session for tools and informs the host. Cheap to clone.
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

    pub fn permissions(&self) -> &PermissionState {
        &self.permissions
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
    pub fn for_tests(workspace: &Arc<crate::workspace::Workspace>) -> Self {
        Self::new(PermissionState::for_tests(workspace), FrameSender::disconnected())
    }
}

#[cfg(test)]
mod tests {
    use PermissionMode::{AcceptEdits, BypassPermissions, Default, Plan};

    use super::super::tests::test_state;
    use super::*;

    #[test]
    fn leaving_plan_mode_restores_the_mode_before() {
        let rows = [
            ("from the start", Plan, &[][..], Default),
            ("switched to", AcceptEdits, &[Plan], AcceptEdits),
            ("switched to twice", AcceptEdits, &[Plan, Plan], AcceptEdits),
            ("begun a second time", AcceptEdits, &[Plan, Default, Plan], Default),
            ("left already", AcceptEdits, &[Plan, Default], Default),
            ("never begun", AcceptEdits, &[], AcceptEdits),
            ("from the widest mode", BypassPermissions, &[Plan], BypassPermissions),
        ];
        for (name, start, switches, expected) in rows {
            let permissions = test_state(start, Bypass::Available);
            for mode in switches {
                assert!(permissions.set_mode(*mode), "{name}");
            }
            permissions.leave_plan();
            assert_eq!(permissions.mode(), expected, "{name}");
        }
    }

    #[test]
    fn mode_auto_is_never_in_effect() {
        let by_session = test_state(PermissionMode::Auto, Bypass::Available);
        let by_agent =
            test_state(BypassPermissions, Bypass::Available).for_subagent(Some(PermissionMode::Auto));
        by_agent.set_server_mode("server", Some(PermissionMode::Auto));
        for mode in [by_session.mode(), by_agent.mode(), by_agent.mode_for_server(Some("server"))] {
            assert_eq!(mode, Default);
        }
    }
}
