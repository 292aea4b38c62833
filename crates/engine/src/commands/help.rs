//! `/help`: lists the commands.

use crate::commands::{BuiltinAction, BuiltinCommand, Commands};

pub const COMMAND: BuiltinCommand = BuiltinCommand {
    name: "help",
    description: "List the commands",
    argument_hint: "",
    action: BuiltinAction::Help,
};

pub fn render(commands: &Commands) -> String {
    let lines = commands.slash_commands().into_iter().map(|command| {
        let hint = Some(command.argument_hint).filter(|hint| !hint.is_empty());
        let hint = hint.map(|hint| format!(" {hint}")).unwrap_or_default();
        format!("/{}{hint}: {}", command.name, command.description)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use whimbrel_config::locations::ConfigLocations;
    use whimbrel_config::plugins::Plugins;

    #[test]
    fn every_command_is_listed() {
        let shown = render(&Commands::discover(&ConfigLocations::default(), &Plugins::default()).0);
        assert!(shown.contains("/compact [what the summary should keep]: Replace"), "{shown}");
        assert!(shown.contains("\n/help: List the commands"), "{shown}");
    }
}
