//! From what was asked to what it means: options and environment are resolved once, before the first turn.
//!
//! Rooms: [`resolve`] (options to [`Setup`]), `configure` (settings), `grants` (rights), [`model`],
//! `history` (copies of files), [`absent`] (what this version does not have yet, and says so), `home` (where
//! things are kept), [`resume`] (which session it is, and whether it goes on from an older one), `in_store` (the same for a
//! session that a store keeps).

pub mod absent;
mod configure;
mod grants;
mod history;
mod home;
mod in_store;
pub mod model;
pub mod resolve;
pub mod resume;

pub use crate::settings::config_folder;
pub use resolve::{Setup, SetupError, Start};
