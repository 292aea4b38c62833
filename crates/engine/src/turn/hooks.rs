//! Hooks that run during a turn: after tool calls, for loaded instructions, after an API error. The hooks that decide
//! whether a turn may end are in `stop_hooks`.

use tokio_util::sync::CancellationToken;
use whimbrel_models::ModelError;
use whimbrel_tools::hooks::HookInputBuilder;
use whimbrel_wire::hook::{BatchedCall, HookEvent};

use crate::agent::Agent;
use crate::permission_checker::EndTurn;

/// Adds the results of asynchronous hooks before the next model call.
pub(super) async fn inject_async_results(agent: &mut Agent) {
    let contexts = agent.tool_env.checker.hooks.take_async_contexts().await;
    agent.inject_hook_context(&contexts);
}

/// Runs the `PostToolBatch` hooks after all calls of a reply. They may add context or end the turn.
pub(super) async fn run_post_batch_hooks(
    agent: &mut Agent,
    calls: Vec<BatchedCall>,
    cancel: &CancellationToken,
) -> Option<EndTurn> {
    let hooks = &agent.tool_env.checker.hooks;
    let output = hooks.dispatch(HookEvent::PostToolBatch, |input| input.post_tool_batch(calls), cancel).await;
    let stop = output.stop.is_some() || !output.blocked.is_empty();
    let stderr = output.blocked.into_iter().map(|reason| reason.text);
    agent.inject_hook_context(&stderr.chain(output.contexts).collect::<Vec<_>>());
    stop.then_some(EndTurn::Hook)
}

/// Runs the `InstructionsLoaded` hooks for files loaded since the last call.
pub(super) async fn notify_instructions_loaded(agent: &mut Agent, cancel: &CancellationToken) {
    let hooks = agent.tool_env.checker.hooks.clone();
    for file in agent.take_loaded_instructions().await {
        hooks
            .dispatch(HookEvent::InstructionsLoaded, |input| input.build(file.to_hook_input()), cancel)
            .await;
    }
}

/// Runs the `StopFailure` hooks after an API error.
pub(super) async fn run_stop_failure_hooks(agent: &Agent, error: &ModelError) {
    let build_input =
        |input: &HookInputBuilder| input.stop_failure(error.failure_kind(), Some(error.message.clone()));
    let hooks = &agent.tool_env.checker.hooks;
    hooks.dispatch(HookEvent::StopFailure, build_input, &agent.tool_env.context.cancel).await;
}
