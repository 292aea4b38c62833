//! What is done when a hook's turn has come, and on which terms.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use whimbrel_wire::hook::HookEventInput;

use super::http::HttpHook;

/// What a hook does, and on which terms.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Handler {
    /// What is done.
    pub(super) action: Action,
    /// How long it may take.
    pub(super) limit: Duration,
    /// What its failure means.
    pub(super) failure: Failure,
    /// Variables of its own.
    pub(super) environment: Arc<BTreeMap<String, String>>,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// The host is asked, by this name.
    Callback(Arc<str>),
    /// A command is run and waited for.
    Command(Arc<str>),
    /// A command is run, and nobody waits.
    Background(Arc<str>),
    /// A web address is told.
    Http(Arc<HttpHook>),
    /// Nothing: it cannot run, for this reason.
    Lost(Arc<str>),
}

/// What the failure of a hook means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
    /// The event goes on, and the person is told.
    Told,
    /// The event is blocked.
    Blocks,
}

impl Handler {
    /// Hosts are not told that a session begins or ends: they begin and end it themselves, and at the end they can
    /// no longer be asked.
    pub(super) fn hears(&self, input: &HookEventInput) -> bool {
        let for_commands_only = match input {
            HookEventInput::SessionStart(start) => start.source == "startup",
            HookEventInput::SessionEnd(_) => true,
            _ => false,
        };
        !(for_commands_only && matches!(self.action, Action::Callback(_)))
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.action.is_same(&other.action) && self.environment == other.environment
    }

    /// Takes in a hook that does the same: the stricter terms and the longer time count.
    pub(super) fn join(&mut self, other: &Self) {
        if matches!(other.action, Action::Command(_)) {
            self.action = other.action.clone();
        }
        self.limit = self.limit.max(other.limit);
        self.failure = self.failure.max(other.failure);
    }

    /// The hook as people are told of it.
    pub(super) fn name(&self) -> Arc<str> {
        match &self.action {
            Action::Callback(id) => format!("callback {id}").into(),
            Action::Command(command) | Action::Background(command) => shortened(command),
            // What follows may be a secret.
            Action::Http(hook) => shortened(hook.url.split(['?', '#']).next().unwrap_or_default()),
            Action::Lost(_) => "a hook that cannot run".into(),
        }
    }
}

impl Action {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Callback(one), Self::Callback(two)) => one == two,
            (Self::Command(one) | Self::Background(one), Self::Command(two) | Self::Background(two)) => {
                one == two
            }
            (Self::Http(one), Self::Http(two)) => one == two,
            (Self::Lost(one), Self::Lost(two)) => one == two,
            (Self::Callback(_) | Self::Http(_) | Self::Lost(_), _)
            | (_, Self::Callback(_) | Self::Http(_) | Self::Lost(_)) => false,
        }
    }
}

/// The first line of a command, and not too much of it.
fn shortened(command: &str) -> Arc<str> {
    const LONGEST: usize = 80;
    let line = command.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &line[..end]).into(),
        None => line.into(),
    }
}
