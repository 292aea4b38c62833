//! Hook dispatcher of an agent: builds inputs, runs the hooks, and forwards their messages to the host.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::{HookBase, HookEvent};
use whimbrel_wire::system::Informational;

use super::executor::{HookDeps, HookExecutor};
use super::hook_set::HookSet;
use super::inputs::{HookCall, HookInputBuilder};
use super::merge::{MergedOutput, StopRequest};
use super::stop_flag::StopFlag;
use crate::permission::PermissionState;
use crate::workspace::Workspace;
use whimbrel_transport::frame_sender::FrameSender;

/// Hook dispatcher of one agent. Cheap to clone.
#[derive(Clone)]
pub struct HookDispatcher(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    executor: HookExecutor,
    permissions: PermissionState,
    workspace: Arc<Workspace>,
    frames: FrameSender,
    /// Constant fields; mode and working directory are read for each event.
    base: HookBase,
    /// Id of the prompt being answered, shared by all agents.
    prompt_id: Arc<Mutex<Option<String>>>,
    /// Set by a hook that ends the turn.
    stop_flag: StopFlag,
}

impl HookDispatcher {
    /// Dispatcher of the main agent. `base` identifies the session.
    pub fn new(
        hooks: HookExecutor,
        permissions: PermissionState,
        workspace: Arc<Workspace>,
        frames: FrameSender,
        base: HookBase,
    ) -> Self {
        let (prompt_id, stop_flag) = (Arc::default(), StopFlag::default());
        Self::from_inner(Inner {
            executor: hooks,
            permissions,
            workspace,
            frames,
            base,
            prompt_id,
            stop_flag,
        })
    }

    fn from_inner(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Dispatcher of a subagent.
    #[must_use]
    pub fn for_subagent(&self, agent_id: &str, agent_type: &str) -> Self {
        let base = HookBase {
            agent_id: Some(agent_id.into()),
            agent_type: Some(agent_type.into()),
            ..self.0.base.clone()
        };
        Self::from_inner(Inner { base, stop_flag: self.0.stop_flag.child(), ..Inner::clone(&self.0) })
    }

    /// Adds hooks for this agent only.
    #[must_use]
    pub fn with_hooks(&self, hooks: HookSet, deps: &HookDeps) -> Self {
        Self::from_inner(Inner { executor: self.0.executor.with_added(hooks, deps), ..Inner::clone(&self.0) })
    }

    /// Dispatcher for an agent with another working directory and other permissions.
    #[must_use]
    pub fn with_workspace(&self, workspace: &Arc<Workspace>, permissions: PermissionState) -> Self {
        Self::from_inner(Inner { workspace: Arc::clone(workspace), permissions, ..Inner::clone(&self.0) })
    }

    /// Clears the stop flag for a new turn.
    pub fn begin_turn(&self) {
        self.0.stop_flag.clear();
    }

    /// Returns true if a hook has ended the turn, at any event.
    pub fn is_stopped(&self) -> bool {
        self.0.stop_flag.is_set()
    }

    /// Dispatcher without hooks, for tests of tools.
    #[cfg(any(test, feature = "test-support"))]
    pub fn disabled(workspace: &Arc<Workspace>) -> Self {
        let (permissions, base) = (PermissionState::for_tests(workspace), HookBase::default());
        Self::new(
            HookExecutor::default(),
            permissions,
            Arc::clone(workspace),
            FrameSender::disconnected(),
            base,
        )
    }

    /// Id of the subagent; `None` for the main agent.
    pub fn agent_id(&self) -> Option<&str> {
        self.0.base.agent_id.as_deref()
    }

    pub fn set_prompt(&self, id: Option<&str>) {
        *self.0.prompt_id.lock().unwrap_or_else(PoisonError::into_inner) = id.map(Into::into);
    }

    pub fn has_hooks(&self, event: HookEvent) -> bool {
        self.0.executor.has_hooks(event)
    }

    /// Warns the user that the output of an event's hooks cannot be used.
    pub async fn warn(&self, event: HookEvent, text: &str) {
        self.0.frames.warn(format!("{event} hook: {text}")).await;
    }

    /// Runs the hooks of an event, if it has any, and waits for them. Messages for the user are forwarded to the host.
    pub async fn dispatch(
        &self,
        event: HookEvent,
        hook_call: impl FnOnce(&HookInputBuilder) -> HookCall,
        cancel: &CancellationToken,
    ) -> MergedOutput {
        if !self.0.executor.has_hooks(event) {
            return MergedOutput::default();
        }
        // Boxed, so that sessions without hooks do not pay for the size of this future.
        let output = Box::pin(self.0.executor.run(hook_call(&self.input_builder()), cancel)).await;
        if output.stop.is_some() {
            self.0.stop_flag.set();
        }
        self.forward_messages(event, &output).await;
        output
    }

    /// Queues context from hooks that ran between turns, for the next model call.
    pub fn defer_contexts(&self, event: HookEvent, contexts: Vec<String>) {
        if let Some(async_results) = self.0.executor.async_results() {
            for context in contexts {
                async_results.add_context(event, self.0.base.agent_id.clone(), context);
            }
        }
    }

    /// Takes the context of finished async hooks, and forwards their messages to the host.
    pub async fn take_async_contexts(&self) -> Vec<String> {
        let mut contexts = Vec::new();
        for result in self.0.executor.take_async_results(self.agent_id()) {
            if let Some(error) = result.error {
                self.0.frames.warn(format!("{} hook ({}): {error}", result.event, result.hook)).await;
            }
            if let Some(message) = result.system_message {
                self.0.frames.info(message).await;
            }
            contexts.extend(result.context);
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

    async fn forward_messages(&self, event: HookEvent, output: &MergedOutput) {
        for message in &output.system_messages {
            self.0.frames.info(message.clone()).await;
        }
        for error in &output.errors {
            self.0.frames.warn(format!("{event} hook ({}): {}", error.hook, error.text)).await;
        }
        if let Some(StopRequest { reason: Some(reason) }) = &output.stop {
            let content = reason.clone();
            let prevent_continuation = Some(true);
            self.0
                .frames
                .notify(Informational { content, prevent_continuation, ..Informational::default() })
                .await;
        }
    }
}
