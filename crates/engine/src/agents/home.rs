//! What the agents of one session have in common, and how an agent is made of it: the main one and every subagent alike.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::agenda::{Agenda, Todos};
use crate::agent::{Agent, Limits};
use crate::agents::definition::Starts;
use crate::agents::desk::Desk;
use crate::agents::hired::Hiring;
use crate::agents::places::Places;
use crate::agents::progress::Progress;
use crate::agents::team::{LEAD, Teams};
use crate::agents::{Kinds, adrift};
use crate::consult::Consult;
use crate::context::Planning;
use crate::context::memory::Memory;
use crate::context::room::Room;
use crate::conversation::{Conversation, Speaker};
use crate::cost::Ledger;
use crate::denials::Denials;
use crate::engine::Engine;
use crate::gate::Gate;
use crate::ground::Ground;
use crate::hooks;
use crate::inbox::Inbox;
use crate::knobs::KnobsReader;
use crate::on_demand::OnDemand;
use crate::outbox::Outbox;
use crate::permission::Sight;
use crate::session::log::Identity;
use crate::session::{Keeping, Log, Past, Place};
use crate::shape::{Owed, Shape};
use crate::skills::{self, Skills};
use crate::tasks::Tasks;
use crate::toolbox::Toolbox;
use crate::tools::Call;
use crate::understudy::Understudies;
use crate::workshop::Bench;
use crate::workspace::Workspace;

/// Makes the agents of a session. Cheap to clone.
#[derive(Clone)]
pub struct Agents {
    pub(super) home: Arc<Home>,
    pub(super) position: Arc<Position>,
}

/// Where in the tree an agent stands, and what those that it starts have from it.
#[derive(Clone)]
pub struct Position {
    /// How many agents are above it.
    pub(super) depth: usize,
    /// The agent; none if it is the main one.
    pub(super) agent_id: Option<String>,
    /// Its tools.
    pub(super) toolbox: Arc<Toolbox>,
    /// Its gate.
    pub(super) gate: Gate,
    /// Its knobs.
    pub(super) knobs: KnobsReader,
    /// The kinds that it may start.
    pub(super) starts: Starts,
    /// Its name in the team, if it is a teammate.
    pub(super) member: Option<String>,
}

/// What the agents of a session have in common.
pub struct Home {
    /// What all sessions share.
    pub engine: Engine,
    /// The way to the host.
    pub outbox: Outbox,
    /// What the host can turn.
    pub knobs: KnobsReader,
    /// The tools of the session.
    pub toolbox: Arc<Toolbox>,
    /// Which of them the main agent has been shown.
    pub on_demand: OnDemand,
    /// One gate for the whole tree.
    pub gate: Gate,
    /// Limits of the main agent.
    pub limits: Limits,
    /// One ledger for the whole tree.
    pub ledger: Ledger,
    /// One list of what was refused, for the whole tree.
    pub denials: Denials,
    /// Who the session is, for the transcript.
    pub identity: Identity,
    /// Where transcripts are kept; none keeps nothing.
    pub place: Option<Place>,
    /// How they are kept.
    pub keeping: Keeping,
    /// The kinds of subagent.
    pub kinds: Kinds,
    /// How many agents may work at once.
    pub places: Places,
    /// Which agents can be reached.
    pub desk: Desk,
    /// The team of the session, if it has one.
    pub teams: Teams,
    /// Where news for the main agent is posted.
    pub inbox: Inbox,
    /// Where the session works.
    pub workspace: Arc<Workspace>,
    /// Its background work.
    pub tasks: Tasks,
    /// Its list of tasks.
    pub agenda: Agenda,
    /// The model for small jobs.
    pub small_model: String,
    /// Whether the host hears the words of subagents as they are said.
    pub aloud: bool,
    /// The shape of the main agent's answers, if the host asks for one.
    pub shape: Option<Shape>,
    /// The instruction files, which every agent is told anew.
    pub memory: Memory,
    /// What agents may call themselves.
    pub skills: Skills,
    /// Where the person's and the project's files are.
    pub ground: Arc<Ground>,
    /// How servers are started that work for one agent alone.
    pub hiring: Hiring,
    /// What the hooks of a kind are run with; none if hooks do not run.
    pub hook_desk: Option<hooks::Desk>,
}

/// What is an agent's own.
pub(super) struct Own {
    pub(super) log: Log,
    pub(super) past: Option<Past>,
    pub(super) speaker: Speaker,
    pub(super) system: Vec<String>,
    pub(super) bench: Bench,
    pub(super) knobs: KnobsReader,
    pub(super) limits: Limits,
    pub(super) ledger: Ledger,
    pub(super) owed: Owed,
    pub(super) memory: Memory,
    pub(super) progress: Progress,
}

impl Agents {
    /// Agents for a session.
    pub fn new(home: Home) -> Self {
        let position = Position {
            depth: 0,
            agent_id: None,
            toolbox: Arc::clone(&home.toolbox),
            gate: home.gate.clone(),
            knobs: home.knobs.clone(),
            starts: Starts::Everything,
            member: None,
        };
        Self { home: Arc::new(home), position: Arc::new(position) }
    }

    /// The same for an agent that stands elsewhere.
    pub(super) fn at(&self, position: impl Into<Arc<Position>>) -> Self {
        Self { home: Arc::clone(&self.home), position: position.into() }
    }

    /// The same for whoever starts an agent that has stood at a depth before: it does not rise.
    pub(super) fn no_higher_than(&self, depth: usize) -> Self {
        match depth.checked_sub(1) {
            Some(above) if above > self.position.depth => {
                self.at(Position { depth: above, ..(*self.position).clone() })
            }
            _ => self.clone(),
        }
    }

    /// The team of the session, if it has one.
    pub fn teams(&self) -> &Teams {
        &self.home.teams
    }

    /// The name under which letters from here are written.
    pub fn name(&self) -> &str {
        self.position.member.as_deref().or(self.position.agent_id.as_deref()).unwrap_or(LEAD)
    }

    /// Whether letters are all that it can write to others: a teammate starts nobody, and wakes nobody outside its team.
    pub fn is_mate(&self) -> bool {
        self.position.member.is_some()
    }

    /// What a model is told of the kinds that it may start.
    pub fn kinds_for_model(&self) -> Option<String> {
        self.home.kinds.for_model()
    }

    /// Makes the main agent, with this system prompt; it goes on from a past if there is one.
    pub fn main(&self, system: Vec<String>, mut past: Option<Past>) -> Agent {
        let home = &self.home;
        let Identity { session, .. } = &home.identity;
        let consult = Consult::new(
            home.engine.clone(),
            home.ledger.clone(),
            home.small_model.clone(),
            home.limits.policy(),
            session.as_str().into(),
        )
        .with_timing(home.limits.timing);
        let path = home.place.as_ref().map(|place| place.transcript(session));
        let lock = past.as_mut().and_then(|past| past.lock.take());
        let log = Log::new(home.identity.clone(), path, &home.keeping, lock);
        let journal = log.journal().clone();
        let adrift = past.as_ref().and_then(|past| adrift::told(&past.loaded.history));
        let mut agent = home.agent(Own {
            log,
            past,
            speaker: Speaker::main(),
            system,
            bench: Bench {
                toolbox: Arc::clone(&home.toolbox),
                gate: home.gate.clone(),
                call: Call {
                    id: String::new(),
                    place: None,
                    written: None,
                    workspace: Arc::clone(&home.workspace),
                    tasks: home.tasks.clone(),
                    toolbox: Arc::clone(&home.toolbox),
                    on_demand: home.on_demand.clone(),
                    agenda: home.agenda.clone(),
                    todos: Todos::default(),
                    sight: Sight::default(),
                    consult,
                    agents: Some(self.clone()),
                    mode: home.gate.mode_switch(),
                    lookout: home.gate.lookout.clone(),
                    journal,
                    cancel: CancellationToken::new(),
                },
            },
            knobs: home.knobs.clone(),
            limits: home.limits.clone(),
            ledger: home.ledger.clone(),
            owed: Owed::new(home.shape.clone()),
            memory: home.memory.fresh(),
            progress: Progress::default(),
        });
        if let Some(told) = adrift {
            agent.conversation.brief(&told);
        }
        agent
    }
}

impl Home {
    /// Makes an agent that knows where it is, and what it has heard before.
    pub(super) fn agent(&self, own: Own) -> Agent {
        let Own { log, past, speaker, system, mut bench, knobs, limits, ledger, owed, memory, progress } =
            own;
        let skills = skills::Desk::new(&self.skills, self.hook_desk.clone());
        bench.toolbox = skills.fit(&bench.toolbox);
        if let Some(past) = &past {
            bench.call.on_demand.load(past.loaded.tools.iter().cloned());
        }
        let understudies = Understudies::new(limits.fallback_models.clone());
        let mut agent = Agent {
            engine: self.engine.clone(),
            conversation: Conversation::new(log, self.outbox.clone(), speaker),
            memory,
            preamble: self.engine.preamble(system, bench.call.on_demand.shown(&bench.toolbox)),
            bench: Arc::new(bench),
            knobs,
            outbox: self.outbox.clone(),
            limits,
            ledger,
            denials: self.denials.clone(),
            owed,
            understudies,
            room: Room::default(),
            planning: Planning::default(),
            skills,
            progress,
        };
        if let Some(past) = past {
            agent.conversation.recall(past);
        }
        agent.orient();
        agent
    }
}
