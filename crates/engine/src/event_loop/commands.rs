//! Starts the work of slash commands.

use std::sync::Arc;

use whimbrel_models::ToolSpec;
use whimbrel_wire::control::ContextUsage;
use whimbrel_wire::message::User;

use super::Session;
use super::turns::TurnWork;
use crate::agent::Agent;
use crate::commands::expand::CommandExpansion;
use crate::commands::model::ModelChoice;
use crate::commands::{
    BuiltinAction, CommandFile, CommandJob, CommandTarget, Invocation, compact, context, cost, help,
    mcp_prompt, model, overrides,
};
use crate::context::instructions::Instructions;
use crate::context::usage::{self, AutoCompact, ContextMeter, UsageInput};
use crate::model_switch::{ModelSwitch, SwitchRequest, has_switch_hooks, set_model};
use crate::rewind;
use crate::tool_set::ToolEntry;
use crate::turn_start::{PromptReplay, TurnNotices};

impl Session {
    /// Starts the command that a prompt invokes.
    pub(super) async fn start_command(&mut self, agent: Box<Agent>, called: Invocation, prompt: User) {
        let action = match called.target {
            CommandTarget::File(file) => {
                return self.start_command_file(agent, file, called.arguments, prompt).await;
            }
            CommandTarget::McpPrompt(name) => {
                return self.start_server_prompt(agent, name, called.arguments, prompt).await;
            }
            CommandTarget::Builtin(command) => command.action,
        };
        let unheard = action.ignored_arguments(&called.arguments);
        let text = match action {
            BuiltinAction::Compact => return self.start_compact(agent, called.arguments, prompt).await,
            BuiltinAction::Clear => {
                let (prompt, notices) = self.accept_prompt(prompt, Vec::new()).await;
                return self.run_command(
                    agent,
                    CommandJob::Clear { prompt, ignored_arguments: unheard },
                    notices,
                );
            }
            BuiltinAction::Context => context::render(&self.context_usage()),
            BuiltinAction::Cost => cost::render(&agent.ledger.snapshot()),
            BuiltinAction::Help => help::render(&self.setup.commands),
            BuiltinAction::Model => match model::choose(self, &called.arguments) {
                ModelChoice::Answer(text) => text,
                ModelChoice::Switch(switch) => {
                    let (prompt, notices) = self.accept_prompt(prompt, Vec::new()).await;
                    return self.run_command(agent, CommandJob::Model { prompt, switch }, notices);
                }
            },
        };
        self.start_local_answer(agent, prompt, text + &unheard).await;
    }

    /// Switches the model at once if no hook is registered and no switch is pending; otherwise returns the pending
    /// switch.
    pub(crate) fn request_model_switch(&mut self, wish: SwitchRequest) -> Option<ModelSwitch> {
        if self.model_switches.is_free() && !has_switch_hooks(&self.hooks, wish.requester) {
            set_model(&self.runtime_settings, &wish.model);
            return None;
        }
        Some(ModelSwitch {
            queue_slot: self.model_switches.enqueue(),
            runtime_settings: self.runtime_settings.clone(),
            hooks: self.hooks.clone(),
            context_meter: self.context_meter.clone(),
            cache_write_price: self
                .engine
                .catalog()
                .lookup(&wish.model)
                .map(|model| model.prices.cache_write_5m),
            request: wish,
        })
    }

    async fn start_compact(&mut self, agent: Box<Agent>, keep: String, prompt: User) {
        let (prompt, notices) = self.accept_prompt(prompt, Vec::new()).await;
        self.run_command(
            agent,
            CommandJob::Compact(compact::CompactRequest { instructions: keep, prompt }),
            notices,
        );
    }

    async fn start_local_answer(&mut self, agent: Box<Agent>, prompt: User, text: String) {
        let (prompt, notices) = self.accept_prompt(prompt, Vec::new()).await;
        self.run_command(agent, CommandJob::Answer { prompt, text }, notices);
    }

    /// Accepts a prompt that invokes a command; also returns the notices to send before the command's output.
    async fn accept_prompt(&mut self, prompt: User, warnings: Vec<String>) -> (Box<User>, Box<TurnNotices>) {
        self.publish_turn_start().await;
        rewind::begin_checkpoint(&self.setup.workspace, prompt.uuid.as_deref()).await;
        let notices = TurnNotices {
            init: self.build_init(),
            warnings: self.setup.warning.take().into_iter().chain(warnings).collect(),
            replay: (self.prompt_replay() == PromptReplay::Enabled).then(|| prompt.clone()),
        };
        (Box::new(prompt), Box::new(notices))
    }

    fn run_command(&mut self, agent: Box<Agent>, job: CommandJob, notices: Box<TurnNotices>) {
        let first = self.session_start();
        self.start_work(agent, TurnWork::Command { job, notices, session_start: first }, None);
    }

    async fn start_command_file(
        &mut self,
        agent: Box<Agent>,
        file: Arc<CommandFile>,
        arguments: String,
        prompt: User,
    ) {
        let mut recipe = match file.parse() {
            Ok(recipe) => recipe,
            Err(why) => return self.start_local_answer(agent, prompt, why).await,
        };
        // Errors that existed at session start were reported then.
        let flaw = recipe.warning.take().filter(|flaw| file.warning.as_ref() != Some(flaw));
        let mut warnings: Vec<String> = flaw.into_iter().collect();
        match recipe.front_matter.rules().apply(
            &self.setup.permission_state,
            &file,
            self.setup.config_locations.trust,
        ) {
            Ok(found) => warnings.extend(found),
            Err(why) => {
                let text = format!("/{} was not run. {why}", file.name);
                return self.start_local_answer(agent, prompt, text).await;
            }
        }
        // A forked command passes its model to the subagent itself.
        if !recipe.front_matter.is_fork() {
            warnings.extend(overrides::override_model(&agent, &file, &recipe.front_matter));
        }
        let (prompt, mut notices) = self.accept_prompt(prompt, warnings).await;
        notices.init.model = agent.runtime_settings.current().model;
        let mode = self.setup.permission_state.mode().to_string();
        let expansion = CommandExpansion { file, parsed: recipe, arguments, prompt, mode };
        self.run_command(agent, CommandJob::Expand(Box::new(expansion)), notices);
    }

    async fn start_server_prompt(
        &mut self,
        agent: Box<Agent>,
        name: String,
        arguments: String,
        prompt: User,
    ) {
        let (prompt, notices) = self.accept_prompt(prompt, Vec::new()).await;
        let supply = self.setup.mcp_tool_cache.clone();
        let errand = mcp_prompt::McpPromptCall { name, arguments, prompt, tool_cache: supply };
        self.run_command(agent, CommandJob::McpPrompt(Box::new(errand)), notices);
    }

    /// Computes what fills the context, as far as it is known now.
    pub(crate) fn context_usage(&self) -> ContextUsage {
        let mut reading = self.context_meter.read();
        if !self.has_begun() {
            let mut memory = Instructions::new(
                self.setup.config_locations.clone(),
                self.setup.workspace.home_dir().as_deref(),
            );
            let told = memory.load_initial().map_or(0, |text| text.len());
            match self.setup.resumed.as_ref().map(|past| &past.loaded).filter(|loaded| loaded.has_messages())
            {
                Some(loaded) => {
                    let gauge = ContextMeter::default();
                    gauge.restore(loaded.history.size(), loaded.context_tokens);
                    reading = gauge.read();
                }
                None => reading.size = told,
            }
            reading.instructions = memory.files().to_vec();
        }
        let model = self.runtime_settings.borrow().model.clone();
        let (tools, guests) = self.tools_in_use();
        let info = self.engine.catalog().lookup(&model);
        let (limits, window) = (&self.setup.limits, info.as_ref().map_or(0, |info| info.context_window));
        let output = |most: u64| limits.max_output_tokens.unwrap_or(most);
        let threshold = info.map(|info| limits.compaction.threshold(window, output(info.max_output_tokens)));
        usage::compute_usage(&UsageInput {
            window,
            auto_compact: if limits.compaction.auto_disabled {
                AutoCompact::Disabled
            } else {
                AutoCompact::Threshold(threshold)
            },
            model: &model,
            system: &self.system_prompt(),
            tools: &tools,
            mcp_tools: &guests,
            commands: self.setup.commands.names().len(),
            meter: &reading,
        })
    }

    /// The tools shown to the model, and separately those of MCP servers, which may be deferred.
    fn tools_in_use(&self) -> (Vec<Arc<ToolSpec>>, Vec<usage::McpToolEntry>) {
        let mut shown = self.setup.deferred_tools.visible_specs(&self.setup.tool_set);
        let guest = |tool: &Arc<ToolEntry>| {
            let (spec, server) = (tool.spec(), tool.tool().server()?.to_owned());
            let is_loaded = shown.iter().any(|shown| shown.name == spec.name);
            Some(usage::McpToolEntry { spec, server, is_loaded })
        };
        let guests: Vec<_> = self.setup.tool_set.tools().iter().filter_map(guest).collect();
        shown.retain(|tool| !guests.iter().any(|guest| guest.spec.name == tool.name));
        (shown, guests)
    }
}
