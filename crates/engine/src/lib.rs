//! The agent: takes what a host says off a link, talks to a model, makes tool calls, and says what happened.
//!
//! It knows no terminal, no stdin and no flags: whoever holds the other end of the [`link`] is the host.
//!
//! The rooms, along the way of one prompt:
//! - front door: [`link`] (a pair of channels), [`serve()`] (the owner of a session), `control` (requests of the host),
//!   [`ask`] (questions to the host), [`outbox`] (the way out), `in_short` (frames for a log), `rewind` (files back as
//!   they were), [`inbox`] (what wakes a session from within), [`life`] (pure: when a run is over) and [`state`]
//!   (running, waiting, idle)
//! - the turn: [`turn`] (the loop), [`verdict`] (pure: what next), [`gate`] and [`permission`] (may it?), [`workshop`]
//!   (which calls run side by side), [`cost`], [`report`](mod@report) (pure: the result frame), [`shape`] (an answer in
//!   the host's shape), [`understudy`] (other models), [`consult`] (a question beside the conversation)
//! - what is said: [`conversation`] (transcript, history and host at once), [`context`] (prompt, surroundings, instruction
//!   files), [`session`]
//! - [`ground`] (where the person's and the project's files lie), [`front_matter`] (their heads)
//! - [`commands`]: prompts that the engine answers itself; [`skills`]: those that the model may call; [`plugins`],
//!   [`output_styles`]: what else people add
//! - [`settings`]: what the person, the project, the host and an administrator want
//! - [`setup`]: options to meaning; `key_helper`: a key that a command prints; [`knobs`]: what can be turned while it runs;
//!   [`toolbox`]: which tools there are; [`audience`]: who answers what they ask; [`on_demand`]: which of them the model is shown
//! - [`hooks`]: code that is told what happens and may have a say
//! - [`agents`]: subagents, the same turn on a branch of its own
//! - [`mcp`]: tools, resources and prompts of MCP servers
//! - [`agenda`] (what is to be done, by one agent or many)
//! - [`tools`] (one leaf each), [`tasks`] (background work), [`timers`] (prompts for later), [`workspace`] (what the
//!   calls of a session share), [`worktree`] (a second checkout to work in)
//! - effects: [`clock`], [`ids`], [`files`]: only these touch time, randomness and disk

pub mod task_list;
pub mod agent;
pub mod agents;
pub mod host_requests;
pub mod responders;
pub mod clock;
pub mod commands;
mod text_diff;
pub mod small_model;
pub mod context;
mod control;
pub mod conversation;
pub mod cost;
pub mod denial_log;
mod engine;
pub mod files;
pub mod front_matter;
pub mod permission_checker;
pub mod config_locations;
pub mod hooks;
pub mod ids;
mod frame_log;
pub mod internal_events;
mod key_helper;
pub mod runtime_settings;
pub mod activity;
pub mod link;
pub mod mcp;
pub mod model_switch;
pub mod deferred_tools;
mod fifo_lock;
mod turn_start;
pub mod frame_sender;
pub mod output_styles;
pub mod permission;
pub mod plugins;
mod input_queue;
pub mod turn_result;
mod rewind;
mod event_loop;
pub mod session;
pub mod settings;
pub mod setup;
pub mod structured_output;
pub mod skills;
pub mod state_notifier;
mod task_notifications;
pub mod tasks;
pub mod timers;
pub mod tool_set;
pub mod tools;
pub mod turn;
pub mod fallback;
pub mod next_step;
pub mod tool_scheduler;
pub mod workspace;
pub mod worktree;

pub use engine::Engine;
pub use event_loop::{SessionExit, TurnSummary, serve};
pub use setup::Start;
