//! Acting: the calls of a reply are made, and each result is recorded.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::system::PermissionDenied;

use super::Ending;
use super::hooked::{self, brief};
use crate::agent::Agent;
use crate::gate::{Halt, Refuser};
use crate::skills::desk;
use crate::workshop::{Made, Workshop};

/// Makes the calls that are left; says whether one of them ends the turn.
pub(super) async fn act(
    agent: &mut Agent,
    workshop: &mut Workshop,
    ending: &mut Ending,
    cancel: &CancellationToken,
) -> Option<Halt> {
    let mut settled = Settled::default();
    workshop.reply_complete();
    while settled.halt != Some(Halt::Refused) {
        let made = tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            made = workshop.next() => made,
        };
        let Some(made) = made else { break };
        settle(agent, made, ending, &mut settled).await;
        if settled.halt.is_some() {
            // What is under way ends; nothing else begins.
            workshop.close();
        }
    }
    brief(agent, &settled.notes);
    desk::lay_open(agent, cancel).await;
    if settled.halt.is_none() && !cancel.is_cancelled() {
        settled.halt = hooked::after_batch(agent, workshop.batch(), cancel).await;
    }
    settled.halt
}

/// What came of calls besides their results.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) notes: Vec<String>,
    halt: Option<Halt>,
}

/// Records one result.
pub(super) async fn settle(agent: &mut Agent, mut made: Made, ending: &mut Ending, settled: &mut Settled) {
    ending.num_turns += 1;
    ending.deferred = made.deferred.take().or(ending.deferred.take());
    settled.notes.append(&mut made.notes);
    settled.halt = settled.halt.or(made.halt);
    agent.owed.settled(&made);
    if let Some(refused) = &made.denial {
        agent.denials.add(refused.denial.clone());
        if refused.by != Refuser::Host {
            let notice = PermissionDenied {
                tool_name: refused.denial.tool_name.clone(),
                tool_use_id: refused.denial.tool_use_id.clone(),
                agent_id: agent.bench.gate.lookout.agent_id().map(Into::into),
                message: refused.message.clone(),
                ..PermissionDenied::default()
            };
            agent.outbox.notify(notice).await;
        }
    }
    agent.conversation.tool_result(made).await;
}
