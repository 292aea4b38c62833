//! The tools of an agent, and everything that a tool call needs: permissions, hooks, background tasks, the workspace.
//!
//! It knows no turn, no conversation and no agent: the engine decides when a call runs and what happens with its result.
//!
//! - tools: [`api`] (the trait, the context of a call, tool sets), [`builtin`] (the built-in tools, one file each),
//!   [`mcp_tools`] (tools of MCP servers), [`responders`] (who can answer interactive tools)
//! - permissions: [`permission`] (state: mode, rules, directories); [`hooks`]; [`sandbox`] (commands confined by the kernel)
//! - state of a session: [`workspace`] (directories and files that the model has read), [`worktrees`] (git worktrees),
//!   [`task_list`]
//! - background: [`tasks`] (shell commands and agents; their data types are in `task_types`), [`live_output`] (output of
//!   running commands for the host), [`timers`] (scheduled prompts), [`internal_events`] (what wakes a session from
//!   within)
//! - [`telemetry`]: spans and metrics
//! - models: [`model_access`] (providers, catalog, key), [`cost`] (ledger and budget), [`small_model`] (one-off requests
//!   outside the conversation)

pub mod api;
pub mod builtin;
pub mod cost;
pub mod hooks;
pub mod internal_events;
pub mod live_output;
pub mod mcp_tools;
pub mod model_access;
pub mod permission;
pub mod responders;
pub mod sandbox;
pub mod small_model;
pub mod task_list;
mod task_types;
pub mod tasks;
pub mod telemetry;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
pub mod timers;
pub mod workspace;
pub mod worktrees;
