//! The slash commands: those of the terminal, in one table, and those of the engine.

use whimbrel::wire::system::SlashCommand;

/// A command that the terminal itself runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalCommand {
    Clear,
    Config,
    Context,
    Copy,
    Cost,
    Diff,
    Effort,
    Exit,
    Export,
    Help,
    Mcp,
    Mode,
    Model,
    Permissions,
    Resume,
    Rewind,
    Setup,
    Tasks,
    Theme,
    Transcript,
    Vim,
}

struct CommandRow {
    command: LocalCommand,
    name: &'static str,
    aliases: &'static [&'static str],
    argument: &'static str,
    description: &'static str,
}

const fn row(
    command: LocalCommand,
    name: &'static str,
    aliases: &'static [&'static str],
    argument: &'static str,
    description: &'static str,
) -> CommandRow {
    CommandRow { command, name, aliases, argument, description }
}

const COMMANDS: &[CommandRow] = &[
    row(LocalCommand::Clear, "clear", &["new"], "", "begin a new conversation"),
    row(LocalCommand::Config, "config", &["settings"], "", "change the preferences of the terminal"),
    row(LocalCommand::Context, "context", &[], "", "show what fills the context"),
    row(LocalCommand::Copy, "copy", &[], "[number]", "copy the last answer, or a code block of it"),
    row(LocalCommand::Cost, "cost", &["usage"], "", "show what the session cost"),
    row(LocalCommand::Diff, "diff", &[], "", "show the uncommitted changes of the project"),
    row(LocalCommand::Effort, "effort", &[], "[level]", "choose how hard the model thinks"),
    row(LocalCommand::Exit, "exit", &["quit"], "", "leave"),
    row(LocalCommand::Export, "export", &[], "[file]", "write the conversation to a Markdown file"),
    row(LocalCommand::Help, "help", &["keys", "?"], "", "show the commands and the keys"),
    row(LocalCommand::Mcp, "mcp", &[], "", "show the MCP servers, reconnect or disable them"),
    row(LocalCommand::Mode, "mode", &[], "[mode]", "choose the permission mode"),
    row(LocalCommand::Model, "model", &[], "[model]", "choose the model"),
    row(LocalCommand::Permissions, "permissions", &[], "", "show the permission rules"),
    row(LocalCommand::Resume, "resume", &["continue"], "[session]", "resume an earlier session"),
    row(LocalCommand::Rewind, "rewind", &["undo"], "", "go back to an earlier prompt"),
    row(LocalCommand::Setup, "setup", &["login"], "", "show how to set up a model"),
    row(LocalCommand::Tasks, "tasks", &["bashes"], "", "list, show or stop background tasks"),
    row(LocalCommand::Theme, "theme", &[], "[name]", "choose the colors"),
    row(LocalCommand::Transcript, "transcript", &[], "", "show the full transcript"),
    row(LocalCommand::Vim, "vim", &[], "", "switch the vi keys on or off"),
];

/// A command in the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedCommand {
    pub(crate) name: String,
    pub(crate) argument: String,
    pub(crate) description: String,
}

/// What a typed line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ParsedCommand {
    Local(LocalCommand, String),
    /// A command of the engine; it is sent as it is.
    Engine,
    Unknown(String),
    /// The line is no command, for example a path.
    None,
}

/// Reads a line. Names of the engine are without the slash.
pub(crate) fn parse(line: &str, engine: &[SlashCommand]) -> ParsedCommand {
    let Some(rest) = line.strip_prefix('/') else { return ParsedCommand::None };
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.is_empty() || name.contains('/') {
        return ParsedCommand::None;
    }
    if let Some(row) = COMMANDS.iter().find(|row| row.name == name || row.aliases.contains(&name)) {
        return ParsedCommand::Local(row.command, argument.trim().to_owned());
    }
    let is_known = engine
        .iter()
        .any(|command| command.name == name || command.aliases.iter().flatten().any(|alias| alias == name));
    if is_known { ParsedCommand::Engine } else { ParsedCommand::Unknown(name.to_owned()) }
}

/// All commands by name: a command of the terminal takes the place of the engine's.
pub(crate) fn list(engine: &[SlashCommand]) -> Vec<ListedCommand> {
    let mut all: Vec<ListedCommand> = COMMANDS
        .iter()
        .map(|row| ListedCommand {
            name: row.name.into(),
            argument: row.argument.into(),
            description: row.description.into(),
        })
        .collect();
    let others = engine.iter().filter(|command| COMMANDS.iter().all(|row| row.name != command.name));
    all.extend(others.map(|command| ListedCommand {
        name: command.name.clone(),
        argument: command.argument_hint.clone(),
        description: command.description.lines().next().unwrap_or_default().to_owned(),
    }));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// Commands that match what was typed: those that begin with it first, then those that contain its letters in order.
pub(crate) fn filter(all: &[ListedCommand], typed: &str) -> Vec<ListedCommand> {
    let typed = typed.to_lowercase();
    let rank = |command: &ListedCommand| {
        let name = command.name.to_lowercase();
        if name.starts_with(&typed) {
            Some(0)
        } else if name.contains(&typed) {
            Some(1)
        } else if has_letters(&name, &typed) {
            Some(2)
        } else {
            None
        }
    };
    let mut ranked: Vec<(usize, &ListedCommand)> =
        all.iter().filter_map(|command| Some((rank(command)?, command))).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, command)| command.clone()).collect()
}

/// Returns whether a name contains letters in this order.
fn has_letters(name: &str, letters: &str) -> bool {
    let mut rest = name.chars();
    letters.chars().all(|letter| rest.any(|character| character == letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine() -> Vec<SlashCommand> {
        let command = |name: &str| SlashCommand { name: name.into(), ..SlashCommand::default() };
        vec![command("compact"), command("model"), command("review:pr")]
    }

    #[test]
    fn lines_are_parsed() {
        let rows = [
            ("hello", ParsedCommand::None),
            ("/tmp/file.txt is broken", ParsedCommand::None),
            ("/", ParsedCommand::None),
            ("/model opus", ParsedCommand::Local(LocalCommand::Model, "opus".into())),
            ("/quit", ParsedCommand::Local(LocalCommand::Exit, String::new())),
            ("/review:pr 12", ParsedCommand::Engine),
            ("/nope now", ParsedCommand::Unknown("nope".into())),
        ];
        for (line, expected) in rows {
            assert_eq!(parse(line, &engine()), expected, "{line}");
        }
    }

    #[test]
    fn matches_that_begin_with_the_text_come_first() {
        let all = list(&engine());
        let names: Vec<String> = filter(&all, "co").into_iter().map(|command| command.name).collect();
        assert_eq!(names[..5], ["compact", "config", "context", "copy", "cost"]);
        let fuzzy: Vec<String> = filter(&all, "rvpr").into_iter().map(|command| command.name).collect();
        assert_eq!(fuzzy, ["review:pr"]);
        assert_eq!(all.iter().filter(|command| command.name == "model").count(), 1);
    }
}
