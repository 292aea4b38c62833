//! What a session may do: the rules that it began with, and how they stand now. The judging itself is
//! [`whimbrel_policy`]'s.
//!
//! Rooms: [`rights`] (mode, rules and directories as they stand), [`from_settings`] (those of settings),
//! [`explain`] (why a call is judged so), [`question`] (what the host is asked), [`paths`] (where
//! a path really leads), [`switch`] (turns the mode and tells the host), [`sight`] (what
//! a search may see), [`pledge`] (to plan first), `git` (what a repository makes git run).

pub mod explain;
pub mod from_settings;
mod git;
pub mod paths;
pub mod plan_lock;
pub mod request;
pub mod state;
pub mod search_filter;
pub mod mode_switch;

pub use plan_lock::PlanLock;
pub use state::PermissionState;
pub use search_filter::SearchFilter;
pub use mode_switch::ModeSwitch;
pub use whimbrel_policy::is_invisible;

/// What is told where the mode `auto` is asked for.
pub const AUTO_MODE_UNSUPPORTED: &str = "There is no mode auto yet: the session asks as in the mode default.";
