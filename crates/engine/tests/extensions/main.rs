//! Skills, slash commands, plugins and instruction files.

#![expect(clippy::unwrap_used, reason = "test support fails as a test does")]

mod instructions;
mod skill_effects;
mod skills;
mod slash_commands;
