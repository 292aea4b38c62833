//! Compaction: the model summarises the conversation, and the summary takes its place.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_models::call::Call;
use whimbrel_models::providers::Dialect;
use whimbrel_models::{Fault, FaultKind, History, Preamble, Request};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::system::{
    CompactBoundary, CompactMetadata, CompactResult, CompactTrigger, Status, StatusKind,
};
use whimbrel_wire::{Block, Role};

use crate::agent::Agent;
use crate::clock;
use crate::consult::one_reply;
use crate::context::retell::retell;
use crate::context::room;
use crate::cost::Metered;
use crate::hooks::{Scene, joined};
use crate::turn;
use crate::understudy;

/// How long a summary may get.
const LONGEST: u64 = 20_000;

/// How much room a conversation is given when the model's window is not known, in tokens.
const UNKNOWN_ROOM: u64 = 60_000;

/// Bytes per token of a retold conversation; rather too few, so that it fits.
const RETOLD_BYTES: u64 = 3;

/// What the model is asked. Its answer is all that it will know of the conversation afterwards.
const QUESTION: &str = "The conversation is about to be replaced by a summary, which you now write. Whoever goes on with the work will have nothing else. Use no tools. \
Cover, in this order and only as far as it applies: what the person asked for, in their own words where wording matters; what was decided and why; what was done, with the paths of \
all files that were read, made or changed and what is in them that matters; what failed and how it was solved; what is still open; what was being done last and the very next step. \
Keep names, numbers, commands and error texts exact. Leave out pleasantries and what no longer matters.";

/// What is added when the last prompt has not been answered yet.
const UNANSWERED: &str = " The person's last message stays as it is after your summary: do not answer it here, and do not repeat it.";

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

/// What is summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The conversation as it is; if that is too long, retold.
    Whole,
    /// The conversation retold in less.
    Retold,
}

/// Has the conversation summarised; `keep` says what the person wants kept. Nothing is replaced yet. The host hears of it
/// if it is the main conversation.
pub async fn summarise(
    agent: &mut Agent,
    trigger: CompactTrigger,
    keep: &str,
    source: Source,
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
    if let Some(stop) = said.stop {
        return Err(Failed::Blocked(stop.reason.unwrap_or_else(|| "a hook ends the turn".into())));
    }
    let began = clock::monotonic();
    show(agent, Status { status: Some(StatusKind::Compacting), ..Status::default() }).await;
    let summary = match cancel.run_until_cancelled(ask(agent, keep, source)).await {
        Some(Ok(text)) => Ok(Summary { text, took: clock::monotonic() - began }),
        // A recording was interrupted here; then the turn is again.
        Some(Err(fault)) if fault.kind == FaultKind::Interrupted => {
            cancel.cancel();
            Err(Failed::Interrupted)
        }
        Some(Err(fault)) => Err(Failed::Model(fault)),
        None => Err(Failed::Interrupted),
    };
    let compact_result = Some(if summary.is_ok() { CompactResult::Success } else { CompactResult::Failed });
    let compact_error = match &summary {
        Err(Failed::Model(fault)) => Some(fault.message.clone()),
        _ => None,
    };
    show(agent, Status { compact_result, compact_error, ..Status::default() }).await;
    summary
}

async fn show(agent: &Agent, status: Status) {
    if agent.conversation.is_main() {
        agent.outbox.notify(status).await;
    }
}

/// Puts a summary in the place of the conversation. A prompt that has not been answered yet stays as it is; in the middle of
/// a turn its words go with the summary.
pub async fn replace(agent: &mut Agent, trigger: CompactTrigger, summary: Summary) {
    let compact_metadata = CompactMetadata {
        trigger,
        pre_tokens: agent.conversation.tokens(),
        duration_ms: u64::try_from(summary.took.as_millis()).ok(),
        ..CompactMetadata::default()
    };
    let boundary = CompactBoundary { compact_metadata };
    let waiting = agent.conversation.take_unanswered();
    let task = match trigger {
        CompactTrigger::Auto if waiting.is_empty() => Some(agent.conversation.task().to_owned()),
        CompactTrigger::Auto | CompactTrigger::Manual => None,
    };
    agent.conversation.forget(boundary, &agent.bench.call.on_demand.loaded()).await;
    agent.ledger.forget();
    agent.orient();
    let transcript = agent.conversation.transcript();
    agent.conversation.summary(&frame(&summary.text, task.as_deref(), transcript.as_deref())).await;
    agent.conversation.put_back(waiting);
    let lookout = agent.bench.gate.lookout.clone();
    let cancel = &agent.bench.call.cancel;
    lookout.raise(HookEvent::PostCompact, |scene| scene.post_compact(trigger, summary.text), cancel).await;
    let model = agent.knobs.now().model;
    let title = agent.conversation.journal().title();
    let told = |scene: &Scene| scene.session_start("compact", Some(&model), title);
    let said = lookout.raise(HookEvent::SessionStart, told, cancel).await;
    turn::brief(agent, &said.contexts);
}

/// Asks for the summary. Nothing of the exchange is recorded.
async fn ask(agent: &mut Agent, keep: &str, source: Source) -> Result<String, Fault> {
    let wish =
        if keep.is_empty() { String::new() } else { format!("\n\nThe person asks in particular: {keep}") };
    let open = if agent.conversation.has_unanswered() { UNANSWERED } else { "" };
    let question = format!("{QUESTION}{open}{wish}");
    if source == Source::Whole {
        let mut history = agent.conversation.history.clone();
        let dialect = agent.engine.providers().dialect(&agent.model());
        if history.loop_thinks() == Some(true) && dialect != Some(Dialect::Chat) {
            // A summary is written without thinking; Chat Completions wants the reasoning before a call back all the same.
            history.forget_thinking();
        }
        history.push(Role::User, &Block::text(question.clone()));
        match reply(agent, agent.preamble.clone(), history).await {
            Err(fault) if matches!(fault.kind, FaultKind::PromptTooLong | FaultKind::TooLarge) => {}
            answer => return answer,
        }
    }
    let most = room::threshold(agent).unwrap_or(UNKNOWN_ROOM) / 2 * RETOLD_BYTES;
    let told = retell(&agent.conversation.history.messages(), usize::try_from(most).unwrap_or(usize::MAX));
    let mut history = History::new();
    history.push(Role::User, &Block::text(format!("<conversation>\n{told}\n</conversation>\n\n{question}")));
    reply(agent, Arc::new(Preamble::new(Vec::new(), Vec::new())), history).await
}

/// Asks once, or more often: another model steps in for one that is not to be had, as in a turn.
async fn reply(agent: &mut Agent, preamble: Arc<Preamble>, mut history: History) -> Result<String, Fault> {
    loop {
        let answer = one_answer(agent, Arc::clone(&preamble), &mut history).await;
        let wanted = agent.knobs.now().model;
        match answer {
            Err(fault)
                if understudy::unavailable(&fault).is_some() && agent.understudies.are_left(&wanted) =>
            {
                understudy::step_in(agent, Some(&fault)).await;
                // Thoughts are signed for the model that had them.
                history.forget_thinking();
            }
            answer => return answer,
        }
    }
}

async fn one_answer(agent: &Agent, preamble: Arc<Preamble>, history: &mut History) -> Result<String, Fault> {
    let model = agent.model();
    let (provider, name) = agent.engine.resolve(&model)?;
    let request = Request {
        max_tokens: LONGEST.min(agent.engine.catalog().max_output_tokens(&model)),
        betas: agent.limits.betas.clone(),
        session_id: agent.outbox.session().to_owned(),
        ..Request::new(name, preamble, history.ask())
    };
    let call = Call::new(provider, request, agent.policy(), agent.limits.timing);
    let call = Metered::begin(call, agent.engine.clone(), agent.ledger.clone(), model).await?;
    one_reply(call, Some(&agent.outbox)).await
}

/// The summary as the model will read it; in the middle of a turn with what is being worked on.
fn frame(summary: &str, task: Option<&str>, transcript: Option<&Path>) -> String {
    let whole = transcript.map_or_else(String::new, |path| {
        let path = path.display();
        format!("\n\nWhat the summary leaves out is in {path}, one JSON object per line: search there if you need it.")
    });
    let told = format!(
        "The conversation before this point was replaced by this summary to make room:\n\n{}{whole}",
        summary.trim()
    );
    match task {
        None => told,
        Some(task) => format!(
            "{told}\n\nThe person's last message was this:\n\n{task}\n\nYou are in the middle of working on it. Go on from where the summary ends."
        ),
    }
}
