//! Flags and subcommands of the official program, and what becomes of each of them here.
//!
//! The comparison in `docs/command-line.md` is made from these lists, and so are the answers to flags and subcommands
//! that this program does not have. Pure.

mod flags;
mod subcommands;

#[cfg(test)]
pub(crate) use flags::OFFICIAL_FLAGS;
pub(crate) use flags::{OfficialFlag, OfficialValue, find_official_flag};
#[cfg(test)]
pub(crate) use subcommands::OFFICIAL_SUBCOMMANDS;
pub(crate) use subcommands::{is_subcommand, refuse_subcommand};

/// What this program does with a flag or subcommand of the official one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// It works.
    Supported,
    /// It works, except for this.
    Partly(&'static str),
    /// It is accepted and changes nothing, for this reason.
    NoEffect(&'static str),
    /// It is an error, with this remedy.
    Refused(&'static str),
}
