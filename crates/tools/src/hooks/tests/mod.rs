//! Tests of hooks with real commands and a host.

mod async_results;
mod callbacks;
mod commands;
mod fixture;
mod hook_set;
mod http;
mod inputs;
mod listing;
mod merge;
mod output;

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::HookEvent;

use super::{HookExecutor, MergedOutput};
use fixture::{TestHooks, command, pre_tool_use};

#[tokio::test]
async fn without_hooks_nothing_runs() {
    let hooks = HookExecutor::default();
    assert!(HookEvent::ALL.iter().all(|event| !hooks.has_hooks(*event)));
    let merged = hooks.run(pre_tool_use("Bash", &().into()), &CancellationToken::new()).await;
    assert_eq!(merged, MergedOutput::default());
    assert_eq!(hooks.take_async_results(None), []);
    assert_eq!(size_of_val(&hooks), size_of::<usize>());
}

#[tokio::test]
async fn only_hooks_of_the_event_run() {
    let fixture = TestHooks::with_commands(&[
        ("PreToolUse", Some("Read"), command("exit 2")),
        ("PostToolUse", None, command("exit 2")),
    ]);
    assert!(
        fixture.executor.has_hooks(HookEvent::PreToolUse) && !fixture.executor.has_hooks(HookEvent::Stop)
    );
    assert_eq!(fixture.run_bash_hooks().await, MergedOutput::default());
}
