//! `whimbrel completions`: completions of the command line for bash, zsh and fish, made from the flag table and the list
//! of subcommands. Pure, except for the printing.
//!
//! Modules: [`bash`], [`zsh`] and [`fish`], the scripts.

mod bash;
mod fish;
mod zsh;

use whimbrel_engine::builtin_tools;

use crate::flags::{FlagDescription, describe_flags};
use crate::stdio::{self, report_error};
use crate::subcommands::{SUBCOMMANDS, Subcommand};

const HELP_PAGE: &str = "\
whimbrel completions: completions of flags, values and subcommands.

  whimbrel completions bash
  whimbrel completions zsh
  whimbrel completions fish
      print the script for a shell; packages contain the three scripts
";

/// Help page of `whimbrel completions`.
pub(crate) fn help_page() -> &'static str {
    HELP_PAGE
}

/// Prints the script for a shell and returns the exit code.
pub(crate) fn main(argv: &[String]) -> i32 {
    match render(argv).map(|text| stdio::print(&text)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => report_error(&format!("Cannot write the output: {error}.")),
        Err(text) => report_error(&text),
    }
}

fn render(argv: &[String]) -> Result<String, String> {
    let arguments: Vec<&str> = argv.iter().map(String::as_str).collect();
    let line = CommandLine::new();
    match arguments[..] {
        [] | ["help" | "-h" | "--help"] => Ok(HELP_PAGE.into()),
        ["bash"] => Ok(bash::render(&line)),
        ["zsh"] => Ok(zsh::render(&line)),
        ["fish"] => Ok(fish::render(&line)),
        [shell] => Err(format!("There are no completions for {shell:?}. The shells are bash, zsh and fish.")),
        [_, surplus, ..] => {
            Err(format!("{surplus:?} is not expected here. See whimbrel completions --help."))
        }
    }
}

/// What can be completed.
struct CommandLine {
    /// Flags of a session.
    flags: Vec<FlagDescription>,
    subcommands: &'static [Subcommand],
    /// Names of the built-in tools.
    tools: Vec<String>,
}

impl CommandLine {
    fn new() -> Self {
        let mut tools: Vec<String> = builtin_tools().iter().map(|tool| tool.name().to_owned()).collect();
        tools.sort_unstable();
        let flags = describe_flags().into_iter().flat_map(|(_, flags)| flags).collect();
        Self { flags, subcommands: SUBCOMMANDS, tools }
    }

    /// Names of the subcommands.
    fn subcommand_names(&self) -> Vec<&'static str> {
        self.subcommands.iter().map(|subcommand| subcommand.name).collect()
    }
}

/// The first words of the commands of a subcommand.
fn first_words(subcommand: &Subcommand) -> Vec<&'static str> {
    let mut words: Vec<&str> =
        subcommand.commands.iter().filter_map(|command| command.split(' ').next()).collect();
    words.dedup();
    words
}

/// The commands of two words, by their first word.
fn second_words(subcommand: &Subcommand) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (first, second) in subcommand.commands.iter().filter_map(|command| command.split_once(' ')) {
        match groups.last_mut() {
            Some((group, words)) if *group == first => words.push(second),
            _ => groups.push((first, vec![second])),
        }
    }
    groups
}

/// Quotes a text for a shell, in single quotes.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_named() {
        for (line, words) in [("powershell", "bash, zsh and fish"), ("bash now", "\"now\" is not expected")] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = render(&argv).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn commands_are_grouped_by_their_words() {
        let plugin = SUBCOMMANDS.iter().find(|subcommand| subcommand.name == "plugin").unwrap();
        assert_eq!(first_words(plugin)[..2], ["marketplace", "install"]);
        assert_eq!(second_words(plugin), [("marketplace", vec!["add", "list", "update", "remove"])]);
    }

    #[test]
    fn every_flag_and_subcommand_is_in_every_script() {
        let line = CommandLine::new();
        for shell in ["bash", "zsh", "fish"] {
            let script = render(&[shell.to_owned()]).unwrap();
            for name in line.flags.iter().flat_map(|flag| &flag.names).chain(&line.subcommand_names()) {
                assert!(script.contains(name), "{shell}: {name}");
            }
        }
    }
}
