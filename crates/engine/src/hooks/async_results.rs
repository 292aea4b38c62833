//! What hooks say that nobody waited for. It waits here until the next model call takes it along.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use whimbrel_wire::hook::HookEvent;

use super::output::{ParsedOutput, additional_context};

/// A late answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsyncResult {
    /// The hook.
    pub hook: Arc<str>,
    /// The event that it was told of.
    pub event: HookEvent,
    /// The subagent in which that happened.
    pub agent_id: Option<String>,
    /// What the model is told.
    pub context: Option<String>,
    /// What the person is told.
    pub system_message: Option<String>,
    /// What went wrong, for the person: it failed, or it took too long.
    pub error: Option<String>,
}

/// The late answers of a session.
#[derive(Debug, Default)]
pub struct AsyncResults {
    results: Mutex<Vec<AsyncResult>>,
    available: Notify,
}

impl AsyncResults {
    /// Takes the answers that have come so far, in order of arrival: a subagent its own, the main agent all.
    pub fn take(&self, agent_id: Option<&str>) -> Vec<AsyncResult> {
        let mut answers = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let is_for = |answer: &mut AsyncResult| agent_id.is_none() || answer.agent_id.as_deref() == agent_id;
        answers.extract_if(.., is_for).collect()
    }

    /// Waits until there is an answer that nobody has taken yet.
    pub async fn wait_available(&self) {
        loop {
            let arrived = self.available.notified();
            if !self.results.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// Keeps what the model is to be told with its next call.
    pub(super) fn add_context(&self, event: HookEvent, agent_id: Option<String>, context: String) {
        let (hook, context) = (event.as_str().into(), Some(context));
        self.push(AsyncResult { hook, event, agent_id, context, system_message: None, error: None });
    }

    fn push(&self, answer: AsyncResult) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        self.available.notify_one();
    }

    /// Keeps what a hook said, if it said anything that can still matter. What it wanted to decide is decided.
    pub(super) fn add(&self, hook: &Arc<str>, event: HookEvent, agent_id: Option<String>, said: ParsedOutput) {
        let error = said.error();
        let (mut context, mut system_message) = (None, None);
        if let ParsedOutput::Output(mut output) = said {
            context = output.specific.as_mut().and_then(additional_context).map(std::mem::take);
            system_message = output.system_message;
        }
        if error.is_none() && context.is_none() && system_message.is_none() {
            return;
        }
        self.push(AsyncResult { hook: Arc::clone(hook), event, agent_id, context, system_message, error });
    }
}
