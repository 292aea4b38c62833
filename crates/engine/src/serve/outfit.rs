//! What a session is fitted out with: the first notice, the prompt, what its agents are made from, the gate and the hooks.

use std::sync::Arc;

use serde_json::json;
use whimbrel_wire::PROTOCOL_VERSION;
use whimbrel_wire::hook::HookBase;
use whimbrel_wire::system::Init;

use super::Session;
use crate::agents::desk::Desk;
use crate::agents::places::Places;
use crate::agents::{Agents, Home};
use crate::ask::Ask;
use crate::context::memory::Memory;
use crate::context::{prompt, surroundings};
use crate::control::CAPABILITIES;
use crate::cost::Ledger;
use crate::denials::Denials;
use crate::gate::{Asks, Gate};
use crate::hooks::{self, HookSet, Hooks, Lookout};
use crate::knobs::KnobsReader;
use crate::outbox::Outbox;
use crate::session::log::Identity;
use crate::setup::Setup;
use crate::tasks::Tasks;

/// The way to the session's hooks.
pub(crate) fn lookout(setup: &Setup, ask: &Ask, tasks: &Tasks, outbox: &Outbox) -> Lookout {
    let transcript = setup.place.as_ref().map(|place| place.transcript(&setup.session));
    let desk = hook_desk(setup, ask, tasks, outbox);
    let base = HookBase {
        session_id: setup.session.clone(),
        transcript_path: transcript.map(|path| path.display().to_string()).unwrap_or_default(),
        ..HookBase::default()
    };
    let hooks = Hooks::new(setup.hooks.clone(), desk);
    Lookout::new(hooks, setup.rights.clone(), Arc::clone(&setup.workspace), outbox.clone(), base)
}

/// What hooks are run with.
fn hook_desk(setup: &Setup, ask: &Ask, tasks: &Tasks, outbox: &Outbox) -> hooks::Desk {
    hooks::Desk {
        ask: ask.clone(),
        outbox: outbox.clone(),
        tasks: tasks.clone(),
        workspace: Arc::clone(&setup.workspace),
        announce: setup.announce,
    }
}

impl Session {
    pub(super) fn init(&self) -> Init {
        let knobs = self.knobs.borrow();
        self.with_extensions(Init {
            cwd: self.setup.workspace.base().display().to_string(),
            tools: self.setup.toolbox.names_for_init(),
            agents: Some(self.setup.kinds.names()),
            model: knobs.model.clone(),
            permission_mode: self.setup.rights.mode(),
            api_key_source: self.engine.key_source().into(),
            claude_code_version: PROTOCOL_VERSION.into(),
            mcp_servers: self.crew.for_init(),
            betas: (!self.setup.limits.betas.is_empty()).then(|| self.setup.limits.betas.clone()),
            effort: knobs.effort.and_then(|effort| json!(effort).as_str().map(str::to_owned)),
            capabilities: Some(CAPABILITIES.map(str::to_owned).to_vec()),
            ..Init::default()
        })
    }

    pub(super) fn system(&self) -> Vec<String> {
        let Setup { system_prompt, append_system_prompt, extensions, .. } = &*self.setup;
        prompt::system(system_prompt.as_ref(), extensions.style.as_deref(), append_system_prompt.as_deref())
    }

    /// What makes the session's agents.
    pub(super) fn agents(&self) -> Agents {
        let Setup { workspace, place, session, toolbox, limits, small_model, kinds, shape, .. } =
            &*self.setup;
        Agents::new(Home {
            engine: self.engine.clone(),
            outbox: self.outbox.clone(),
            knobs: KnobsReader::new(self.knobs.subscribe()),
            toolbox: Arc::clone(toolbox),
            on_demand: self.setup.on_demand.clone(),
            gate: self.gate(),
            limits: limits.clone(),
            ledger: Ledger::within(limits.max_budget),
            denials: Denials::default(),
            identity: Identity {
                session: session.clone(),
                cwd: workspace.root().display().to_string(),
                git_branch: surroundings::git_branch(workspace.root()).unwrap_or_default(),
                entrypoint: self.setup.entrypoint.clone(),
            },
            place: place.clone(),
            keeping: self.setup.keeping.clone(),
            kinds: kinds.clone(),
            places: Places::new(self.setup.agents_at_once),
            desk: Desk::default(),
            teams: self.teams.clone(),
            inbox: self.inbox.clone(),
            workspace: Arc::clone(workspace),
            tasks: self.tasks.clone(),
            agenda: self.setup.agenda.clone(),
            small_model: small_model.clone(),
            shape: shape.clone(),
            aloud: self.setup.forward_subagent_text,
            memory: Memory::new(Arc::clone(&self.setup.ground), workspace.home().as_deref()),
            skills: self.setup.extensions.skills.clone(),
            ground: Arc::clone(&self.setup.ground),
            hiring: self.crew.hiring(),
            hook_desk: (self.setup.extensions.run_hooks())
                .then(|| hook_desk(&self.setup, &self.ask, &self.tasks, &self.outbox)),
        })
    }

    fn gate(&self) -> Gate {
        Gate {
            rights: self.setup.rights.clone(),
            asks: match &self.setup.prompt_tool {
                Some(tool) => Asks::Tool(self.setup.supply.clone(), tool.clone()),
                None if self.setup.host_answers => Asks::Host(self.ask.clone()),
                None => Asks::Nobody,
            },
            state: self.state.clone(),
            outbox: self.outbox.clone(),
            lookout: self.lookout.clone(),
            patience: self.setup.patience,
        }
    }

    /// The hooks that a host brings along come to those of the settings.
    pub(crate) fn add_hooks(&mut self, more: HookSet) {
        self.add_warnings(more.warnings().to_vec());
        self.setup.hooks.append(more);
        self.setup.toolbox = Arc::new(self.setup.toolbox.answered_by(&self.setup.hooks));
        self.lookout = lookout(&self.setup, &self.ask, &self.tasks, &self.outbox);
        self.crew.set_lookout(&self.lookout);
    }

    /// The host is told with the next turn.
    pub(super) fn add_warnings(&mut self, more: Vec<String>) {
        let warnings = self.setup.warning.take().into_iter().chain(more);
        self.setup.warning = warnings.reduce(|one, other| format!("{one}\n{other}"));
    }
}
