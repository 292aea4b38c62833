//! An agent's lookout: tells the hooks what happens around it, and the host what hooks say to the person.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::{HookBase, HookEvent};
use whimbrel_wire::system::Informational;

use super::stop_flag::StopFlag;
use super::config::HookSet;
use super::inputs::{HookCall, HookInputBuilder};
use super::merge::{MergedOutput, StopRequest};
use super::executor::{HookDeps, HookExecutor};
use crate::frame_sender::FrameSender;
use crate::permission::PermissionState;
use crate::workspace::Workspace;

/// The lookout of one agent. Cheap to clone.
#[derive(Clone)]
pub struct HookDispatcher(Arc<Inner>);

/// What a lookout stands on.
#[derive(Clone)]
struct Inner {
    executor: HookExecutor,
    permissions: PermissionState,
    workspace: Arc<Workspace>,
    frames: FrameSender,
    /// What stays the same; mode and working directory are looked up each time.
    base: HookBase,
    /// The prompt that is being answered, by whichever agent.
    prompt_id: Arc<Mutex<Option<String>>>,
    /// Pulled by a hook that ends the turn.
    stop_flag: StopFlag,
}

impl HookDispatcher {
    /// The lookout of the main agent. `base` says which session it is.
    pub fn new(
        hooks: HookExecutor,
        rights: PermissionState,
        workspace: Arc<Workspace>,
        outbox: FrameSender,
        base: HookBase,
    ) -> Self {
        let (prompt, brake) = (Arc::default(), StopFlag::default());
        Self::from_inner(Inner { executor: hooks, permissions: rights, workspace, frames: outbox, base, prompt_id: prompt, stop_flag: brake })
    }

    fn from_inner(post: Inner) -> Self {
        Self(Arc::new(post))
    }

    /// The lookout of a subagent.
    #[must_use]
    pub fn for_subagent(&self, agent_id: &str, kind: &str) -> Self {
        let base = HookBase {
            agent_id: Some(agent_id.into()),
            agent_type: Some(kind.into()),
            ..self.0.base.clone()
        };
        Self::from_inner(Inner { base, stop_flag: self.0.stop_flag.child(), ..Inner::clone(&self.0) })
    }

    /// The same with further hooks, which nobody else has.
    #[must_use]
    pub fn with_hooks(&self, more: HookSet, desk: &HookDeps) -> Self {
        Self::from_inner(Inner { executor: self.0.executor.with_added(more, desk), ..Inner::clone(&self.0) })
    }

    /// The same for an agent that stands in this place, with these rights.
    #[must_use]
    pub fn with_workspace(&self, workspace: &Arc<Workspace>, rights: PermissionState) -> Self {
        Self::from_inner(Inner { workspace: Arc::clone(workspace), permissions: rights, ..Inner::clone(&self.0) })
    }

    /// A new turn begins: nobody has ended it yet.
    pub fn begin_turn(&self) {
        self.0.stop_flag.clear();
    }

    /// Whether a hook has ended the turn, at whichever event: what is under way ends, nothing else begins.
    pub fn is_stopped(&self) -> bool {
        self.0.stop_flag.is_set()
    }

    /// A lookout that no hook hears of: for tests of tools.
    #[cfg(test)]
    pub(crate) fn disabled(workspace: &Arc<Workspace>) -> Self {
        let (rights, base) = (PermissionState::for_tests(workspace), HookBase::default());
        Self::new(HookExecutor::default(), rights, Arc::clone(workspace), FrameSender::disconnected(), base)
    }

    /// The subagent; none on the main line.
    pub fn agent_id(&self) -> Option<&str> {
        self.0.base.agent_id.as_deref()
    }

    /// The prompt that is being answered from now on.
    pub fn set_prompt(&self, id: Option<&str>) {
        *self.0.prompt_id.lock().unwrap_or_else(PoisonError::into_inner) = id.map(Into::into);
    }

    /// Whether an event has hooks.
    pub fn has_hooks(&self, event: HookEvent) -> bool {
        self.0.executor.has_hooks(event)
    }

    /// Tells the person that what hooks of an event said is of no use.
    pub async fn warn(&self, event: HookEvent, text: &str) {
        self.0.frames.warn(format!("{event} hook: {text}")).await;
    }

    /// Tells the hooks of an event, if it has any, and waits for what they say. What they say to the person is passed on.
    pub async fn dispatch(
        &self,
        event: HookEvent,
        occasion: impl FnOnce(&HookInputBuilder) -> HookCall,
        cancel: &CancellationToken,
    ) -> MergedOutput {
        if !self.0.executor.has_hooks(event) {
            return MergedOutput::default();
        }
        // Few sessions have hooks: the others do not pay for what it takes to run them.
        let folded = Box::pin(self.0.executor.run(occasion(&self.input_builder()), cancel)).await;
        if folded.stop.is_some() {
            self.0.stop_flag.set();
        }
        self.forward_messages(event, &folded).await;
        folded
    }

    /// Has the model told with its next call what hooks said between turns.
    pub fn defer_contexts(&self, event: HookEvent, contexts: Vec<String>) {
        if let Some(late) = self.0.executor.async_results() {
            for context in contexts {
                late.add_context(event, self.0.base.agent_id.clone(), context);
            }
        }
    }

    /// What the model is told of answers that nobody waited for.
    pub async fn take_async_contexts(&self) -> Vec<String> {
        let mut contexts = Vec::new();
        for answer in self.0.executor.take_async_results(self.agent_id()) {
            if let Some(fault) = answer.error {
                self.0.frames.warn(format!("{} hook ({}): {fault}", answer.event, answer.hook)).await;
            }
            if let Some(message) = answer.system_message {
                self.0.frames.info(message).await;
            }
            contexts.extend(answer.context);
        }
        contexts
    }

    fn input_builder(&self) -> HookInputBuilder {
        HookInputBuilder(HookBase {
            cwd: self.0.workspace.cwd().display().to_string(),
            permission_mode: Some(self.0.permissions.mode()),
            prompt_id: self.0.prompt_id.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..self.0.base.clone()
        })
    }

    async fn forward_messages(&self, event: HookEvent, folded: &MergedOutput) {
        for message in &folded.system_messages {
            self.0.frames.info(message.clone()).await;
        }
        for fault in &folded.errors {
            self.0.frames.warn(format!("{event} hook ({}): {}", fault.hook, fault.text)).await;
        }
        if let Some(StopRequest { reason: Some(reason) }) = &folded.stop {
            let content = reason.clone();
            let prevent_continuation = Some(true);
            self.0
                .frames
                .notify(Informational { content, prevent_continuation, ..Informational::default() })
                .await;
        }
    }
}
