//! Command line of `whimbrel mcp`. Pure.

use serde_json::Value;
use whimbrel_engine::setup::mcp_config_files::ConfigScope;

use super::config_entry::{self, ServerArgs, ServerTransport};
use crate::arg_list::{ArgList, ListFormat};
use crate::official::refuse_subcommand;
use crate::suggest::most_similar;

/// Help page.
pub(super) const HELP_PAGE: &str = "\
whimbrel mcp: MCP servers for sessions, and the built-in tools as a server.

  whimbrel mcp list [--long] [--json]
      connect to the servers of this directory, and list them with their status
      --long: with scope, number of tools and the reason of a failure
  whimbrel mcp get NAME [--long]
      connect to a server, and show its configuration and status
      --long: the entries of all its files, without connecting
  whimbrel mcp test NAME
      connect to a server and list its tools
  whimbrel mcp add NAME URL
  whimbrel mcp add NAME -- COMMAND ARGS..
      add a server with a URL, or a program
      -s, --scope local       for you, in this directory (default)
                  user        for you, in all directories
                  project     for everyone, in .mcp.json
      -e, --env KEY=VALUE     environment variable of the program
      -H, --header 'Name: value'
      -t, --transport stdio|http|sse
      --client-id ID, --callback-port PORT
                              OAuth client, if the server does not register
                              clients itself; its secret is read from
                              MCP_CLIENT_SECRET at login
  whimbrel mcp add-json NAME JSON [--scope ..]
      add a server as an entry of a configuration file
  whimbrel mcp remove NAME [--scope ..]
      remove a server
  whimbrel mcp login NAME
      log in to a server with the browser
  whimbrel mcp logout NAME
      delete the stored credentials
  whimbrel mcp serve [flags]
      serve the built-in tools over stdin and stdout, for this directory.
      Flags as for a session: --permission-mode, --allowedTools,
      --disallowedTools, --tools, --add-dir, --settings, --setting-sources.
      Calls that would need a permission request are denied.
";

/// Subcommands and their usage.
const SUBCOMMANDS: [(&str, &str); 11] = [
    ("list", "list [--long] [--json]"),
    ("ls", "ls [--long] [--json]"),
    ("get", "get NAME [--long]"),
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
    List(ServerListFormat),
    Get { name: String, layout: Layout },
    Test(String),
    Add { name: String, scope: ConfigScope, entry: Value },
    Remove { name: String, scope: Option<ConfigScope> },
    Login(String),
    Logout(String),
}

/// Layout of servers as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// The lines of the official program, which other programs parse.
    Official,
    /// More details, for users.
    Long,
}

/// Format of a list of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerListFormat {
    Text(Layout),
    Json,
}

/// Similarity from which a name of a command or server is suggested.
pub(super) const MIN_SIMILARITY: f64 = 0.75;

const SEE_HELP: &str = "See whimbrel mcp --help.";

/// Flags: spellings, canonical name, and whether they take a value.
const FLAGS: [(&[&str], &str, bool); 9] = [
    (&["-s", "--scope"], "--scope", true),
    (&["-t", "--transport"], "--transport", true),
    (&["-e", "--env"], "--env", true),
    (&["-H", "--header"], "--header", true),
    (&["--client-id"], "--client-id", true),
    (&["--callback-port"], "--callback-port", true),
    (&["--json"], "--json", false),
    (&["-l", "--long"], "--long", false),
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
    let mut args = split_args(rest)?;
    if args.take_switch("--help") {
        return Ok(McpCommand::Help);
    }
    // Whatever is missing or surplus, the error shows the whole usage.
    let command =
        parse_subcommand(verb, &mut args).and_then(|command| args.ensure_consumed().map(|()| command));
    command.map_err(|error| format!("{error} Usage: whimbrel mcp {usage}"))
}

fn parse_subcommand(verb: &str, args: &mut ArgList) -> Result<McpCommand, String> {
    Ok(match verb {
        "list" | "ls" => McpCommand::List(match (args.take_format(), args.take_layout()) {
            (ListFormat::Json, _) => ServerListFormat::Json,
            (ListFormat::Text, layout) => ServerListFormat::Text(layout),
        }),
        "get" => McpCommand::Get { name: args.take_name()?, layout: args.take_layout() },
        "test" => McpCommand::Test(args.take_name()?),
        "login" => McpCommand::Login(args.take_name()?),
        "logout" => McpCommand::Logout(args.take_name()?),
        "add" => {
            let (name, scope) = (args.take_name()?, args.take_scope()?.unwrap_or(ConfigScope::Local));
            let words = ServerArgs {
                transport: args
                    .take_value("--transport")
                    .map(|word| ServerTransport::parse(&word))
                    .transpose()?,
                env: args.take_values("--env"),
                headers: args.take_values("--header"),
                client_id: args.take_value("--client-id"),
                callback_port: args.take_value("--callback-port"),
                target: std::mem::take(&mut args.positional),
            };
            McpCommand::Add { name, scope, entry: config_entry::from_args(words)? }
        }
        "add-json" => {
            let name = args.take_name()?;
            let entry = config_entry::from_json(&args.take_word("The entry, as JSON,")?)?;
            McpCommand::Add { name, scope: args.take_scope()?.unwrap_or(ConfigScope::Local), entry }
        }
        "remove" | "rm" => McpCommand::Remove { name: args.take_name()?, scope: args.take_scope()? },
        other => return Err(unknown_subcommand(other)),
    })
}

/// Error text for an unknown subcommand, with a suggestion.
fn unknown_subcommand(verb: &str) -> String {
    if let Some(text) = refuse_subcommand(&format!("mcp {verb}")) {
        return text;
    }
    let verbs = SUBCOMMANDS.iter().map(|(verb, _)| *verb);
    match most_similar(verb, verbs, MIN_SIMILARITY) {
        Some(known) => {
            format!("whimbrel mcp {verb}: unknown command. Did you mean whimbrel mcp {known}?")
        }
        None => format!("whimbrel mcp {verb}: unknown command. {SEE_HELP}"),
    }
}

fn split_args(argv: &[String]) -> Result<ArgList, String> {
    let mut args = ArgList::default();
    let mut rest = argv.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            args.positional.extend(rest.cloned());
            break;
        }
        let (spelled, given) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (argument.as_str(), None),
        };
        let known = FLAGS.iter().find(|(spellings, ..)| spellings.contains(&spelled));
        match known {
            Some((_, name, true)) => {
                let value = given.or_else(|| rest.next().cloned());
                let value = value.ok_or_else(|| format!("{spelled} needs a value. {SEE_HELP}"))?;
                args.push_flag(*name, Some(value));
            }
            Some((_, name, false)) => args.push_flag(*name, None),
            None if argument.starts_with('-') && argument.len() > 1 => {
                return Err(format!(
                    "{argument:?} is not a flag of whimbrel mcp. If it belongs to the server's command, put -- before \
                        the command."
                ));
            }
            None => args.positional.push(argument.clone()),
        }
    }
    Ok(args)
}

/// Parameters that several subcommands share.
impl ArgList {
    fn take_value(&mut self, name: &str) -> Option<String> {
        self.take_values(name).pop()
    }

    fn take_scope(&mut self) -> Result<Option<ConfigScope>, String> {
        let parse = |word: String| {
            ConfigScope::parse(&word)
                .ok_or_else(|| format!("{word:?} is not a scope. The scopes are local, project and user."))
        };
        self.take_value("--scope").map(parse).transpose()
    }

    fn take_layout(&mut self) -> Layout {
        if self.take_switch("--long") { Layout::Long } else { Layout::Official }
    }

    fn take_name(&mut self) -> Result<String, String> {
        self.take_word("The name of the server")
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
        let remote = |kind: &str| json!({"type": kind, "url": "https://x.test/mcp"});
        let rows = [
            ("", McpCommand::Help),
            ("list", McpCommand::List(ServerListFormat::Text(Layout::Official))),
            ("list --json", McpCommand::List(ServerListFormat::Json)),
            ("ls -l", McpCommand::List(ServerListFormat::Text(Layout::Long))),
            ("get --long a", McpCommand::Get { name: "a".into(), layout: Layout::Long }),
            ("serve --allowedTools Bash", McpCommand::Serve(vec!["--allowedTools".into(), "Bash".into()])),
            ("get a", McpCommand::Get { name: "a".into(), layout: Layout::Official }),
            ("add a prog", add(ConfigScope::Local, json!({"type": "stdio", "command": "prog"}))),
            (
                "add -s user -e K=v=w a -- prog -y x",
                add(
                    ConfigScope::User,
                    json!({"type": "stdio", "command": "prog", "args": ["-y", "x"], "env": {"K": "v=w"}}),
                ),
            ),
            ("add a https://x.test/mcp --scope=project", add(ConfigScope::Project, remote("http"))),
            ("add a -t sse https://x.test/mcp", add(ConfigScope::Local, remote("sse"))),
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
            ("paint", "mcp paint: unknown command. See"),
            ("add-from-claude-desktop", "whimbrel mcp add-json"),
            ("lst", "Did you mean whimbrel mcp list?"),
            ("lgoin x", "Did you mean whimbrel mcp login?"),
            ("get", "The name of the server is missing. Usage: whimbrel mcp get NAME"),
            ("get a b", "\"b\" is not expected here. Usage: whimbrel mcp get NAME"),
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
