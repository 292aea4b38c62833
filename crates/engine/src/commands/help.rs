//! `/help`: lists the commands.

use crate::commands::{Action, Command, Commands};

/// The command.
pub const COMMAND: Command =
    Command { name: "help", description: "List the commands", argument_hint: "", action: Action::Help };

/// The list as a person reads it.
pub fn text(commands: &Commands) -> String {
    let lines = commands.listed().into_iter().map(|command| {
        let hint = Some(command.argument_hint).filter(|hint| !hint.is_empty());
        let hint = hint.map(|hint| format!(" {hint}")).unwrap_or_default();
        format!("/{}{hint}: {}", command.name, command.description)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::Ground;
    use crate::plugins::Plugins;

    #[test]
    fn every_command_is_on_the_list() {
        let shown = text(&Commands::find(&Ground::default(), &Plugins::default()).0);
        assert!(shown.contains("/compact [what the summary should keep]: Replace"), "{shown}");
        assert!(shown.contains("\n/help: List the commands"), "{shown}");
    }
}
