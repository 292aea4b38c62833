//! Permission state of a session and its changes. Decisions are made by [`whimbrel_policy`].
//!
//! Modules: [`state`] (mode, rules and directories), [`from_settings`] (rules of settings),
//! [`request`] (permission request to the host), [`mode_switch`] (sets the mode and informs the host),
//! [`search_filter`] (hides files from searches), [`plan_lock`] (plan mode until approval), `git` (programs that a
//! repository makes git run).

pub mod from_settings;
mod git;
pub mod mode_switch;
pub mod plan_lock;
pub mod request;
pub mod search_filter;
pub mod state;

pub use mode_switch::ModeSwitch;
pub use plan_lock::PlanLock;
pub use search_filter::SearchFilter;
pub use state::PermissionState;

/// Warning for sessions that ask for mode `auto`.
pub const AUTO_MODE_UNSUPPORTED: &str =
    "Mode auto is not supported yet: the session asks as in mode default.";
