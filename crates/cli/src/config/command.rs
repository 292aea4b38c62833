//! Command line of `whimbrel config`. Pure.

use serde_json::Value;
use whimbrel_wire::options::SettingSource;

use crate::arg_list::{ArgList, ListFormat};

/// Help page.
pub(super) const HELP_PAGE: &str = "\
whimbrel config: settings files.

  whimbrel config list [--scope SCOPE] [--json]
      list the settings that are in force here, or those of one file; values
      of environment variables are not shown
  whimbrel config get KEY [--scope SCOPE]
      print one value; the exit code is 1 if it is not set
  whimbrel config set KEY VALUE [--scope SCOPE]
      set a value in a file; VALUE is JSON, or else a string
  whimbrel config remove KEY [--scope SCOPE]
      remove a value from a file
      -s, --scope user        for you, in all directories (default)
                  project     for everyone, in .claude/settings.json
                  local       for you, in .claude/settings.local.json

A KEY can lead into objects: permissions.defaultMode, env.NAME. The rest of a
file stays as it is written.
";

/// A parsed subcommand.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ConfigCommand {
    Help,
    List { scope: Option<SettingSource>, format: ListFormat },
    Get { key: Key, scope: Option<SettingSource> },
    Set { key: Key, value: NewValue, scope: SettingSource },
    Remove { key: Key, scope: SettingSource },
}

/// Name of a setting: the keys that lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(pub(super) Vec<String>);

impl Key {
    fn parse(text: &str) -> Result<Self, String> {
        let keys: Vec<String> = text.split('.').map(str::to_owned).collect();
        match keys.iter().any(|key| key.trim().is_empty()) {
            true => Err(format!("{text:?} is not a key. Keys are separated by single dots.")),
            false => Ok(Self(keys)),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0.join("."))
    }
}

/// A value as typed: JSON, or else a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewValue(pub(super) String);

impl NewValue {
    /// The values that it can mean, the likelier first.
    pub(super) fn readings(&self) -> Vec<Value> {
        let text = Value::String(self.0.clone());
        match serde_json::from_str::<Value>(&self.0) {
            Ok(value) => vec![value, text],
            Err(_) => vec![text],
        }
    }
}

/// Parses the arguments. The error is a text for stderr.
pub(super) fn parse(argv: &[String]) -> Result<ConfigCommand, String> {
    let with_hint = |error: String| format!("{error} See whimbrel config --help.");
    let mut args = split_args(argv).map_err(with_hint)?;
    if args.take_switch("--help") {
        return Ok(ConfigCommand::Help);
    }
    let command = parse_subcommand(&mut args);
    command.and_then(|command| args.ensure_consumed().map(|()| command)).map_err(with_hint)
}

fn parse_subcommand(args: &mut ArgList) -> Result<ConfigCommand, String> {
    let Some(verb) = args.take_first() else { return Ok(ConfigCommand::Help) };
    let scope = match args.take_last_value("--scope") {
        Some(word) => Some(
            word.parse::<SettingSource>()
                .map_err(|_| format!("{word:?} is not a scope. The scopes are user, project and local."))?,
        ),
        None => None,
    };
    Ok(match verb.as_str() {
        "help" => ConfigCommand::Help,
        "list" | "ls" => ConfigCommand::List { scope, format: args.take_format() },
        "get" => ConfigCommand::Get { key: take_key(args)?, scope },
        "set" => ConfigCommand::Set {
            key: take_key(args)?,
            value: NewValue(args.take_word("The value")?),
            scope: scope.unwrap_or(SettingSource::User),
        },
        "remove" | "rm" | "unset" => {
            ConfigCommand::Remove { key: take_key(args)?, scope: scope.unwrap_or(SettingSource::User) }
        }
        other => return Err(format!("whimbrel config {other}: unknown command.")),
    })
}

fn take_key(args: &mut ArgList) -> Result<Key, String> {
    Key::parse(&args.take_word("The key")?)
}

fn split_args(argv: &[String]) -> Result<ArgList, String> {
    let mut args = ArgList::default();
    let mut rest = argv.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--" => args.positional.extend(rest.by_ref().cloned()),
            "-s" | "--scope" => {
                let value = rest.next().ok_or_else(|| format!("{argument} needs a value."))?;
                args.push_flag("--scope", Some(value.clone()));
            }
            "-g" | "--global" => args.push_flag("--scope", Some("user".to_owned())),
            "-h" | "--help" => args.push_flag("--help", None),
            "--json" => args.push_flag("--json", None),
            other => match other.strip_prefix("--scope=") {
                Some(scope) => args.push_flag("--scope", Some(scope.to_owned())),
                None if other.starts_with("--") => {
                    return Err(format!("{other:?} is not a flag of whimbrel config."));
                }
                // A value may begin with a dash, such as a negative number.
                None => args.positional.push(argument.clone()),
            },
        }
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_line(line: &str) -> Result<ConfigCommand, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn arguments_parse_to_commands() {
        let set = |scope| ConfigCommand::Set { key: key("model"), value: NewValue("opus".into()), scope };
        let rows = [
            ("", ConfigCommand::Help),
            ("set --help", ConfigCommand::Help),
            ("list", ConfigCommand::List { scope: None, format: ListFormat::Text }),
            (
                "list --json --scope local",
                ConfigCommand::List { scope: Some(SettingSource::Local), format: ListFormat::Json },
            ),
            (
                "get permissions.defaultMode",
                ConfigCommand::Get { key: key("permissions.defaultMode"), scope: None },
            ),
            ("set model opus", set(SettingSource::User)),
            ("set -s project model opus", set(SettingSource::Project)),
            ("set model opus --scope=local", set(SettingSource::Local)),
            ("rm model", ConfigCommand::Remove { key: key("model"), scope: SettingSource::User }),
        ];
        for (line, expected) in rows {
            assert_eq!(parse_line(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn invalid_arguments_are_named() {
        for (line, words) in [
            ("paint", "config paint: unknown command. See"),
            ("get", "The key is missing."),
            ("set model", "The value is missing."),
            ("set a..b 1", "\"a..b\" is not a key"),
            ("set model opus 4", "\"4\" is not expected here."),
            ("get model --scope team", "user, project and local"),
            ("get model --scope", "needs a value"),
            ("get model --json", "\"--json\" is not expected here."),
            ("get model --loud", "\"--loud\" is not a flag"),
        ] {
            let error = parse_line(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }

    #[test]
    fn value_is_json_or_else_a_string() {
        let readings = |text: &str| NewValue(text.into()).readings();
        assert_eq!(readings("opus"), [json!("opus")]);
        assert_eq!(readings("30"), [json!(30), json!("30")]);
        assert_eq!(readings("[\"a\"]")[0], json!(["a"]));
    }

    #[test]
    fn help_page_fits_80_columns() {
        assert!(HELP_PAGE.lines().all(|line| line.chars().count() <= 80));
    }
}
