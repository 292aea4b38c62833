//! What was typed after `whimbrel sessions`. Pure.

use std::path::PathBuf;

/// The page for a person.
pub(super) const PAGE: &str = "\
whimbrel sessions: what was done before.

  whimbrel sessions                     the newest ones
  whimbrel sessions list [--here] [--limit N] [--json]
                                        --here: only those of this folder
  whimbrel sessions show ID [--json]    read one
  whimbrel sessions search \"words\" [--here] [--limit N] [--json]
                                        where something was said
  whimbrel sessions export ID [--format md|json] [--output FILE]
                                        as a document, or as messages for programs
  whimbrel sessions rename ID \"title\"   give it a title
  whimbrel sessions tag ID word         give it a tag; --clear instead of the word takes it away
  whimbrel sessions fork ID [--at MESSAGE] [--title \"words\"]
                                        copy it, up to a message or all of it, and go on with the copy
  whimbrel sessions delete ID.. [--yes] remove it for good; --yes: without asking

An ID may be cut to its first letters (four or more). `last` is the newest session.
";

/// How many sessions a person is shown.
const SHOWN: usize = 20;

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    List(Wish),
    Show { name: String, form: Form },
    Export { name: String, format: Format, file: Option<PathBuf> },
    Search { words: String, wish: Wish },
    Rename { name: String, title: String },
    Tag { name: String, tag: Option<String> },
    Fork { name: String, at: Option<String>, title: Option<String> },
    Delete { names: Vec<String>, unasked: bool },
}

/// Which sessions, and how they are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    /// Only those of this folder.
    pub(super) here: bool,
    /// At most so many; none means all.
    pub(super) limit: Option<usize>,
    /// For whom.
    pub(super) form: Form,
}

/// For whom something is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Person,
    Json,
}

/// What a session is exported as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Markdown,
    Json,
}

/// Everything that was typed, before it is known what it is for.
#[derive(Default)]
struct Typed {
    words: Vec<String>,
    /// Switches and values that were given, and not yet asked for.
    flags: Vec<(String, Option<String>)>,
}

/// Flags that take a value.
const WITH_VALUE: [&str; 5] = ["--limit", "--format", "--output", "--at", "--title"];

/// Reads what was typed. The error is a text for stderr.
pub(super) fn parse(argv: &[String]) -> Result<Command, String> {
    let mut typed = read(argv)?;
    if typed.switch("--help") || typed.switch("-h") {
        return Ok(Command::Help);
    }
    let verb = if typed.words.is_empty() { "list".to_owned() } else { typed.words.remove(0) };
    let command = match verb.as_str() {
        "help" => return Ok(Command::Help),
        "list" | "ls" => Command::List(typed.wish()?),
        "show" => Command::Show { name: typed.word("which session to show")?, form: typed.form() },
        "export" => Command::Export {
            name: typed.word("which session to export")?,
            format: format(typed.value("--format").as_deref())?,
            // As everywhere, a dash is the standard output.
            file: typed
                .value("--output")
                .or_else(|| typed.value("-o"))
                .filter(|file| file != "-")
                .map(PathBuf::from),
        },
        "search" => Command::Search { words: typed.rest("what to look for")?, wish: typed.wish()? },
        "rename" => Command::Rename {
            name: typed.word("which session to rename")?,
            title: typed.rest("the new title")?,
        },
        "tag" => {
            let name = typed.word("which session to tag")?;
            let tag = if typed.switch("--clear") { None } else { Some(typed.rest("the tag, or --clear")?) };
            Command::Tag { name, tag }
        }
        "fork" => Command::Fork {
            name: typed.word("which session to copy")?,
            at: typed.value("--at"),
            title: typed.value("--title"),
        },
        "delete" | "rm" => {
            let names = std::mem::take(&mut typed.words);
            if names.is_empty() {
                return Err(missing("which session to delete"));
            }
            Command::Delete { names, unasked: typed.switch("--yes") || typed.switch("-y") }
        }
        other => return Err(format!("{other:?} is nothing that can be done with sessions. {SEE}")),
    };
    typed.nothing_left(&verb)?;
    Ok(command)
}

const SEE: &str = "See whimbrel sessions --help.";

fn missing(what: &str) -> String {
    format!("It was not said {what}. {SEE}")
}

fn read(argv: &[String]) -> Result<Typed, String> {
    let mut typed = Typed::default();
    let mut rest = argv.iter();
    while let Some(argument) = rest.next() {
        match argument.split_once('=') {
            _ if argument == "--" => typed.words.extend(rest.by_ref().cloned()),
            Some((name, value)) if name.starts_with("--") => {
                typed.flags.push((name.to_owned(), Some(value.to_owned())));
            }
            _ if WITH_VALUE.contains(&argument.as_str()) || argument == "-o" => {
                let value = rest.next().ok_or_else(|| format!("{argument} needs a value. {SEE}"))?;
                typed.flags.push((argument.clone(), Some(value.clone())));
            }
            _ if argument.starts_with('-') && argument.len() > 1 => {
                typed.flags.push((argument.clone(), None));
            }
            _ => typed.words.push(argument.clone()),
        }
    }
    Ok(typed)
}

impl Typed {
    fn switch(&mut self, name: &str) -> bool {
        let before = self.flags.len();
        self.flags.retain(|(given, value)| given != name || value.is_some());
        self.flags.len() < before
    }

    fn value(&mut self, name: &str) -> Option<String> {
        let at = self.flags.iter().rposition(|(given, value)| given == name && value.is_some())?;
        self.flags.remove(at).1
    }

    fn word(&mut self, what: &str) -> Result<String, String> {
        if self.words.is_empty() { Err(missing(what)) } else { Ok(self.words.remove(0)) }
    }

    /// All words that are left, as one text.
    fn rest(&mut self, what: &str) -> Result<String, String> {
        let text = std::mem::take(&mut self.words).join(" ");
        if text.trim().is_empty() { Err(missing(what)) } else { Ok(text) }
    }

    fn form(&mut self) -> Form {
        if self.switch("--json") { Form::Json } else { Form::Person }
    }

    fn wish(&mut self) -> Result<Wish, String> {
        let form = self.form();
        let limit = match self.value("--limit") {
            None if form == Form::Person => Some(SHOWN),
            None => None,
            Some(text) => match text.parse() {
                Ok(0) => None,
                Ok(limit) => Some(limit),
                Err(_) => return Err(format!("--limit takes a number (0 for all), not {text:?}.")),
            },
        };
        Ok(Wish { here: self.switch("--here"), limit, form })
    }

    fn nothing_left(&self, verb: &str) -> Result<(), String> {
        let word = self.words.first().or_else(|| self.flags.first().map(|(name, _)| name));
        match word {
            Some(word) => Err(format!("{word:?} has no meaning for sessions {verb}. {SEE}")),
            None => Ok(()),
        }
    }
}

fn format(given: Option<&str>) -> Result<Format, String> {
    match given {
        None | Some("md" | "markdown") => Ok(Format::Markdown),
        Some("json") => Ok(Format::Json),
        Some(other) => Err(format!("--format is md or json, not {other:?}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_typed_means_one_thing() {
        let wish = |here, limit, form| Wish { here, limit, form };
        let name = || "abcd".to_owned();
        let rows = [
            ("", Command::List(wish(false, Some(SHOWN), Form::Person))),
            ("list --here --limit 5", Command::List(wish(true, Some(5), Form::Person))),
            ("--json", Command::List(wish(false, None, Form::Json))),
            ("ls --limit=0", Command::List(wish(false, None, Form::Person))),
            ("show abcd --json", Command::Show { name: name(), form: Form::Json }),
            ("export abcd", Command::Export { name: name(), format: Format::Markdown, file: None }),
            (
                "export --format json abcd -o x.json",
                Command::Export { name: name(), format: Format::Json, file: Some("x.json".into()) },
            ),
            ("export abcd -o -", Command::Export { name: name(), format: Format::Markdown, file: None }),
            (
                "search two words --limit 3",
                Command::Search { words: "two words".into(), wish: wish(false, Some(3), Form::Person) },
            ),
            (
                "search -- --yes",
                Command::Search { words: "--yes".into(), wish: wish(false, Some(SHOWN), Form::Person) },
            ),
            ("rename abcd a new title", Command::Rename { name: name(), title: "a new title".into() }),
            ("tag abcd work", Command::Tag { name: name(), tag: Some("work".into()) }),
            ("tag abcd --clear", Command::Tag { name: name(), tag: None }),
            ("fork abcd", Command::Fork { name: name(), at: None, title: None }),
            (
                "fork abcd --at m1 --title=Mine",
                Command::Fork { name: name(), at: Some("m1".into()), title: Some("Mine".into()) },
            ),
            ("delete abcd last -y", Command::Delete { names: vec![name(), "last".into()], unasked: true }),
            ("delete --help", Command::Help),
        ];
        for (line, expected) in rows {
            assert_eq!(parsed(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_means_nothing_is_named() {
        for (line, words) in [
            ("paint", "\"paint\""),
            ("show", "which session"),
            ("show abcd efgh", "\"efgh\""),
            ("list --yes", "\"--yes\""),
            ("list --limit many", "\"many\""),
            ("list --limit", "needs a value"),
            ("export abcd --format pdf", "\"pdf\""),
            ("rename abcd", "new title"),
            ("tag abcd", "--clear"),
            ("fork", "which session"),
            ("fork abcd --at", "needs a value"),
            ("delete --yes", "which session"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
