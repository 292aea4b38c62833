//! Skills, slash commands, plugins and instruction files.

#![expect(clippy::unwrap_used, reason = "test support may panic")]

mod instructions;
mod plugins;
mod skill_effects;
mod skills;
mod slash_commands;

use serde_json::json;
use whimbrel_testkit::Reply;
use whimbrel_wire::options::{Options, SettingSource};

const GREET_SKILL: &str = "---\ndescription: Greets people\n---\nSay hello to $ARGUMENTS.";

/// Options that read the settings of the project.
fn project_options() -> Options {
    Options { setting_sources: Some(vec![SettingSource::Project]), ..Options::default() }
}

fn call_skill(skill: &str) -> Reply {
    Reply::tool("Skill", json!({"skill": skill, "args": "Ann"}))
}
