//! An agent: one conversation and what it takes to carry it on. A session has one; a subagent is another.

use std::sync::Arc;
use std::time::Duration;

use whimbrel_models::Preamble;
use whimbrel_models::call::CallTimeouts;
use whimbrel_models::retry::RetryPolicy;

use crate::agents::AgentSpawner;
use crate::agents::progress::AgentProgress;
use crate::context::instructions::{InstructionFile, Instructions};
use crate::context::auto_compact::{CompactionState, CompactionConfig};
use crate::context::{PlanModeState, environment};
use crate::conversation::Conversation;
use crate::cost::CostLedger;
use crate::denial_log::DenialLog;
use crate::engine::Engine;
use crate::files;
use crate::runtime_settings::RuntimeSettingsReader;
use crate::deferred_tools;
use crate::frame_sender::FrameSender;
use crate::structured_output::StructuredOutput;
use crate::skills::{AgentSkills, agent_skills};
use crate::tools::AGENT;
use crate::fallback;
use crate::fallback::FallbackModels;
use crate::tool_scheduler::ToolEnv;

/// One agent. A turn owns it while it runs.
pub struct Agent {
    /// What all sessions of the process share.
    pub engine: Engine,
    /// What was said.
    pub conversation: Conversation,
    /// What it knows of the instruction files.
    pub instructions: Instructions,
    /// System prompt and tools as the model sees them.
    pub preamble: Arc<Preamble>,
    /// Where tool calls are made.
    pub tool_env: Arc<ToolEnv>,
    /// What the host can turn.
    pub runtime_settings: RuntimeSettingsReader,
    /// The way to the host.
    pub frame_sender: FrameSender,
    /// What it may spend.
    pub limits: AgentLimits,
    /// What is spent.
    pub ledger: CostLedger,
    /// Calls of the tree that were not permitted in the turn at hand.
    pub denials: DenialLog,
    /// Whether its answer must have a certain shape.
    pub structured_output: StructuredOutput,
    /// Who answers when its model is not to be had.
    pub fallback_models: FallbackModels,
    /// What was done for room.
    pub compaction_state: CompactionState,
    /// What the model has been told of plan mode.
    pub plan_mode: PlanModeState,
    /// The skills that it has called.
    pub invoked_skills: AgentSkills,
    /// How far it is.
    pub progress: AgentProgress,
}

impl Agent {
    /// The model that is asked now.
    pub fn model(&self) -> String {
        self.fallback_models.active_model(&self.runtime_settings.current().model)
    }

    /// When a failed model call is repeated. An overloaded model that has an understudy is not waited for.
    pub fn retry_policy(&self) -> RetryPolicy {
        let policy = self.limits.retry_policy();
        match self.fallback_models.has_next(&self.runtime_settings.current().model) {
            true => RetryPolicy { max_overload_retries: fallback::OVERLOAD_ATTEMPTS - 1, ..policy },
            false => policy,
        }
    }

    /// Takes up what has changed about the tools since the last request. What servers say about theirs goes behind what was
    /// said before, so that what a provider has cached stays valid.
    pub fn refresh_tools(&mut self) {
        deferred_tools::refresh_request_tools(self);
        for text in self.tool_env.tool_set.server_instructions().iter() {
            self.conversation.push_hidden_once(text);
        }
    }

    /// Tells the model where it is and what the person and the project want of it. What it was told before is forgotten
    /// with a compaction.
    pub fn inject_context(&mut self) {
        let folder = self.tool_env.context.workspace.base_dir();
        let branch = environment::git_branch(&folder);
        let text = environment::render_environment(&folder, &self.runtime_settings.current().model, branch.as_deref());
        self.conversation.push_hidden_once(&text);
        self.plan_mode = PlanModeState::from_history(&self.conversation.history);
        self.tool_env.context.deferred_tools.reset_announced();
        deferred_tools::announce(self);
        agent_skills::inject_listing(self);
        self.inject_agent_list();
        if let Some(text) = self.instructions.load_initial() {
            self.conversation.push_hidden_once(&text);
        }
        self.conversation.context_meter().note_instructions(self.instructions.files());
    }

    /// Tells the model which kinds of agent it may start, if it may.
    fn inject_agent_list(&mut self) {
        let agents = self.tool_env.context.agents.as_ref().filter(|_| self.tool_env.tool_set.find(AGENT).is_some());
        if let Some(text) = agents.and_then(AgentSpawner::definitions_notice) {
            self.conversation.push_hidden_once(&text);
        }
    }

    /// Tells the model the instructions of the folders whose files it has seen since this was called last.
    pub fn inject_nested_instructions(&mut self) {
        let workspace = &self.tool_env.context.workspace;
        let written = self.instructions.take_watched_paths();
        let paths = written.iter().map(|path| files::normalize_path(&workspace.resolve(path)));
        let seen: Vec<_> = paths.filter(|path| workspace.seen_file(path).is_some()).collect();
        for path in seen {
            for text in self.instructions.load_nested(&path) {
                self.conversation.push_hidden_once(&text);
            }
        }
        self.conversation.context_meter().note_instructions(self.instructions.files());
    }

    /// Tells the host what is wrong with instruction files, and gives those that were read since this was called last.
    pub async fn take_loaded_instructions(&mut self) -> Vec<InstructionFile> {
        let news = self.instructions.take_updates();
        for content in news.warnings {
            self.frame_sender.warn(content).await;
        }
        news.loaded
    }
}

/// Limits and switches that stay the same over a session.
#[derive(Debug, Clone, Default)]
pub struct AgentLimits {
    /// Model calls per turn.
    pub max_turns: Option<u32>,
    /// Dollars that the session may cost.
    pub max_budget_usd: Option<f64>,
    /// Tokens that the task may take, as the model is told.
    pub task_budget_tokens: Option<u64>,
    /// The output limit of one reply, if the caller set one.
    pub max_output_tokens: Option<u64>,
    /// How often a failed call is repeated.
    pub max_retries: Option<u32>,
    /// How long an overload is ridden out.
    pub overload_timeout: Option<Duration>,
    /// How long a provider may be silent.
    pub timing: CallTimeouts,
    /// Whether the host wants the raw events of the stream.
    pub partial_messages: bool,
    /// Beta features of the provider.
    pub betas: Vec<String>,
    /// Models that answer when another is not to be had, by their full names.
    pub fallback_models: Vec<String>,
    /// When room is made in the window.
    pub compaction: CompactionConfig,
}

impl AgentLimits {
    /// When a failed model call is repeated.
    pub fn retry_policy(&self) -> RetryPolicy {
        let default = RetryPolicy::default();
        RetryPolicy {
            max_retries: self.max_retries.unwrap_or(default.max_retries),
            max_capacity_wait: self.overload_timeout,
            ..default
        }
    }
}
