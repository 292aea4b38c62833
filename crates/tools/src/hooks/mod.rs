//! Hooks: callbacks of the host, commands and HTTP endpoints that are informed of events and can block or change them.
//!
//! - `hook_set`: the hooks of a session; `handler`: action and limits of one; `matcher` and `condition`: which events
//!   it is for; `failure_policy`: what its failure does; `event_table`: the properties of each event, and timeouts;
//!   `event_catalog`: what each event is for; `origin`: where a hook comes from; `listing`: lists hooks for the host;
//!   [`front_matter`]: hooks of agent definitions and skills;
//! - `inputs`: builds hook inputs;
//! - `executor`: runs the hooks of an event; `callback` asks the host, `command` runs a command, `http` sends a
//!   request, `progress` reports runs to the host;
//! - `output`: parses and truncates the output of one hook; `blocking_part`: the part of an invalid output that still
//!   blocks; `merge`: combines the outputs of all hooks;
//! - `async_results`: results of hooks that run in the background;
//! - `dispatcher`: an agent's entry point to all of that; `stop_flag`: ends its turn on request of a hook.
//!
//! A session without hooks has an empty [`HookExecutor`], in which running an event is one check.

mod async_results;
mod blocking_part;
mod callback;
mod command;
mod condition;
pub mod dispatcher;
pub mod event_catalog;
pub mod event_table;
mod executor;
mod failure_policy;
pub mod front_matter;
mod handler;
mod hook_set;
mod http;
pub mod inputs;
mod listing;
pub mod matcher;
pub mod merge;
mod origin;
mod output;
mod progress;
mod stop_flag;
#[cfg(test)]
mod tests;

pub use async_results::{AsyncResult, AsyncResults};
pub use dispatcher::HookDispatcher;
pub use executor::{HookDeps, HookExecutor};
pub use hook_set::{CommandHook, HookError, HookSet};
pub use inputs::{HookCall, HookInputBuilder, ToolCallRef};
pub use matcher::matcher_field;
pub use merge::{HookReason, MergedDecision, MergedOutput, join_reasons};
pub use origin::{HookOrigin, HookSource};
pub use output::{HookResult, ParsedOutput};
pub use progress::ProgressPolicy;
