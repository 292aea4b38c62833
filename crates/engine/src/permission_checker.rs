//! Permission checker, run before every tool call: PreToolUse hooks first, then the rules, then a permission request
//! if a rule requires it. Gives one outcome.

mod outcome;
mod prompt_tool;
mod request;

use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_os::files;
use whimbrel_policy::{
    AskDetails, CheckedCall, Decision, PreToolDecision, Reason, ResolvedDecision, ToolKind,
};
use whimbrel_tools::api::{ToolEntry, ToolError};
use whimbrel_tools::hooks::{HookDispatcher, MergedDecision, MergedOutput, ToolCallRef, join_reasons};
use whimbrel_tools::mcp_tools::ToolCache;
use whimbrel_tools::permission::{ModeSwitch, PermissionState};
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_transport::host_requests::HostRequests;
use whimbrel_wire::codec::MAX_LINE_OUT;
use whimbrel_wire::hook::{HookEvent, HookPermissionDecision};
use whimbrel_wire::permission::{PermissionMode, PermissionUpdate};

use crate::state_notifier::StateNotifier;
pub use outcome::{CheckDecision, CheckOutcome, DeniedBy, EndTurn};
use request::{AnsweredBy, RequestOutcome};

/// Sends permission requests to what answers them.
#[derive(Debug, Clone)]
pub enum PermissionRequester {
    /// Host, by `can_use_tool`.
    Host(HostRequests),
    /// Tool of an MCP server (`--permission-prompt-tool`).
    Tool(ToolCache, String),
    Unavailable,
}

/// Permission checker of an agent.
#[derive(Clone)]
pub struct PermissionChecker {
    pub permissions: PermissionState,
    pub requester: PermissionRequester,
    /// Timeout of a permission request; `None` waits forever.
    pub request_timeout: Option<Duration>,
    pub hooks: HookDispatcher,
    /// Publishes that the session waits for the host.
    pub state_notifier: StateNotifier,
    pub frames: FrameSender,
}

impl PermissionChecker {
    /// Without hooks; permission requests cannot be sent.
    #[cfg(test)]
    pub(crate) fn for_tests(
        permissions: PermissionState,
        workspace: &std::sync::Arc<whimbrel_tools::workspace::Workspace>,
        frames: FrameSender,
    ) -> Self {
        let (hooks, base) =
            (whimbrel_tools::hooks::HookExecutor::default(), whimbrel_wire::hook::HookBase::default());
        let workspace = std::sync::Arc::clone(workspace);
        Self {
            hooks: HookDispatcher::new(hooks, permissions.clone(), workspace, frames.clone(), base),
            state_notifier: StateNotifier::new(frames.clone(), crate::state_notifier::StateSubscription::Off),
            requester: PermissionRequester::Unavailable,
            request_timeout: None,
            permissions,
            frames,
        }
    }

    /// Checks a call and requests permission if necessary. Input changed by a hook is decided as if the model had
    /// written it; input changed by the host is decided again, without another request.
    pub async fn check(
        &self,
        entry: &ToolEntry,
        id: &str,
        mut input: Value,
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        // Invalid input is an error of the model, not a permission matter.
        entry.tool().effects(&input)?;
        if entry.properties().kind == ToolKind::Shell && !fits_request(&input) {
            return Err(ToolError::Rejected(format!("InputValidationError: {INPUT_TOO_LONG}")));
        }
        let mut output = self.run_pre_hooks(entry, id, &input, cancel).await;
        let rewritten = output.updated_input.take().map(Value::Object);
        let rewrote_input = rewritten.is_some();
        if let Some(rewritten) = rewritten {
            entry.tool().effects(&rewritten)?;
            input = rewritten;
        }
        let rewritten = rewrote_input.then(|| input.clone());
        let mut outcome = match self.hook_decision(entry, &output, rewrote_input) {
            Ok(hook) => self.decide(entry, id, input, hook, cancel).await?,
            Err(HookRejection::Deny(message)) => CheckOutcome::deny(message, DeniedBy::Hook),
            Err(HookRejection::Defer) => {
                let end_turn = Some(EndTurn::HookDeferred);
                CheckOutcome { decision: CheckDecision::Defer(input), notes: Vec::new(), end_turn }
            }
        };
        outcome.notes.append(&mut output.contexts);
        if let CheckDecision::Deny { changed: changed @ None, .. } = &mut outcome.decision {
            *changed = rewritten;
        }
        Ok(outcome)
    }

    /// Checks a call that a hook deferred, without that hook's decision: only a call that is alone in its reply can be
    /// deferred.
    pub async fn check_ignoring_defer(
        &self,
        entry: &ToolEntry,
        id: &str,
        input: Value,
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        let text = "A PreToolUse hook deferred a call, which is possible only if it is the only call of the reply. The \
            permission rules decide instead.";
        self.frames.warn(text).await;
        self.decide(entry, id, input, None, cancel).await
    }

    async fn run_pre_hooks(
        &self,
        entry: &ToolEntry,
        id: &str,
        input: &Value,
        cancel: &CancellationToken,
    ) -> MergedOutput {
        let call = tool_call_ref(entry, id, input);
        self.hooks.dispatch(HookEvent::PreToolUse, |builder| builder.pre_tool_use(call), cancel).await
    }

    /// Converts the hooks' decision for the rules.
    fn hook_decision(
        &self,
        entry: &ToolEntry,
        output: &MergedOutput,
        rewrote_input: bool,
    ) -> Result<Option<PreToolDecision>, HookRejection> {
        if output.interrupted {
            return Err(HookRejection::Deny("The turn was interrupted before its hooks finished.".into()));
        }
        let Some(MergedDecision { decision, reasons }) = &output.decision else { return Ok(None) };
        let (text, source) = (join_reasons(reasons), "PreToolUse".to_owned());
        match decision {
            HookPermissionDecision::Allow => Ok(Some(PreToolDecision::Allow { source, text, rewrote_input })),
            HookPermissionDecision::Ask => Ok(Some(PreToolDecision::Ask { source, text })),
            HookPermissionDecision::Defer => Err(HookRejection::Defer),
            HookPermissionDecision::Deny => {
                let text = if text.is_empty() { "no reason given".into() } else { text };
                Err(HookRejection::Deny(format!("PreToolUse:{} hook error: {text}", entry.tool().name())))
            }
        }
    }

    /// Decides by the rules, and requests permission if they require it.
    async fn decide(
        &self,
        entry: &ToolEntry,
        id: &str,
        input: Value,
        hook: Option<PreToolDecision>,
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        let name = entry.tool().name();
        let mode = self.permissions.mode_for_server(entry.tool().server());
        let resolved = self.permissions.decide_in_mode(
            mode,
            name,
            &entry.properties_for_input(&input),
            &input,
            hook.clone(),
        );
        let ResolvedDecision { decision, checked } = resolved;
        match decision {
            Decision::Allow(_) => Ok(CheckOutcome::allow(input, checked)),
            Decision::Deny(reason) => self.deny(entry, id, &input, &reason, cancel).await,
            Decision::Ask(details) => {
                let request = PermissionRequestContext {
                    entry,
                    id,
                    input: &input,
                    details: &details,
                    hook,
                    request_hooks: RequestHooks::Run,
                };
                self.request_permission(&request, mode, checked, cancel).await
            }
        }
    }

    /// Requests permission and applies the answer.
    async fn request_permission(
        &self,
        request: &PermissionRequestContext<'_>,
        mode: PermissionMode,
        checked: CheckedCall,
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        let PermissionRequestContext { entry, id, input, .. } = *request;
        if entry.properties().kind == ToolKind::Mcp && !fits_request(input) {
            return Ok(CheckOutcome::deny(
                format!("This call needs permission. {INPUT_TOO_LONG}"),
                DeniedBy::NoAnswer,
            ));
        }
        match self.request_answer(request, cancel).await {
            // The answer covers the file and the command that were shown, so the earlier resolution is kept, whatever the path leads to
            // by now.
            RequestOutcome::Allowed { input: allowed, .. } if allowed == *input => {
                Ok(CheckOutcome::allow(allowed, checked))
            }
            RequestOutcome::Allowed { input: changed, by } => {
                Box::pin(self.recheck_changed_input(entry, id, changed, (mode, by), cancel)).await
            }
            RequestOutcome::Denied(outcome) => Ok(outcome),
            RequestOutcome::Superseded(ResolvedDecision { decision: Decision::Deny(reason), .. }) => {
                self.deny(entry, id, input, &reason, cancel).await
            }
            RequestOutcome::Superseded(ResolvedDecision { checked, .. }) => {
                Ok(CheckOutcome::allow(input.clone(), checked))
            }
        }
    }

    /// Decides on input that the answer changed, in the mode of the request. From the host only deny rules count, since
    /// the host has answered the rest. A hook cannot approve the input that it wrote, except as the answer to an
    /// interactive tool: permission is requested again, if that is possible.
    async fn recheck_changed_input(
        &self,
        entry: &ToolEntry,
        id: &str,
        input: Value,
        (mode, by): (PermissionMode, AnsweredBy),
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        entry.tool().effects(&input)?;
        let name = entry.tool().name();
        let ResolvedDecision { decision, checked } =
            self.permissions.decide_in_mode(mode, name, &entry.properties_for_input(&input), &input, None);
        match decision {
            Decision::Deny(reason) if !matches!(reason, Reason::Mode(_)) => {
                Ok(self.deny(entry, id, &input, &reason, cancel).await?.with_changed_input(input))
            }
            Decision::Ask(details) if by == AnsweredBy::Hook && details.reason != Reason::Interaction => {
                if matches!(self.requester, PermissionRequester::Unavailable) {
                    let reason = details.reason.text();
                    let message = format!("A hook changed the call to one that needs permission. {reason}");
                    return Ok(CheckOutcome::deny(message, DeniedBy::Hook).with_changed_input(input));
                }
                let request = PermissionRequestContext {
                    entry,
                    id,
                    input: &input,
                    details: &details,
                    hook: None,
                    request_hooks: RequestHooks::AlreadyRun,
                };
                let outcome = self.request_permission(&request, mode, checked, cancel).await?;
                Ok(outcome.with_changed_input(input))
            }
            Decision::Allow(_) | Decision::Deny(_) | Decision::Ask(_) => {
                Ok(CheckOutcome::allow(input, checked))
            }
        }
    }

    /// Message for the model about a deny by rules; PermissionDenied hooks can suggest a retry.
    async fn deny(
        &self,
        entry: &ToolEntry,
        id: &str,
        input: &Value,
        reason: &Reason,
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        let tool = entry.tool().name();
        let message = match reason {
            Reason::InvalidInput(text) => {
                return Err(ToolError::Rejected(format!("InputValidationError: {text}")));
            }
            Reason::Mode(PermissionMode::DontAsk) => {
                format!("{tool} needs permission, and this session never asks for it.")
            }
            reason => format!("{tool} is not allowed here. {}", reason.text()),
        };
        let message = self.run_denied_hooks(tool_call_ref(entry, id, input), message, cancel).await;
        Ok(CheckOutcome::deny(message, DeniedBy::Rules))
    }

    /// Runs the PermissionDenied hooks of a call that was denied without the user; returns the message for the model.
    async fn run_denied_hooks(
        &self,
        call: ToolCallRef<'_>,
        message: String,
        cancel: &CancellationToken,
    ) -> String {
        let input = |builder: &whimbrel_tools::hooks::HookInputBuilder| {
            builder.permission_denied(call, message.clone())
        };
        let output = self.hooks.dispatch(HookEvent::PermissionDenied, input, cancel).await;
        match output.event_specific.retry {
            true => format!("{message} A hook allows a retry."),
            false => message,
        }
    }

    pub fn mode_switch(&self) -> ModeSwitch {
        ModeSwitch::new(self.permissions.clone(), self.frames.clone())
    }

    /// Applies permission updates of an answer; reports those that failed or could not be parsed.
    pub(crate) async fn apply_updates(&self, updates: Vec<PermissionUpdate>, invalid: &[String]) {
        for reason in invalid {
            self.frames.warn(format!("Ignored an invalid permission update in an answer: {reason}.")).await;
        }
        if updates.is_empty() {
            return;
        }
        let (permissions, mode) = (self.permissions.clone(), self.permissions.mode());
        let changed = files::run_blocking(move || permissions.apply_updates(&updates)).await;
        if self.permissions.mode() != mode {
            self.mode_switch().notify_host().await;
        }
        for content in changed.unwrap_or_else(|error| vec![error.to_string()]) {
            self.frames.warn(content).await;
        }
    }
}

/// Maximum input size that a request shows untruncated. Input that is executed must not be longer than what is shown;
/// file contents may be.
const MAX_SHOWN_INPUT_BYTES: usize = MAX_LINE_OUT / 10 * 9;

const INPUT_TOO_LONG: &str = "The input is too long for a permission request. Put the data in a file and pass its \
    path.";

fn fits_request(input: &Value) -> bool {
    input.to_string().len() <= MAX_SHOWN_INPUT_BYTES
}

/// Hook decision that prevents the rule check.
enum HookRejection {
    Deny(String),
    Defer,
}

/// Call that permission is requested for.
struct PermissionRequestContext<'a> {
    entry: &'a ToolEntry,
    id: &'a str,
    input: &'a Value,
    details: &'a AskDetails,
    hook: Option<PreToolDecision>,
    request_hooks: RequestHooks,
}

/// Whether PermissionRequest hooks run for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestHooks {
    Run,
    AlreadyRun,
}

fn tool_call_ref<'a>(entry: &'a ToolEntry, id: &'a str, input: &'a Value) -> ToolCallRef<'a> {
    ToolCallRef { name: entry.tool().name(), input, id, server: entry.provenance() }
}
