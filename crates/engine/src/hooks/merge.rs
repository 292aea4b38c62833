//! Many hooks said something; one thing comes out. Pure.
//!
//! 1. Of several verdicts on a call the strictest counts: deny, then defer, then ask, then allow. Its reasons are those
//!    of all hooks that gave it.
//! 2. Whoever blocks, blocks; the reasons are kept in order of registration.
//! 3. What is added adds up: context, messages, files to watch.
//! 4. What can be there only once is taken from the hook that was registered last: input, output, title.
//! 5. One hook that wants to stop, or to hide something, is enough.
//! 6. An allow counts for the input that its hook saw or wrote itself, never for one that another hook wrote
//!    (`covered`).

use std::sync::Arc;

use serde_json::{Map, Value};
use whimbrel_wire::control::ElicitationAction;
use whimbrel_wire::hook::{
    ElicitationOutput, HookDecision, HookEvent, HookPermissionDecision, HookSpecific, PostToolUseOutput,
    PreToolUseOutput, SessionStartOutput, SyncOutput,
};
use whimbrel_wire::permission::PermissionResult;

use super::catalog::{self, BlockEffect, PlainTextUse};
use super::allow_scope::drop_uncovered_allows;
use super::output::{HookResult, ParsedOutput, additional_context};

/// What the hooks of an event say together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MergedOutput {
    /// The verdict on a call, or on a change of model.
    pub decision: Option<MergedDecision>,
    /// The input to use instead.
    pub updated_input: Option<Map<String, Value>>,
    /// Why what was about to happen must not happen; empty if it may. A blocked call is a [`Ruling`] instead, a
    /// blocked question a denied [`permission`](Self::permission).
    pub blocked: Vec<HookReason>,
    /// An answer in the person's place.
    pub permission_result: Option<PermissionResult>,
    /// Complaints about what has happened already, for the model.
    pub feedback: Vec<HookReason>,
    /// What the model is told besides.
    pub contexts: Vec<String>,
    /// The result to use instead.
    pub tool_output: Option<Value>,
    /// The result to use instead, if the tool is one of an MCP server.
    pub mcp_tool_output: Option<Value>,
    /// Set if everything is to stop after this.
    pub stop: Option<StopRequest>,
    /// What the person is told.
    pub system_messages: Vec<String>,
    /// What went wrong with hooks, for the person. Nothing was held up by it.
    pub errors: Vec<HookReason>,
    /// Whether what the hooks printed stays out of sight.
    pub suppress_output: bool,
    /// Whether the hooks were stopped half way. Whatever they were asked about must not go on then.
    pub interrupted: bool,
    /// What only few events allow.
    pub event_specific: EventSpecific,
}

/// The verdict of hooks on a call.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedDecision {
    /// The verdict.
    pub decision: HookPermissionDecision,
    /// Why, by each hook that gave this verdict and a reason.
    pub reasons: Vec<HookReason>,
}

/// Something that a hook said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReason {
    /// The hook.
    pub hook: Arc<str>,
    /// What it said.
    pub text: String,
}

/// The wish to stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopRequest {
    /// What the person is told.
    pub reason: Option<String>,
}

/// What only few events allow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventSpecific {
    /// The session's title.
    pub session_title: Option<String>,
    /// The first prompt.
    pub initial_user_message: Option<String>,
    /// Whether the model does not see the prompt itself.
    pub suppress_original_prompt: bool,
    /// Files to watch.
    pub watch_paths: Vec<String>,
    /// Whether there are new skills.
    pub reload_skills: bool,
    /// Whether a refused call may be tried again.
    pub retry: bool,
    /// An answer to an MCP server.
    pub elicitation: Option<ElicitationOutput>,
    /// The text to show instead.
    pub display_content: Option<String>,
    /// The folder of a new work tree.
    pub worktree_path: Option<String>,
    /// What the permission classifier is told.
    pub classifier_contexts: Vec<String>,
    /// Control codes for the person's terminal.
    pub terminal_sequences: Vec<String>,
}

/// Folds what the hooks of an event said, given in order of registration. `seen` is the input of the call that they were
/// asked about, if they were.
pub fn merge(event: HookEvent, seen: Option<&Value>, mut outcomes: Vec<HookResult>) -> MergedOutput {
    if let Some(seen) = seen {
        drop_uncovered_allows(&mut outcomes, seen);
    }
    let mut folded = MergedOutput::default();
    for HookResult { hook, output: said } in outcomes {
        folded.add(event, &hook, said);
    }
    folded
}

/// Reasons as one text.
pub fn join_reasons(reasons: &[HookReason]) -> String {
    reasons.iter().map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("\n")
}

impl MergedOutput {
    fn add(&mut self, event: HookEvent, hook: &Arc<str>, said: ParsedOutput) {
        if let Some(fault) = said.error() {
            self.errors.push(HookReason { hook: Arc::clone(hook), text: fault });
        }
        match said {
            ParsedOutput::Empty | ParsedOutput::Async | ParsedOutput::Failed(_) | ParsedOutput::TimedOut(_) => {}
            ParsedOutput::Cancelled => self.interrupted = true,
            ParsedOutput::Text(text) => match catalog::row(event).plain_text_use {
                PlainTextUse::Context => self.contexts.push(text),
                PlainTextUse::Path => self.event_specific.worktree_path = Some(text),
                PlainTextUse::Dropped => {}
            },
            ParsedOutput::Output(output) | ParsedOutput::Partial { blocking: output, .. } => self.add_output(event, hook, *output),
            ParsedOutput::Block { reason, output: besides } => {
                if let Some(output) = besides {
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
        self.suppress_output |= output.suppress_output == Some(true);
        self.system_messages.extend(output.system_message);
        self.event_specific.terminal_sequences.extend(output.terminal_sequence);
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

    /// What a block means goes by the event.
    fn add_block(&mut self, event: HookEvent, hook: &Arc<str>, text: String) {
        if is_decision_event(event) {
            return self.add_decision(HookPermissionDecision::Deny, hook, Some(text));
        }
        if event == HookEvent::PermissionRequest {
            return self.add_permission(PermissionResult::deny(text));
        }
        let reason = HookReason { hook: Arc::clone(hook), text };
        match catalog::row(event).block {
            BlockEffect::Prevents => self.blocked.push(reason),
            BlockEffect::InformsModel => self.feedback.push(reason),
            BlockEffect::InformsUser => self.errors.push(reason),
        }
    }

    fn add_decision(&mut self, decision: HookPermissionDecision, hook: &Arc<str>, reason: Option<String>) {
        let reason = reason.map(|text| HookReason { hook: Arc::clone(hook), text });
        match &mut self.decision {
            Some(ruling) if strictness(ruling.decision) > strictness(decision) => {}
            Some(ruling) if ruling.decision == decision => ruling.reasons.extend(reason),
            ruling => *ruling = Some(MergedDecision { decision, reasons: reason.into_iter().collect() }),
        }
    }

    /// Of several answers in the person's place, a no counts before a yes, and the first before others.
    fn add_permission(&mut self, answer: PermissionResult) {
        let is_no = |answer: &PermissionResult| matches!(answer, PermissionResult::Deny { .. });
        if self.permission_result.as_ref().is_none_or(|given| is_no(&answer) && !is_no(given)) {
            self.permission_result = Some(answer);
        }
    }

    /// What only this event allows. Context has been taken already.
    fn add_specific(&mut self, hook: &Arc<str>, specific: HookSpecific) {
        use HookSpecific as On;
        match specific {
            On::PreToolUse(answer) => self.add_pre_tool_use(hook, answer),
            On::PostToolUse(answer) => self.add_post_tool_use(answer),
            On::PreModelSwitch(answer) => {
                if let Some(decision) = answer.permission_decision {
                    self.add_decision(decision, hook, answer.permission_decision_reason);
                }
            }
            On::PermissionRequest(answer) => self.add_permission(answer.decision),
            On::PermissionDenied(answer) => self.event_specific.retry |= answer.retry == Some(true),
            On::UserPromptSubmit(answer) => {
                replace_if_some(&mut self.event_specific.session_title, answer.session_title);
                self.event_specific.suppress_original_prompt |= answer.suppress_original_prompt == Some(true);
            }
            On::UserPromptExpansion(answer) => {
                self.event_specific.suppress_original_prompt |= answer.suppress_original_prompt == Some(true);
            }
            On::SessionStart(answer) => self.event_specific.add_session_start(answer),
            On::Elicitation(answer) | On::ElicitationResult(answer) => self.event_specific.add_elicitation(answer),
            On::CwdChanged(answer) | On::FileChanged(answer) => {
                self.event_specific.watch_paths.extend(answer.watch_paths.into_iter().flatten());
            }
            On::MessageDisplay(answer) => replace_if_some(&mut self.event_specific.display_content, answer.display_content),
            On::WorktreeCreate(answer) => self.event_specific.worktree_path = Some(answer.worktree_path),
            On::PostToolUseFailure(_)
            | On::PostToolBatch(_)
            | On::Notification(_)
            | On::Setup(_)
            | On::Stop(_)
            | On::SubagentStart(_)
            | On::SubagentStop(_)
            | On::PostModelSwitch(_)
            | On::Other(_) => {}
        }
    }

    fn add_pre_tool_use(&mut self, hook: &Arc<str>, answer: PreToolUseOutput) {
        if let Some(decision) = answer.permission_decision {
            self.add_decision(decision, hook, answer.permission_decision_reason);
        }
        replace_if_some(&mut self.updated_input, answer.updated_input);
    }

    fn add_post_tool_use(&mut self, answer: PostToolUseOutput) {
        replace_if_some(&mut self.tool_output, answer.updated_tool_output);
        replace_if_some(&mut self.mcp_tool_output, answer.updated_mcp_tool_output);
        self.event_specific.classifier_contexts.extend(answer.classifier_context);
    }
}

impl EventSpecific {
    fn add_session_start(&mut self, answer: SessionStartOutput) {
        replace_if_some(&mut self.session_title, answer.session_title);
        replace_if_some(&mut self.initial_user_message, answer.initial_user_message);
        self.watch_paths.extend(answer.watch_paths.into_iter().flatten());
        self.reload_skills |= answer.reload_skills == Some(true);
    }

    /// Of several answers to a server, one that gives nothing away counts before one that does.
    fn add_elicitation(&mut self, answer: ElicitationOutput) {
        let gives = |answer: &ElicitationOutput| answer.action == Some(ElicitationAction::Accept);
        if answer.action.is_none() {
            return;
        }
        if self.elicitation.as_ref().is_none_or(|given| gives(given) && !gives(&answer)) {
            self.elicitation = Some(answer);
        }
    }
}

/// Whether hooks give a verdict on the event.
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

fn replace_if_some<T>(place: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *place = value;
    }
}
