//! An agent: one conversation and what it takes to carry it on. A session has one; a subagent is another.

use std::sync::Arc;
use std::time::Duration;

use whimbrel_models::Preamble;
use whimbrel_models::call::Timing;
use whimbrel_models::retry::Policy;

use crate::agents::Agents;
use crate::agents::progress::Progress;
use crate::context::memory::{Loaded, Memory};
use crate::context::room::{Room, Switches};
use crate::context::{Planning, surroundings};
use crate::conversation::Conversation;
use crate::cost::Ledger;
use crate::denials::Denials;
use crate::engine::Engine;
use crate::files;
use crate::knobs::KnobsReader;
use crate::on_demand;
use crate::outbox::Outbox;
use crate::shape::Owed;
use crate::skills::{Desk, desk};
use crate::tools::AGENT;
use crate::understudy;
use crate::understudy::Understudies;
use crate::workshop::Bench;

/// One agent. A turn owns it while it runs.
pub struct Agent {
    /// What all sessions of the process share.
    pub engine: Engine,
    /// What was said.
    pub conversation: Conversation,
    /// What it knows of the instruction files.
    pub memory: Memory,
    /// System prompt and tools as the model sees them.
    pub preamble: Arc<Preamble>,
    /// Where tool calls are made.
    pub bench: Arc<Bench>,
    /// What the host can turn.
    pub knobs: KnobsReader,
    /// The way to the host.
    pub outbox: Outbox,
    /// What it may spend.
    pub limits: Limits,
    /// What is spent.
    pub ledger: Ledger,
    /// Calls of the tree that were not permitted in the turn at hand.
    pub denials: Denials,
    /// Whether its answer must have a certain shape.
    pub owed: Owed,
    /// Who answers when its model is not to be had.
    pub understudies: Understudies,
    /// What was done for room.
    pub room: Room,
    /// What the model has been told of plan mode.
    pub planning: Planning,
    /// The skills that it has called.
    pub skills: Desk,
    /// How far it is.
    pub progress: Progress,
}

impl Agent {
    /// The model that is asked now.
    pub fn model(&self) -> String {
        self.understudies.model(&self.knobs.now().model)
    }

    /// When a failed model call is repeated. An overloaded model that has an understudy is not waited for.
    pub fn policy(&self) -> Policy {
        let policy = self.limits.policy();
        match self.understudies.are_left(&self.knobs.now().model) {
            true => Policy { max_overloads: understudy::ATTEMPTS - 1, ..policy },
            false => policy,
        }
    }

    /// Takes up what has changed about the tools since the last request. What servers say about theirs goes behind what was
    /// said before, so that what a provider has cached stays valid.
    pub fn refit(&mut self) {
        on_demand::prepare(self);
        for text in self.bench.toolbox.instructions().iter() {
            self.conversation.remind(text);
        }
    }

    /// Tells the model where it is and what the person and the project want of it. What it was told before is forgotten
    /// with a compaction.
    pub fn orient(&mut self) {
        let folder = self.bench.call.workspace.base();
        let branch = surroundings::git_branch(&folder);
        let text = surroundings::describe(&folder, &self.knobs.now().model, branch.as_deref());
        self.conversation.remind(&text);
        self.planning = Planning::of(&self.conversation.history);
        self.bench.call.on_demand.forget_told();
        on_demand::tell(self);
        desk::introduce(self);
        self.introduce_kinds();
        if let Some(text) = self.memory.begin() {
            self.conversation.remind(&text);
        }
        self.conversation.gauge().note_memory(self.memory.files());
    }

    /// Tells the model which kinds of agent it may start, if it may.
    fn introduce_kinds(&mut self) {
        let agents = self.bench.call.agents.as_ref().filter(|_| self.bench.toolbox.find(AGENT).is_some());
        if let Some(text) = agents.and_then(Agents::kinds_for_model) {
            self.conversation.remind(&text);
        }
    }

    /// Tells the model the instructions of the folders whose files it has seen since this was called last.
    pub fn recall(&mut self) {
        let workspace = &self.bench.call.workspace;
        let written = self.memory.take_watched();
        let paths = written.iter().map(|path| files::tidy(&workspace.resolve(path)));
        let seen: Vec<_> = paths.filter(|path| workspace.seen(path).is_some()).collect();
        for path in seen {
            for text in self.memory.nested(&path) {
                self.conversation.remind(&text);
            }
        }
        self.conversation.gauge().note_memory(self.memory.files());
    }

    /// Tells the host what is wrong with instruction files, and gives those that were read since this was called last.
    pub async fn report_memory(&mut self) -> Vec<Loaded> {
        let news = self.memory.take_news();
        for content in news.warnings {
            self.outbox.warn(content).await;
        }
        news.loaded
    }
}

/// Limits and switches that stay the same over a session.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Model calls per turn.
    pub max_turns: Option<u32>,
    /// Dollars that the session may cost.
    pub max_budget: Option<f64>,
    /// Tokens that the task may take, as the model is told.
    pub task_budget: Option<u64>,
    /// The output limit of one reply, if the caller set one.
    pub max_output_tokens: Option<u64>,
    /// How often a failed call is repeated.
    pub max_retries: Option<u32>,
    /// How long an overload is ridden out.
    pub ride_out: Option<Duration>,
    /// How long a provider may be silent.
    pub timing: Timing,
    /// Whether the host wants the raw events of the stream.
    pub partial_messages: bool,
    /// Beta features of the provider.
    pub betas: Vec<String>,
    /// Models that answer when another is not to be had, by their full names.
    pub fallback_models: Vec<String>,
    /// When room is made in the window.
    pub compaction: Switches,
}

impl Limits {
    /// When a failed model call is repeated.
    pub fn policy(&self) -> Policy {
        let default = Policy::default();
        Policy {
            max_retries: self.max_retries.unwrap_or(default.max_retries),
            ride_out: self.ride_out,
            ..default
        }
    }
}
