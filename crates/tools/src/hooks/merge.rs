//! Merges the outputs of all hooks of an event. Pure.
//!
//! 1. Of several decisions on a call the strictest wins: deny, defer, ask, allow. Its reasons are those of all hooks
//!    that made it.
//! 2. Any block blocks; reasons are kept in registration order.
//! 3. Lists are concatenated: contexts, messages.
//! 4. Single values come from the hook registered last: input, output, title.
//! 5. One hook is enough to stop.
//! 6. An allow covers the input that its hook saw or wrote, never one that another hook wrote.
//!    Hooks run concurrently: if the input of another hook is used, the allow is dropped.

use std::sync::Arc;

use serde_json::{Map, Value};
use whimbrel_wire::control::ElicitationAction;
use whimbrel_wire::hook::{
    ElicitationOutput, HookDecision, HookEvent, HookPermissionDecision, HookSpecific, PostToolUseOutput,
    PreToolUseOutput, SessionStartOutput, SyncOutput,
};
use whimbrel_wire::permission::PermissionResult;

use super::event_table::{self, BlockEffect, PlainTextUse};
use super::output::{HookResult, ParsedOutput, additional_context};

/// Merged output of the hooks of an event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MergedOutput {
    /// Decision on a tool call or a model switch.
    pub decision: Option<MergedDecision>,
    /// Replaces the tool input.
    pub updated_input: Option<Map<String, Value>>,
    /// Why the event must not happen; empty if it may. For PreToolUse a block is a [`MergedDecision`], for
    /// PermissionRequest a denied [`permission_result`](Self::permission_result).
    pub blocked: Vec<HookReason>,
    /// Answer to a permission request in place of the user.
    pub permission_result: Option<PermissionResult>,
    /// Objections to something that has already happened, for the model.
    pub feedback: Vec<HookReason>,
    /// Additional context for the model.
    pub contexts: Vec<String>,
    /// Replaces the tool result.
    pub tool_output: Option<Value>,
    /// Replaces the tool result of an MCP tool.
    pub mcp_tool_output: Option<Value>,
    /// Set if the turn is to stop after this.
    pub stop: Option<StopRequest>,
    /// Messages for the user.
    pub system_messages: Vec<String>,
    /// Errors of hooks, for the user. They block nothing.
    pub errors: Vec<HookReason>,
    /// True if the hooks were cancelled. The event must not go on then.
    pub interrupted: bool,
    pub event_specific: EventSpecific,
}

/// Merged decision of hooks on a call.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedDecision {
    pub decision: HookPermissionDecision,
    /// Reasons of the hooks that made this decision.
    pub reasons: Vec<HookReason>,
}

/// Text of a hook, with the hook's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReason {
    pub hook: Arc<str>,
    pub text: String,
}

/// Request to stop the turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopRequest {
    /// Shown to the user.
    pub reason: Option<String>,
}

/// Fields that only some events support. Fields of the protocol that have no effect are left out: `suppressOutput`,
/// `watchPaths`, `reloadSkills`, `displayContent`, `terminalSequence`, `classifierContext`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventSpecific {
    pub session_title: Option<String>,
    /// First prompt of the session.
    pub initial_user_message: Option<String>,
    /// Hides the original prompt from the model.
    pub suppress_original_prompt: bool,
    /// True if a denied call may be retried.
    pub retry: bool,
    /// Answer to an MCP elicitation.
    pub elicitation: Option<ElicitationOutput>,
    /// Directory of a new worktree.
    pub worktree_path: Option<String>,
}

/// Merges outputs, given in registration order. `original_input` is the tool input that the hooks were shown, if the
/// event has one.
pub fn merge(event: HookEvent, original_input: Option<&Value>, mut results: Vec<HookResult>) -> MergedOutput {
    if let Some(original_input) = original_input {
        drop_uncovered_allows(&mut results, original_input);
    }
    let mut merged = MergedOutput::default();
    for HookResult { hook, output: parsed } in results {
        merged.add(event, &hook, parsed);
    }
    merged
}

pub fn join_reasons(reasons: &[HookReason]) -> String {
    reasons.iter().map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("\n")
}

impl MergedOutput {
    fn add(&mut self, event: HookEvent, hook: &Arc<str>, parsed: ParsedOutput) {
        if let Some(error) = parsed.error() {
            self.errors.push(HookReason { hook: Arc::clone(hook), text: error });
        }
        match parsed {
            ParsedOutput::Empty
            | ParsedOutput::Async
            | ParsedOutput::Failed(_)
            | ParsedOutput::TimedOut(_) => {}
            ParsedOutput::Cancelled => self.interrupted = true,
            ParsedOutput::Text(text) => match event_table::row(event).plain_text_use {
                PlainTextUse::Context => self.contexts.push(text),
                PlainTextUse::Path => self.event_specific.worktree_path = Some(text),
                PlainTextUse::Dropped => {}
            },
            ParsedOutput::Output(output) | ParsedOutput::Partial { blocking: output, .. } => {
                self.add_output(event, hook, *output);
            }
            ParsedOutput::Block { reason, output } => {
                if let Some(output) = output {
                    self.add_output(event, hook, *output);
                }
                self.add_block(event, hook, reason);
            }
        }
    }

    fn add_output(&mut self, event: HookEvent, hook: &Arc<str>, output: SyncOutput) {
        if output.should_continue == Some(false) {
            let stop = self.stop.get_or_insert_default();
            stop.reason = stop.reason.take().or(output.stop_reason);
        }
        self.system_messages.extend(output.system_message);
        match output.decision {
            Some(HookDecision::Block) => {
                let reason = output.reason.unwrap_or_else(|| "The hook gave no reason.".into());
                self.add_block(event, hook, reason);
            }
            Some(HookDecision::Approve) if is_decision_event(event) => {
                self.add_decision(HookPermissionDecision::Allow, hook, output.reason);
            }
            Some(HookDecision::Approve) | None => {}
        }
        if let Some(mut specific) = output.specific {
            self.contexts.extend(additional_context(&mut specific).map(std::mem::take));
            self.add_specific(hook, specific);
        }
    }

    /// The effect of a block depends on the event.
    fn add_block(&mut self, event: HookEvent, hook: &Arc<str>, text: String) {
        if is_decision_event(event) {
            return self.add_decision(HookPermissionDecision::Deny, hook, Some(text));
        }
        if event == HookEvent::PermissionRequest {
            return self.add_permission(PermissionResult::deny(text));
        }
        let reason = HookReason { hook: Arc::clone(hook), text };
        match event_table::row(event).block {
            BlockEffect::Prevents => self.blocked.push(reason),
            BlockEffect::InformsModel => self.feedback.push(reason),
            BlockEffect::InformsUser => self.errors.push(reason),
        }
    }

    fn add_decision(&mut self, decision: HookPermissionDecision, hook: &Arc<str>, reason: Option<String>) {
        let reason = reason.map(|text| HookReason { hook: Arc::clone(hook), text });
        match &mut self.decision {
            Some(current) if strictness(current.decision) > strictness(decision) => {}
            Some(current) if current.decision == decision => current.reasons.extend(reason),
            current => *current = Some(MergedDecision { decision, reasons: reason.into_iter().collect() }),
        }
    }

    /// A deny wins over an allow, and the first answer over later ones.
    fn add_permission(&mut self, result: PermissionResult) {
        let is_deny = |result: &PermissionResult| matches!(result, PermissionResult::Deny { .. });
        if self.permission_result.as_ref().is_none_or(|current| is_deny(&result) && !is_deny(current)) {
            self.permission_result = Some(result);
        }
    }

    /// Applies the event-specific part. Its context has been taken already.
    fn add_specific(&mut self, hook: &Arc<str>, specific: HookSpecific) {
        use HookSpecific as On;
        match specific {
            On::PreToolUse(output) => self.add_pre_tool_use(hook, output),
            On::PostToolUse(output) => self.add_post_tool_use(output),
            On::PreModelSwitch(output) => {
                if let Some(decision) = output.permission_decision {
                    self.add_decision(decision, hook, output.permission_decision_reason);
                }
            }
            On::PermissionRequest(output) => self.add_permission(output.decision),
            On::PermissionDenied(output) => self.event_specific.retry |= output.retry == Some(true),
            On::UserPromptSubmit(output) => {
                replace_if_some(&mut self.event_specific.session_title, output.session_title);
                self.event_specific.suppress_original_prompt |= output.suppress_original_prompt == Some(true);
            }
            On::UserPromptExpansion(output) => {
                self.event_specific.suppress_original_prompt |= output.suppress_original_prompt == Some(true);
            }
            On::SessionStart(output) => self.event_specific.add_session_start(output),
            On::Elicitation(output) | On::ElicitationResult(output) => {
                self.event_specific.add_elicitation(output);
            }
            On::WorktreeCreate(output) => self.event_specific.worktree_path = Some(output.worktree_path),
            On::PostToolUseFailure(_)
            | On::PostToolBatch(_)
            | On::Notification(_)
            | On::Setup(_)
            | On::Stop(_)
            | On::SubagentStart(_)
            | On::SubagentStop(_)
            | On::PostModelSwitch(_)
            | On::CwdChanged(_)
            | On::FileChanged(_)
            | On::MessageDisplay(_)
            | On::Other(_) => {}
        }
    }

    fn add_pre_tool_use(&mut self, hook: &Arc<str>, output: PreToolUseOutput) {
        if let Some(decision) = output.permission_decision {
            self.add_decision(decision, hook, output.permission_decision_reason);
        }
        replace_if_some(&mut self.updated_input, output.updated_input);
    }

    fn add_post_tool_use(&mut self, output: PostToolUseOutput) {
        replace_if_some(&mut self.tool_output, output.updated_tool_output);
        replace_if_some(&mut self.mcp_tool_output, output.updated_mcp_tool_output);
    }
}

impl EventSpecific {
    fn add_session_start(&mut self, output: SessionStartOutput) {
        replace_if_some(&mut self.session_title, output.session_title);
        replace_if_some(&mut self.initial_user_message, output.initial_user_message);
    }

    /// An answer that declines or cancels wins over one that accepts.
    fn add_elicitation(&mut self, output: ElicitationOutput) {
        let accepts = |output: &ElicitationOutput| output.action == Some(ElicitationAction::Accept);
        if output.action.is_none() {
            return;
        }
        if self.elicitation.as_ref().is_none_or(|current| accepts(current) && !accepts(&output)) {
            self.elicitation = Some(output);
        }
    }
}

/// Returns true for events on which hooks make a permission decision.
fn is_decision_event(event: HookEvent) -> bool {
    matches!(event, HookEvent::PreToolUse | HookEvent::PreModelSwitch)
}

fn strictness(decision: HookPermissionDecision) -> u8 {
    match decision {
        HookPermissionDecision::Allow => 0,
        HookPermissionDecision::Ask => 1,
        HookPermissionDecision::Defer => 2,
        HookPermissionDecision::Deny => 3,
    }
}

fn replace_if_some<T>(slot: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *slot = value;
    }
}

/// Drops every allow for an input other than the one used, which is that of the last registered hook that changes it.
/// `original_input` is the input that the hooks were shown.
fn drop_uncovered_allows(results: &mut [HookResult], original_input: &Value) {
    let Some(final_input) = results.iter().rev().find_map(|result| updated_input(&result.output)).cloned()
    else {
        return;
    };
    for result in results {
        let covered = updated_input(&result.output).or(original_input.as_object());
        if covered != Some(&final_input)
            && let ParsedOutput::Output(output) = &mut result.output
        {
            clear_allow(output);
        }
    }
}

/// Changed input of a hook.
fn updated_input(parsed: &ParsedOutput) -> Option<&Map<String, Value>> {
    let output = match parsed {
        ParsedOutput::Output(output) | ParsedOutput::Block { output: Some(output), .. } => output,
        _ => return None,
    };
    match &output.specific {
        Some(HookSpecific::PreToolUse(specific)) => specific.updated_input.as_ref(),
        _ => None,
    }
}

fn clear_allow(output: &mut SyncOutput) {
    output.decision = output.decision.filter(|decision| *decision != HookDecision::Approve);
    if let Some(HookSpecific::PreToolUse(specific)) = &mut output.specific {
        specific.permission_decision =
            specific.permission_decision.filter(|decision| *decision != HookPermissionDecision::Allow);
    }
}
