//! The end of a turn: the conversation is left in order, and what went wrong is said.

use whimbrel_models::{Fault, FaultKind};
use whimbrel_wire::message::FailureKind;

use super::act::{Settled, settle};
use super::hooked::{self, brief};
use super::{Ending, INTERRUPTED};
use crate::agent::Agent;
use crate::skills::desk;
use crate::verdict::End;
use crate::workshop::Workshop;

/// Leaves the conversation in order: every call has a result, and an abort or a failure is on record.
pub(super) async fn wind_up(agent: &mut Agent, workshop: Workshop, ending: &mut Ending) {
    let why = match ending.end {
        End::Broke => "the budget was used up",
        End::HookStopped => "a hook ended the turn",
        End::Deferred => "a call was put off",
        End::ApiFailure | End::TooLong => "the model failed",
        _ => "the turn was interrupted by the user",
    };
    let mut settled = Settled::default();
    for made in workshop.abandon(why) {
        if ending.end == End::Broke {
            agent.conversation.close_call(made);
            continue;
        }
        settle(agent, made, ending, &mut settled).await;
    }
    brief(agent, &settled.notes);
    let cancel = agent.bench.call.cancel.clone();
    desk::lay_open(agent, &cancel).await;
    match ending.end {
        End::AbortedStreaming => agent.conversation.note(INTERRUPTED).await,
        End::AbortedTools => agent.conversation.note("[Request interrupted by user for tool use]").await,
        End::ApiFailure => {
            let fault =
                ending.fault.clone().unwrap_or_else(|| Fault::new(FaultKind::Cut, "The reply broke off."));
            ending.text = failure_text(&fault);
            if fault.kind == FaultKind::InvalidRequest {
                leave_out(agent).await;
            }
            agent.conversation.failure(&ending.text, fault.failure(), Some(&fault)).await;
            hooked::after_failure(agent, &fault).await;
            ending.fault = Some(fault);
        }
        End::TooLong => {
            let fault = ending.fault.clone();
            if fault.is_some() {
                leave_out(agent).await;
            }
            ending.text = match &fault {
                Some(fault) => failure_text(fault),
                None => "The conversation is too long for the model's window, and the reply was cut at its end. Shorten it with /compact, or begin a new one.".into(),
            };
            agent.conversation.failure(&ending.text, FailureKind::InvalidRequest, fault.as_ref()).await;
        }
        End::OutputLimit => {
            ending.text = "The reply hit the output limit again and again. Ask for less at a time, or raise CLAUDE_CODE_MAX_OUTPUT_TOKENS.".into();
            agent.conversation.failure(&ending.text, FailureKind::MaxOutputTokens, None).await;
        }
        End::Stalled => {
            ending.text = "The provider paused the reply again and again and never finished it. Ask once more, or for less at a time.".into();
            agent.conversation.failure(&ending.text, FailureKind::ServerError, None).await;
        }
        End::Done => {
            ending.structured = agent.owed.take();
            if let Some(answer) = &ending.structured {
                ending.text = answer.to_string();
            }
        }
        End::Refused if ending.text.is_empty() => ending.text = "The model declined to answer.".into(),
        End::HookStopped => ending.text.clear(),
        End::Deferred | End::MaxTurns | End::Refused | End::NoAnswer | End::Broke => {}
    }
    agent.conversation.settle().await;
}

/// The provider does not take what came last, so the model is not sent it again; what else it was told then is told anew.
async fn leave_out(agent: &mut Agent) {
    if !agent.conversation.withdraw() {
        return;
    }
    agent.orient();
    if agent.conversation.is_main() {
        let text = "The provider refuses what came last. It stays in the transcript, but the model is not sent it again, so that the session can go on.";
        agent.outbox.inform(text).await;
    }
}

fn failure_text(fault: &Fault) -> String {
    match fault.status {
        Some(status) => format!("API Error: {status} {}", fault.message),
        None => format!("API Error: {}", fault.message),
    }
}
