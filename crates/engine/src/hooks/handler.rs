//! What is done when a hook's turn has come, and on which terms.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use whimbrel_wire::hook::HookEventInput;

use super::http::HttpHook;

/// What a hook does, and on which terms.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HookHandler {
    /// What is done.
    pub(super) action: HookAction,
    /// How long it may take.
    pub(super) timeout: Duration,
    /// What its failure means.
    pub(super) failure: FailurePolicy,
    /// Variables of its own.
    pub(super) environment: Arc<BTreeMap<String, String>>,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum HookAction {
    /// The host is asked, by this name.
    Callback(Arc<str>),
    /// A command is run and waited for.
    Command(Arc<str>),
    /// A command is run, and nobody waits.
    BackgroundCommand(Arc<str>),
    /// A web address is told.
    Http(Arc<HttpHook>),
    /// Nothing: it cannot run, for this reason.
    Unavailable(Arc<str>),
}

/// What the failure of a hook means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FailurePolicy {
    /// The event goes on, and the person is told.
    Report,
    /// The event is blocked.
    Block,
}

impl HookHandler {
    /// Hosts are not told that a session begins or ends: they begin and end it themselves, and at the end they can
    /// no longer be asked.
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

    /// Takes in a hook that does the same: the stricter terms and the longer time count.
    pub(super) fn merge(&mut self, other: &Self) {
        if matches!(other.action, HookAction::Command(_)) {
            self.action = other.action.clone();
        }
        self.timeout = self.timeout.max(other.timeout);
        self.failure = self.failure.max(other.failure);
    }

    /// The hook as people are told of it.
    pub(super) fn display_name(&self) -> Arc<str> {
        match &self.action {
            HookAction::Callback(id) => format!("callback {id}").into(),
            HookAction::Command(command) | HookAction::BackgroundCommand(command) => first_line(command),
            // What follows may be a secret.
            HookAction::Http(hook) => first_line(hook.url.split(['?', '#']).next().unwrap_or_default()),
            HookAction::Unavailable(_) => "a hook that cannot run".into(),
        }
    }
}

impl HookAction {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Callback(one), Self::Callback(two)) => one == two,
            (Self::Command(one) | Self::BackgroundCommand(one), Self::Command(two) | Self::BackgroundCommand(two)) => {
                one == two
            }
            (Self::Http(one), Self::Http(two)) => one == two,
            (Self::Unavailable(one), Self::Unavailable(two)) => one == two,
            (Self::Callback(_) | Self::Http(_) | Self::Unavailable(_), _)
            | (_, Self::Callback(_) | Self::Http(_) | Self::Unavailable(_)) => false,
        }
    }
}

/// The first line of a command, and not too much of it.
fn first_line(command: &str) -> Arc<str> {
    const MAX_CHARS: usize = 80;
    let line = command.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]).into(),
        None => line.into(),
    }
}
