//! Starts the work of slash commands.

use std::sync::Arc;

use whimbrel_models::ToolSpec;
use whimbrel_tools::api::ToolEntry;
use whimbrel_wire::control::ContextUsage;
use whimbrel_wire::message::User;

use super::Session;
use super::turns::TurnWork;
use crate::agent::Agent;
use crate::command_expansion;
use crate::command_runner::expand::CommandExpansion;
use crate::command_runner::{CommandJob, builtin, compact, mcp_prompt};
use crate::commands::{BuiltinAction, CommandFile, CommandTarget, Invocation};
use crate::context::instructions::Instructions;
use crate::context::usage::{self, AutoCompact, ContextMeter, UsageInput};
use crate::model_switch::{ModelSwitch, SwitchRequest, SwitchRequester, has_switch_hooks, set_model};
use crate::rewind;
use crate::turn_start::{PromptReplay, TurnNotices};

impl Session {
    /// Starts the command that a prompt invokes.
    pub(super) async fn start_command(&mut self, agent: Box<Agent>, invocation: Invocation, prompt: User) {
        let action = match invocation.target {
            CommandTarget::File(file) => {
                return self.start_command_file(agent, file, invocation.arguments, prompt).await;
            }
            CommandTarget::McpPrompt(name) => {
                return self.start_server_prompt(agent, name, invocation.arguments, prompt).await;
            }
            CommandTarget::Builtin(command) => command.action,
        };
        let ignored = action.ignored_arguments(&invocation.arguments);
        let text = match action {
            BuiltinAction::Compact => return self.start_compact(agent, invocation.arguments, prompt).await,
            BuiltinAction::Clear => {
                let (prompt, notices) = self.accept_prompt(prompt, Vec::new()).await;
                return self.run_command(
                    agent,
                    CommandJob::Clear { prompt, ignored_arguments: ignored },
                    notices,
                );
            }
            BuiltinAction::Context => builtin::render_context(&self.context_usage()),
            BuiltinAction::Cost => builtin::render_cost(&agent.ledger.snapshot()),
            BuiltinAction::Help => builtin::render_help(&self.setup.commands),
            BuiltinAction::Model => match choose_model(self, &invocation.arguments) {
                ModelChoice::Answer(text) => text,
                ModelChoice::Switch(switch) => {
                    let (prompt, notices) = self.accept_prompt(prompt, Vec::new()).await;
                    return self.run_command(agent, CommandJob::Model { prompt, switch }, notices);
                }
            },
        };
        self.start_local_answer(agent, prompt, text + &ignored).await;
    }

    /// Switches the model at once if no hook is registered and no switch is pending; otherwise returns the pending
    /// switch.
    pub(crate) fn request_model_switch(&mut self, request: SwitchRequest) -> Option<ModelSwitch> {
        if self.settings.model_switches.is_free() && !has_switch_hooks(&self.hooks, request.requester) {
            set_model(&self.settings.runtime, &request.model);
            return None;
        }
        Some(ModelSwitch {
            queue_slot: self.settings.model_switches.enqueue(),
            runtime_settings: self.settings.runtime.clone(),
            hooks: self.hooks.clone(),
            context_meter: self.main_agent.context_meter.clone(),
            cache_write_price: self
                .engine
                .catalog()
                .lookup(&request.model)
                .map(|model| model.prices.cache_write_5m),
            request,
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
        rewind::begin_checkpoint(&self.setup.session.workspace, prompt.uuid.as_deref()).await;
        let notices = TurnNotices {
            init: self.build_init(),
            warnings: self.setup.host.warning.take().into_iter().chain(warnings).collect(),
            replay: (self.prompt_replay() == PromptReplay::Enabled).then(|| prompt.clone()),
        };
        (Box::new(prompt), Box::new(notices))
    }

    fn run_command(&mut self, agent: Box<Agent>, job: CommandJob, notices: Box<TurnNotices>) {
        let session_start = self.session_start();
        self.start_work(agent, TurnWork::Command { job, notices, session_start }, None);
    }

    async fn start_command_file(
        &mut self,
        agent: Box<Agent>,
        file: Arc<CommandFile>,
        arguments: String,
        prompt: User,
    ) {
        let mut parsed = match file.parse() {
            Ok(parsed) => parsed,
            Err(reason) => return self.start_local_answer(agent, prompt, reason).await,
        };
        // Errors that existed at session start were reported then.
        let error = parsed.warning.take().filter(|error| file.warning.as_ref() != Some(error));
        let mut warnings: Vec<String> = error.into_iter().collect();
        match parsed.front_matter.rules().apply(
            &self.setup.permissions.state,
            &file,
            self.setup.config_locations.trust,
        ) {
            Ok(found) => warnings.extend(found),
            Err(reason) => {
                let text = format!("/{} was not run. {reason}", file.name);
                return self.start_local_answer(agent, prompt, text).await;
            }
        }
        // A forked command passes its model to the subagent itself.
        if !parsed.front_matter.is_fork() {
            warnings.extend(command_expansion::override_model(&agent, &file, &parsed.front_matter));
        }
        let (prompt, mut notices) = self.accept_prompt(prompt, warnings).await;
        notices.init.model = agent.runtime_settings.current().model;
        let mode = self.setup.permissions.state.mode().to_string();
        let expansion = CommandExpansion { file, parsed, arguments, prompt, mode };
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
        let tool_cache = self.setup.mcp.tool_cache.clone();
        let call = mcp_prompt::McpPromptCall { name, arguments, prompt, tool_cache };
        self.run_command(agent, CommandJob::McpPrompt(Box::new(call)), notices);
    }

    /// Computes what fills the context, as far as it is known now.
    pub(crate) fn context_usage(&self) -> ContextUsage {
        let mut reading = self.main_agent.context_meter.read();
        if !self.has_begun() {
            let mut instructions = Instructions::new(
                self.setup.config_locations.clone(),
                self.setup.session.workspace.home_dir().as_deref(),
            );
            let size = instructions.load_initial().map_or(0, |text| text.len());
            match self
                .setup
                .session
                .resumed
                .as_ref()
                .map(|resumed| &resumed.loaded)
                .filter(|loaded| loaded.has_messages())
            {
                Some(loaded) => {
                    let meter = ContextMeter::default();
                    meter.restore(loaded.history.size(), loaded.context_tokens);
                    reading = meter.read();
                }
                None => reading.size = size,
            }
            reading.instructions = instructions.files().to_vec();
        }
        let model = self.settings.runtime.borrow().model.clone();
        let (tools, mcp_entries) = self.tools_in_use();
        let info = self.engine.catalog().lookup(&model);
        let (limits, window) =
            (&self.setup.agents.limits, info.as_ref().map_or(0, |info| info.context_window));
        let output = |model_limit: u64| limits.max_output_tokens.unwrap_or(model_limit);
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
            mcp_tools: &mcp_entries,
            commands: self.setup.commands.names().len(),
            meter: &reading,
        })
    }

    /// The tools shown to the model, and separately those of MCP servers, which may be deferred.
    fn tools_in_use(&self) -> (Vec<Arc<ToolSpec>>, Vec<usage::McpToolEntry>) {
        let mut shown = self.setup.tools.deferred_tools.visible_specs(&self.setup.tools.tool_set);
        let to_entry = |tool: &Arc<ToolEntry>| {
            let (spec, server) = (tool.spec(), tool.tool().server()?.to_owned());
            let is_loaded = shown.iter().any(|shown| shown.name == spec.name);
            Some(usage::McpToolEntry { spec, server, is_loaded })
        };
        let mcp_entries: Vec<_> = self.setup.tools.tool_set.tools().iter().filter_map(to_entry).collect();
        shown.retain(|tool| !mcp_entries.iter().any(|entry| entry.spec.name == tool.name));
        (shown, mcp_entries)
    }
}

/// Result of `/model`.
enum ModelChoice {
    Answer(String),
    /// Must wait for hooks or for earlier requests.
    Switch(Box<ModelSwitch>),
}

/// Shows or switches the model.
fn choose_model(session: &mut Session, requested: &str) -> ModelChoice {
    let (engine, runtime_settings) = (&session.engine, &session.settings.runtime);
    if requested.is_empty() {
        let names: Vec<&str> = engine
            .catalog()
            .models_with_aliases()
            .map(|(alias, model)| alias.unwrap_or(&model.name))
            .collect();
        return ModelChoice::Answer(format!(
            "The model is {}. Other models: {}.",
            runtime_settings.borrow().model,
            names.join(", ")
        ));
    }
    let model = session.setup.model(engine, Some(requested));
    if let Err(error) = engine.providers().resolve(&model) {
        return ModelChoice::Answer(format!(
            "The model is still {}: {}",
            runtime_settings.borrow().model,
            error.message
        ));
    }
    let notice = builtin::model_notice(&model);
    match session.request_model_switch(SwitchRequest {
        requester: SwitchRequester::User,
        model,
        requested_name: Some(requested.into()),
    }) {
        None => ModelChoice::Answer(notice),
        Some(switch) => ModelChoice::Switch(Box::new(switch)),
    }
}
