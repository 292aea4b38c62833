//! The hook events, one row each: when it occurs, what a block does, what its hooks can change.
//!
//! The code that detects a row's `trigger` dispatches the event. Output beyond the row's `changes` is parsed and has no
//! effect; `continue: false`, `systemMessage` and `suppressOutput` work for every event.

use std::time::Duration;

use whimbrel_wire::hook::HookEvent;

use super::timeouts;

/// Properties of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRow {
    /// When it occurs.
    pub trigger: &'static str,
    pub block: BlockEffect,
    /// What a hook's output can change.
    pub changes: &'static str,
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
    use BlockEffect::{InformsModel, InformsUser, Prevents};
    use HookEvent as On;
    let (trigger, block, changes) = match event {
        On::PreToolUse => {
            ("before a tool call, once its input is valid", Prevents, "the permission, the input, context")
        }
        On::PostToolUse => ("after a tool call that succeeded", InformsModel, "the result, context"),
        On::PostToolUseFailure => ("after a tool call that failed", InformsModel, "context"),
        On::PostToolBatch => {
            ("after all tool calls of a reply, before the next model call", Prevents, "context")
        }
        On::PermissionRequest => (
            "when permission is requested from the host, in parallel",
            Prevents,
            "the permission, the input, rules",
        ),
        On::PermissionDenied => {
            ("after a call was denied without asking the user", InformsUser, "whether it may be retried")
        }
        On::Notification => ("when the user should be notified", InformsUser, "context"),
        On::UserPromptSubmit => {
            ("when a prompt arrives", Prevents, "context, the title, the prompt's position")
        }
        On::UserPromptExpansion => {
            ("when a slash command was expanded to a prompt", Prevents, "context, the prompt's position")
        }
        On::SessionStart => (
            "before the first turn, and after a compaction",
            InformsUser,
            "context, a first prompt, the title",
        ),
        On::SessionEnd => ("at the end of the session", InformsUser, "nothing"),
        On::Stop => {
            ("when the model wants to end its turn", Prevents, "context, which also makes it continue")
        }
        On::StopFailure => ("when a turn ends with an API error", InformsUser, "nothing"),
        On::SubagentStart => ("when a subagent starts", InformsUser, "context for the subagent"),
        On::SubagentStop => {
            ("when a subagent wants to end", Prevents, "context, which also makes it continue")
        }
        On::PreCompact => ("before the conversation is compacted", Prevents, "nothing"),
        On::PostCompact => ("after the conversation was compacted", InformsUser, "nothing"),
        On::PreModelSwitch => ("before a requested model switch", Prevents, "the permission"),
        On::PostModelSwitch => ("after a model switch", InformsUser, "context"),
        On::Setup => ("when the engine is started to set up a project", InformsUser, "context"),
        On::TeammateIdle => ("when a teammate runs out of work", Prevents, "nothing"),
        On::TaskCreated => ("before a task is added to the list", Prevents, "nothing"),
        On::TaskCompleted => ("before a task is marked as completed", Prevents, "nothing"),
        On::Elicitation => ("when an MCP server asks the user", Prevents, "the answer"),
        On::ElicitationResult => ("before the user's answer goes to an MCP server", Prevents, "the answer"),
        On::ConfigChange => ("when settings have changed, before they apply", Prevents, "nothing"),
        On::InstructionsLoaded => ("after an instruction file was read", InformsUser, "nothing"),
        On::WorktreeCreate => ("when a worktree is requested", Prevents, "the path of the worktree"),
        On::WorktreeRemove => ("when a worktree is to be removed", Prevents, "nothing"),
        On::CwdChanged => ("after the working directory changed", InformsUser, "which files are watched"),
        On::FileChanged => ("after a watched file changed", InformsUser, "which files are watched"),
        On::DirectoryAdded => ("after a directory was added", InformsUser, "nothing"),
        On::MessageDisplay => ("before the model's text is shown", InformsUser, "the shown text"),
    };
    EventRow {
        trigger,
        block,
        changes,
        plain_text_use: plain_text_use(event),
        default_timeout: timeouts::default_timeout(event),
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
