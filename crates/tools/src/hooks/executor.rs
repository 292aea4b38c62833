//! Runs the hooks of an event concurrently and merges their outputs.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use tokio_util::sync::CancellationToken;
use whimbrel_os::clock;
use whimbrel_os::log::LogTopic;
use whimbrel_wire::hook::{HookEvent, HookEventInput, HookInput};

use super::async_results::{AsyncResult, AsyncResults};
use super::failure_policy::apply_failure_policy;
use super::handler::{HookAction, HookHandler};
use super::hook_set::HookSet;
use super::http;
use super::inputs::HookCall;
use super::merge::{MergedOutput, merge};
use super::output::{HookResult, ParsedOutput, truncate_texts};
use super::progress::ProgressPolicy;
use super::{callback, command};
use crate::tasks::TaskRegistry;
use crate::workspace::Workspace;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_transport::host_requests::HostRequests;

/// Dependencies of hook runs.
#[derive(Clone)]
pub struct HookDeps {
    pub requests: HostRequests,
    pub frames: FrameSender,
    pub tasks: TaskRegistry,
    pub workspace: Arc<Workspace>,
    /// Events whose hook runs are reported to the host.
    pub progress: ProgressPolicy,
}

/// Hooks of a session with their dependencies. Cheap to clone; without hooks it holds nothing.
#[derive(Clone, Default)]
pub struct HookExecutor(Option<Arc<Inner>>);

struct Inner {
    set: HookSet,
    deps: HookDeps,
    async_results: Arc<AsyncResults>,
}

impl HookExecutor {
    pub fn new(set: HookSet, deps: HookDeps) -> Self {
        Self((!set.is_empty()).then(|| Arc::new(Inner { set, deps, async_results: Arc::default() })))
    }

    /// Adds hooks; `deps` is used if there were none before.
    #[must_use]
    pub fn with_added(&self, added: HookSet, deps: &HookDeps) -> Self {
        if added.is_empty() {
            return self.clone();
        }
        let Some(inner) = &self.0 else { return Self::new(added, deps.clone()) };
        let mut set = inner.set.clone();
        set.append(added);
        Self(Some(Arc::new(Inner {
            set,
            deps: inner.deps.clone(),
            async_results: Arc::clone(&inner.async_results),
        })))
    }

    /// Returns true if the event has hooks. Check it before building an input.
    pub fn has_hooks(&self, event: HookEvent) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.set.has_hooks(event))
    }

    /// Runs the hooks and waits for their outputs. If `cancel` fires they are cancelled, and the output is marked as
    /// interrupted.
    pub async fn run(&self, hook_call: HookCall, cancel: &CancellationToken) -> MergedOutput {
        let (Some(inner), Some(event)) = (&self.0, hook_call.input.event.event()) else {
            return MergedOutput::default();
        };
        if !inner.set.has_hooks(event) {
            return MergedOutput::default();
        }
        if cancel.is_cancelled() {
            return MergedOutput { interrupted: true, ..MergedOutput::default() };
        }
        let handlers = inner.set.handlers(&hook_call.input, &inner.deps.workspace);
        let input = command_input(&handlers, &hook_call.input);
        let runs =
            handlers.iter().map(|handler| inner.run_handler(handler, event, &hook_call, &input, cancel));
        let started = clock::monotonic();
        let outcomes = join_all(runs).await;
        for HookResult { hook, output } in &outcomes {
            inner.deps.frames.log().write_line(LogTopic::Hooks, || {
                let hook: String = hook.chars().take(100).collect();
                let time = (clock::monotonic() - started).as_millis();
                format!("{event}: {hook}: {}, all finished after {time} ms", output.summary())
            });
        }
        let original_input = match &hook_call.input.event {
            HookEventInput::PreToolUse(call) => Some(&call.tool_input),
            _ => None,
        };
        merge(event, original_input, outcomes)
    }

    /// Takes finished async results: a subagent its own, the main agent all.
    pub fn take_async_results(&self, agent_id: Option<&str>) -> Vec<AsyncResult> {
        self.0.as_ref().map(|inner| inner.async_results.take(agent_id)).unwrap_or_default()
    }

    /// Queue of async results; `None` without hooks.
    pub fn async_results(&self) -> Option<&AsyncResults> {
        self.0.as_ref().map(|inner| &*inner.async_results)
    }
}

impl Inner {
    async fn run_handler(
        &self,
        handler: &HookHandler,
        event: HookEvent,
        hook_call: &HookCall,
        input: &Bytes,
        cancel: &CancellationToken,
    ) -> HookResult {
        let hook = handler.display_name();
        let command_run = |command| command::CommandHookRun {
            deps: &self.deps,
            async_results: &self.async_results,
            hook: Arc::clone(&hook),
            event,
            call: hook_call,
            input: input.clone(),
            command,
            timeout: handler.timeout,
            environment: &handler.environment,
        };
        let mut output = match &handler.action {
            HookAction::Callback(id) => {
                callback::run(&self.deps.requests, (event, id), hook_call, handler.timeout, cancel).await
            }
            // At the end of a session async hooks are awaited.
            HookAction::BackgroundCommand(command) if event != HookEvent::SessionEnd => {
                command_run(command).run_in_background().await
            }
            HookAction::Command(command) | HookAction::BackgroundCommand(command) => {
                command_run(command).run(cancel).await
            }
            HookAction::Http(hook) => {
                http::run(hook, event, input.clone(), &self.deps.workspace, handler.timeout, cancel).await
            }
            HookAction::Unavailable(reason) => ParsedOutput::Failed(reason.to_string()),
        };
        output = apply_failure_policy(event, handler.failure, output);
        truncate_texts(&mut output, self.deps.workspace.output_dir());
        HookResult { hook, output }
    }
}

/// Hook input as JSON with a newline; empty if only callbacks run.
fn command_input(handlers: &[HookHandler], input: &HookInput) -> Bytes {
    if handlers.iter().all(|handler| matches!(handler.action, HookAction::Callback(_))) {
        return Bytes::new();
    }
    // The input consists of JSON values, so this cannot fail.
    let mut json = serde_json::to_vec(input).unwrap_or_default();
    json.push(b'\n');
    json.into()
}
