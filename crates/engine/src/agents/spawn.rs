//! Runs a subagent: an agent of its own, on a branch of its own, for one errand.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_models::Thinking;
use whimbrel_wire::Usage;
use whimbrel_wire::content::Content;

use crate::agent::{Agent, Limits};
use crate::agents::Definition;
use crate::context::surroundings;
use crate::conversation::{Conversation, Speaker};
use crate::cost::Ledger;
use crate::engine::Engine;
use crate::gate::Gate;
use crate::knobs::KnobsReader;
use crate::outbox::Outbox;
use crate::session::Log;
use crate::session::log::Identity;
use crate::toolbox::Toolbox;
use crate::tools::{AGENT, Call};
use crate::turn::{self, Ending};
use crate::workshop::Bench;
use crate::{clock, ids};

/// Starts subagents of a session. Cheap to clone.
#[derive(Clone)]
pub struct Agents {
    home: Arc<Home>,
}

/// What a session gives to its subagents.
pub struct Home {
    /// What all sessions share.
    pub engine: Engine,
    /// The way to the host.
    pub outbox: Outbox,
    /// What the host can turn; a subagent without a model of its own follows.
    pub knobs: KnobsReader,
    /// The tools of the parent.
    pub toolbox: Arc<Toolbox>,
    /// One gate for the whole tree.
    pub gate: Gate,
    /// Limits of the parent.
    pub limits: Limits,
    /// One ledger for the whole tree.
    pub ledger: Ledger,
    /// Who the session is, for the transcript.
    pub identity: Identity,
    /// Where transcripts of subagents are kept; none keeps nothing.
    pub transcripts: Option<PathBuf>,
    /// The kinds there are.
    pub definitions: Vec<Definition>,
}

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
    /// Subagents for a session.
    pub fn new(home: Home) -> Self {
        Self { home: Arc::new(home) }
    }

    /// The kinds there are.
    pub fn definitions(&self) -> &[Definition] {
        &self.home.definitions
    }

    /// Runs a subagent to its end, inside the call that asked for it.
    pub async fn run(&self, definition: &Definition, errand: &Errand, call: &Call) -> Report {
        let began = clock::monotonic();
        let agent_id = ids::task('a');
        let cancel = call.cancel.child_token();
        let mut agent = self.raise(definition, errand, call, &agent_id, cancel.clone());
        agent.conversation.hear_errand(&Content::from(errand.prompt.as_str())).await;
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
        let toolbox = Arc::new(home.toolbox.narrowed(definition.tools.as_deref(), AGENT));
        let ledger = home.ledger.branch();
        let log = Log::sidechain(home.identity.clone(), agent_id, home.transcripts.as_deref());
        let speaker = Speaker::subagent(&call.id, agent_id, &definition.name, &errand.description);
        let mut conversation = Conversation::new(log, home.outbox.clone(), speaker);
        let model = knobs.borrow().model.clone();
        let root = call.workspace.root();
        conversation.brief(&surroundings::describe(root, &model, surroundings::git_branch(root).as_deref()));
        Agent {
            engine: home.engine.clone(),
            conversation,
            preamble: home.engine.preamble(vec![definition.prompt.clone()], toolbox.specs()),
            bench: Bench {
                toolbox,
                gate: Gate { agent_id: Some(agent_id.into()), ..home.gate.clone() },
                call: Call { id: String::new(), cancel, ..call.clone() },
            },
            knobs,
            outbox: home.outbox.clone(),
            limits: Limits { max_turns: None, partial_messages: false, ..home.limits.clone() },
            ledger,
            denials: Vec::new(),
        }
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
