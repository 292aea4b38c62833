//! What was typed after `whimbrel mcp`. Pure.

use serde_json::Value;
use whimbrel_engine::mcp::Scope;

use super::entry::{self, Transport, Words};

/// The page for a person.
pub(super) const PAGE: &str = "\
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

/// What can be done, and how it is written.
const VERBS: [(&str, &str); 11] = [
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

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    Help,
    Serve(Vec<String>),
    List(Form),
    Get(String),
    Test(String),
    Add { name: String, scope: Scope, entry: Value },
    Remove { name: String, scope: Option<Scope> },
    Login(String),
    Logout(String),
}

/// For whom something is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Person,
    Json,
}

const SEE: &str = "See whimbrel mcp --help.";

/// Everything that was typed, before it is known what it is for.
#[derive(Default)]
struct Typed {
    words: Vec<String>,
    /// What stands behind `--`.
    behind: Option<Vec<String>>,
    flags: Vec<(&'static str, Option<String>)>,
}

/// The flags: how they are spelt, what they are called here, and whether they take a value.
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

/// Reads what was typed. The error is a text for stderr.
pub(super) fn parse(argv: &[String]) -> Result<Command, String> {
    let Some((verb, rest)) = argv.split_first() else { return Ok(Command::Help) };
    if verb == "serve" {
        return Ok(Command::Serve(rest.to_vec()));
    }
    if matches!(verb.as_str(), "help" | "-h" | "--help") {
        return Ok(Command::Help);
    }
    let Some((_, usage)) = VERBS.iter().find(|(known, _)| known == verb) else { return Err(unknown(verb)) };
    let mut typed = read(rest)?;
    if typed.switch("--help") {
        return Ok(Command::Help);
    }
    // Whatever is missing or too much, the whole line is shown.
    let command = meant(verb, &mut typed).and_then(|command| typed.nothing_left().map(|()| command));
    command.map_err(|problem| format!("{problem} Write: whimbrel mcp {usage}"))
}

fn meant(verb: &str, typed: &mut Typed) -> Result<Command, String> {
    Ok(match verb {
        "list" | "ls" => Command::List(if typed.switch("--json") { Form::Json } else { Form::Person }),
        "get" => Command::Get(typed.name()?),
        "test" => Command::Test(typed.name()?),
        "login" => Command::Login(typed.name()?),
        "logout" => Command::Logout(typed.name()?),
        "add" => {
            let (name, scope) = (typed.name()?, typed.scope()?.unwrap_or(Scope::Local));
            let words = Words {
                transport: typed.value("--transport").map(|word| Transport::parse(&word)).transpose()?,
                env: typed.values("--env"),
                headers: typed.values("--header"),
                client_id: typed.value("--client-id"),
                callback_port: typed.value("--callback-port"),
                words: typed.rest(),
            };
            Command::Add { name, scope, entry: entry::of_words(words)? }
        }
        "add-json" => {
            let name = typed.name()?;
            let entry = entry::of_json(&typed.word("the entry, as JSON,")?)?;
            Command::Add { name, scope: typed.scope()?.unwrap_or(Scope::Local), entry }
        }
        "remove" | "rm" => Command::Remove { name: typed.name()?, scope: typed.scope()? },
        other => return Err(unknown(other)),
    })
}

/// Says so, with what was perhaps meant.
fn unknown(verb: &str) -> String {
    let verbs = VERBS.iter().map(|(verb, _)| *verb);
    match nearest(verb, verbs) {
        Some(verb_meant) => {
            format!("whimbrel mcp {verb}: there is no such command. Did you mean whimbrel mcp {verb_meant}?")
        }
        None => format!("whimbrel mcp {verb}: there is no such command. {SEE}"),
    }
}

/// The name that is most like a given one, if any is.
pub(super) fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = names.map(|name| (strsim::jaro_winkler(given, name), name));
    let best = likeness.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(likeness, _)| *likeness > 0.75).map(|(_, name)| name)
}

fn read(argv: &[String]) -> Result<Typed, String> {
    let mut typed = Typed::default();
    let mut rest = argv.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            typed.behind = Some(rest.by_ref().cloned().collect());
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
                let value = value.ok_or_else(|| format!("{spelt} needs a value. {SEE}"))?;
                typed.flags.push((*name, Some(value)));
            }
            Some((_, name, false)) => typed.flags.push((*name, None)),
            None if argument.starts_with('-') && argument.len() > 1 => {
                return Err(format!(
                    "{argument:?} is no flag of whimbrel mcp. If it belongs to the server's command, put -- before the command."
                ));
            }
            None => typed.words.push(argument.clone()),
        }
    }
    Ok(typed)
}

impl Typed {
    fn switch(&mut self, name: &str) -> bool {
        let before = self.flags.len();
        self.flags.retain(|(given, _)| *given != name);
        self.flags.len() < before
    }

    fn values(&mut self, name: &str) -> Vec<String> {
        self.flags.extract_if(.., |(given, _)| *given == name).filter_map(|(_, value)| value).collect()
    }

    fn value(&mut self, name: &str) -> Option<String> {
        self.values(name).pop()
    }

    fn scope(&mut self) -> Result<Option<Scope>, String> {
        let read = |word: String| {
            Scope::parse(&word)
                .ok_or_else(|| format!("{word:?} is no scope. The scopes are local, project and user."))
        };
        self.value("--scope").map(read).transpose()
    }

    fn name(&mut self) -> Result<String, String> {
        self.word("the name of the server")
    }

    fn word(&mut self, what: &str) -> Result<String, String> {
        if !self.words.is_empty() {
            return Ok(self.words.remove(0));
        }
        let behind = self.behind.as_mut().filter(|behind| !behind.is_empty());
        behind.map(|behind| behind.remove(0)).ok_or_else(|| {
            let mut text = format!("{what} is missing.");
            text[..1].make_ascii_uppercase();
            text
        })
    }

    /// All words that are left.
    fn rest(&mut self) -> Vec<String> {
        let mut words = std::mem::take(&mut self.words);
        words.extend(self.behind.take().unwrap_or_default());
        words
    }

    fn nothing_left(&mut self) -> Result<(), String> {
        let flag = self.flags.first().map(|(name, _)| (*name).to_owned());
        match self.rest().into_iter().next().or(flag) {
            Some(word) => Err(format!("{word:?} has no meaning here.")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_typed_means_one_thing() {
        let add = |scope, entry| Command::Add { name: "a".into(), scope, entry };
        let at = |kind: &str| json!({"type": kind, "url": "https://x.test/mcp"});
        let rows = [
            ("", Command::Help),
            ("list --json", Command::List(Form::Json)),
            ("serve --allowedTools Bash", Command::Serve(vec!["--allowedTools".into(), "Bash".into()])),
            ("get a", Command::Get("a".into())),
            ("add a prog", add(Scope::Local, json!({"type": "stdio", "command": "prog"}))),
            (
                "add -s user -e K=v=w a -- prog -y x",
                add(
                    Scope::User,
                    json!({"type": "stdio", "command": "prog", "args": ["-y", "x"], "env": {"K": "v=w"}}),
                ),
            ),
            ("add a https://x.test/mcp --scope=project", add(Scope::Project, at("http"))),
            ("add a -t sse https://x.test/mcp", add(Scope::Local, at("sse"))),
            (r#"add-json a {"command":"p"}"#, add(Scope::Local, json!({"command": "p"}))),
            ("login a", Command::Login("a".into())),
            ("logout a", Command::Logout("a".into())),
            (
                "add a https://x.test/mcp --client-id c --callback-port 80",
                add(
                    Scope::Local,
                    json!({"type": "http", "url": "https://x.test/mcp", "oauth": {"clientId": "c", "callbackPort": 80}}),
                ),
            ),
            ("rm a -s local", Command::Remove { name: "a".into(), scope: Some(Scope::Local) }),
            ("add --help", Command::Help),
        ];
        for (line, expected) in rows {
            assert_eq!(parsed(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn the_page_fits_a_small_terminal_and_names_every_command() {
        assert!(PAGE.lines().all(|line| line.chars().count() <= 80));
        let named = |verb: &str| PAGE.contains(&format!("whimbrel mcp {verb}"));
        assert!(VERBS.iter().all(|(verb, _)| matches!(*verb, "ls" | "rm") || named(verb)));
    }

    #[test]
    fn what_means_nothing_is_named() {
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
            let error = parsed(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
