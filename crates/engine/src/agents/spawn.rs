//! Runs a subagent: an agent of its own, on a branch of its own, for one errand.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_models::Thinking;
use whimbrel_wire::Usage;
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::HookEvent;

use crate::agenda::Todos;
use crate::agent::{Agent, Limits};
use crate::agents::home::Own;
use crate::agents::{Agents, Definition};
use crate::conversation::Speaker;
use crate::gate::Gate;
use crate::hooks::Scene;
use crate::knobs::KnobsReader;
use crate::session::Log;
use crate::shape::{self, Owed};
use crate::tools::{AGENT, Call};
use crate::turn::{self, Ending};
use crate::workshop::Bench;
use crate::{clock, ids};

/// What a subagent is asked to do.
#[derive(Debug, Clone)]
pub struct Errand {
    /// The kind of subagent.
    pub kind: String,
    /// The errand in a few words.
    pub description: String,
    /// The errand.
    pub prompt: String,
    /// The model, if not the kind's own.
    pub model: Option<String>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Report {
    /// The subagent.
    pub agent_id: String,
    /// How its turn went; its text is the report.
    pub ending: Ending,
    /// What its replies cost.
    pub usage: Usage,
    /// How long it took.
    pub took: Duration,
}

impl Agents {
    /// Runs a subagent to its end, inside the call that asked for it.
    pub async fn run(&self, definition: &Definition, errand: &Errand, call: &Call) -> Report {
        let began = clock::monotonic();
        let agent_id = ids::task('a');
        let cancel = call.cancel.child_token();
        let mut agent = self.raise(definition, errand, call, &agent_id, cancel.clone());
        let told = |scene: &Scene| scene.subagent_start(&agent_id, &definition.name);
        let said = agent.bench.gate.lookout.raise(HookEvent::SubagentStart, told, &cancel).await;
        agent.conversation.hear_errand(&Content::from(errand.prompt.as_str())).await;
        turn::brief(&mut agent, &said.contexts);
        let ending = turn::run(&mut agent, &cancel).await;
        Report { agent_id, ending, usage: agent.ledger.own(), took: clock::monotonic() - began }
    }

    /// Makes the agent: its parent's rights and ledger, its own prompt, tools and branch of the log.
    fn raise(
        &self,
        definition: &Definition,
        errand: &Errand,
        call: &Call,
        agent_id: &str,
        cancel: CancellationToken,
    ) -> Agent {
        let home = &self.home;
        let wanted = errand.model.as_ref().or(definition.model.as_ref());
        let knobs = follow(&home.knobs, wanted.map(|name| home.engine.catalog().resolve_alias(name)));
        let toolbox = Arc::new(home.toolbox.narrowed(definition.tools.as_deref(), &[AGENT, shape::NAME]));
        let transcripts = home.place.as_ref().map(|place| place.subagents(&home.identity.session));
        let ledger = home.ledger.branch();
        let log = Log::sidechain(home.identity.clone(), agent_id, transcripts.as_deref(), &home.keeping);
        let journal = log.journal().clone();
        home.agent(Own {
            log,
            past: None,
            speaker: Speaker::subagent(&call.id, agent_id, &definition.name, &errand.description),
            system: vec![definition.prompt.clone()],
            bench: Bench {
                toolbox,
                gate: Gate {
                    lookout: home.gate.lookout.of_subagent(agent_id, &definition.name),
                    ..home.gate.clone()
                },
                call: Call {
                    id: String::new(),
                    agents: None,
                    cancel,
                    consult: call.consult.on(ledger.clone()),
                    on_demand: home.on_demand.fresh(),
                    todos: Todos::default(),
                    ..call.clone()
                },
                journal,
            },
            knobs,
            limits: Limits { max_turns: None, partial_messages: false, ..home.limits.clone() },
            ledger,
            owed: Owed::default(),
        })
    }
}

/// The parent's knobs, or a copy of them with a model of its own.
fn follow(knobs: &KnobsReader, model: Option<String>) -> KnobsReader {
    let Some(model) = model else { return knobs.clone() };
    let mut own = knobs.borrow().clone();
    own.model = model;
    own.thinking = own.thinking.filter(|thinking| *thinking == Thinking::Disabled);
    tokio::sync::watch::Sender::new(own).subscribe()
}
