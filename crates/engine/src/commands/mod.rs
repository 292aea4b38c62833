//! Slash commands: prompts that the engine answers itself. One leaf each, and one line in [`ALL`].

pub mod compact;

/// A command that the engine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What it does, for people.
    pub description: &'static str,
    /// What may follow it.
    pub argument_hint: &'static str,
    /// What is done.
    pub action: Action,
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Replaces the conversation by a summary.
    Compact,
}

/// The list of commands.
pub const ALL: &[Command] = &[compact::COMMAND];

/// The command that a prompt calls, and what follows it. A text that no command answers to is an ordinary prompt.
pub fn called(prompt: &str) -> Option<(Command, &str)> {
    let (name, rest) = prompt
        .trim()
        .strip_prefix('/')
        .map(|text| text.split_once(char::is_whitespace).unwrap_or((text, "")))?;
    ALL.iter().find(|command| command.name == name).map(|command| (*command, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_at_the_beginning_are_commands() {
        assert_eq!(
            called("/compact keep the names").map(|(command, rest)| (command.name, rest)),
            Some(("compact", "keep the names"))
        );
        assert_eq!(called("/compact"), Some((compact::COMMAND, "")));
        for prompt in ["/nosuch", "compact", "see /compact", "/compactor", "/ compact"] {
            assert_eq!(called(prompt), None, "{prompt}");
        }
    }
}
