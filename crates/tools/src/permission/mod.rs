//! Permission state of a session and its changes. Decisions are made by [`whimbrel_policy`].
//!
//! Modules: [`state`] (mode, rules and directories; its `mode_switch` changes the mode and informs the host),
//! [`from_settings`] (rules of settings), [`request`] (permission request to the host), [`search_filter`] (hides files
//! from searches), `untrusted_repos` (programs that a repository makes git run).

pub mod from_settings;
pub mod request;
pub mod search_filter;
pub mod state;
mod untrusted_repos;

pub use search_filter::SearchFilter;
pub use state::{ModeSwitch, PermissionState, PlanLock};

/// Warning for sessions that ask for mode `auto`.
pub const AUTO_MODE_UNSUPPORTED: &str =
    "Mode auto is not supported yet: the session asks as in mode default.";
