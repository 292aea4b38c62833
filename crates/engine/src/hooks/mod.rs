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

mod brake;
mod callback;
pub mod catalog;
mod command;
mod condition;
mod config;
mod covered;
mod error;
pub mod events;
pub mod fold;
mod handler;
mod herald;
mod http;
mod late;
mod long;
pub mod lookout;
pub mod matcher;
mod outcome;
mod restraint;
mod run;
#[cfg(test)]
mod tests;
mod twice;

pub use config::{CommandHook, HookSet};
pub use error::HookError;
pub use events::{Called, Occasion, Scene};
pub use fold::{Folded, Reason, Ruling, joined};
pub use herald::Announce;
pub use http::HttpHook;
pub use late::{Late, LateAnswer};
pub use lookout::Lookout;
pub use outcome::{Outcome, Said};
pub use run::{Desk, Hooks};
