//! The agent engine: receives frames from a host over a link, calls models, runs tool calls and sends frames back.
//!
//! It knows no terminal, no stdin and no flags: the program at the other end of the
//! [`Link`](whimbrel_transport::link::Link) is the host. Storage, processes, settings and permission rules live in
//! crates below this one.
//!
//! Modules, in the order in which a prompt passes through them:
//! - start: [`Engine`] (shared by all sessions of a process), [`setup`] (resolves options and settings into a ready
//!   session), `key_helper` (API key printed by a command)
//! - session: `event_loop` (owns the session; [`serve()`] runs it), `input_queue` (prompts and notifications waiting for
//!   a turn), [`internal_events`] (background tasks, agents, timers), [`activity`] (pure: run, wait or exit),
//!   [`state_notifier`] (running, requires action, idle), [`runtime_settings`] (what can change during a session),
//!   [`model_switch`]
//! - host: [`frame_sender`], `frame_log` (one-line log form of frames), [`host_requests`] (control requests to the
//!   host), `rewind` (file checkpoints), `transcript_notices` and `task_notifications` (frames about transcripts and
//!   background tasks)
//! - turn: [`agent`] (one agent and its state), `turn_start`, [`turn`] (the loop), [`next_step`] (pure: what comes next),
//!   [`turn_result`](mod@turn_result) (pure: the result frame), [`fallback`] (fallback models), [`structured_output`]
//! - conversation: [`conversation`] (history, transcript and host together), [`context`] (system prompt, environment,
//!   instructions, compaction), [`cost`] (ledger and budget), [`small_model`] (one-off requests outside the
//!   conversation), `effort`
//! - tools: [`tool_api`] (the interface, tool sets, deferred tools), [`tools`] (one file each), [`tool_scheduler`],
//!   [`permission_checker`] and [`permission`] (permission checks), [`denial_log`], [`responders`] (who can answer
//!   interactive tools), [`workspace`] (state shared by the tool calls of a session), `fifo_lock`
//! - background: [`background_task`] (data of tasks), [`tasks`] (shell commands and agents), [`timers`] (scheduled prompts), [`task_list`], [`worktrees`] (git)
//! - extensions: [`agents`] (subagents and teams), [`commands`] (slash commands), [`skills`], [`hooks`], [`mcp`] (client of MCP
//!   servers), [`mcp_tools`] (their tools and resources for the model), `images` (scales images), [`mcp_server`] (the engine's tools over MCP)

pub mod activity;
pub mod agent;
pub mod agents;
pub mod background_task;
mod command_expansion;
pub mod command_runner;
pub mod commands;
pub mod compaction;
pub mod context;
pub mod conversation;
pub mod cost;
pub mod denial_log;
mod effort;
mod engine;
mod event_loop;
pub mod fallback;
mod fifo_lock;
mod frame_log;
pub mod frame_sender;
pub mod hooks;
pub mod host_requests;
mod images;
mod input_queue;
pub mod internal_events;
mod key_helper;
pub mod mcp;
pub mod mcp_server;
pub mod mcp_tools;
pub mod model_access;
pub mod model_switch;
pub mod next_step;
pub mod permission;
pub mod permission_checker;
pub mod responders;
mod rewind;
pub mod runtime_settings;
pub mod setup;
pub mod skills;
pub mod small_model;
pub mod state_notifier;
pub mod structured_output;
pub mod task_list;
mod task_notifications;
pub mod tasks;
pub mod timers;
pub mod tool_api;
pub mod tool_scheduler;
pub mod tools;
pub(crate) mod transcript_notices;
pub mod turn;
pub mod turn_result;
mod turn_start;
pub mod workspace;
pub mod worktrees;

pub use engine::{Engine, builtin_tools, team_tools};
pub use event_loop::{SessionExit, TurnSummary, serve};
pub use setup::Start;
