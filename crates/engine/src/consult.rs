//! One question to a model, outside any conversation: summaries, pages to be read.

use std::sync::Arc;

use serde_json::Value;
use whimbrel_models::assemble::Assembly;
use whimbrel_models::call::{Call, Step, Timing};
use whimbrel_models::providers::Dialect;
use whimbrel_models::retry::Policy;
use whimbrel_models::{Fault, FaultKind, History, Preamble, Request};
use whimbrel_wire::{Block, Role, StopReason};

use crate::cost::{Ledger, Metered};
use crate::engine::Engine;
use crate::outbox::Outbox;
use crate::turn;

/// How long an answer may get.
const LONGEST: u64 = 8_192;

/// Asks the small model. Cheap to clone; what it costs goes into the session's ledger.
#[derive(Clone)]
pub struct Consult {
    engine: Engine,
    ledger: Ledger,
    model: String,
    policy: Policy,
    timing: Timing,
    session: Arc<str>,
}

impl Consult {
    /// Asks this model.
    pub fn new(engine: Engine, ledger: Ledger, model: String, policy: Policy, session: Arc<str>) -> Self {
        Self { engine, ledger, model, policy, timing: Timing::default(), session }
    }

    /// The same with another measure of how long a provider may be silent.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// The same on another ledger.
    pub fn on(&self, ledger: Ledger) -> Self {
        Self { ledger, ..self.clone() }
    }

    /// Nobody can be asked: for tests of tools that ask nobody.
    #[cfg(test)]
    pub(crate) fn nobody() -> Self {
        use whimbrel_models::providers::Providers;
        let engine = Engine::new(Providers::offline());
        Self::new(engine, Ledger::default(), "nobody".into(), Policy::default(), "session".into())
    }

    /// Asks one question under a system prompt of its own.
    pub async fn ask(&self, system: &str, question: &str) -> Result<String, Fault> {
        let preamble = Preamble::new(vec![system.to_owned()], Vec::new());
        one_reply(self.begin(preamble, question).await?, None).await
    }

    /// Whether the model's provider can search the web.
    pub fn can_search(&self) -> bool {
        self.engine.providers().dialect(&self.model) == Some(Dialect::Messages)
    }

    /// Asks one question for which the provider may use a tool of its own; gives the whole reply.
    pub async fn search(&self, system: &str, question: &str, tool: Value) -> Result<Vec<Block>, Fault> {
        let preamble = Preamble::served(vec![system.to_owned()], vec![tool]);
        let (blocks, _) = whole_reply(self.begin(preamble, question).await?, None).await?;
        Ok(blocks)
    }

    async fn begin(&self, preamble: Preamble, question: &str) -> Result<Metered, Fault> {
        let (provider, name) = self.engine.resolve(&self.model)?;
        let mut history = History::new();
        history.push(Role::User, &Block::text(question));
        let request = Request {
            max_tokens: LONGEST.min(self.engine.catalog().max_output_tokens(&self.model)),
            session_id: self.session.to_string(),
            ..Request::new(name, Arc::new(preamble), history.ask())
        };
        let call = Call::new(provider, request, self.policy, self.timing);
        Metered::begin(call, self.engine.clone(), self.ledger.clone(), self.model.clone()).await
    }
}

/// The text of one whole reply. An empty one is a fault, and so is one that was not brought to its end.
/// A host that listens hears of each repetition.
pub async fn one_reply(call: Metered, host: Option<&Outbox>) -> Result<String, Fault> {
    let (blocks, stop_reason) = whole_reply(call, host).await?;
    let texts = blocks.into_iter().filter_map(|block| match block {
        Block::Text { text, .. } => Some(text),
        _ => None,
    });
    let answer: String = texts.collect();
    let unfinished = match stop_reason {
        Some(StopReason::MaxTokens) => Some("The model's answer hit the output limit."),
        Some(StopReason::Refusal) => Some("The model declined to answer."),
        _ => None,
    };
    if let Some(why) = unfinished {
        return Err(Fault::new(FaultKind::Protocol, why));
    }
    if answer.trim().is_empty() {
        return Err(Fault::new(FaultKind::Protocol, "The model's answer is empty."));
    }
    Ok(answer)
}

/// The blocks of one whole reply, and why it ended.
async fn whole_reply(
    mut call: Metered,
    host: Option<&Outbox>,
) -> Result<(Vec<Block>, Option<StopReason>), Fault> {
    let mut assembly = Assembly::default();
    let mut blocks = Vec::new();
    while let Some(step) = call.next().await {
        match step? {
            Step::Delta(delta) => {
                blocks.extend(assembly.take(&delta.event)?.map(|finished| finished.block));
            }
            Step::Retry(retry) => {
                if let Some(host) = host {
                    host.notify(turn::retry_notice(&retry)).await;
                }
                assembly = Assembly::default();
                blocks.clear();
            }
            Step::Cut(fault) => return Err(fault),
        }
    }
    Ok((blocks, assembly.stop_reason))
}
