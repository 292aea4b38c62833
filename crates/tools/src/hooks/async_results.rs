//! Results of async hooks, queued until the next model call.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use whimbrel_wire::hook::HookEvent;

use super::output::{ParsedOutput, additional_context};

/// Result of an async hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsyncResult {
    pub hook: Arc<str>,
    /// Event that the hook was run for.
    pub event: HookEvent,
    /// Subagent of that event; `None` for the main agent.
    pub agent_id: Option<String>,
    /// Additional context for the model.
    pub context: Option<String>,
    /// Message for the user.
    pub system_message: Option<String>,
    /// Failure or timeout, for the user.
    pub error: Option<String>,
}

/// Queue of async results of a session.
#[derive(Debug, Default)]
pub struct AsyncResults {
    results: Mutex<Vec<AsyncResult>>,
    available: Notify,
}

impl AsyncResults {
    /// Takes the results so far, in order of arrival: a subagent its own, the main agent all.
    pub fn take(&self, agent_id: Option<&str>) -> Vec<AsyncResult> {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recipient =
            |result: &mut AsyncResult| agent_id.is_none() || result.agent_id.as_deref() == agent_id;
        results.extract_if(.., is_recipient).collect()
    }

    /// Waits until the queue is not empty.
    pub async fn wait_available(&self) {
        loop {
            let arrived = self.available.notified();
            if !self.results.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            arrived.await;
        }
    }

    /// Queues context for the model's next call.
    pub(super) fn add_context(&self, event: HookEvent, agent_id: Option<String>, context: String) {
        let (hook, context) = (event.as_str().into(), Some(context));
        self.push(AsyncResult { hook, event, agent_id, context, system_message: None, error: None });
    }

    fn push(&self, result: AsyncResult) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        self.available.notify_one();
    }

    /// Queues a hook's output if it has context, message or error. Decisions come too late and are dropped.
    pub(super) fn add(
        &self,
        hook: &Arc<str>,
        event: HookEvent,
        agent_id: Option<String>,
        parsed: ParsedOutput,
    ) {
        let error = parsed.error();
        let (mut context, mut system_message) = (None, None);
        if let ParsedOutput::Output(mut output) = parsed {
            context = output.specific.as_mut().and_then(additional_context).map(std::mem::take);
            system_message = output.system_message;
        }
        if error.is_none() && context.is_none() && system_message.is_none() {
            return;
        }
        self.push(AsyncResult { hook: Arc::clone(hook), event, agent_id, context, system_message, error });
    }
}
