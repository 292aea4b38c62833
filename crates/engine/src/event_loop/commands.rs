//! Starts the work of slash commands.

use std::sync::Arc;

use whimbrel_os::{clock, ids};
use whimbrel_wire::message::User;
use whimbrel_wire::notice::ConversationReset;

use super::Session;
use super::turns::TurnWork;
use crate::agent::Agent;
use crate::command_expansion;
use crate::command_runner::command_file::CommandFileCall;
use crate::command_runner::{CommandJob, builtin, builtin_prompt, compact, mcp_prompt};
use crate::commands::{BuiltinAction, BuiltinPrompt, CommandFile, CommandTarget, Invocation};
use crate::file_checkpoints;
use crate::input_queue::PromptReplay;
use crate::model_switch::{self, ModelSwitch, SwitchRequest, SwitchRequester};
use crate::turn_start::TurnNotices;

impl Session {
    /// Starts the command that a prompt invokes.
    pub(super) async fn start_command(&mut self, agent: Box<Agent>, invocation: Invocation, prompt: User) {
        let action = match invocation.target {
            CommandTarget::File(file) => {
                return self.start_command_file(agent, file, invocation.arguments, prompt).await;
            }
            CommandTarget::BuiltinPrompt(builtin) => {
                return self.start_builtin_prompt(agent, builtin, invocation.arguments, prompt).await;
            }
            CommandTarget::McpPrompt(name) => {
                return self.start_server_prompt(agent, name, invocation.arguments, prompt).await;
            }
            CommandTarget::Builtin(command) => command.action,
        };
        let ignored = action.ignored_arguments(&invocation.arguments);
        let text = match action {
            BuiltinAction::Compact => return self.start_compact(agent, invocation.arguments, prompt).await,
            BuiltinAction::Clear => return self.start_clear(agent, prompt, ignored).await,
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

    /// Switches the model, at once if possible; otherwise returns the pending switch.
    pub(crate) fn request_model_switch(&mut self, request: SwitchRequest) -> Option<ModelSwitch> {
        model_switch::request_model_switch(
            request,
            &mut self.settings.model_switches,
            &self.settings.runtime,
            &self.hooks,
            &self.main_agent.context_meter,
            self.engine.catalog(),
        )
    }

    async fn start_compact(&mut self, agent: Box<Agent>, keep: String, prompt: User) {
        let (prompt, notices) = self.accept_prompt(prompt, Vec::new()).await;
        self.run_command(
            agent,
            CommandJob::Compact(compact::CompactRequest { instructions: keep, prompt }),
            notices,
        );
    }

    /// Ends the conversation and continues as a new session: with another id, transcript and agent. The cleared
    /// session can be resumed.
    async fn start_clear(&mut self, agent: Box<Agent>, prompt: User, ignored_arguments: String) {
        let old_hooks = self.hooks.clone();
        // Releases the lock of the old transcript.
        drop(agent);
        let id = ids::new_uuid();
        let reset = ConversationReset {
            new_conversation_id: id.clone(),
            trigger: Some("clear".into()),
            user_message_uuid: prompt.uuid.clone(),
            timestamp: Some(clock::timestamp()),
            uuid: ids::new_uuid(),
            session_id: self.host.frame_sender.session_id().to_string(),
        };
        self.host.frame_sender.send(reset).await;
        self.setup.begin_new_session(id.clone());
        self.host.frame_sender.set_session_id(&id);
        self.rebuild_hooks();
        let mut agent = self.build_main_agent(None);
        self.attach_main_agent(&mut agent);
        self.progress.first_turn_started = true;
        let warning = Some(ignored_arguments.trim_start().to_owned()).filter(|text| !text.is_empty());
        let (prompt, notices) = self.accept_prompt(prompt, warning.into_iter().collect()).await;
        self.run_command(agent, CommandJob::Clear { prompt, old_hooks }, notices);
    }

    async fn start_local_answer(&mut self, agent: Box<Agent>, prompt: User, text: String) {
        let (prompt, notices) = self.accept_prompt(prompt, Vec::new()).await;
        self.run_command(agent, CommandJob::Answer { prompt, text }, notices);
    }

    /// Accepts a prompt that invokes a command; also returns the notices to send before the command's output.
    async fn accept_prompt(&mut self, prompt: User, warnings: Vec<String>) -> (Box<User>, Box<TurnNotices>) {
        self.publish_turn_start().await;
        file_checkpoints::begin_checkpoint(&self.setup.session.workspace, prompt.uuid.as_deref()).await;
        let notices = TurnNotices {
            init: self.build_init(),
            warnings: self.setup.host.warning.take().into_iter().chain(warnings).collect(),
            replay: (self.prompt_replay() == PromptReplay::Enabled).then(|| prompt.clone()),
        };
        (Box::new(prompt), Box::new(notices))
    }

    fn run_command(&mut self, agent: Box<Agent>, job: CommandJob, notices: Box<TurnNotices>) {
        let session_start = self.session_start();
        let origin = job.prompt().origin.clone();
        self.start_work(agent, TurnWork::Command { job, notices, session_start }, origin);
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
        let call = CommandFileCall { file, parsed, arguments, prompt, mode };
        self.run_command(agent, CommandJob::CommandFile(Box::new(call)), notices);
    }

    async fn start_builtin_prompt(
        &mut self,
        agent: Box<Agent>,
        builtin: &'static BuiltinPrompt,
        arguments: String,
        prompt: User,
    ) {
        let (prompt, notices) = self.accept_prompt(prompt, Vec::new()).await;
        let call = builtin_prompt::BuiltinPromptCall { builtin, arguments, prompt };
        self.run_command(agent, CommandJob::BuiltinPrompt(call), notices);
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
            .map(|(alias, model)| alias.unwrap_or(model.name))
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
    let notice = builtin::render_model_switch(&model);
    match session.request_model_switch(SwitchRequest {
        requester: SwitchRequester::User,
        model,
        requested_name: Some(requested.into()),
    }) {
        None => ModelChoice::Answer(notice),
        Some(switch) => ModelChoice::Switch(Box::new(switch)),
    }
}
