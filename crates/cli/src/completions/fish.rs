//! The completions for fish.

use std::fmt::Write as _;

use super::{CommandLine, first_words, second_words};
use crate::flags::{FlagDescription, FlagValue};
use crate::subcommands::{SessionFlags, Subcommand};
use crate::value_hint::ValueHint;

pub(super) fn render(line: &CommandLine) -> String {
    let with_session_flags: Vec<&str> = line
        .subcommands
        .iter()
        .filter(|subcommand| subcommand.session_flags == SessionFlags::Rejected)
        .map(|subcommand| subcommand.name)
        .collect();
    let mut script = format!(
        "# Completions of whimbrel for fish, printed by `whimbrel completions fish`.

# Succeeds if the words before the cursor are exactly these, without flags.
function __whimbrel_words_are
    set -l words (commandline -opc)
    test \"$words[2..]\" = \"$argv\"
end

# Succeeds if the words before the cursor begin with these.
function __whimbrel_words_begin
    set -l words (commandline -opc)
    test (count $words) -gt (count $argv); and test \"$words[2..\"(math (count $argv) + 1)\"]\" = \"$argv\"
end

# Succeeds where the flags of a session can be given.
function __whimbrel_takes_session_flags
    set -l words (commandline -opc)
    not contains -- \"$words[2]\" {}
end

complete -c whimbrel -f
",
        with_session_flags.join(" ")
    );
    for subcommand in line.subcommands {
        let meaning = quote(subcommand.meaning);
        let _ = writeln!(
            script,
            "complete -c whimbrel -n 'test (count (commandline -opc)) -eq 1' -a {} -d {meaning}",
            subcommand.name
        );
    }
    for flag in &line.flags {
        script += &render_flag(flag, &line.tools);
    }
    for subcommand in line.subcommands {
        script += &render_subcommand(subcommand, &line.tools);
    }
    script
}

fn render_flag(flag: &FlagDescription, tools: &[String]) -> String {
    let value = match flag.value {
        FlagValue::None => String::new(),
        FlagValue::Required(_) | FlagValue::List(_) => render_value(flag.hint, tools),
        // Only after `=`: the next argument may be the prompt.
        FlagValue::Optional(_) => render_suggestions(flag.hint, tools),
    };
    let spellings: String = flag.spellings().iter().map(|spelling| render_spelling(spelling)).collect();
    format!(
        "complete -c whimbrel -n __whimbrel_takes_session_flags{spellings}{value} -d {}\n",
        quote(flag.summary())
    )
}

/// Renders a spelling: `-s p`, `-o d2e` or `-l print`.
fn render_spelling(spelling: &str) -> String {
    match (spelling.strip_prefix("--"), spelling.trim_start_matches('-')) {
        (Some(long), _) => format!(" -l {long}"),
        (None, short) if short.chars().count() == 1 => format!(" -s {short}"),
        (None, old_style) => format!(" -o {old_style}"),
    }
}

/// Renders a required value.
fn render_value(hint: ValueHint, tools: &[String]) -> String {
    match hint {
        ValueHint::File => " -r -F".to_owned(),
        _ => format!(" -x{}", render_suggestions(hint, tools)),
    }
}

fn render_suggestions(hint: ValueHint, tools: &[String]) -> String {
    match hint {
        ValueHint::Any => String::new(),
        ValueHint::Words(words) => format!(" -a {}", quote(&words.join(" "))),
        ValueHint::WordList(words) => {
            format!(" -a {}", quote(&format!("(__fish_append , {})", words.join(" "))))
        }
        ValueHint::ToolList => format!(" -a {}", quote(&format!("(__fish_append , {})", tools.join(" ")))),
        ValueHint::File => " -F".to_owned(),
        ValueHint::Directory => " -a '(__fish_complete_directories)'".to_owned(),
    }
}

fn render_subcommand(subcommand: &Subcommand, tools: &[String]) -> String {
    let name = subcommand.name;
    let mut lines = String::new();
    let first = first_words(subcommand).join(" ");
    if !first.is_empty() {
        let _ = writeln!(lines, "complete -c whimbrel -n '__whimbrel_words_are {name}' -a {}", quote(&first));
    }
    for (word, second) in second_words(subcommand) {
        let condition = format!("__whimbrel_words_are {name} {word}");
        let _ = writeln!(lines, "complete -c whimbrel -n '{condition}' -a {}", quote(&second.join(" ")));
    }
    for command in subcommand.path_commands {
        let _ = writeln!(lines, "complete -c whimbrel -n '__whimbrel_words_begin {name} {command}' -F");
    }
    for flag in subcommand.flags {
        let spellings: String = flag.spellings.iter().map(|spelling| render_spelling(spelling)).collect();
        let value = flag.value.map(|hint| render_value(hint, tools)).unwrap_or_default();
        let _ = writeln!(lines, "complete -c whimbrel -n '__whimbrel_words_begin {name}'{spellings}{value}");
    }
    lines
}

/// Quotes a text in single quotes, in which fish knows two escapes.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
