//! What each event is for, for lists that users see.

use whimbrel_wire::hook::HookEvent;

/// Returns when an event occurs.
pub fn describe_event(event: HookEvent) -> &'static str {
    use HookEvent as On;
    match event {
        On::PreToolUse => "before a tool call",
        On::PostToolUse => "after a successful tool call",
        On::PostToolUseFailure => "after a failed tool call",
        On::PostToolBatch => "after all tool calls of one reply",
        On::PermissionRequest => "before a permission request",
        On::PermissionDenied => "after a tool call was denied",
        On::Notification => "when the user should be notified",
        On::UserPromptSubmit => "before a prompt is sent to the model",
        On::UserPromptExpansion => "when a slash command has become a prompt",
        On::SessionStart => "when a session starts, is resumed, cleared or compacted",
        On::SessionEnd => "when a session ends",
        On::Stop => "before the main agent ends its turn",
        On::StopFailure => "when a turn ends because the model failed",
        On::SubagentStart => "when a subagent starts",
        On::SubagentStop => "before a subagent ends",
        On::PreCompact => "before the conversation is compacted",
        On::PostCompact => "after the conversation was compacted",
        On::PreModelSwitch => "before the model is changed",
        On::PostModelSwitch => "after the model was changed",
        On::Setup => "when a project is prepared or maintained",
        On::TeammateIdle => "before a teammate becomes idle",
        On::TaskCreated => "when a task is added to the task list",
        On::TaskCompleted => "when a task of the task list is completed",
        On::Elicitation => "when an MCP server asks the user",
        On::ElicitationResult => "when the user has answered an MCP server",
        On::ConfigChange => "before a settings file is changed",
        On::InstructionsLoaded => "when an instruction file was loaded",
        On::WorktreeCreate => "when a worktree is needed; the hook can create it",
        On::WorktreeRemove => "when a worktree is no longer needed",
        On::CwdChanged => "when the working directory has changed",
        On::FileChanged => "when a watched file has changed",
        On::DirectoryAdded => "when a working directory was added",
        On::MessageDisplay => "before text of the model is shown",
    }
}

/// Returns whether the engine raises the event.
pub fn is_raised(event: HookEvent) -> bool {
    !matches!(event, HookEvent::FileChanged | HookEvent::MessageDisplay)
}
