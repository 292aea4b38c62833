//! Agents: the main one, and subagents: the same turn with another branch of the log, a prompt of its own and no more
//! rights than its parent.
//!
//! Rooms:
//! - [`home`] (what they have in common, and the main one), [`definition`] (a kind of subagent), [`kinds`] (all of them;
//!   `file` and [`discover`] for those in files);
//! - [`spawn`] (sending one on an errand), [`places`] (how many at once), `raise` (making one), `learned` (what it has read
//!   before), `notes` (what it has written down for itself), `hooked` (its own hooks), `hired` (its own MCP servers), `apart`
//!   (a work tree of its own), `run` (its errand);
//! - [`progress`], [`report`] and `notices` (what is told of it), [`desk`] (who can be reached), `sidecar` (what stands
//!   beside its transcript), `recover` (going on with it in a later run) and `adrift` (who was at work when a run ended);
//! - [`team`] (agents that live on between errands).

mod lost_agents;
mod isolation;
pub mod definition;
pub mod registry;
mod definition_file;
pub mod discover;
pub(crate) mod mcp_servers;
pub mod context;
pub(crate) mod hooks;
pub mod definitions;
mod preload_skills;
pub(crate) mod memory;
pub(crate) mod notices;
pub mod spawn_limits;
pub mod progress;
pub(crate) mod build;
mod restore;
pub mod report;
pub(crate) mod run;
mod metadata;
pub mod spawn;
pub mod team;

pub use definition::Definition;
pub use discover::PluginAgents;
pub use context::{AgentSpawner, AgentContext};
pub use definitions::AgentDefinitions;
pub use report::AgentReport;
pub use spawn::{SubagentTask, LaunchedAgent, LaunchOutcome};
