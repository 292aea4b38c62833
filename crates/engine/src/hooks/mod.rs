//! Hooks: code of the host and commands of the settings that are told what happens and may have a say in it.
//!
//! - `config`: which hooks there are; `handler`: what each does; `matcher` and `condition`: which occasions they are
//!   for; `catalog`: the events, one row each;
//! - `events`: what hooks are told;
//! - `run`: raises an event; `callback` asks the host, `command` runs a command, `http` asks a web
//!   address, `herald` tells the host of it;
//! - `outcome`: what one hook said, `restraint`: what counts of it if it is wrong in part, `twice`: if it says two things at
//!   once; `fold`: what all of them said
//!   together, `covered`: what an allow among it is for; `long`: when one says too much;
//! - `late`: what hooks say that nobody waited for;
//! - `lookout`: an agent's way to all of that; `brake`: ends its turn if a hook says so.
//!
//! A session without hooks has an empty [`Hooks`]: raising an event is one look.

mod stop_flag;
mod callback;
pub mod catalog;
mod command;
mod condition;
mod config;
mod allow_scope;
mod error;
pub mod inputs;
pub mod merge;
mod handler;
mod progress;
mod http;
mod async_results;
mod truncate;
pub mod dispatcher;
pub mod matcher;
mod output;
mod salvage;
mod executor;
#[cfg(test)]
mod tests;
mod duplicate_keys;

pub use config::{CommandHook, HookSet};
pub use error::HookError;
pub use inputs::{ToolCallRef, HookCall, HookInputBuilder};
pub use merge::{MergedOutput, HookReason, MergedDecision, join_reasons};
pub use progress::ProgressPolicy;
pub use http::HttpHook;
pub use async_results::{AsyncResults, AsyncResult};
pub use dispatcher::HookDispatcher;
pub use output::{HookResult, ParsedOutput};
pub use executor::{HookDeps, HookExecutor};
