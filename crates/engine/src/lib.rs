//! The agent engine: receives frames from a host over a link, calls models, runs tool calls and sends frames back.
//!
//! It knows no terminal, no stdin and no flags: the program at the other end of the [`link`] is the host.
//!
//! Modules, in the order in which a prompt passes through them:
//! - host: [`link`] (pair of channels), [`host_requests`] (control requests to the host), [`frame_sender`],
//!   `frame_log` (one-line log form of frames), `control` (control requests from the host), `rewind` (file
//!   checkpoints)
//! - session: [`serve()`] (the event loop that owns a session), `input_queue`, [`internal_events`] (background tasks,
//!   agents, timers), [`activity`] (pure: run, wait or exit), [`state_notifier`] (running, waiting, idle),
//!   [`runtime_settings`] (what can change during a session)
//! - turn: [`turn`] (the loop), `turn_start`, [`next_step`] (pure: what comes next), [`turn_result`](mod@turn_result)
//!   (pure: the result frame), [`fallback`] (fallback models), [`structured_output`]
//! - tools: [`permission_checker`] and [`permission`] (permission checks), [`tool_scheduler`], [`tool_set`],
//!   [`deferred_tools`], [`responders`] (who can answer interactive tools), [`tools`] (one file each)
//! - models: [`cost`] (ledger and budget), [`small_model`] (one-off requests outside the conversation), `key_helper`
//!   (API key printed by a command)
//! - conversation: [`conversation`] (history, transcript and host together), [`context`] (system prompt, environment,
//!   instructions, compaction), [`session`] (transcript storage)
//! - configuration: [`setup`] (options to a ready session), [`settings`], [`config_locations`], [`front_matter`],
//!   [`plugins`], [`output_styles`], [`commands`] (slash commands), [`skills`], [`hooks`]
//! - [`agents`]: subagents and teams; [`mcp`]: tools, resources and prompts of MCP servers; [`task_list`]
//! - [`tasks`] (background work), [`timers`] (scheduled prompts), [`workspace`] (state shared by the tool calls of a
//!   session), [`worktree`] (git worktrees)
//! - effects: [`clock`], [`ids`], [`files`]: only these touch time, randomness and disk

pub mod activity;
pub mod agent;
pub mod agents;
pub mod commands;
pub mod context;
mod control;
pub mod conversation;
pub mod cost;
pub mod deferred_tools;
pub mod denial_log;
mod engine;
mod event_loop;
pub mod fallback;
mod fifo_lock;
mod frame_log;
pub mod frame_sender;
pub mod hooks;
pub mod host_requests;
mod input_queue;
pub mod internal_events;
mod key_helper;
pub mod mcp;
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
pub mod tool_scheduler;
pub mod tool_set;
pub mod tools;
pub(crate) mod transcript_notices;
pub mod turn;
pub mod turn_result;
mod turn_start;
pub mod workspace;
pub mod worktree;

pub use engine::Engine;
pub use event_loop::{SessionExit, TurnSummary, serve};
pub use setup::Start;
