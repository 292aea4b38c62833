//! Command line of `whimbrel sessions`. Pure.

use std::path::PathBuf;

use crate::arg_list::{ArgList, ListFormat};

/// Help page.
pub(super) const HELP_PAGE: &str = "\
whimbrel sessions: stored sessions.

  whimbrel sessions                     the newest ones
  whimbrel sessions list [--here] [--limit N] [--json]
                                        --here: only those of this directory
  whimbrel sessions show ID [--json]    read one
  whimbrel sessions search \"words\" [--here] [--limit N] [--json]
                                        find text in sessions
  whimbrel sessions export ID [--format md|json] [--output FILE]
                                        as a document, or as JSON for programs
  whimbrel sessions rename ID \"title\"   set its title
  whimbrel sessions tag ID word         set its tag; --clear instead of the word removes it
  whimbrel sessions fork ID [--at MESSAGE] [--title \"words\"]
                                        copy it completely or up to a message, to resume the copy
  whimbrel sessions delete ID.. [--yes] delete it; --yes: without asking

An ID may be shortened to its first characters (four or more). `last` is the newest session.
";

/// Default number of listed sessions.
const DEFAULT_LIMIT: usize = 20;

/// A parsed subcommand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionsCommand {
    Help,
    List(ListOptions),
    Show { name: String, format: ListFormat },
    Export { name: String, format: ExportFormat, file: Option<PathBuf> },
    Search { words: String, options: ListOptions },
    Rename { name: String, title: String },
    Tag { name: String, tag: Option<String> },
    Fork { name: String, at: Option<String>, title: Option<String> },
    Delete { names: Vec<String>, confirmed: bool },
}

/// Selection and format of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListOptions {
    /// Only sessions of the current directory.
    pub(super) this_dir_only: bool,
    /// Maximum number of sessions; `None` means all.
    pub(super) limit: Option<usize>,
    pub(super) format: ListFormat,
}

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExportFormat {
    Markdown,
    Json,
}

/// Flags that take a value.
const VALUE_FLAGS: [&str; 5] = ["--limit", "--format", "--output", "--at", "--title"];

/// Parses the arguments. The error is a text for stderr.
pub(super) fn parse(argv: &[String]) -> Result<SessionsCommand, String> {
    parse_subcommand(argv).map_err(|error| format!("{error} See whimbrel sessions --help."))
}

fn parse_subcommand(argv: &[String]) -> Result<SessionsCommand, String> {
    let mut args = split_args(argv)?;
    if args.take_switch("--help") || args.take_switch("-h") {
        return Ok(SessionsCommand::Help);
    }
    let verb = args.take_first().unwrap_or_else(|| "list".to_owned());
    let command = match verb.as_str() {
        "help" => return Ok(SessionsCommand::Help),
        "list" | "ls" => SessionsCommand::List(args.take_list_options()?),
        "show" => {
            SessionsCommand::Show { name: args.take_word("The session to show")?, format: args.take_format() }
        }
        "export" => SessionsCommand::Export {
            name: args.take_word("The session to export")?,
            format: parse_export_format(args.take_last_value("--format").as_deref())?,
            // As usual, a dash means standard output.
            file: args
                .take_last_value("--output")
                .or_else(|| args.take_last_value("-o"))
                .filter(|file| file != "-")
                .map(PathBuf::from),
        },
        "search" => SessionsCommand::Search {
            words: args.take_text("The text to search for")?,
            options: args.take_list_options()?,
        },
        "rename" => SessionsCommand::Rename {
            name: args.take_word("The session to rename")?,
            title: args.take_text("The new title")?,
        },
        "tag" => {
            let name = args.take_word("The session to tag")?;
            let tag = if args.take_switch("--clear") {
                None
            } else {
                Some(args.take_text("The tag (or --clear)")?)
            };
            SessionsCommand::Tag { name, tag }
        }
        "fork" => SessionsCommand::Fork {
            name: args.take_word("The session to copy")?,
            at: args.take_last_value("--at"),
            title: args.take_last_value("--title"),
        },
        "delete" | "rm" => {
            let names = std::mem::take(&mut args.positional);
            if names.is_empty() {
                return Err("The session to delete is missing.".into());
            }
            SessionsCommand::Delete { names, confirmed: args.take_switch("--yes") || args.take_switch("-y") }
        }
        other => return Err(format!("whimbrel sessions {other}: unknown command.")),
    };
    args.ensure_consumed()?;
    Ok(command)
}

fn split_args(argv: &[String]) -> Result<ArgList, String> {
    let mut args = ArgList::default();
    let mut rest = argv.iter();
    while let Some(argument) = rest.next() {
        match argument.split_once('=') {
            _ if argument == "--" => args.positional.extend(rest.by_ref().cloned()),
            Some((name, value)) if name.starts_with("--") => {
                args.push_flag(name, Some(value.to_owned()));
            }
            _ if VALUE_FLAGS.contains(&argument.as_str()) || argument == "-o" => {
                let value = rest.next().ok_or_else(|| format!("{argument} needs a value."))?;
                args.push_flag(argument, Some(value.clone()));
            }
            _ if argument.starts_with('-') && argument.len() > 1 => {
                args.push_flag(argument, None);
            }
            _ => args.positional.push(argument.clone()),
        }
    }
    Ok(args)
}

/// Parameters that several subcommands share.
impl ArgList {
    fn take_list_options(&mut self) -> Result<ListOptions, String> {
        let format = self.take_format();
        let limit = match self.take_last_value("--limit") {
            None if format == ListFormat::Text => Some(DEFAULT_LIMIT),
            None => None,
            Some(text) => match text.parse() {
                Ok(0) => None,
                Ok(limit) => Some(limit),
                Err(_) => return Err(format!("--limit takes a number (0 for all), not {text:?}.")),
            },
        };
        Ok(ListOptions { this_dir_only: self.take_switch("--here"), limit, format })
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
        let options = |here, limit, format| ListOptions { this_dir_only: here, limit, format };
        let name = || "abcd".to_owned();
        let rows = [
            ("", SessionsCommand::List(options(false, Some(DEFAULT_LIMIT), ListFormat::Text))),
            ("list --here --limit 5", SessionsCommand::List(options(true, Some(5), ListFormat::Text))),
            ("--json", SessionsCommand::List(options(false, None, ListFormat::Json))),
            ("ls --limit=0", SessionsCommand::List(options(false, None, ListFormat::Text))),
            ("show abcd --json", SessionsCommand::Show { name: name(), format: ListFormat::Json }),
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
                    options: options(false, Some(3), ListFormat::Text),
                },
            ),
            (
                "search -- --yes",
                SessionsCommand::Search {
                    words: "--yes".into(),
                    options: options(false, Some(DEFAULT_LIMIT), ListFormat::Text),
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
                SessionsCommand::Delete { names: vec![name(), "last".into()], confirmed: true },
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
            ("paint", "sessions paint: unknown command"),
            ("show", "The session"),
            ("show abcd efgh", "\"efgh\""),
            ("list --yes", "\"--yes\""),
            ("list --limit many", "\"many\""),
            ("list --limit", "needs a value"),
            ("export abcd --format pdf", "\"pdf\""),
            ("rename abcd", "new title"),
            ("tag abcd", "--clear"),
            ("fork", "The session"),
            ("fork abcd --at", "needs a value"),
            ("delete --yes", "The session"),
        ] {
            let error = parse_line(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
