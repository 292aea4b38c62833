//! Command line of `whimbrel mcp`. Pure.

use serde_json::Value;
use whimbrel_engine::mcp::ConfigScope;

use super::config_entry::{self, ServerArgs, Transport};

/// Help page.
pub(super) const HELP_PAGE: &str = "\
whimbrel mcp: MCP servers for sessions, and our own tools as one.

  whimbrel mcp list [--json]
      the servers of this folder, and whether they answer
  whimbrel mcp get NAME
      how one is configured, and where
  whimbrel mcp test NAME
      connect to one and list its tools
  whimbrel mcp add NAME URL
  whimbrel mcp add NAME -- COMMAND ARGS..
      add one at an address, or a program
      -s, --scope local       for you, in this folder; this is the default
                  user        for you, everywhere
                  project     for everybody, in .mcp.json
      -e, --env KEY=VALUE     a variable of the program
      -H, --header 'Name: value'
      -t, --transport stdio|http|sse
      --client-id ID, --callback-port PORT
                              for one that takes nobody in unasked; its secret
                              is read from MCP_CLIENT_SECRET when you log in
  whimbrel mcp add-json NAME JSON [--scope ..]
      the same with an entry as it stands in a file
  whimbrel mcp remove NAME [--scope ..]
      take one away
  whimbrel mcp login NAME
      log in, with a browser, to one that asks for it
  whimbrel mcp logout NAME
      forget that login
  whimbrel mcp serve [flags]
      our tools as an MCP server over stdin and stdout, for this folder.
      Flags as for a session: --permission-mode, --allowedTools,
      --disallowedTools, --tools, --add-dir, --settings, --setting-sources.
      What would be asked is refused.
";

/// Subcommands and their usage.
const SUBCOMMANDS: [(&str, &str); 11] = [
    ("list", "list [--json]"),
    ("ls", "ls [--json]"),
    ("get", "get NAME"),
    ("test", "test NAME"),
    ("add", "add NAME (URL | -- COMMAND ARGS..)"),
    ("add-json", "add-json NAME JSON"),
    ("remove", "remove NAME"),
    ("rm", "rm NAME"),
    ("login", "login NAME"),
    ("logout", "logout NAME"),
    ("serve", "serve [flags]"),
];

/// A parsed subcommand.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum McpCommand {
    Help,
    Serve(Vec<String>),
    List(McpListFormat),
    Get(String),
    Test(String),
    Add { name: String, scope: ConfigScope, entry: Value },
    Remove { name: String, scope: Option<ConfigScope> },
    Login(String),
    Logout(String),
}

/// Output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum McpListFormat {
    Text,
    Json,
}

const SEE_HELP: &str = "See whimbrel mcp --help.";

/// Arguments before they are matched to a subcommand.
#[derive(Default)]
struct ArgList {
    positional: Vec<String>,
    /// Arguments after `--`.
    after_separator: Option<Vec<String>>,
    flags: Vec<(&'static str, Option<String>)>,
}

/// Flags: spellings, canonical name, and whether they take a value.
const FLAGS: [(&[&str], &str, bool); 8] = [
    (&["-s", "--scope"], "--scope", true),
    (&["-t", "--transport"], "--transport", true),
    (&["-e", "--env"], "--env", true),
    (&["-H", "--header"], "--header", true),
    (&["--client-id"], "--client-id", true),
    (&["--callback-port"], "--callback-port", true),
    (&["--json"], "--json", false),
    (&["-h", "--help"], "--help", false),
];

/// Parses the arguments. The error is a text for stderr.
pub(super) fn parse(argv: &[String]) -> Result<McpCommand, String> {
    let Some((verb, rest)) = argv.split_first() else { return Ok(McpCommand::Help) };
    if verb == "serve" {
        return Ok(McpCommand::Serve(rest.to_vec()));
    }
    if matches!(verb.as_str(), "help" | "-h" | "--help") {
        return Ok(McpCommand::Help);
    }
    let Some((_, usage)) = SUBCOMMANDS.iter().find(|(known, _)| known == verb) else {
        return Err(unknown_subcommand(verb));
    };
    let mut typed = split_args(rest)?;
    if typed.take_switch("--help") {
        return Ok(McpCommand::Help);
    }
    // Whatever is missing or surplus, the error shows the whole usage.
    let command =
        parse_subcommand(verb, &mut typed).and_then(|command| typed.ensure_consumed().map(|()| command));
    command.map_err(|problem| format!("{problem} Write: whimbrel mcp {usage}"))
}

fn parse_subcommand(verb: &str, typed: &mut ArgList) -> Result<McpCommand, String> {
    Ok(match verb {
        "list" | "ls" => McpCommand::List(if typed.take_switch("--json") {
            McpListFormat::Json
        } else {
            McpListFormat::Text
        }),
        "get" => McpCommand::Get(typed.take_name()?),
        "test" => McpCommand::Test(typed.take_name()?),
        "login" => McpCommand::Login(typed.take_name()?),
        "logout" => McpCommand::Logout(typed.take_name()?),
        "add" => {
            let (name, scope) = (typed.take_name()?, typed.take_scope()?.unwrap_or(ConfigScope::Local));
            let words = ServerArgs {
                transport: typed.take_value("--transport").map(|word| Transport::parse(&word)).transpose()?,
                env: typed.take_values("--env"),
                headers: typed.take_values("--header"),
                client_id: typed.take_value("--client-id"),
                callback_port: typed.take_value("--callback-port"),
                target: typed.take_rest(),
            };
            McpCommand::Add { name, scope, entry: config_entry::from_args(words)? }
        }
        "add-json" => {
            let name = typed.take_name()?;
            let entry = config_entry::from_json(&typed.take_word("the entry, as JSON,")?)?;
            McpCommand::Add { name, scope: typed.take_scope()?.unwrap_or(ConfigScope::Local), entry }
        }
        "remove" | "rm" => McpCommand::Remove { name: typed.take_name()?, scope: typed.take_scope()? },
        other => return Err(unknown_subcommand(other)),
    })
}

/// Error text for an unknown subcommand, with a suggestion.
fn unknown_subcommand(verb: &str) -> String {
    let verbs = SUBCOMMANDS.iter().map(|(verb, _)| *verb);
    match suggest(verb, verbs) {
        Some(verb_meant) => {
            format!("whimbrel mcp {verb}: there is no such command. Did you mean whimbrel mcp {verb_meant}?")
        }
        None => format!("whimbrel mcp {verb}: there is no such command. {SEE_HELP}"),
    }
}

/// Finds the most similar name, if there is one.
pub(super) fn suggest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = names.map(|name| (strsim::jaro_winkler(given, name), name));
    let best = likeness.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(likeness, _)| *likeness > 0.75).map(|(_, name)| name)
}

fn split_args(argv: &[String]) -> Result<ArgList, String> {
    let mut typed = ArgList::default();
    let mut rest = argv.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            typed.after_separator = Some(rest.by_ref().cloned().collect());
            break;
        }
        let (spelt, given) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (argument.as_str(), None),
        };
        let known = FLAGS.iter().find(|(spellings, ..)| spellings.contains(&spelt));
        match known {
            Some((_, name, true)) => {
                let value = given.or_else(|| rest.next().cloned());
                let value = value.ok_or_else(|| format!("{spelt} needs a value. {SEE_HELP}"))?;
                typed.flags.push((*name, Some(value)));
            }
            Some((_, name, false)) => typed.flags.push((*name, None)),
            None if argument.starts_with('-') && argument.len() > 1 => {
                return Err(format!(
                    "{argument:?} is no flag of whimbrel mcp. If it belongs to the server's command, put -- before the command."
                ));
            }
            None => typed.positional.push(argument.clone()),
        }
    }
    Ok(typed)
}

impl ArgList {
    fn take_switch(&mut self, name: &str) -> bool {
        let before = self.flags.len();
        self.flags.retain(|(given, _)| *given != name);
        self.flags.len() < before
    }

    fn take_values(&mut self, name: &str) -> Vec<String> {
        self.flags.extract_if(.., |(given, _)| *given == name).filter_map(|(_, value)| value).collect()
    }

    fn take_value(&mut self, name: &str) -> Option<String> {
        self.take_values(name).pop()
    }

    fn take_scope(&mut self) -> Result<Option<ConfigScope>, String> {
        let read = |word: String| {
            ConfigScope::parse(&word)
                .ok_or_else(|| format!("{word:?} is no scope. The scopes are local, project and user."))
        };
        self.take_value("--scope").map(read).transpose()
    }

    fn take_name(&mut self) -> Result<String, String> {
        self.take_word("the name of the server")
    }

    fn take_word(&mut self, what: &str) -> Result<String, String> {
        if !self.positional.is_empty() {
            return Ok(self.positional.remove(0));
        }
        let behind = self.after_separator.as_mut().filter(|behind| !behind.is_empty());
        behind.map(|behind| behind.remove(0)).ok_or_else(|| {
            let mut text = format!("{what} is missing.");
            text[..1].make_ascii_uppercase();
            text
        })
    }

    /// Takes all remaining words.
    fn take_rest(&mut self) -> Vec<String> {
        let mut words = std::mem::take(&mut self.positional);
        words.extend(self.after_separator.take().unwrap_or_default());
        words
    }

    fn ensure_consumed(&mut self) -> Result<(), String> {
        let flag = self.flags.first().map(|(name, _)| (*name).to_owned());
        match self.take_rest().into_iter().next().or(flag) {
            Some(word) => Err(format!("{word:?} has no meaning here.")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_line(line: &str) -> Result<McpCommand, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_parse_to_commands() {
        let add = |scope, entry| McpCommand::Add { name: "a".into(), scope, entry };
        let at = |kind: &str| json!({"type": kind, "url": "https://x.test/mcp"});
        let rows = [
            ("", McpCommand::Help),
            ("list --json", McpCommand::List(McpListFormat::Json)),
            ("serve --allowedTools Bash", McpCommand::Serve(vec!["--allowedTools".into(), "Bash".into()])),
            ("get a", McpCommand::Get("a".into())),
            ("add a prog", add(ConfigScope::Local, json!({"type": "stdio", "command": "prog"}))),
            (
                "add -s user -e K=v=w a -- prog -y x",
                add(
                    ConfigScope::User,
                    json!({"type": "stdio", "command": "prog", "args": ["-y", "x"], "env": {"K": "v=w"}}),
                ),
            ),
            ("add a https://x.test/mcp --scope=project", add(ConfigScope::Project, at("http"))),
            ("add a -t sse https://x.test/mcp", add(ConfigScope::Local, at("sse"))),
            (r#"add-json a {"command":"p"}"#, add(ConfigScope::Local, json!({"command": "p"}))),
            ("login a", McpCommand::Login("a".into())),
            ("logout a", McpCommand::Logout("a".into())),
            (
                "add a https://x.test/mcp --client-id c --callback-port 80",
                add(
                    ConfigScope::Local,
                    json!({"type": "http", "url": "https://x.test/mcp", "oauth": {"clientId": "c", "callbackPort": 80}}),
                ),
            ),
            ("rm a -s local", McpCommand::Remove { name: "a".into(), scope: Some(ConfigScope::Local) }),
            ("add --help", McpCommand::Help),
        ];
        for (line, expected) in rows {
            assert_eq!(parse_line(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn help_page_fits_80_columns_and_names_every_command() {
        assert!(HELP_PAGE.lines().all(|line| line.chars().count() <= 80));
        let named = |verb: &str| HELP_PAGE.contains(&format!("whimbrel mcp {verb}"));
        assert!(SUBCOMMANDS.iter().all(|(verb, _)| matches!(*verb, "ls" | "rm") || named(verb)));
    }

    #[test]
    fn invalid_arguments_are_named() {
        for (line, words) in [
            ("paint", "mcp paint: there is no such command. See"),
            ("lst", "Did you mean whimbrel mcp list?"),
            ("lgoin x", "Did you mean whimbrel mcp login?"),
            ("get", "The name of the server is missing. Write: whimbrel mcp get NAME"),
            ("get a b", "\"b\" has no meaning here. Write: whimbrel mcp get NAME"),
            ("add-json a", "The entry, as JSON, is missing."),
            ("add a https://x.test --callback-port many", "--callback-port takes"),
            ("add a --client-id c -- prog", "OAuth"),
            ("list --scope user", "--scope"),
            ("add a npx -y x", "put -- before"),
            ("add a", "URL"),
            ("add a --scope team x", "local, project and user"),
            ("add a -t pigeon x", "stdio, http and sse"),
            ("add a -e K x", "KEY=VALUE"),
            ("add a -H x:y prog", "HTTP headers"),
            ("add a -e K=v https://x.test", "environment"),
            ("add-json a [1]", "object"),
            ("remove a --scope", "needs a value"),
        ] {
            let error = parse_line(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
