//! Slash commands in a session: what each starts.

use std::sync::Arc;

use whimbrel_models::ToolSpec;
use whimbrel_wire::control::ContextUsage;
use whimbrel_wire::message::User;

use super::Session;
use super::turns::Work;
use crate::agent::Agent;
use crate::commands::expand::Expansion;
use crate::commands::model::Choice;
use crate::commands::{
    Action, Called, CommandFile, Job, Order, compact, context, cost, help, loan, model, server_prompt,
};
use crate::context::memory::Memory;
use crate::context::usage::{self, Facts, Gauge, Room};
use crate::model_switch::{ModelSwitch, Wish, is_heard, use_model};
use crate::opening::{Echo, Notices};
use crate::rewind;
use crate::toolbox::Offered;

impl Session {
    /// Starts what a prompt that calls a command asks for.
    pub(super) async fn start_command(&mut self, agent: Box<Agent>, called: Called, prompt: User) {
        let action = match called.order {
            Order::File(file) => return self.start_file(agent, file, called.rest, prompt).await,
            Order::Prompt(name) => return self.start_prompt(agent, name, called.rest, prompt).await,
            Order::Own(command) => command.action,
        };
        let unheard = action.unheard(&called.rest);
        let text = match action {
            Action::Compact => return self.start_compact(agent, called.rest, prompt).await,
            Action::Clear => {
                let (prompt, notices) = self.accept(prompt, Vec::new()).await;
                return self.run_command(agent, Job::Clear { prompt, unheard }, notices);
            }
            Action::Context => context::text(&self.context_usage()),
            Action::Cost => cost::text(&agent.ledger.read()),
            Action::Help => help::text(&self.setup.commands),
            Action::Model => match model::choose(self, &called.rest) {
                Choice::Told(text) => text,
                Choice::Switch(switch) => {
                    let (prompt, notices) = self.accept(prompt, Vec::new()).await;
                    return self.run_command(agent, Job::Model { prompt, switch }, notices);
                }
            },
        };
        self.start_answer(agent, prompt, text + &unheard).await;
    }

    /// Switches the model. If that has to wait for hooks, or for switches before it, gives what is still to be done.
    pub(crate) fn model_switch(&mut self, wish: Wish) -> Option<ModelSwitch> {
        if self.switches.is_empty() && !is_heard(&self.lookout, wish.asker) {
            use_model(&self.knobs, &wish.to);
            return None;
        }
        Some(ModelSwitch {
            place: self.switches.join(),
            knobs: self.knobs.clone(),
            lookout: self.lookout.clone(),
            gauge: self.gauge.clone(),
            price: self.engine.catalog().lookup(&wish.to).map(|model| model.prices.cache_write_5m),
            wish,
        })
    }

    async fn start_compact(&mut self, agent: Box<Agent>, keep: String, prompt: User) {
        let (prompt, notices) = self.accept(prompt, Vec::new()).await;
        self.run_command(agent, Job::Compact(compact::Wish { keep, prompt }), notices);
    }

    async fn start_answer(&mut self, agent: Box<Agent>, prompt: User, text: String) {
        let (prompt, notices) = self.accept(prompt, Vec::new()).await;
        self.run_command(agent, Job::Answer { prompt, text }, notices);
    }

    /// Takes in a prompt that calls a command; with it comes what the host is told before the command's own words.
    async fn accept(&mut self, prompt: User, warnings: Vec<String>) -> (Box<User>, Box<Notices>) {
        self.show_turn().await;
        rewind::begin(&self.setup.workspace, prompt.uuid.as_deref()).await;
        let notices = Notices {
            init: self.init(),
            warnings: self.setup.warning.take().into_iter().chain(warnings).collect(),
            replay: (self.echo() == Echo::Wanted).then(|| prompt.clone()),
        };
        (Box::new(prompt), Box::new(notices))
    }

    fn run_command(&mut self, agent: Box<Agent>, job: Job, notices: Box<Notices>) {
        let first = self.first();
        self.run(agent, Work::Command { job, notices, first }, None);
    }

    async fn start_file(
        &mut self,
        agent: Box<Agent>,
        file: Arc<CommandFile>,
        arguments: String,
        prompt: User,
    ) {
        let mut recipe = match file.read() {
            Ok(recipe) => recipe,
            Err(why) => return self.start_answer(agent, prompt, why).await,
        };
        // What was wrong with it from the start was told then.
        let flaw = recipe.flaw.take().filter(|flaw| file.flaw.as_ref() != Some(flaw));
        let mut warnings: Vec<String> = flaw.into_iter().collect();
        match recipe.head.terms().lend(&self.setup.rights, &file, self.setup.ground.trust) {
            Ok(found) => warnings.extend(found),
            Err(why) => {
                let text = format!("/{} was not run. {why}", file.name);
                return self.start_answer(agent, prompt, text).await;
            }
        }
        // A subagent has the model itself.
        if !recipe.head.is_fork() {
            warnings.extend(loan::model(&agent, &file, &recipe.head));
        }
        let (prompt, mut notices) = self.accept(prompt, warnings).await;
        notices.init.model = agent.knobs.now().model;
        let mode = self.setup.rights.mode().to_string();
        let expansion = Expansion { file, recipe, arguments, prompt, mode };
        self.run_command(agent, Job::Expand(Box::new(expansion)), notices);
    }

    async fn start_prompt(&mut self, agent: Box<Agent>, name: String, arguments: String, prompt: User) {
        let (prompt, notices) = self.accept(prompt, Vec::new()).await;
        let supply = self.setup.supply.clone();
        let errand = server_prompt::Errand { name, arguments, prompt, supply };
        self.run_command(agent, Job::Prompt(Box::new(errand)), notices);
    }

    /// What fills the context, as far as it is known now.
    pub(crate) fn context_usage(&self) -> ContextUsage {
        let mut reading = self.gauge.read();
        if !self.has_begun() {
            let mut memory = Memory::new(self.setup.ground.clone(), self.setup.workspace.home().as_deref());
            let told = memory.begin().map_or(0, |text| text.len());
            match self.setup.past.as_ref().map(|past| &past.loaded).filter(|loaded| loaded.has_begun()) {
                Some(loaded) => {
                    let gauge = Gauge::default();
                    gauge.recall(loaded.history.size(), loaded.counted);
                    reading = gauge.read();
                }
                None => reading.size = told,
            }
            reading.memory = memory.files().to_vec();
        }
        let model = self.knobs.borrow().model.clone();
        let (tools, guests) = self.tools_in_use();
        let info = self.engine.catalog().lookup(&model);
        let (limits, window) = (&self.setup.limits, info.as_ref().map_or(0, |info| info.context_window));
        let output = |most: u64| limits.max_output_tokens.unwrap_or(most);
        let threshold = info.map(|info| limits.compaction.threshold(window, output(info.max_output_tokens)));
        usage::usage(&Facts {
            window,
            room: if limits.compaction.off { Room::Never } else { Room::From(threshold) },
            model: &model,
            system: &self.system(),
            tools: &tools,
            guests: &guests,
            commands: self.setup.commands.names().len(),
            reading: &reading,
        })
    }

    /// The tools that the model has, and those of MCP servers, which it may have to look for.
    fn tools_in_use(&self) -> (Vec<Arc<ToolSpec>>, Vec<usage::Guest>) {
        let mut shown = self.setup.on_demand.shown(&self.setup.toolbox);
        let guest = |tool: &Arc<Offered>| {
            let (spec, server) = (tool.spec(), tool.tool().server()?.to_owned());
            let is_loaded = shown.iter().any(|shown| shown.name == spec.name);
            Some(usage::Guest { spec, server, is_loaded })
        };
        let guests: Vec<_> = self.setup.toolbox.tools().iter().filter_map(guest).collect();
        shown.retain(|tool| !guests.iter().any(|guest| guest.spec.name == tool.name));
        (shown, guests)
    }
}
