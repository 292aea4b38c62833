//! Builds hook inputs: a [`HookCall`] for each event, made by a [`HookInputBuilder`].
//!
//! `docs/hooks.md` lists when each event occurs and what its hooks can change.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use whimbrel_wire::hook::{
    BackgroundTaskSummary, BatchedCall, ConfigChange, CwdChanged, HookBase, HookEvent, HookEventInput,
    HookInput, InstructionsLoaded, NotificationHook, PermissionDeniedHook, PermissionRequest, PostCompact,
    PostToolBatch, PostToolUse, PostToolUseFailure, PreCompact, PreToolUse, SessionCronSummary, SessionEnd,
    SessionStart, Stop, StopFailure, SubagentStart, SubagentStop, UserPromptExpansion, UserPromptSubmit,
};
use whimbrel_wire::message::FailureKind;
use whimbrel_wire::permission::{McpServerProvenance, PermissionUpdate};
use whimbrel_wire::system::CompactTrigger;

/// Maximum length of each text about a background task.
const MAX_SUMMARY_CHARS: usize = 1_000;

/// Input for the hooks of one event.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCall {
    pub input: HookInput,
    /// Tool call that the event is about.
    pub tool_use_id: Option<String>,
}

/// Builds hook inputs from the fields common to all events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookInputBuilder(pub HookBase);

/// Tool call that an event is about.
#[derive(Debug, Clone, Copy)]
pub struct ToolCallRef<'a> {
    pub name: &'a str,
    pub input: &'a Value,
    pub id: &'a str,
    /// MCP server of the tool.
    pub server: Option<&'a McpServerProvenance>,
}

/// Details of an agent that is about to stop.
#[derive(Debug, Clone, Default)]
pub struct StopDetails {
    /// True if a stop hook already made it continue.
    pub stop_hook_active: bool,
    pub last_message: Option<String>,
    /// Running background tasks.
    pub background_tasks: Vec<BackgroundTaskSummary>,
    /// Scheduled prompts.
    pub session_crons: Vec<SessionCronSummary>,
}

impl HookInputBuilder {
    /// Builds the input of any event. Some events omit the permission mode, because it is not decided yet or no longer
    /// matters.
    pub fn build(&self, event: impl Into<HookEventInput>) -> HookCall {
        let (mut base, event) = (self.0.clone(), event.into());
        if omits_mode(event.event()) {
            base.permission_mode = None;
        }
        HookCall { tool_use_id: tool_use_id_of(&event), input: HookInput { base, event } }
    }

    pub fn pre_tool_use(&self, call: ToolCallRef<'_>) -> HookCall {
        let ToolCallRef { name, input, id, server } = call;
        self.build(PreToolUse {
            tool_name: name.into(),
            tool_input: input.clone(),
            tool_use_id: id.into(),
            mcp_server: server.cloned(),
        })
    }

    pub fn post_tool_use(&self, call: ToolCallRef<'_>, response: Value, duration: Duration) -> HookCall {
        let ToolCallRef { name, input, id, server } = call;
        self.build(PostToolUse {
            tool_name: name.into(),
            tool_input: input.clone(),
            tool_response: response,
            tool_use_id: id.into(),
            duration_ms: Some(milliseconds(duration)),
            mcp_server: server.cloned(),
        })
    }

    pub fn post_tool_use_failure(
        &self,
        call: ToolCallRef<'_>,
        error: impl Into<String>,
        cause: FailureCause,
        duration: Duration,
    ) -> HookCall {
        let ToolCallRef { name, input, id, server } = call;
        self.build(PostToolUseFailure {
            tool_name: name.into(),
            tool_input: input.clone(),
            tool_use_id: id.into(),
            error: error.into(),
            is_interrupt: Some(cause == FailureCause::Interrupted),
            duration_ms: Some(milliseconds(duration)),
            mcp_server: server.cloned(),
        })
    }

    pub fn post_tool_batch(&self, calls: Vec<BatchedCall>) -> HookCall {
        self.build(PostToolBatch { tool_calls: calls })
    }

    pub fn permission_request(&self, call: ToolCallRef<'_>, suggestions: Vec<PermissionUpdate>) -> HookCall {
        let ToolCallRef { name, input, id, server } = call;
        let hook_call = self.build(PermissionRequest {
            tool_name: name.into(),
            tool_input: input.clone(),
            permission_suggestions: (!suggestions.is_empty()).then_some(suggestions),
            mcp_server: server.cloned(),
        });
        HookCall { tool_use_id: Some(id.into()), ..hook_call }
    }

    pub fn permission_denied(&self, call: ToolCallRef<'_>, reason: impl Into<String>) -> HookCall {
        let ToolCallRef { name, input, id, server } = call;
        self.build(PermissionDeniedHook {
            tool_name: name.into(),
            tool_input: input.clone(),
            tool_use_id: id.into(),
            reason: reason.into(),
            mcp_server: server.cloned(),
        })
    }

    /// Kinds: `permission_prompt`, `idle_prompt`, `agent_completed`, ...
    pub fn notification(&self, kind: &str, message: impl Into<String>, title: Option<String>) -> HookCall {
        self.build(NotificationHook { message: message.into(), title, notification_type: kind.into() })
    }

    /// Sources: `user`, `sdk`, `system`, ...
    pub fn user_prompt_submit(&self, prompt: impl Into<String>, source: Option<&str>) -> HookCall {
        let source = source.map(Into::into);
        self.build(UserPromptSubmit { prompt: prompt.into(), source, session_title: None })
    }

    pub fn user_prompt_expansion(
        &self,
        command: &str,
        arguments: &str,
        prompt: impl Into<String>,
    ) -> HookCall {
        self.build(UserPromptExpansion {
            expansion_type: "slash_command".into(),
            command_name: command.into(),
            command_args: arguments.into(),
            command_source: None,
            prompt: prompt.into(),
        })
    }

    /// Sources: `startup`, `resume`, `clear`, `compact`, `fork`.
    pub fn session_start(&self, source: &str, model: Option<&str>, title: Option<String>) -> HookCall {
        let (source, model) = (source.into(), model.map(Into::into));
        let agent_type = self.0.agent_type.clone();
        self.build(SessionStart {
            source,
            model,
            agent_type,
            session_title: title,
            ..SessionStart::default()
        })
    }

    /// Reasons: `clear`, `logout`, `prompt_input_exit`, `resume`, `other`.
    pub fn session_end(&self, reason: &str) -> HookCall {
        self.build(SessionEnd { reason: reason.into() })
    }

    pub fn stop(&self, details: StopDetails) -> HookCall {
        self.build(Stop {
            stop_hook_active: details.stop_hook_active,
            last_assistant_message: details.last_message,
            background_tasks: Some(details.background_tasks.into_iter().map(truncate_summary).collect()),
            session_crons: Some(details.session_crons),
        })
    }

    pub fn stop_failure(&self, error: FailureKind, details: Option<String>) -> HookCall {
        self.build(StopFailure { error, error_details: details, last_assistant_message: None })
    }

    pub fn subagent_start(&self, agent_id: &str, agent_type: &str) -> HookCall {
        self.build(SubagentStart { agent_id: agent_id.into(), agent_type: agent_type.into() })
    }

    /// Must be called on the subagent's own builder, which holds the agent id.
    pub fn subagent_stop(&self, transcript: &str, details: StopDetails) -> HookCall {
        self.build(SubagentStop {
            stop_hook_active: details.stop_hook_active,
            agent_id: self.0.agent_id.clone().unwrap_or_default(),
            agent_transcript_path: transcript.into(),
            agent_type: self.0.agent_type.clone().unwrap_or_default(),
            last_assistant_message: details.last_message,
            background_tasks: Some(details.background_tasks.into_iter().map(truncate_summary).collect()),
            session_crons: Some(details.session_crons),
        })
    }

    pub fn pre_compact(&self, trigger: CompactTrigger, instructions: Option<String>) -> HookCall {
        self.build(PreCompact { trigger, custom_instructions: instructions })
    }

    pub fn post_compact(&self, trigger: CompactTrigger, summary: impl Into<String>) -> HookCall {
        self.build(PostCompact { trigger, compact_summary: summary.into() })
    }

    /// The shell's working directory changed.
    pub fn cwd_changed(&self, old: &Path, new: &Path) -> HookCall {
        self.build(CwdChanged { old_cwd: old.display().to_string(), new_cwd: new.display().to_string() })
    }

    /// Sources: `user_settings`, `project_settings`, `local_settings`, ...
    pub fn config_change(&self, source: &str, file: &Path) -> HookCall {
        self.build(ConfigChange { source: source.into(), file_path: Some(file.display().to_string()) })
    }

    /// Kinds: `User`, `Project`, `Local`, `Managed`.
    pub fn instructions_loaded(&self, file: &str, kind: &str, reason: &str) -> HookCall {
        self.build(InstructionsLoaded {
            file_path: file.into(),
            memory_type: kind.into(),
            load_reason: reason.into(),
            ..InstructionsLoaded::default()
        })
    }
}

/// Cause of a failed tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// The tool failed.
    Error,
    Interrupted,
}

fn omits_mode(event: Option<HookEvent>) -> bool {
    use HookEvent as On;
    matches!(
        event,
        Some(On::SessionStart | On::SessionEnd | On::PreCompact | On::PostCompact | On::SubagentStart)
    )
}

fn tool_use_id_of(event: &HookEventInput) -> Option<String> {
    use HookEventInput as On;
    match event {
        On::PreToolUse(on) => Some(on.tool_use_id.clone()),
        On::PostToolUse(on) => Some(on.tool_use_id.clone()),
        On::PostToolUseFailure(on) => Some(on.tool_use_id.clone()),
        On::PermissionDenied(on) => Some(on.tool_use_id.clone()),
        _ => None,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn truncate_summary(mut task: BackgroundTaskSummary) -> BackgroundTaskSummary {
    let texts = [Some(&mut task.description), task.command.as_mut(), task.name.as_mut()];
    for text in texts.into_iter().flatten() {
        if let Some((end, _)) = text.char_indices().nth(MAX_SUMMARY_CHARS) {
            text.truncate(end);
        }
    }
    task
}
