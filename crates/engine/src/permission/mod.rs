//! What a session may do: the rules that it began with, and how they stand now. The judging itself is
//! [`whimbrel_policy`]'s.
//!
//! Rooms: [`rights`] (mode, rules and directories as they stand), [`question`] (what the host is asked), [`paths`] (where
//! a path really leads), [`sight`] (what a search may see).

pub mod paths;
pub mod question;
pub mod rights;
pub mod sight;

pub use rights::Rights;
pub use sight::Sight;
