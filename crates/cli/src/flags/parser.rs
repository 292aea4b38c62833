//! Parser of the arguments, driven by the flag table.

use std::io;

use super::finalize::finalize;
use super::flag::{Flag, FlagKind};
use super::raw_args::{CliCommand, OutputFormat, RawArgs};
use super::token::{Token, tokenize};
use super::unknown_flags::{UnknownFlag, classify, no_effect_warning};
use super::{ParsedArgs, table};
use crate::caller::Caller;

/// Parses a command line. `read_file` opens the files that flags name. The error is a text for stderr.
pub(crate) fn parse(
    argv: &[String],
    caller: Caller,
    read_file: &dyn Fn(&str) -> io::Result<String>,
) -> Result<ParsedArgs, String> {
    let mut reader = ArgParser { rest: argv, caller, raw: RawArgs::default(), warnings: Vec::new() };
    reader.parse_command()?;
    while let Some(argument) = reader.next() {
        reader.parse_argument(argument)?;
    }
    let ArgParser { raw, mut warnings, .. } = reader;
    let args = finalize(raw, caller, read_file, &mut warnings)?;
    Ok(ParsedArgs { args, warnings })
}

struct ArgParser<'a> {
    rest: &'a [String],
    caller: Caller,
    raw: RawArgs,
    warnings: Vec<String>,
}

impl<'a> ArgParser<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn peek(&self) -> Option<&'a str> {
        self.rest.first().map(String::as_str)
    }

    /// Parses the command, which can only be the first argument.
    fn parse_command(&mut self) -> Result<(), String> {
        self.raw.command = match self.peek() {
            Some("demo") => CliCommand::Demo,
            Some("help") => CliCommand::Help,
            Some("version") => CliCommand::Version,
            Some("permissions") if self.caller == Caller::User => CliCommand::Explain,
            _ => return Ok(()),
        };
        self.next();
        if self.raw.command == CliCommand::Explain && self.next() != Some("explain") {
            return Err("The call is missing. Usage: whimbrel permissions explain 'Bash(git push)'.".into());
        }
        Ok(())
    }

    fn parse_argument(&mut self, argument: &'a str) -> Result<(), String> {
        let explains = self.raw.command == CliCommand::Explain;
        match tokenize(argument) {
            Token::End => {
                self.raw.has_end = true;
                self.raw.positional.extend(std::mem::take(&mut self.rest).iter().cloned());
            }
            Token::Text(text) => self.raw.positional.push(text.to_owned()),
            Token::Flag { spelled: "--json", value: None } if explains => {
                self.raw.output_format = OutputFormat::Json;
            }
            Token::Flag { spelled: "--mode", value } if explains => {
                return self.apply_named("--permission-mode", value);
            }
            Token::Flag { spelled, value } => return self.apply_named(spelled, value),
        }
        Ok(())
    }

    fn apply_named(&mut self, spelled: &str, value: Option<&'a str>) -> Result<(), String> {
        match table::find_flag(spelled) {
            Some(flag) => {
                self.apply_flag(flag, spelled, value)?;
                self.warnings.extend(no_effect_warning(spelled));
                Ok(())
            }
            None => self.handle_unknown(spelled, value),
        }
    }

    fn apply_flag(&mut self, flag: &Flag, spelled: &str, given: Option<&'a str>) -> Result<(), String> {
        let wrong = |reason: String| format!("{spelled}: {reason}.");
        match flag.kind {
            FlagKind::Switch(apply) => match given {
                None => apply(&mut self.raw),
                Some(value) => return Err(wrong(format!("it takes no value, but {value:?} was given"))),
            },
            FlagKind::Value(value, apply) => {
                let given =
                    given.or_else(|| self.take_value()).ok_or_else(|| missing_value(spelled, value))?;
                apply(&mut self.raw, given).map_err(wrong)?;
            }
            FlagKind::Optional { apply, takes_next, .. } => {
                let given =
                    given.or_else(|| self.take_optional(takes_next)).or_else(|| self.take_host_value());
                apply(&mut self.raw, given).map_err(wrong)?;
            }
            FlagKind::List { value, apply, accepts_more: more } => {
                let first =
                    given.or_else(|| self.take_value()).ok_or_else(|| missing_value(spelled, value))?;
                apply(&mut self.raw, first).map_err(wrong)?;
                while let Some(next) = self.peek().filter(|next| more(next)) {
                    apply(&mut self.raw, next).map_err(wrong)?;
                    self.next();
                }
            }
        }
        Ok(())
    }

    /// Takes the next argument, unless it is a known flag.
    fn take_value(&mut self) -> Option<&'a str> {
        let next = self.peek()?;
        match tokenize(next) {
            Token::Flag { spelled, .. } if table::find_flag(spelled).is_some() => None,
            Token::Flag { .. } | Token::Text(_) | Token::End => self.next(),
        }
    }

    /// Takes the next argument if it can only be a value.
    fn take_optional(&mut self, is_value: fn(&str) -> bool) -> Option<&'a str> {
        self.peek().filter(|next| is_value(next))?;
        self.next()
    }

    /// Takes the next argument if the caller is an SDK and it does not look like a flag.
    fn take_host_value(&mut self) -> Option<&'a str> {
        match (self.caller, self.peek()) {
            (Caller::Sdk, Some(next)) if !next.starts_with('-') => self.next(),
            _ => None,
        }
    }

    fn handle_unknown(&mut self, spelled: &str, value: Option<&str>) -> Result<(), String> {
        match classify(spelled, self.caller) {
            UnknownFlag::Reject(text) => return Err(text),
            UnknownFlag::Ignore(warning) => {
                if value.is_none() {
                    self.take_host_value();
                }
                self.warnings.push(warning);
            }
            UnknownFlag::WithoutEffect { takes_value, warning } => {
                if value.is_none() && takes_value {
                    self.take_value();
                }
                self.warnings.push(warning);
            }
        }
        Ok(())
    }
}

fn missing_value(spelled: &str, value: &str) -> String {
    format!("{spelled} needs a value: {spelled} {value}.")
}
