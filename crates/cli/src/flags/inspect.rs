//! Arguments of the subcommands that look at a session without running it: `--json`, and flags of a session.

use std::io;

use whimbrel_wire::options::Options;

use super::{CliCommand, ParsedArgs, parse};
use crate::arg_list::ListFormat;
use crate::caller::Caller;

/// What to look at, and how to print it.
#[derive(Debug)]
pub(crate) struct InspectArgs {
    pub(crate) options: Options,
    pub(crate) format: ListFormat,
    /// Warnings for stderr.
    pub(crate) warnings: Vec<String>,
}

/// Parses the arguments of `whimbrel NAME`. None means that the help page is wanted.
pub(crate) fn parse_inspect_args(
    name: &str,
    argv: &[String],
    read_file: &dyn Fn(&str) -> io::Result<String>,
) -> Result<Option<InspectArgs>, String> {
    let flags: Vec<String> = argv.iter().filter(|argument| *argument != "--json").cloned().collect();
    let format = if flags.len() < argv.len() { ListFormat::Json } else { ListFormat::Text };
    let ParsedArgs { args, warnings } = parse(&flags, Caller::User, read_file)?;
    let unexpected = |text: &str| format!("{text} is not expected here. See whimbrel {name} --help.");
    match (args.command, args.prompt) {
        (CliCommand::Help, _) => Ok(None),
        (CliCommand::Run, None) => {
            let options = Options { persist_session: Some(false), ..args.options };
            Ok(Some(InspectArgs { options, format, warnings }))
        }
        (CliCommand::Run, Some(prompt)) => Err(unexpected(&format!("{prompt:?}"))),
        (CliCommand::Demo | CliCommand::Explain | CliCommand::Version, _) => {
            Err(unexpected(argv.first().map_or("It", String::as_str)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Option<InspectArgs>, String> {
        let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse_inspect_args("doctor", &argv, &|_| Err(io::ErrorKind::NotFound.into()))
    }

    #[test]
    fn flags_of_a_session_and_json_are_taken() {
        let args = parse_line("--model opus --json").unwrap().unwrap();
        assert_eq!((args.options.model.as_deref(), args.format), (Some("opus"), ListFormat::Json));
        assert_eq!(parse_line("").unwrap().unwrap().format, ListFormat::Text);
        assert!(parse_line("--help").unwrap().is_none());
        for line in ["surplus", "demo", "--no-such-flag"] {
            let error = parse_line(line).unwrap_err();
            assert!(error.contains(line), "{error}");
        }
    }
}
