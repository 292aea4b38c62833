//! From what was asked to what it means: options and environment are resolved once, before the first turn.
//!
//! Rooms: [`resolve`] (options to [`Setup`]), `configure` (settings), `grants` (rights), `ending` (what becomes of background work),
//! [`model`],
//! `history` (copies of files), [`absent`] (what this version does not have yet, and says so), `home` (where
//! things are kept), [`resume`] (which session it is, and whether it goes on from an older one).

pub mod absent;
mod configure;
mod ending;
mod grants;
mod history;
mod home;
pub mod model;
pub mod resolve;
pub mod resume;

pub use crate::settings::config_folder;
pub use resolve::{Setup, SetupError, Start};
