//! One agent: a conversation and what is needed to continue it. A session has a main agent; each subagent is another.

mod inject_context;
mod progress;
mod rewind;
mod skills;

use std::sync::Arc;
use std::time::Duration;

use whimbrel_mcp::ServerRegistry;
use whimbrel_models::model_call::CallTimeouts;
use whimbrel_models::retry::RetryPolicy;
use whimbrel_models::{ModelError, RequestPrefix};
use whimbrel_tools::cost::CostLedger;
use whimbrel_tools::model_access::ModelAccess;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::system::ModelFallback;

pub use self::progress::AgentProgress;
use crate::context::compaction_policy::{CompactionConfig, CompactionState};
use crate::context::instructions::{InstructionFile, Instructions};
use crate::conversation::Conversation;
use crate::denial_log::DenialLog;
use crate::fallback;
use crate::fallback::FallbackModels;
use crate::runtime_settings::RuntimeSettingsReader;
use crate::side_question::{ConversationView, RecordedConversation};
use crate::skills::AgentSkills;
use crate::steering::SteeringSource;
use crate::structured_output::StructuredOutput;
use crate::tool_scheduler::{ToolCall, ToolEnv};

/// A turn owns it while it runs.
pub struct Agent {
    pub models: ModelAccess,
    pub conversation: Conversation,
    /// Instruction files known to the agent.
    pub instructions: Instructions,
    /// System prompt and tools, as sent to the model.
    pub request_prefix: Arc<RequestPrefix>,
    /// Environment of tool calls.
    pub tool_env: Arc<ToolEnv>,
    pub runtime_settings: RuntimeSettingsReader,
    pub frame_sender: FrameSender,
    pub limits: AgentLimits,
    pub ledger: CostLedger,
    /// Denied tool calls of the agent tree in the current turn.
    pub denials: DenialLog,
    pub structured_output: StructuredOutput,
    pub fallback_models: FallbackModels,
    pub compaction_state: CompactionState,
    pub invoked_skills: AgentSkills,
    pub progress: AgentProgress,
    /// MCP servers that belong to this agent alone.
    pub own_servers: Option<ServerRegistry>,
    /// Prompts of the host for the running turn; the main agent's only.
    pub steering: Option<SteeringSource>,
    /// The conversation, for questions while a turn owns the agent.
    pub view: ConversationView,
}

impl Agent {
    /// The model to call now: the primary or a fallback model.
    pub fn model(&self) -> String {
        self.fallback_models.active_model(&self.runtime_settings.current().model)
    }

    /// Shows the conversation as it is now to questions beside it.
    pub fn record_view(&self) {
        // A snapshot of a copy does not move the cache breakpoints of the next request.
        let history = self.conversation.history.clone().snapshot();
        let prefix = Arc::clone(&self.request_prefix);
        self.view.record(RecordedConversation { model: self.model(), prefix, history });
    }

    /// Retry policy. With a fallback model left, an overloaded model is retried less often.
    pub fn retry_policy(&self) -> RetryPolicy {
        let policy = self.limits.retry_policy();
        match self.fallback_models.has_next(&self.runtime_settings.current().model) {
            true => RetryPolicy { max_overload_retries: fallback::MAX_OVERLOAD_ATTEMPTS - 1, ..policy },
            false => policy,
        }
    }

    /// Activates the next fallback model and notifies the host.
    pub async fn switch_to_fallback(&mut self, error: Option<&ModelError>) {
        let primary = self.runtime_settings.current().model;
        let failed = self.model();
        let (trigger, reason) =
            error.and_then(fallback::classify_unavailable).unwrap_or(("unavailable", "does not answer"));
        let Some(name) = self.fallback_models.activate_next(&primary) else { return };
        let content = format!("{failed} {reason}; using {name} for the rest of this turn.");
        let trigger = trigger.to_owned();
        let notice = ModelFallback { trigger, original_model: failed, fallback_model: name, content };
        self.frame_sender.notify(notice).await;
    }

    /// Records a call of the model in the parts of the agent that depend on its calls.
    pub fn observe_call(&mut self, call: &ToolCall) {
        self.structured_output.record_call(&call.tool, &call.id);
        self.instructions.watch_call(&call.tool, &call.input);
        self.progress.record_tool_call(&call.tool);
    }

    /// Sends warnings about instruction files; returns those loaded since the last call.
    pub async fn take_loaded_instructions(&mut self) -> Vec<InstructionFile> {
        let updates = self.instructions.take_updates();
        for content in updates.warnings {
            self.frame_sender.warn(content).await;
        }
        updates.loaded
    }
}

/// Limits and options that are fixed for an agent.
#[derive(Debug, Clone, Default)]
pub struct AgentLimits {
    pub max_turns: Option<u32>,
    /// Budget of the session in USD.
    pub max_budget_usd: Option<f64>,
    /// Token budget of the task, which the model sees.
    pub task_budget_tokens: Option<u64>,
    /// Output limit of one reply, if one is set.
    pub max_output_tokens: Option<u64>,
    pub max_retries: Option<u32>,
    /// Time for which an overload is retried.
    pub overload_timeout: Option<Duration>,
    /// Provider timeouts.
    pub timing: CallTimeouts,
    /// Beta features of the provider.
    pub betas: Vec<String>,
    /// Full names of the fallback models, in order.
    pub fallback_models: Vec<String>,
    pub compaction: CompactionConfig,
}

impl AgentLimits {
    pub fn retry_policy(&self) -> RetryPolicy {
        let default = RetryPolicy::default();
        RetryPolicy {
            max_retries: self.max_retries.unwrap_or(default.max_retries),
            max_capacity_wait: self.overload_timeout,
            ..default
        }
    }
}
