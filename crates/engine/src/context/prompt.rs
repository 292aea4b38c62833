//! The system prompt. Nothing in it depends on the machine or the day, so that it stays cached.

use whimbrel_wire::options::SystemPrompt;

/// Says who speaks; first in every prompt that is not replaced.
const IDENTITY: &str = "You are an agent run by Whimbrel. You work on a person's computer through tools.";

/// What is said where the caller wants nothing said: servers and readers of logs expect some prompt.
const BARE: &str = "You are an agent with tools.";

/// How to work.
const CONDUCT: &str = include_str!("prompt.md");

/// The system blocks for a choice of the caller. An absent choice is the default prompt; an empty text leaves
/// next to nothing.
pub fn system(choice: Option<&SystemPrompt>, append: Option<&str>) -> Vec<String> {
    let mut blocks = match choice {
        None | Some(SystemPrompt::Preset { .. }) => vec![format!("{IDENTITY}\n\n{}", CONDUCT.trim())],
        Some(SystemPrompt::Text(text)) => vec![text.clone()],
        // Read when the session was set up.
        Some(SystemPrompt::File { .. }) => Vec::new(),
    };
    blocks.extend(append.map(str::to_owned));
    blocks.retain(|block| !block.trim().is_empty());
    if blocks.is_empty() {
        blocks.push(BARE.to_owned());
    }
    blocks
}
