//! Runs slash commands, in place of a turn or before one: [`builtin`] and [`compact`] (built-in commands),
//! [`command_file`] (command files), `fork` (command files that run in a subagent), [`builtin_prompt`] (prompts of the
//! program), [`mcp_prompt`] (prompts of MCP servers), `expanded_prompt` (what both have in common).

pub mod builtin;
pub mod builtin_prompt;
pub mod command_file;
pub mod compact;
mod expanded_prompt;
mod fork;
pub mod mcp_prompt;

use tokio_util::sync::CancellationToken;
use whimbrel_tools::hooks::HookDispatcher;
use whimbrel_wire::message::User;

use crate::agent::Agent;
use crate::model_switch::ModelSwitch;
use crate::next_step::TurnEnd;
use crate::turn::TurnOutcome;
use crate::turn_start::TurnNotices;

/// Work of a command in place of a turn or before it.
pub enum CommandJob {
    Compact(compact::CompactRequest),
    /// Already done; shows this text.
    Answer {
        prompt: Box<User>,
        text: String,
    },
    /// Ends the cleared session; the agent is already that of the new one.
    Clear {
        prompt: Box<User>,
        /// Hooks of the cleared session.
        old_hooks: HookDispatcher,
    },
    /// Switches the model unless a hook denies it.
    Model {
        prompt: Box<User>,
        switch: Box<ModelSwitch>,
    },
    /// Expands a command file and runs a turn with it.
    CommandFile(Box<command_file::CommandFileCall>),
    /// Runs a turn with a built-in prompt.
    BuiltinPrompt(builtin_prompt::BuiltinPromptCall),
    /// Fetches an MCP prompt and runs a turn with it.
    McpPrompt(Box<mcp_prompt::McpPromptCall>),
}

impl CommandJob {
    /// The prompt that invoked the command.
    pub(crate) fn prompt(&self) -> &User {
        match self {
            Self::Compact(request) => &request.prompt,
            Self::Answer { prompt, .. } | Self::Clear { prompt, .. } | Self::Model { prompt, .. } => prompt,
            Self::CommandFile(call) => &call.prompt,
            Self::BuiltinPrompt(call) => &call.prompt,
            Self::McpPrompt(call) => &call.prompt,
        }
    }
}

/// Runs the job. Notices are sent first, except for a compaction, where hosts expect them afterwards.
pub(crate) async fn run(
    agent: &mut Agent,
    job: CommandJob,
    notices: TurnNotices,
    cancel: &CancellationToken,
) -> TurnOutcome {
    match job {
        CommandJob::Compact(request) => compact::run(agent, request, notices, cancel).await,
        CommandJob::Answer { prompt, text } => {
            notices.send(&agent.frame_sender).await;
            answer_without_model(agent, &prompt, text).await
        }
        CommandJob::Clear { prompt, old_hooks } => {
            builtin::run_clear(agent, &prompt, &old_hooks, notices, cancel).await
        }
        CommandJob::Model { prompt, switch } => {
            notices.send(&agent.frame_sender).await;
            let notice = builtin::render_model_switch(switch.model());
            let text = switch.apply(cancel).await.map_or_else(|reason| reason, |()| notice);
            answer_without_model(agent, &prompt, text).await
        }
        CommandJob::CommandFile(call) => {
            notices.send(&agent.frame_sender).await;
            command_file::run(agent, *call, cancel).await
        }
        CommandJob::BuiltinPrompt(call) => {
            notices.send(&agent.frame_sender).await;
            builtin_prompt::run(agent, call, cancel).await
        }
        CommandJob::McpPrompt(call) => {
            notices.send(&agent.frame_sender).await;
            mcp_prompt::run(agent, *call, cancel).await
        }
    }
}

async fn answer_without_model(agent: &mut Agent, prompt: &User, text: String) -> TurnOutcome {
    agent.conversation.push_local_answer(prompt, &text).await;
    agent.conversation.end_turn().await;
    TurnOutcome { text, ..TurnOutcome::new(TurnEnd::Done) }
}
