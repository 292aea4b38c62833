//! Reads the arguments, one after the other, by the flag table.

use std::io;

use super::flag::{Flag, Kind};
use super::settle::settle;
use super::stranger::{Stranger, judge};
use super::token::{Token, token};
use super::typed::{Command, OutputFormat, Typed};
use super::{Caller, Parsed, table};

/// Reads a command line. `read_file` opens the files that flags name. The error is a text for stderr.
pub(crate) fn parse(
    argv: &[String],
    caller: Caller,
    read_file: &dyn Fn(&str) -> io::Result<String>,
) -> Result<Parsed, String> {
    let mut reader = Reader { rest: argv, caller, typed: Typed::default(), warnings: Vec::new() };
    reader.command()?;
    while let Some(argument) = reader.next() {
        reader.argument(argument)?;
    }
    let Reader { typed, mut warnings, .. } = reader;
    let args = settle(typed, caller, read_file, &mut warnings)?;
    Ok(Parsed { args, warnings })
}

struct Reader<'a> {
    rest: &'a [String],
    caller: Caller,
    typed: Typed,
    warnings: Vec<String>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn peek(&self) -> Option<&'a str> {
        self.rest.first().map(String::as_str)
    }

    /// A command is the first argument or none.
    fn command(&mut self) -> Result<(), String> {
        self.typed.command = match self.peek() {
            Some("demo") => Command::Demo,
            Some("help") => Command::Help,
            Some("version") => Command::Version,
            Some("permissions") if self.caller == Caller::Person => Command::Explain,
            _ => return Ok(()),
        };
        self.next();
        if self.typed.command == Command::Explain && self.next() != Some("explain") {
            return Err("Say what to explain: whimbrel permissions explain 'Bash(git push)'.".into());
        }
        Ok(())
    }

    fn argument(&mut self, argument: &'a str) -> Result<(), String> {
        let explains = self.typed.command == Command::Explain;
        match token(argument) {
            Token::End => self.typed.texts.extend(std::mem::take(&mut self.rest).iter().cloned()),
            Token::Text(text) => self.typed.texts.push(text.to_owned()),
            Token::Flag { spelled: "--json", value: None } if explains => {
                self.typed.output_format = OutputFormat::Json;
            }
            Token::Flag { spelled: "--mode", value } if explains => {
                return self.named("--permission-mode", value);
            }
            Token::Flag { spelled, value } => return self.named(spelled, value),
        }
        Ok(())
    }

    fn named(&mut self, spelled: &str, value: Option<&'a str>) -> Result<(), String> {
        match table::find(spelled) {
            Some(flag) => self.flag(flag, spelled, value),
            None => self.stranger(spelled, value),
        }
    }

    fn flag(&mut self, flag: &Flag, spelled: &str, given: Option<&'a str>) -> Result<(), String> {
        let wrong = |reason: String| format!("{spelled}: {reason}.");
        match flag.kind {
            Kind::Switch(apply) => match given {
                None => apply(&mut self.typed),
                Some(value) => return Err(wrong(format!("it takes no value, but {value:?} was given"))),
            },
            Kind::Value(value, apply) => {
                let given = given.or_else(|| self.value()).ok_or_else(|| missing(spelled, value))?;
                apply(&mut self.typed, given).map_err(wrong)?;
            }
            Kind::Optional(_, apply) => {
                let given = given.or_else(|| self.value_of_a_host());
                apply(&mut self.typed, given).map_err(wrong)?;
            }
            Kind::List { value, apply, more } => {
                let first = given.or_else(|| self.value()).ok_or_else(|| missing(spelled, value))?;
                apply(&mut self.typed, first).map_err(wrong)?;
                while let Some(next) = self.peek().filter(|next| more(next)) {
                    apply(&mut self.typed, next).map_err(wrong)?;
                    self.next();
                }
            }
        }
        Ok(())
    }

    /// The next argument, unless it is a flag that we know.
    fn value(&mut self) -> Option<&'a str> {
        let next = self.peek()?;
        match token(next) {
            Token::Flag { spelled, .. } if table::find(spelled).is_some() => None,
            Token::Flag { .. } | Token::Text(_) | Token::End => self.next(),
        }
    }

    /// The next argument, if an SDK host gave it and it does not look like a flag.
    fn value_of_a_host(&mut self) -> Option<&'a str> {
        match (self.caller, self.peek()) {
            (Caller::Sdk, Some(next)) if !next.starts_with('-') => self.next(),
            _ => None,
        }
    }

    fn stranger(&mut self, spelled: &str, value: Option<&str>) -> Result<(), String> {
        match judge(spelled, self.caller) {
            Stranger::Refuse(text) => Err(text),
            Stranger::Skip(warning) => {
                if value.is_none() {
                    self.value_of_a_host();
                }
                self.warnings.push(warning);
                Ok(())
            }
        }
    }
}

fn missing(spelled: &str, value: &str) -> String {
    format!("{spelled} needs a value: {spelled} {value}.")
}
