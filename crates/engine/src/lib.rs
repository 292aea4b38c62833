//! The agent engine: receives frames from a host over a link, calls models, runs tool calls and sends frames back.
//!
//! It knows no terminal, no stdin and no flags: the program at the other end of the
//! [`Link`](whimbrel_transport::link::Link) is the host. Tools, hooks, permission state, MCP, storage, processes and
//! settings are in crates below this one.
//!
//! Modules, in the order in which a prompt passes through them:
//! - start: [`Engine`] (shared by all sessions of a process), [`setup`] (resolves options and settings into a ready
//!   session), `key_helper` (API key printed by a command)
//! - session: `event_loop` (owns the session; [`serve()`] runs it), `input_queue` (prompts and notifications waiting for
//!   a turn), `steering` (prompts for the running turn), [`session_lifetime`] (pure: run, wait or exit),
//!   [`state_notifier`] (running, requires action, idle), [`runtime_settings`] (what can change during a session),
//!   [`model_switch`], `fifo_lock`
//! - notices to the host: `transcript_notices` and `task_notifications`; `file_checkpoints`
//! - turn: [`agent`] (one agent and its state), `turn_start`, `prompt_submission` (hooks of a prompt, and its record),
//!   [`turn`] (the loop), [`next_step`] (pure: what comes next), [`turn_result`](mod@turn_result) (pure: the result
//!   frame), [`fallback`] (fallback models), [`structured_output`], [`denial_log`], `turn_telemetry` (its span)
//! - tool calls: [`tool_scheduler`], [`permission_checker`] (hooks, rules, permission request)
//! - conversation: [`conversation`] (history, transcript and host together), [`context`] (system prompt, environment,
//!   instructions, plan mode), [`compaction`], `side_question` (questions beside the conversation)
//! - extensions: [`agents`] (subagents, teams and their tools), [`commands`] (slash commands), `command_expansion`
//!   (text of a command file or skill), [`command_runner`] (runs a command), [`skills`], [`mcp_server`] (the
//!   engine's tools over MCP)

pub mod agent;
pub mod agents;
mod command_expansion;
pub mod command_runner;
pub mod commands;
pub mod compaction;
pub mod context;
pub mod conversation;
pub mod denial_log;
mod engine;
mod event_loop;
pub mod fallback;
mod fifo_lock;
mod file_checkpoints;
mod input_queue;
mod key_helper;
pub mod mcp_server;
pub mod model_switch;
pub mod next_step;
#[cfg(test)]
mod path_swap_tests;
pub mod permission_checker;
mod prompt_submission;
pub mod runtime_settings;
mod sandbox_questions;
pub mod session_lifetime;
pub mod setup;
mod side_question;
pub mod skills;
pub mod state_notifier;
mod steering;
pub mod structured_output;
mod task_notifications;
pub mod tool_scheduler;
pub(crate) mod transcript_notices;
pub mod turn;
pub mod turn_result;
mod turn_start;
mod turn_telemetry;

pub use engine::{Engine, EngineBuilder, SandboxLauncher, builtin_tools, team_tools};
pub use event_loop::{PreparedSession, SessionExit, TurnSummary, serve};
pub use setup::SessionRequest;
pub use whimbrel_tools::telemetry::PromptSpans;
