//! Adds prompts of the host to the running turn: before a model call, or when the model has finished.

use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::input_queue::{SteeringPoint, needs_reply};
use crate::prompt_submission::{self, SubmissionError};

/// Adds the prompts that may come in at this point. Returns whether the turn goes on because of them.
pub(super) async fn add_prompts(agent: &mut Agent, point: SteeringPoint, cancel: &CancellationToken) -> bool {
    let Some(source) = agent.steering.clone().filter(|_| !cancel.is_cancelled()) else { return false };
    let mut goes_on = false;
    for mut user in source.take_prompts(point).await {
        agent.conversation.add_prompt_id(user.uuid.clone());
        if let Some(warning) = agent.conversation.assign_prompt_uuid(&mut user) {
            agent.frame_sender.warn(warning).await;
        }
        let has_question = needs_reply(&user);
        goes_on |= match prompt_submission::submit_prompt(agent, user, source.prompt_replay, cancel).await {
            Ok(()) => has_question,
            // The turn ends before its next model call.
            Err(SubmissionError::Stopped) => true,
            Err(SubmissionError::Blocked(_) | SubmissionError::Interrupted) => false,
        };
    }
    goes_on
}
