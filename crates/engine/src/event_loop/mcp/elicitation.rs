//! Elicitation: questions of MCP servers to the user. Hooks may answer first, then the host asks the user, then hooks
//! may change the reply.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use whimbrel_mcp::ElicitFn;
use whimbrel_tools::hooks::{HookDispatcher, MergedOutput};
use whimbrel_transport::host_requests::HostRequests;
use whimbrel_wire::control::{Elicitation, ElicitationAction, ElicitationReply};
use whimbrel_wire::hook::{self, HookEvent};

use crate::state_notifier::StateNotifier;

/// Creates the handler that asks hooks, then the host.
pub(super) fn elicitation_handler(
    requests: HostRequests,
    state: StateNotifier,
    hooks: watch::Receiver<HookDispatcher>,
) -> ElicitFn {
    Arc::new(move |question| {
        let (requests, state, hooks) = (requests.clone(), state.clone(), hooks.borrow().clone());
        Box::pin(async move { elicit(question, &requests, &state, &hooks).await })
    })
}

async fn elicit(
    question: Elicitation,
    requests: &HostRequests,
    state: &StateNotifier,
    hooks: &HookDispatcher,
) -> ElicitationReply {
    // A caller that no longer waits drops this future, and the hooks with it.
    let cancel = CancellationToken::new();
    let hook_input = hook::ElicitationHook {
        mcp_server_name: question.mcp_server_name.clone(),
        message: question.message.clone(),
        mode: question.mode.clone(),
        url: question.url.clone(),
        elicitation_id: question.elicitation_id.clone(),
        requested_schema: question.requested_schema.clone(),
    };
    let (server, id, mode) =
        (hook_input.mcp_server_name.clone(), hook_input.elicitation_id.clone(), hook_input.mode.clone());
    let output = hooks.dispatch(HookEvent::Elicitation, |input| input.build(hook_input), &cancel).await;
    let reply = match reply_from_hooks(&output) {
        Some(reply) => reply,
        None => {
            let waiting = state.requires_action().await;
            // A host that cannot answer counts as cancelled.
            let reply = requests
                .request(question)
                .await
                .unwrap_or_else(|_| reply_without_content(ElicitationAction::Cancel));
            waiting.finish().await;
            reply
        }
    };
    let result = hook::ElicitationResult {
        mcp_server_name: server,
        elicitation_id: id,
        mode,
        action: reply.action,
        content: reply.content.clone().map(Into::into),
    };
    let output = hooks.dispatch(HookEvent::ElicitationResult, |input| input.build(result), &cancel).await;
    reply_from_hooks(&output).unwrap_or(reply)
}

/// The reply given by hooks, if there is one. A blocking hook declines.
fn reply_from_hooks(output: &MergedOutput) -> Option<ElicitationReply> {
    if !output.blocked.is_empty() {
        return Some(reply_without_content(ElicitationAction::Decline));
    }
    let answer = output.event_specific.elicitation.as_ref()?;
    Some(ElicitationReply { action: answer.action?, content: answer.content.clone() })
}

fn reply_without_content(action: ElicitationAction) -> ElicitationReply {
    ElicitationReply { action, content: None }
}
