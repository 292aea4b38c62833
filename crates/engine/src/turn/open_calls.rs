//! Begins a turn with calls of an earlier reply that have no result, because the engine ended before.

use whimbrel_session_store::load::open_calls::{OpenCall, OpenCallState};

use super::TurnOutcome;
use crate::agent::Agent;
use crate::conversation::reload::HeldText;
use crate::next_step::NextStep;
use crate::tool_scheduler::{ToolCall, ToolCallResult, ToolScheduler};

/// How a turn begins.
pub(super) enum TurnStart {
    ModelCall,
    /// With these calls. The texts wait for their results.
    OpenCalls {
        calls: Vec<OpenCall>,
        held: Vec<HeldText>,
    },
}

impl TurnStart {
    /// Returns the first step of the turn, and the texts that wait.
    pub(super) async fn begin(
        self,
        agent: &mut Agent,
        scheduler: &mut ToolScheduler,
        outcome: &mut TurnOutcome,
    ) -> (NextStep, Vec<HeldText>) {
        let Self::OpenCalls { calls, held } = self else { return (NextStep::CallModel, Vec::new()) };
        for call in calls {
            submit_open_call(agent, call, scheduler, outcome).await;
        }
        (NextStep::RunTools, held)
    }
}

/// Submits a call that never started. Another one gets its result, because it must not run again.
async fn submit_open_call(
    agent: &mut Agent,
    call: OpenCall,
    scheduler: &mut ToolScheduler,
    outcome: &mut TurnOutcome,
) {
    let OpenCall { id, tool, input, state } = call;
    match state {
        OpenCallState::OutcomeUnknown(text) => {
            outcome.num_turns += 1;
            agent.conversation.push_tool_result(ToolCallResult::outcome_unknown(&id, text)).await;
        }
        OpenCallState::Unstarted => {
            let call = ToolCall { id, tool, input, bad_input: None };
            agent.observe_call(&call);
            scheduler.submit(call);
        }
    }
}
