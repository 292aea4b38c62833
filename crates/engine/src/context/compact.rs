//! Compaction: the model summarises the conversation, and the summary takes its place.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_models::call::{Call, Timing};
use whimbrel_models::{Fault, Request};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::system::{
    CompactBoundary, CompactMetadata, CompactResult, CompactTrigger, Status, StatusKind,
};
use whimbrel_wire::{Block, Role};

use crate::agent::Agent;
use crate::clock;
use crate::consult::one_reply;
use crate::cost::Metered;
use crate::hooks::{Scene, joined};
use crate::turn;

/// How long a summary may get.
const LONGEST: u64 = 20_000;

/// What the model is asked. Its answer is all that it will know of the conversation afterwards.
const QUESTION: &str = "The conversation is about to be replaced by a summary, which you now write. Whoever goes on with the work will have nothing else. Use no tools. \
Cover, in this order and only as far as it applies: what the person asked for, in their own words where wording matters; what was decided and why; what was done, with the paths of \
all files that were read, made or changed and what is in them that matters; what failed and how it was solved; what is still open; what was being done last and the very next step. \
Keep names, numbers, commands and error texts exact. Leave out pleasantries and what no longer matters.";

/// Why a conversation was not compacted.
#[derive(Debug, Clone, PartialEq)]
pub enum Failed {
    /// There is no conversation yet.
    Nothing,
    /// The turn was interrupted.
    Interrupted,
    /// A hook does not want it, and why.
    Blocked(String),
    /// The model gave no summary.
    Model(Fault),
}

/// A summary that can take the place of the conversation.
#[derive(Debug)]
pub struct Summary {
    text: String,
    took: Duration,
}

/// Has the conversation summarised; `keep` says what the person wants kept. Nothing is replaced yet.
pub async fn summarise(
    agent: &mut Agent,
    trigger: CompactTrigger,
    keep: &str,
    cancel: &CancellationToken,
) -> Result<Summary, Failed> {
    if !agent.conversation.has_begun() {
        return Err(Failed::Nothing);
    }
    let wish = Some(keep.to_owned()).filter(|keep| !keep.is_empty());
    let told = |scene: &Scene| scene.pre_compact(trigger, wish);
    let said = agent.bench.gate.lookout.raise(HookEvent::PreCompact, told, cancel).await;
    if !said.blocked.is_empty() {
        return Err(Failed::Blocked(joined(&said.blocked)));
    }
    let began = clock::monotonic();
    agent.outbox.notify(Status { status: Some(StatusKind::Compacting), ..Status::default() }).await;
    let summary = match cancel.run_until_cancelled(ask(agent, keep)).await {
        Some(Ok(text)) => Ok(Summary { text, took: clock::monotonic() - began }),
        Some(Err(fault)) => Err(Failed::Model(fault)),
        None => Err(Failed::Interrupted),
    };
    let compact_result = Some(if summary.is_ok() { CompactResult::Success } else { CompactResult::Failed });
    agent.outbox.notify(Status { compact_result, ..Status::default() }).await;
    summary
}

/// Puts a summary in the place of the conversation.
pub async fn replace(agent: &mut Agent, trigger: CompactTrigger, summary: Summary) {
    let compact_metadata = CompactMetadata {
        trigger,
        pre_tokens: agent.conversation.tokens(),
        duration_ms: u64::try_from(summary.took.as_millis()).ok(),
        ..CompactMetadata::default()
    };
    let boundary = CompactBoundary { compact_metadata };
    agent.conversation.forget(boundary).await;
    agent.orient();
    agent.conversation.summary(&frame(&summary.text)).await;
    let lookout = agent.bench.gate.lookout.clone();
    let cancel = &agent.bench.call.cancel;
    lookout.raise(HookEvent::PostCompact, |scene| scene.post_compact(trigger, summary.text), cancel).await;
    let model = agent.knobs.borrow().model.clone();
    let told = |scene: &Scene| scene.session_start("compact", Some(&model));
    let said = lookout.raise(HookEvent::SessionStart, told, cancel).await;
    turn::brief(agent, &said.contexts);
}

/// Asks for the summary. Nothing of the exchange is recorded.
async fn ask(agent: &mut Agent, keep: &str) -> Result<String, Fault> {
    let model = agent.knobs.borrow().model.clone();
    let (provider, name) = agent.engine.providers().resolve(&model)?;
    let mut history = agent.conversation.history.clone();
    let wish =
        if keep.is_empty() { String::new() } else { format!("\n\nThe person asks in particular: {keep}") };
    history.push(Role::User, &Block::text(format!("{QUESTION}{wish}")));
    let request = Request {
        max_tokens: LONGEST.min(agent.engine.catalog().max_output_tokens(&model)),
        betas: agent.limits.betas.clone(),
        session_id: agent.outbox.session().to_owned(),
        ..Request::new(name, agent.preamble.clone(), history.ask())
    };
    let call = Call::new(provider, request, agent.limits.policy(), Timing::default());
    one_reply(Metered::new(call, agent.engine.clone(), agent.ledger.clone(), model)).await
}

/// The summary as the model will read it.
fn frame(summary: &str) -> String {
    format!(
        "The conversation before this point was replaced by this summary to make room:\n\n{}",
        summary.trim()
    )
}
