//! The properties of each hook event: what a block does, how plain text is used, and the default timeout. Also the
//! other timeouts of hooks.
//!
//! When an event occurs and what its hooks can change is in `docs/hooks.md`. `continue: false` and `systemMessage` work
//! for every event; `suppressOutput` is accepted and has no effect.

use std::time::Duration;

use whimbrel_wire::hook::HookEvent;

/// Timeout of a command, for events without another default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// Timeout of a callback without its own.
pub(super) const CALLBACK_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum timeouts; shorter at the end of a session, where the program waits for the hook.
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
const MAX_SESSION_END_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a hook that goes async without naming one.
pub(super) const DEFAULT_ASYNC_TIMEOUT: Duration = Duration::from_secs(15);

/// Properties of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRow {
    pub block: BlockEffect,
    /// Use of a command's output that is not JSON.
    pub plain_text_use: PlainTextUse,
    /// Timeout of a command without its own.
    pub default_timeout: Duration,
}

/// Effect of a block: by exit code 2, `decision: "block"`, or a failure with `onFailure: "block"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEffect {
    /// The event does not happen.
    Prevents,
    /// It has happened already; the reason goes to the model.
    InformsModel,
    /// It cannot be undone; the reason goes to the user.
    InformsUser,
}

/// Use of a command's output that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainTextUse {
    /// Context for the model.
    Context,
    /// The result itself: a path.
    Path,
    /// Visible only in progress frames.
    Dropped,
}

/// Row of an event.
pub fn row(event: HookEvent) -> EventRow {
    EventRow {
        block: block_effect(event),
        plain_text_use: plain_text_use(event),
        default_timeout: default_timeout(event),
    }
}

fn block_effect(event: HookEvent) -> BlockEffect {
    use HookEvent as On;
    match event {
        On::PreToolUse
        | On::PostToolBatch
        | On::PermissionRequest
        | On::UserPromptSubmit
        | On::UserPromptExpansion
        | On::Stop
        | On::SubagentStop
        | On::PreCompact
        | On::PreModelSwitch
        | On::TeammateIdle
        | On::TaskCreated
        | On::TaskCompleted
        | On::Elicitation
        | On::ElicitationResult
        | On::ConfigChange
        | On::WorktreeCreate
        | On::WorktreeRemove => BlockEffect::Prevents,
        On::PostToolUse | On::PostToolUseFailure => BlockEffect::InformsModel,
        On::PermissionDenied
        | On::Notification
        | On::SessionStart
        | On::SessionEnd
        | On::StopFailure
        | On::SubagentStart
        | On::PostCompact
        | On::PostModelSwitch
        | On::Setup
        | On::InstructionsLoaded
        | On::CwdChanged
        | On::FileChanged
        | On::DirectoryAdded
        | On::MessageDisplay => BlockEffect::InformsUser,
    }
}

fn plain_text_use(event: HookEvent) -> PlainTextUse {
    use HookEvent as On;
    match event {
        On::UserPromptSubmit | On::UserPromptExpansion | On::SessionStart | On::PostModelSwitch => {
            PlainTextUse::Context
        }
        On::WorktreeCreate => PlainTextUse::Path,
        _ => PlainTextUse::Dropped,
    }
}

/// Timeout of a command without its own.
fn default_timeout(event: HookEvent) -> Duration {
    use HookEvent as On;
    match event {
        On::UserPromptSubmit | On::PreModelSwitch | On::PostModelSwitch => Duration::from_secs(30),
        On::MessageDisplay => Duration::from_secs(10),
        On::SessionEnd => Duration::from_secs(5),
        _ => DEFAULT_TIMEOUT,
    }
}

/// Configured timeout in seconds, at most the maximum; `None` without a positive number.
pub(super) fn parse_timeout(event: HookEvent, seconds: Option<f64>) -> Option<Duration> {
    let max_timeout = if event == HookEvent::SessionEnd { MAX_SESSION_END_TIMEOUT } else { MAX_TIMEOUT };
    let seconds = seconds.filter(|seconds| *seconds > 0.0)?;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(max_timeout).min(max_timeout))
}
