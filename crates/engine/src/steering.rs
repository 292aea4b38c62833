//! Prompts of the host for the running turn. The event loop owns the queue; the turn asks it at certain points.

use tokio::sync::{mpsc, oneshot};
use whimbrel_wire::message::User;

use crate::input_queue::{PromptReplay, SteeringPoint};

/// A turn asks for the prompts that may come in now.
#[derive(Debug)]
pub(crate) struct SteeringRequest {
    pub(crate) point: SteeringPoint,
    reply: oneshot::Sender<Vec<User>>,
}

impl SteeringRequest {
    /// Gives the prompts to the turn, which waits for them.
    pub(crate) fn reply(self, prompts: Vec<User>) {
        // A turn that no longer exists has ended with its session.
        let _ = self.reply.send(prompts);
    }
}

/// Where a turn gets them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SteeringSource {
    requests: mpsc::Sender<SteeringRequest>,
    /// Whether the host gets its prompts back.
    pub(crate) prompt_replay: PromptReplay,
}

impl SteeringSource {
    /// Creates the source of a turn, and the receiver of its requests.
    pub(crate) fn new(prompt_replay: PromptReplay) -> (Self, mpsc::Receiver<SteeringRequest>) {
        let (requests, receiver) = mpsc::channel(1);
        (Self { requests, prompt_replay }, receiver)
    }

    /// Takes the prompts that may come in now; none if the session is being stopped.
    pub(crate) async fn take_prompts(&self, point: SteeringPoint) -> Vec<User> {
        let (reply, prompts) = oneshot::channel();
        if self.requests.send(SteeringRequest { point, reply }).await.is_err() {
            return Vec::new();
        }
        // Not cancelled by an interrupt, so that no prompt is lost on its way.
        prompts.await.unwrap_or_default()
    }
}
