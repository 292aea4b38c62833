//! Command line of `whimbrel plugin`. Pure.

use std::path::PathBuf;

use whimbrel_config::plugins::records::InstallScope;
use whimbrel_plugin_installer::plugins::PluginState;

use crate::arg_list::{ArgList, ListFormat};
use crate::suggest::most_similar;

/// Help page.
pub(super) const HELP_PAGE: &str = "\
whimbrel plugin: plugins from marketplaces.

  whimbrel plugin marketplace add SOURCE [--scope ..]
      add a marketplace: owner/repo on GitHub, a git URL, the URL of a
      marketplace.json, or a path; #BRANCH or #TAG after a repository
  whimbrel plugin marketplace list [--json]
      list the marketplaces
  whimbrel plugin marketplace update [NAME]
      fetch a marketplace again, or all of them
  whimbrel plugin marketplace remove NAME [--scope ..]
      remove a marketplace and uninstall its plugins
  whimbrel plugin install PLUGIN [--scope ..]
      install a plugin and enable it; PLUGIN is NAME or NAME@MARKETPLACE
  whimbrel plugin uninstall PLUGIN [--scope ..]
      remove an installed plugin
  whimbrel plugin enable PLUGIN [--scope ..]
  whimbrel plugin disable PLUGIN [--scope ..]
      switch an installed plugin on or off
  whimbrel plugin update PLUGIN
      install what the marketplace offers now
  whimbrel plugin list [--json] [--available]
      list the installed plugins; --available: also those on offer
  whimbrel plugin validate PATH [--json]
      check a plugin or a marketplace

  -s, --scope user        for you, in all directories
              project     for everyone, in .claude/settings.json
              local       for you, in this directory
      The default is user; uninstall, enable and disable find the scope
      themselves.
";

/// A parsed subcommand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PluginCommand {
    Help,
    AddMarketplace { source: String, scope: InstallScope },
    ListMarketplaces(ListFormat),
    UpdateMarketplaces(Option<String>),
    RemoveMarketplace { name: String, scope: Option<InstallScope> },
    Install { plugin: String, scope: InstallScope },
    Uninstall { plugin: String, scope: Option<InstallScope> },
    SetState { plugin: String, state: PluginState, scope: Option<InstallScope> },
    Update(String),
    List { format: ListFormat, with_offers: bool },
    Validate { path: PathBuf, format: ListFormat },
}

/// Subcommands and their usage. The word `marketplace` and its subcommand form one name.
const SUBCOMMANDS: [(&str, &str); 18] = [
    ("install", "install PLUGIN [--scope user|project|local]"),
    ("i", "install PLUGIN [--scope user|project|local]"),
    ("uninstall", "uninstall PLUGIN [--scope user|project|local]"),
    ("remove", "uninstall PLUGIN [--scope user|project|local]"),
    ("rm", "uninstall PLUGIN [--scope user|project|local]"),
    ("enable", "enable PLUGIN [--scope user|project|local]"),
    ("disable", "disable PLUGIN [--scope user|project|local]"),
    ("update", "update PLUGIN"),
    ("list", "list [--json] [--available]"),
    ("ls", "list [--json] [--available]"),
    ("validate", "validate PATH [--json]"),
    ("marketplace add", "marketplace add SOURCE [--scope user|project|local]"),
    ("marketplace list", "marketplace list [--json]"),
    ("marketplace ls", "marketplace list [--json]"),
    ("marketplace remove", "marketplace remove NAME [--scope user|project|local]"),
    ("marketplace rm", "marketplace remove NAME [--scope user|project|local]"),
    ("marketplace update", "marketplace update [NAME]"),
    ("marketplace", "marketplace add|list|remove|update"),
];

/// Similarity from which the name of a command is suggested.
const MIN_SIMILARITY: f64 = 0.75;

const SEE_HELP: &str = "See whimbrel plugin --help.";

/// Parses the arguments. The error is a text for stderr.
pub(super) fn parse(argv: &[String]) -> Result<PluginCommand, String> {
    let mut args = split_args(argv)?;
    if args.take_switch("--help") {
        return Ok(PluginCommand::Help);
    }
    let Some(mut verb) = args.take_first().filter(|verb| verb != "help") else {
        return Ok(PluginCommand::Help);
    };
    if verb == "marketplace"
        && let Some(second) = args.take_first()
    {
        verb = format!("marketplace {second}");
    }
    let Some((_, usage)) = SUBCOMMANDS.iter().find(|(known, _)| *known == verb) else {
        return Err(unknown_subcommand(&verb));
    };
    let command =
        parse_subcommand(&verb, &mut args).and_then(|command| args.ensure_consumed().map(|()| command));
    command.map_err(|error| format!("{error} Usage: whimbrel plugin {usage}"))
}

fn parse_subcommand(verb: &str, args: &mut ArgList) -> Result<PluginCommand, String> {
    let scope = take_scope(args)?;
    let default_scope = scope.unwrap_or(InstallScope::User);
    let mut take_plugin = || args.take_word("The plugin");
    let command = match verb {
        "install" | "i" => PluginCommand::Install { plugin: take_plugin()?, scope: default_scope },
        "uninstall" | "remove" | "rm" => PluginCommand::Uninstall { plugin: take_plugin()?, scope },
        "enable" => PluginCommand::SetState { plugin: take_plugin()?, state: PluginState::Enabled, scope },
        "disable" => PluginCommand::SetState { plugin: take_plugin()?, state: PluginState::Disabled, scope },
        "marketplace add" => {
            PluginCommand::AddMarketplace { source: args.take_word("The source")?, scope: default_scope }
        }
        "marketplace remove" | "marketplace rm" => {
            PluginCommand::RemoveMarketplace { name: args.take_word("The name of the marketplace")?, scope }
        }
        _ if scope.is_some() => return Err("--scope is not expected here.".into()),
        "update" => PluginCommand::Update(take_plugin()?),
        "list" | "ls" => {
            PluginCommand::List { format: args.take_format(), with_offers: args.take_switch("--available") }
        }
        "validate" => PluginCommand::Validate {
            path: args.take_word("The path of the plugin or marketplace")?.into(),
            format: args.take_format(),
        },
        "marketplace list" | "marketplace ls" => PluginCommand::ListMarketplaces(args.take_format()),
        "marketplace update" => PluginCommand::UpdateMarketplaces(args.take_first()),
        _ => return Err("The subcommand is missing.".into()),
    };
    Ok(command)
}

fn take_scope(args: &mut ArgList) -> Result<Option<InstallScope>, String> {
    let scopes = [InstallScope::User, InstallScope::Project, InstallScope::Local];
    let Some(word) = args.take_last_value("--scope") else { return Ok(None) };
    let found = scopes.into_iter().find(|scope| scope.as_str() == word);
    found.map(Some).ok_or_else(|| format!("{word:?} is not a scope. The scopes are user, project and local."))
}

fn unknown_subcommand(verb: &str) -> String {
    let verbs = SUBCOMMANDS.iter().map(|(verb, _)| *verb);
    match most_similar(verb, verbs, MIN_SIMILARITY) {
        Some(known) => {
            format!("whimbrel plugin {verb}: unknown command. Did you mean whimbrel plugin {known}?")
        }
        None => format!("whimbrel plugin {verb}: unknown command. {SEE_HELP}"),
    }
}

fn split_args(argv: &[String]) -> Result<ArgList, String> {
    let mut args = ArgList::default();
    let mut rest = argv.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--" => args.positional.extend(rest.by_ref().cloned()),
            "-s" | "--scope" => {
                let value = rest.next().ok_or_else(|| format!("{argument} needs a value. {SEE_HELP}"))?;
                args.push_flag("--scope", Some(value.clone()));
            }
            "-h" | "--help" => args.push_flag("--help", None),
            "--json" | "--available" => args.push_flag(argument, None),
            other => match other.strip_prefix("--scope=") {
                Some(value) => args.push_flag("--scope", Some(value.to_owned())),
                None if other.starts_with('-') && other.len() > 1 => {
                    return Err(format!("{other:?} is not a flag of whimbrel plugin. {SEE_HELP}"));
                }
                None => args.positional.push(argument.clone()),
            },
        }
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<PluginCommand, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_parse_to_commands() {
        let name = || "fmt@shop".to_owned();
        let rows = [
            ("", PluginCommand::Help),
            ("install --help", PluginCommand::Help),
            ("help", PluginCommand::Help),
            ("install fmt@shop", PluginCommand::Install { plugin: name(), scope: InstallScope::User }),
            ("i -s local fmt@shop", PluginCommand::Install { plugin: name(), scope: InstallScope::Local }),
            (
                "uninstall fmt@shop --scope=project",
                PluginCommand::Uninstall { plugin: name(), scope: Some(InstallScope::Project) },
            ),
            ("rm fmt@shop", PluginCommand::Uninstall { plugin: name(), scope: None }),
            (
                "enable fmt@shop",
                PluginCommand::SetState { plugin: name(), state: PluginState::Enabled, scope: None },
            ),
            (
                "disable fmt@shop -s user",
                PluginCommand::SetState {
                    plugin: name(),
                    state: PluginState::Disabled,
                    scope: Some(InstallScope::User),
                },
            ),
            ("update fmt@shop", PluginCommand::Update(name())),
            ("list --json --available", PluginCommand::List { format: ListFormat::Json, with_offers: true }),
            ("ls", PluginCommand::List { format: ListFormat::Text, with_offers: false }),
            ("validate ./p --json", PluginCommand::Validate { path: "./p".into(), format: ListFormat::Json }),
            (
                "marketplace add a/b",
                PluginCommand::AddMarketplace { source: "a/b".into(), scope: InstallScope::User },
            ),
            ("marketplace list --json", PluginCommand::ListMarketplaces(ListFormat::Json)),
            ("marketplace update", PluginCommand::UpdateMarketplaces(None)),
            ("marketplace update shop", PluginCommand::UpdateMarketplaces(Some("shop".into()))),
            ("marketplace rm shop", PluginCommand::RemoveMarketplace { name: "shop".into(), scope: None }),
        ];
        for (line, expected) in rows {
            assert_eq!(parse_line(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn invalid_arguments_are_named() {
        for (line, words) in [
            ("paint", "plugin paint: unknown command. See"),
            ("instal x", "Did you mean whimbrel plugin install?"),
            ("marketplace ad x", "Did you mean whimbrel plugin marketplace add?"),
            ("marketplace", "The subcommand is missing. Usage: whimbrel plugin marketplace add|list"),
            ("install", "The plugin is missing. Usage: whimbrel plugin install"),
            ("install a b", "\"b\" is not expected here."),
            ("install a --scope team", "user, project and local"),
            ("install a --scope", "needs a value"),
            ("install a --force", "\"--force\" is not a flag"),
            ("list --scope user", "--scope is not expected"),
            ("enable a --json", "\"--json\" is not expected here."),
            ("marketplace remove", "The name of the marketplace is missing."),
        ] {
            let error = parse_line(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }

    #[test]
    fn help_page_fits_80_columns_and_names_every_command() {
        assert!(HELP_PAGE.lines().all(|line| line.chars().count() <= 80));
        for (_, usage) in SUBCOMMANDS.iter().filter(|(verb, _)| *verb != "marketplace") {
            let words: Vec<&str> = usage.split(" [").next().unwrap_or_default().split(' ').collect();
            let command = words.iter().take_while(|word| word.chars().any(char::is_lowercase));
            let command = command.copied().collect::<Vec<_>>().join(" ");
            assert!(HELP_PAGE.contains(&format!("whimbrel plugin {command}")), "{command}");
        }
    }
}
