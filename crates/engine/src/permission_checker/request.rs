//! Permission requests. Host and hooks are asked concurrently, and the first answer wins. If a rule or mode change
//! decides meanwhile, the request is withdrawn.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use whimbrel_policy::{Decision, ResolvedDecision};
use whimbrel_tools::hooks::HookInputBuilder;
use whimbrel_tools::permission::request::build_request;
use whimbrel_tools::telemetry::ToolSpan;
use whimbrel_transport::host_requests::{HostRequestError, WithdrawalReason};
use whimbrel_wire::codec::restore_truncated;
use whimbrel_wire::control::{CanUseTool, CancelReason, ControlError};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::permission::PermissionResult;

use super::{
    CheckOutcome, DeniedBy, EndTurn, PermissionChecker, PermissionRequestContext, PermissionRequester,
    RequestHooks, prompt_tool, tool_call_ref,
};

/// Time between the end of the host's input and the end of the session if the host is gone.
const HOST_GONE_GRACE: Duration = Duration::from_millis(50);

/// Outcome of a permission request.
pub(super) enum RequestOutcome {
    Allowed {
        input: Value,
        by: AnsweredBy,
    },
    /// Denied, or no answer.
    Denied(CheckOutcome),
    /// Decided by a change of rules or mode.
    Superseded(ResolvedDecision),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnsweredBy {
    /// The host, for the user.
    Host,
    /// A hook, in place of the user.
    Hook,
}

impl From<AnsweredBy> for DeniedBy {
    fn from(answerer: AnsweredBy) -> Self {
        match answerer {
            AnsweredBy::Host => Self::Host,
            AnsweredBy::Hook => Self::Hook,
        }
    }
}

/// First result of the race.
enum Winner {
    Hook(PermissionResult),
    Host(Result<PermissionResult, HostRequestError>),
    Superseded(ResolvedDecision),
    TimedOut,
}

impl PermissionChecker {
    /// Sends the permission request and waits for an answer.
    pub(super) async fn request_answer(
        &self,
        request: &PermissionRequestContext<'_>,
        cancel: &CancellationToken,
    ) -> RequestOutcome {
        let tool = request.entry.tool().name();
        let winner = match &self.requester {
            PermissionRequester::Unavailable => match self.run_request_hooks(request, cancel).await {
                Some(answer) => Winner::Hook(answer),
                None => return RequestOutcome::Denied(self.deny_no_requester(request, cancel).await),
            },
            PermissionRequester::Host(_) | PermissionRequester::Tool(..) => {
                let host_request = CanUseTool {
                    agent_id: self.hooks.agent_id().map(Into::into),
                    mcp_server: request.entry.provenance().cloned(),
                    ..build_request(
                        (tool, request.entry.properties()),
                        request.id,
                        request.input,
                        request.details,
                        |path| self.permissions.display_path(path),
                    )
                };
                let waiting = match self.requester {
                    PermissionRequester::Host(_) => Some(self.state_notifier.requires_action().await),
                    PermissionRequester::Tool(..) | PermissionRequester::Unavailable => None,
                };
                ToolSpan::record_asked();
                self.notify_user(tool, request.request_hooks, cancel);
                let withdrawal = WithdrawalReason::default();
                // The reasons are set before the request is dropped.
                let superseded = async {
                    let decision = self.wait_superseded(request).await;
                    withdrawal.set(CancelReason::RulesChanged);
                    decision
                };
                let timed_out = async {
                    self.wait_timeout().await;
                    withdrawal.set(CancelReason::TimedOut);
                };
                let winner = tokio::select! {
                    biased;
                    winner = self.race_answers(request, host_request, &withdrawal, cancel) => winner,
                    decision = superseded => Winner::Superseded(decision),
                    () = timed_out => Winner::TimedOut,
                };
                if let Some(waiting) = waiting {
                    waiting.finish().await;
                }
                winner
            }
        };
        let (answer, by) = match winner {
            Winner::Superseded(decision) => return RequestOutcome::Superseded(decision),
            Winner::TimedOut => return failed_outcome("no answer in time"),
            Winner::Hook(answer) => (Ok(answer), AnsweredBy::Hook),
            Winner::Host(Err(HostRequestError::Closed)) => {
                return RequestOutcome::Denied(self.deny_host_closed(request, cancel).await);
            }
            Winner::Host(Ok(PermissionResult::Allow { tool_use_id: Some(other), .. }))
                if other != request.id =>
            {
                return failed_outcome("the answer is for another call");
            }
            Winner::Host(answer) => (answer, AnsweredBy::Host),
        };
        if let Ok(PermissionResult::Allow { updated_permissions, invalid_updates, .. }) = &answer {
            self.apply_updates(updated_permissions.clone().unwrap_or_default(), invalid_updates).await;
        }
        if let Err(HostRequestError::Failed(ControlError::InvalidReply(error))) = &answer {
            let text = format!(
                "The answer to the permission request for {tool} is not valid and counts as a denial: {error}"
            );
            self.frames.warn(text).await;
        }
        to_outcome(tool, request.input, answer, by)
    }

    /// First answer of hooks or host. If the host cannot answer, the hooks have unlimited time.
    async fn race_answers(
        &self,
        request: &PermissionRequestContext<'_>,
        host_request: CanUseTool,
        withdrawal: &WithdrawalReason,
        cancel: &CancellationToken,
    ) -> Winner {
        let mut hooks = pin!(self.run_request_hooks(request, cancel));
        let mut host = pin!(self.requester.send(host_request, withdrawal.clone(), cancel));
        tokio::select! {
            biased;
            answer = &mut hooks => match answer {
                Some(answer) => {
                    withdrawal.set(CancelReason::AnsweredByHook);
                    Winner::Hook(answer)
                }
                None => Winner::Host(host.await),
            },
            answer = &mut host => match answer {
                Err(error) if error == HostRequestError::Closed || matches!(self.requester, PermissionRequester::Tool(..)) => {
                    hooks.await.map_or(Winner::Host(Err(error)), Winner::Hook)
                }
                answer => Winner::Host(answer),
            },
        }
    }

    /// Runs the Notification hooks in the background.
    fn notify_user(&self, tool: &str, hooks: RequestHooks, cancel: &CancellationToken) {
        if hooks == RequestHooks::AlreadyRun || !self.hooks.has_hooks(HookEvent::Notification) {
            return;
        }
        let (hooks, cancel) = (self.hooks.clone(), cancel.clone());
        let message = format!("Permission is needed to use {tool}");
        tokio::spawn(async move {
            let input = |builder: &HookInputBuilder| builder.notification("permission_prompt", message, None);
            hooks.dispatch(HookEvent::Notification, input, &cancel).await;
        });
    }

    /// Answer of PermissionRequest hooks, if they give one.
    async fn run_request_hooks(
        &self,
        request: &PermissionRequestContext<'_>,
        cancel: &CancellationToken,
    ) -> Option<PermissionResult> {
        if request.request_hooks == RequestHooks::AlreadyRun {
            return None;
        }
        let call = tool_call_ref(request.entry, request.id, request.input);
        let suggestions = &request.details.suggestions;
        let hooks = self.hooks.dispatch(
            HookEvent::PermissionRequest,
            |builder| builder.permission_request(call, suggestions.clone()),
            cancel,
        );
        hooks.await.permission_result
    }

    /// Returns once a change of rules or mode decides the call.
    async fn wait_superseded(&self, request: &PermissionRequestContext<'_>) -> ResolvedDecision {
        // Only the user can answer an interactive tool.
        if request.entry.properties().requires_interaction {
            return pending().await;
        }
        let name = request.entry.tool().name();
        let mut changes = self.permissions.changes();
        loop {
            let resolved = self.permissions.decide(
                name,
                &request.entry.properties_for_input(request.input),
                request.input,
                request.hook.clone(),
            );
            if !matches!(resolved.decision, Decision::Ask(_)) {
                return resolved;
            }
            changes.next().await;
        }
    }

    /// Returns when the request times out.
    async fn wait_timeout(&self) {
        match self.request_timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => pending().await,
        }
    }

    /// Denies because the host has closed its input and no hook answered. If the host is gone altogether, the session is
    /// stopped a moment later: then nothing is decided, so that the call can be asked for again when it is resumed.
    async fn deny_host_closed(
        &self,
        request: &PermissionRequestContext<'_>,
        cancel: &CancellationToken,
    ) -> CheckOutcome {
        if tokio::time::timeout(HOST_GONE_GRACE, self.frames.stopped()).await.is_ok() {
            // The stopped turn drops this call.
            return pending().await;
        }
        let message = format!("Tool permission request failed: {}", HostRequestError::Closed);
        let call = tool_call_ref(request.entry, request.id, request.input);
        CheckOutcome::deny(self.run_denied_hooks(call, message, cancel).await, DeniedBy::NoAnswer)
    }

    async fn deny_no_requester(
        &self,
        request: &PermissionRequestContext<'_>,
        cancel: &CancellationToken,
    ) -> CheckOutcome {
        let call = tool_call_ref(request.entry, request.id, request.input);
        let message = format!(
            "{} needs permission, and this session cannot ask for it. Allow the tool, or start with a permission \
             callback.",
            call.name
        );
        CheckOutcome::deny(self.run_denied_hooks(call, message, cancel).await, DeniedBy::NoAnswer)
    }
}

impl PermissionRequester {
    /// Sends a request and waits for the answer.
    pub(crate) async fn send(
        &self,
        host_request: CanUseTool,
        withdrawal: WithdrawalReason,
        cancel: &CancellationToken,
    ) -> Result<PermissionResult, HostRequestError> {
        match self {
            Self::Host(requests) => requests.withdrawable_request(host_request, withdrawal).await,
            Self::Tool(tools, name) => prompt_tool::request_answer(tools, name, host_request, cancel).await,
            Self::Unavailable => Err(HostRequestError::Closed),
        }
    }
}

/// Converts an answer to an outcome.
fn to_outcome(
    tool: &str,
    input: &Value,
    answer: Result<PermissionResult, HostRequestError>,
    by: AnsweredBy,
) -> RequestOutcome {
    match answer {
        // Some hosts send an empty input to say that it is unchanged.
        Ok(PermissionResult::Allow { updated_input: Some(updated), .. }) if !updated.is_empty() => {
            RequestOutcome::Allowed { input: restore_truncated_input(input, updated), by }
        }
        Ok(PermissionResult::Allow { .. }) => RequestOutcome::Allowed { input: input.clone(), by },
        Ok(PermissionResult::Deny { message, interrupt, .. }) => {
            let message = if message.is_empty() { format!("The user denied {tool}.") } else { message };
            let end_turn = interrupt.then_some(EndTurn::Denied);
            RequestOutcome::Denied(CheckOutcome { end_turn, ..CheckOutcome::deny(message, by.into()) })
        }
        Err(error) => failed_outcome(&error.to_string()),
    }
}

fn failed_outcome(error: &str) -> RequestOutcome {
    let message = format!("Tool permission request failed: {error}");
    RequestOutcome::Denied(CheckOutcome::deny(message, DeniedBy::NoAnswer))
}

/// Restores truncated values. Hosts often echo the input that they were shown, which may have been truncated to fit a
/// line.
fn restore_truncated_input(input: &Value, updated: Map<String, Value>) -> Value {
    let mut updated = Value::Object(updated);
    restore_truncated(&mut updated, input);
    updated
}
