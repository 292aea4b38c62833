//! Action of a hook with its timeout and failure policy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use whimbrel_config::settings::hooks::HttpHookConfig;
use whimbrel_wire::hook::HookEventInput;

use super::failure_policy::FailurePolicy;

/// Action and limits of a hook.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HookHandler {
    pub(super) action: HookAction,
    pub(super) timeout: Duration,
    pub(super) failure: FailurePolicy,
    /// Environment variables of the hook.
    pub(super) environment: Arc<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum HookAction {
    /// Control request to the host, by callback id.
    Callback(Arc<str>),
    Command(Arc<str>),
    /// Command in the background.
    BackgroundCommand(Arc<str>),
    Http(Arc<HttpHookConfig>),
    /// The hook cannot run; the text says why.
    Unavailable(Arc<str>),
}

impl HookHandler {
    /// False for callbacks at startup and at the end of a session: the host starts and ends the session itself, and
    /// cannot be asked at the end.
    pub(super) fn accepts(&self, input: &HookEventInput) -> bool {
        let for_commands_only = match input {
            HookEventInput::SessionStart(start) => start.source == "startup",
            HookEventInput::SessionEnd(_) => true,
            _ => false,
        };
        !(for_commands_only && matches!(self.action, HookAction::Callback(_)))
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.action.is_same(&other.action) && self.environment == other.environment
    }

    /// Merges a duplicate: the stricter failure policy and the longer timeout win.
    pub(super) fn merge(&mut self, other: &Self) {
        if matches!(other.action, HookAction::Command(_)) {
            self.action = other.action.clone();
        }
        self.timeout = self.timeout.max(other.timeout);
        self.failure = self.failure.max(other.failure);
    }

    /// Display name of the hook.
    pub(super) fn display_name(&self) -> Arc<str> {
        match &self.action {
            HookAction::Callback(id) => format!("callback {id}").into(),
            HookAction::Command(command) | HookAction::BackgroundCommand(command) => first_line(command),
            HookAction::Http(hook) => first_line(display_url(&hook.url)),
            HookAction::Unavailable(_) => "unavailable hook".into(),
        }
    }
}

impl HookAction {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Callback(one), Self::Callback(two)) => one == two,
            (
                Self::Command(one) | Self::BackgroundCommand(one),
                Self::Command(two) | Self::BackgroundCommand(two),
            ) => one == two,
            (Self::Http(one), Self::Http(two)) => one == two,
            (Self::Unavailable(one), Self::Unavailable(two)) => one == two,
            (Self::Callback(_) | Self::Http(_) | Self::Unavailable(_), _)
            | (_, Self::Callback(_) | Self::Http(_) | Self::Unavailable(_)) => false,
        }
    }
}

/// URL without query and fragment, which may hold secrets.
pub(super) fn display_url(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// First line of a command, truncated.
fn first_line(command: &str) -> Arc<str> {
    const MAX_CHARS: usize = 80;
    let line = command.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]).into(),
        None => line.into(),
    }
}
