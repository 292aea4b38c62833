//! Command line of `whimbrel sessions`. Pure.

use std::path::PathBuf;

/// Help page.
pub(super) const HELP_PAGE: &str = "\
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

/// Default number of listed sessions.
const DEFAULT_LIMIT: usize = 20;

/// A parsed subcommand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionsCommand {
    Help,
    List(ListOptions),
    Show { name: String, form: ListFormat },
    Export { name: String, format: ExportFormat, file: Option<PathBuf> },
    Search { words: String, wish: ListOptions },
    Rename { name: String, title: String },
    Tag { name: String, tag: Option<String> },
    Fork { name: String, at: Option<String>, title: Option<String> },
    Delete { names: Vec<String>, unasked: bool },
}

/// Selection and format of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListOptions {
    /// Only sessions of the current directory.
    pub(super) this_dir_only: bool,
    /// Maximum number of sessions; `None` means all.
    pub(super) limit: Option<usize>,
    pub(super) form: ListFormat,
}

/// Output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListFormat {
    Text,
    Json,
}

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExportFormat {
    Markdown,
    Json,
}

/// Arguments before they are matched to a subcommand.
#[derive(Default)]
struct ArgList {
    positional: Vec<String>,
    /// Flags that were given and are not consumed yet.
    flags: Vec<(String, Option<String>)>,
}

/// Flags that take a value.
const VALUE_FLAGS: [&str; 5] = ["--limit", "--format", "--output", "--at", "--title"];

/// Parses the arguments. The error is a text for stderr.
pub(super) fn parse(argv: &[String]) -> Result<SessionsCommand, String> {
    let mut typed = split_args(argv)?;
    if typed.take_switch("--help") || typed.take_switch("-h") {
        return Ok(SessionsCommand::Help);
    }
    let verb = if typed.positional.is_empty() { "list".to_owned() } else { typed.positional.remove(0) };
    let command = match verb.as_str() {
        "help" => return Ok(SessionsCommand::Help),
        "list" | "ls" => SessionsCommand::List(typed.take_list_options()?),
        "show" => SessionsCommand::Show {
            name: typed.take_word("which session to show")?,
            form: typed.take_format(),
        },
        "export" => SessionsCommand::Export {
            name: typed.take_word("which session to export")?,
            format: parse_export_format(typed.take_value("--format").as_deref())?,
            // As usual, a dash means standard output.
            file: typed
                .take_value("--output")
                .or_else(|| typed.take_value("-o"))
                .filter(|file| file != "-")
                .map(PathBuf::from),
        },
        "search" => SessionsCommand::Search {
            words: typed.take_rest("what to look for")?,
            wish: typed.take_list_options()?,
        },
        "rename" => SessionsCommand::Rename {
            name: typed.take_word("which session to rename")?,
            title: typed.take_rest("the new title")?,
        },
        "tag" => {
            let name = typed.take_word("which session to tag")?;
            let tag = if typed.take_switch("--clear") {
                None
            } else {
                Some(typed.take_rest("the tag, or --clear")?)
            };
            SessionsCommand::Tag { name, tag }
        }
        "fork" => SessionsCommand::Fork {
            name: typed.take_word("which session to copy")?,
            at: typed.take_value("--at"),
            title: typed.take_value("--title"),
        },
        "delete" | "rm" => {
            let names = std::mem::take(&mut typed.positional);
            if names.is_empty() {
                return Err(missing_argument("which session to delete"));
            }
            SessionsCommand::Delete { names, unasked: typed.take_switch("--yes") || typed.take_switch("-y") }
        }
        other => return Err(format!("{other:?} is nothing that can be done with sessions. {SEE_HELP}")),
    };
    typed.ensure_consumed(&verb)?;
    Ok(command)
}

const SEE_HELP: &str = "See whimbrel sessions --help.";

fn missing_argument(what: &str) -> String {
    format!("It was not said {what}. {SEE_HELP}")
}

fn split_args(argv: &[String]) -> Result<ArgList, String> {
    let mut typed = ArgList::default();
    let mut rest = argv.iter();
    while let Some(argument) = rest.next() {
        match argument.split_once('=') {
            _ if argument == "--" => typed.positional.extend(rest.by_ref().cloned()),
            Some((name, value)) if name.starts_with("--") => {
                typed.flags.push((name.to_owned(), Some(value.to_owned())));
            }
            _ if VALUE_FLAGS.contains(&argument.as_str()) || argument == "-o" => {
                let value = rest.next().ok_or_else(|| format!("{argument} needs a value. {SEE_HELP}"))?;
                typed.flags.push((argument.clone(), Some(value.clone())));
            }
            _ if argument.starts_with('-') && argument.len() > 1 => {
                typed.flags.push((argument.clone(), None));
            }
            _ => typed.positional.push(argument.clone()),
        }
    }
    Ok(typed)
}

impl ArgList {
    fn take_switch(&mut self, name: &str) -> bool {
        let before = self.flags.len();
        self.flags.retain(|(given, value)| given != name || value.is_some());
        self.flags.len() < before
    }

    fn take_value(&mut self, name: &str) -> Option<String> {
        let at = self.flags.iter().rposition(|(given, value)| given == name && value.is_some())?;
        self.flags.remove(at).1
    }

    fn take_word(&mut self, what: &str) -> Result<String, String> {
        if self.positional.is_empty() { Err(missing_argument(what)) } else { Ok(self.positional.remove(0)) }
    }

    /// Takes all remaining words as one text.
    fn take_rest(&mut self, what: &str) -> Result<String, String> {
        let text = std::mem::take(&mut self.positional).join(" ");
        if text.trim().is_empty() { Err(missing_argument(what)) } else { Ok(text) }
    }

    fn take_format(&mut self) -> ListFormat {
        if self.take_switch("--json") { ListFormat::Json } else { ListFormat::Text }
    }

    fn take_list_options(&mut self) -> Result<ListOptions, String> {
        let form = self.take_format();
        let limit = match self.take_value("--limit") {
            None if form == ListFormat::Text => Some(DEFAULT_LIMIT),
            None => None,
            Some(text) => match text.parse() {
                Ok(0) => None,
                Ok(limit) => Some(limit),
                Err(_) => return Err(format!("--limit takes a number (0 for all), not {text:?}.")),
            },
        };
        Ok(ListOptions { this_dir_only: self.take_switch("--here"), limit, form })
    }

    fn ensure_consumed(&self, verb: &str) -> Result<(), String> {
        let word = self.positional.first().or_else(|| self.flags.first().map(|(name, _)| name));
        match word {
            Some(word) => Err(format!("{word:?} has no meaning for sessions {verb}. {SEE_HELP}")),
            None => Ok(()),
        }
    }
}

fn parse_export_format(given: Option<&str>) -> Result<ExportFormat, String> {
    match given {
        None | Some("md" | "markdown") => Ok(ExportFormat::Markdown),
        Some("json") => Ok(ExportFormat::Json),
        Some(other) => Err(format!("--format is md or json, not {other:?}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<SessionsCommand, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_parse_to_commands() {
        let wish = |here, limit, form| ListOptions { this_dir_only: here, limit, form };
        let name = || "abcd".to_owned();
        let rows = [
            ("", SessionsCommand::List(wish(false, Some(DEFAULT_LIMIT), ListFormat::Text))),
            ("list --here --limit 5", SessionsCommand::List(wish(true, Some(5), ListFormat::Text))),
            ("--json", SessionsCommand::List(wish(false, None, ListFormat::Json))),
            ("ls --limit=0", SessionsCommand::List(wish(false, None, ListFormat::Text))),
            ("show abcd --json", SessionsCommand::Show { name: name(), form: ListFormat::Json }),
            (
                "export abcd",
                SessionsCommand::Export { name: name(), format: ExportFormat::Markdown, file: None },
            ),
            (
                "export --format json abcd -o x.json",
                SessionsCommand::Export {
                    name: name(),
                    format: ExportFormat::Json,
                    file: Some("x.json".into()),
                },
            ),
            (
                "export abcd -o -",
                SessionsCommand::Export { name: name(), format: ExportFormat::Markdown, file: None },
            ),
            (
                "search two words --limit 3",
                SessionsCommand::Search {
                    words: "two words".into(),
                    wish: wish(false, Some(3), ListFormat::Text),
                },
            ),
            (
                "search -- --yes",
                SessionsCommand::Search {
                    words: "--yes".into(),
                    wish: wish(false, Some(DEFAULT_LIMIT), ListFormat::Text),
                },
            ),
            (
                "rename abcd a new title",
                SessionsCommand::Rename { name: name(), title: "a new title".into() },
            ),
            ("tag abcd work", SessionsCommand::Tag { name: name(), tag: Some("work".into()) }),
            ("tag abcd --clear", SessionsCommand::Tag { name: name(), tag: None }),
            ("fork abcd", SessionsCommand::Fork { name: name(), at: None, title: None }),
            (
                "fork abcd --at m1 --title=Mine",
                SessionsCommand::Fork { name: name(), at: Some("m1".into()), title: Some("Mine".into()) },
            ),
            (
                "delete abcd last -y",
                SessionsCommand::Delete { names: vec![name(), "last".into()], unasked: true },
            ),
            ("delete --help", SessionsCommand::Help),
        ];
        for (line, expected) in rows {
            assert_eq!(parse_line(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn invalid_arguments_are_named() {
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
            let error = parse_line(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
