//! What hooks promise, with real commands and a host at the other end.

mod callbacks;
mod commands;
mod config;
mod events;
mod fold;
mod http;
mod later;
mod outcome;
mod stage;

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::HookEvent;

use super::{Folded, Hooks};
use stage::{Stage, before, command};

#[tokio::test]
async fn without_hooks_nothing_happens() {
    let hooks = Hooks::default();
    assert!(HookEvent::ALL.iter().all(|event| !hooks.listens(*event)));
    let folded = hooks.raise(before("Bash", &().into()), &CancellationToken::new()).await;
    assert_eq!(folded, Folded::default());
    assert_eq!(hooks.take_late(None), []);
    assert_eq!(size_of_val(&hooks), size_of::<usize>());
}

#[tokio::test]
async fn only_the_hooks_of_the_event_run() {
    let stage = Stage::with_commands(&[
        ("PreToolUse", Some("Read"), command("exit 2")),
        ("PostToolUse", None, command("exit 2")),
    ]);
    assert!(stage.hooks.listens(HookEvent::PreToolUse) && !stage.hooks.listens(HookEvent::Stop));
    assert_eq!(stage.before_bash().await, Folded::default());
}
