//! Agents: the main agent and its subagents. A subagent runs the same turn loop with its own transcript branch, its
//! own prompt and at most the permissions of its parent.
//!
//! Modules:
//! - definitions: [`definition`] (one agent definition), [`definitions`] (all of a session), `definition_file` and
//!   [`discover`] (those from files)
//! - building: [`context`] (shared dependencies), `build` (main agent and subagents), `allowed_tools`,
//!   `memory` (agent memory directory), `hooks` (hooks of a definition), `mcp_servers` (servers owned by one agent),
//!   `worktree_isolation`
//! - running: [`spawn`], `message_agent` (message, resume), [`spawn_limits`] (concurrency and depth), `run`
//!   (the task of one subagent), [`report`], `notices` (frames and notifications about agents)
//! - [`registry`] (running and finished agents, with mailboxes), `metadata` (file beside the transcript), `restore`
//!   (agents of an earlier run), [`awaited_agents`] (background agents that have not reported)
//! - [`team`] (teammates, which stay alive between tasks), [`tools`] (the tools that start and message agents)

pub(crate) mod allowed_tools;
pub mod awaited_agents;
mod build;
pub mod context;
pub mod definition;
mod definition_file;
pub mod definitions;
pub mod discover;
pub(crate) mod hooks;
pub(crate) mod mcp_servers;
pub(crate) mod memory;
mod message_agent;
mod metadata;
pub(crate) mod notices;
pub mod registry;
pub mod report;
mod restore;
pub(crate) mod run;
pub mod spawn;
pub mod spawn_limits;
pub mod team;
pub mod tools;
mod worktree_isolation;

pub use context::{AgentContext, AgentSpawner};
pub use definition::ResolvedDefinition;
pub use definitions::AgentDefinitions;
pub use report::AgentReport;
pub use spawn::{SpawnOutcome, SpawnRequest, SpawnedAgent};
