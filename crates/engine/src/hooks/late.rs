//! What hooks say that nobody waited for. It waits here until the next model call takes it along.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use whimbrel_wire::hook::HookEvent;

use super::outcome::{Said, context_of};

/// A late answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateAnswer {
    /// The hook.
    pub hook: Arc<str>,
    /// The event that it was told of.
    pub event: HookEvent,
    /// What the model is told.
    pub context: Option<String>,
    /// What the person is told.
    pub system_message: Option<String>,
    /// What went wrong, for the person: it failed, or it took too long.
    pub fault: Option<String>,
}

/// The late answers of a session.
#[derive(Debug, Default)]
pub struct Late {
    answers: Mutex<Vec<LateAnswer>>,
    arrived: Notify,
}

impl Late {
    /// Takes all answers that have come so far, in order of arrival.
    pub fn take(&self) -> Vec<LateAnswer> {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there is an answer that nobody has taken yet.
    pub async fn arrived(&self) {
        loop {
            let arrived = self.arrived.notified();
            if !self.answers.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// Keeps what a hook said, if it said anything that can still matter. What it wanted to decide is decided.
    pub(super) fn put(&self, hook: &Arc<str>, event: HookEvent, said: Said) {
        let fault = said.fault();
        let (mut context, mut system_message) = (None, None);
        if let Said::Answer(mut output) = said {
            context = output.specific.as_mut().and_then(context_of).map(std::mem::take);
            system_message = output.system_message;
        }
        if fault.is_none() && context.is_none() && system_message.is_none() {
            return;
        }
        let answer = LateAnswer { hook: Arc::clone(hook), event, context, system_message, fault };
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        self.arrived.notify_one();
    }
}
