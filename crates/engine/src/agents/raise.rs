//! Makes a subagent: its parent's rights and ledger, its own prompt, tools and branch of the log.

use std::sync::Arc;

use whimbrel_models::Thinking;

use super::definition::{Starts, tool_and_content};
use super::home::{Own, Position};
use super::progress::Progress;
use super::{Agents, Definition, Errand, hooked, notes};
use crate::agenda::Todos;
use crate::agent::{Agent, Limits};
use crate::context::memory::Memory;
use crate::context::room::Switches;
use crate::conversation::Speaker;
use crate::gate::Gate;
use crate::ground::Ground;
use crate::knobs::{Knobs, KnobsReader};
use crate::permission::Pledge;
use crate::session::{Log, Past};
use crate::shape::{self, Owed};
use crate::tasks::Entry;
use crate::toolbox::Toolbox;
use crate::tools::{AGENT, Call, SEND_MESSAGE, TEAM_CREATE, TEAM_DELETE};
use crate::workshop::Bench;

/// What an agent is to the one that starts it.
pub(super) enum Role {
    /// It goes on an errand and reports.
    Subagent,
    /// It lives on under this name and writes letters.
    Mate {
        /// Its name.
        name: String,
        /// Its promise to plan first, if it is to.
        pledge: Option<Pledge>,
    },
}

impl Role {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Subagent => None,
            Self::Mate { name, .. } => Some(name),
        }
    }

    fn pledge(&self) -> Option<Pledge> {
        match self {
            Self::Subagent => None,
            Self::Mate { pledge, .. } => pledge.clone(),
        }
    }
}

impl Agents {
    /// Makes the agent for an errand that a call gives; it goes on from a past if there is one.
    pub(super) fn raise(
        &self,
        definition: &Definition,
        errand: &Errand,
        call: &Call,
        entry: &Entry,
        role: &Role,
        past: Option<Past>,
    ) -> Agent {
        let (home, parent) = (&self.home, &self.position);
        let agent_id = &entry.facts.task_id;
        let transcripts = home.place.as_ref().map(|place| place.subagents(&home.identity.session));
        let ledger = home.ledger.branch(format!("{} ({agent_id})", definition.name));
        let log = Log::sidechain(home.identity.clone(), agent_id, transcripts.as_deref(), &home.keeping);
        let journal = log.journal().clone();
        let rights = parent.gate.rights.within(definition.permission_mode).within(errand.mode);
        let rights = rights.pledged(role.pledge()).standing_in(&call.workspace);
        let lookout = parent.gate.lookout.of_subagent(agent_id, &definition.name);
        let lookout = match &home.hook_desk {
            Some(desk) => lookout.with_hooks(hooked::hooks(definition).0, desk),
            None => lookout,
        };
        let gate = Gate {
            lookout: lookout.standing_in(&call.workspace, rights.clone()),
            rights,
            ..parent.gate.clone()
        };
        let own_servers = home.hiring.place(definition, &gate.rights);
        let toolbox = tools(&parent.toolbox, definition, role).with_own_servers(own_servers);
        let toolbox = Arc::new(toolbox);
        let knobs = self.knobs(definition, errand);
        let below = Position {
            depth: parent.depth + 1,
            agent_id: Some(agent_id.clone()),
            toolbox: Arc::clone(&toolbox),
            gate: gate.clone(),
            knobs: knobs.clone(),
            starts: match role {
                Role::Subagent => definition.may_start(),
                Role::Mate { .. } => Starts::Nothing,
            },
            member: role.name().map(Into::into),
        };
        let reaches_others = below.starts != Starts::Nothing || below.member.is_some();
        let agents = reaches_others.then(|| self.at(below));
        home.agent(Own {
            log,
            past,
            speaker: Speaker::subagent(&call.id, agent_id, &definition.name, &errand.description)
                .aloud(home.aloud),
            system: vec![definition.prompt.clone()],
            bench: Bench {
                toolbox,
                gate,
                call: Call {
                    id: String::new(),
                    agents,
                    cancel: entry.stop.clone(),
                    consult: call.consult.on(ledger.clone()),
                    on_demand: home.on_demand.fresh(),
                    todos: Todos::default(),
                    journal,
                    ..call.clone()
                },
            },
            knobs,
            limits: limits(&home.limits, definition, errand),
            ledger,
            owed: Owed::default(),
            memory: match definition.omit_instructions {
                true => Memory::new(Arc::new(Ground::default()), None),
                false => home.memory.fresh(),
            },
            progress: Progress::of_task(entry.facts.clone()),
        })
    }

    /// The parent's knobs, or a copy of them where the errand or the kind has some of its own.
    pub(super) fn knobs(&self, definition: &Definition, errand: &Errand) -> KnobsReader {
        let parents = &self.position.knobs;
        let by_environment = self.home.workspace.variable("CLAUDE_CODE_SUBAGENT_MODEL");
        let wanted = by_environment.as_ref().or(errand.model.as_ref()).or(definition.model.as_ref());
        let model = wanted.filter(|name| !matches!(name.as_str(), "" | "inherit"));
        let effort = errand.effort.or(definition.effort);
        if model.is_none() && effort.is_none() {
            return parents.below();
        }
        let mut own: Knobs = parents.now();
        own.effort = effort.or(own.effort);
        if let Some(name) = model {
            own.model = self.home.engine.catalog().resolve_alias(name);
            own.thinking = own.thinking.filter(|thinking| *thinking == Thinking::Disabled);
        }
        KnobsReader::fixed(own)
    }
}

/// The parent's tools, as far as the kind has them. Only the main agent founds teams, and only teammates write letters.
fn tools(parent: &Toolbox, definition: &Definition, role: &Role) -> Toolbox {
    let mut only = definition.tools.as_deref().map(|tools| named(parent, tools));
    if definition.memory.is_some() {
        only.iter_mut().for_each(|only| only.extend(notes::TOOLS.map(String::from)));
    }
    let mut without = named(parent, &definition.disallowed_tools);
    without.extend([shape::NAME, TEAM_CREATE, TEAM_DELETE].map(String::from));
    match role {
        Role::Mate { .. } => {
            without.push(AGENT.into());
            only.iter_mut().for_each(|only| only.push(SEND_MESSAGE.into()));
        }
        Role::Subagent => {
            without.push(SEND_MESSAGE.into());
            if definition.may_start() == Starts::Nothing {
                without.push(AGENT.into());
            }
        }
    }
    let narrowed = parent.narrowed(only.as_deref(), &without.iter().map(String::as_str).collect::<Vec<_>>());
    match &definition.servers.named {
        named if named.is_empty() => narrowed,
        named => narrowed.with_only_servers(named),
    }
}

/// The tools of a session that is of a kind itself.
pub(crate) fn session_tools(all: &Toolbox, definition: &Definition) -> Toolbox {
    let mut only = definition.tools.as_deref().map(|tools| named(all, tools));
    let own = &definition.servers.own;
    if let Some(only) = &mut only {
        only.extend(own.keys().map(|server| format!("mcp__{server}")));
        only.extend(definition.memory.iter().flat_map(|_| notes::TOOLS.map(String::from)));
    }
    let without = named(all, &definition.disallowed_tools);
    let limited = all.limited(only.as_deref(), &without.iter().map(String::as_str).collect::<Vec<_>>());
    match &definition.servers.named {
        named if named.is_empty() => limited,
        named => limited.with_only_servers(named.iter().chain(own.keys())),
    }
}

/// Tools by their own names, however a definition calls them.
fn named(toolbox: &Toolbox, tools: &[String]) -> Vec<String> {
    let names = tools.iter().map(|tool| tool_and_content(tool).0);
    let own = |name: &str| toolbox.find(name).map(|tool| tool.tool().name().to_owned());
    names.map(|name| own(name).unwrap_or_else(|| name.to_owned())).collect()
}

fn limits(home: &Limits, definition: &Definition, errand: &Errand) -> Limits {
    Limits {
        max_turns: errand.max_turns.or(definition.max_turns),
        compaction: Switches {
            window: definition.auto_compact_window.or(home.compaction.window),
            ..home.compaction
        },
        ..home.clone()
    }
}
