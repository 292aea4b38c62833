//! Shells and interpreters, and the source of the commands that a shell runs.

use crate::shell::programs::effects::extract_program_name;
use crate::shell::{Word, WordValue};

/// Shells that run the text after `-c`, or their input.
pub(crate) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh", "fish"];

/// Programs that run code.
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "node",
    "nodejs",
    "deno",
    "bun",
    "perl",
    "ruby",
    "php",
    "lua",
    "tclsh",
    "osascript",
    "pwsh",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "ed",
    "ex",
    "vim",
    "vi",
    "make",
    "bc",
    "dc",
    "irb",
    "expect",
];

/// Returns true if the program runs code from its input.
pub(crate) fn is_interpreter(name: &str) -> bool {
    SHELLS.contains(&name) || (INTERPRETERS.contains(&name) && name != "make") || name.starts_with("python")
}

/// Source of a shell's commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandSource<'a> {
    /// The text after `-c`; `None` if it is missing.
    Text(Option<&'a WordValue>),
    /// A file.
    File(&'a WordValue),
    /// Standard input.
    Input,
}

/// Programs that pass their input to a shell.
const STDIN_SHELLS: &[&str] = &["at", "batch", "newgrp", "sg"];

/// Finds the source of the commands, if this is a shell, or `source` and its like.
pub(crate) fn find_command_source(words: &[Word]) -> Option<CommandSource<'_>> {
    let (first, arguments) = words.split_first()?;
    let name = extract_program_name(first.value.as_literal()?);
    if matches!(name.as_str(), "source" | ".") {
        let start = usize::from(arguments.first().is_some_and(|word| word.value.as_literal() == Some("--")));
        return arguments.get(start).map(|word| classify_operand_source(&word.value));
    }
    if STDIN_SHELLS.contains(&name.as_str()) {
        return Some(CommandSource::Input);
    }
    SHELLS.contains(&name.as_str()).then(|| find_shell_source(arguments))
}

fn find_shell_source(arguments: &[Word]) -> CommandSource<'_> {
    let mut at = 0;
    let mut text = false;
    let mut input = false;
    while let Some(option) = arguments.get(at).and_then(|word| word.value.as_literal()) {
        if !option.starts_with(['-', '+']) {
            break;
        }
        at += 1;
        match option {
            "-" | "--" => break,
            "--rcfile" | "--init-file" => at += 1,
            "--command" => text = true,
            _ if option.starts_with("--") => {}
            letters => {
                text |= letters.contains('c');
                input |= letters.contains('s');
                at += letters.matches(['o', 'O']).count();
            }
        }
    }
    let operand = arguments.get(at).map(|word| &word.value);
    match operand {
        _ if text => CommandSource::Text(operand),
        Some(value) if !input => classify_operand_source(value),
        Some(_) | None => CommandSource::Input,
    }
}

fn classify_operand_source(value: &WordValue) -> CommandSource<'_> {
    match value.as_literal() {
        Some(path) if is_stream(path) => CommandSource::Input,
        Some(_) | None => CommandSource::File(value),
    }
}

/// Returns true if a path names an open file descriptor.
fn is_stream(path: &str) -> bool {
    matches!(path, "-" | "/dev/stdin")
        || path.starts_with("/dev/fd/")
        || (path.starts_with("/proc/") && path.contains("/fd/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_sources() {
        let rows = [
            ("bash", "input"),
            ("bash -s a b", "input"),
            ("sh -", "input"),
            ("bash -eu", "input"),
            ("bash -o pipefail", "input"),
            ("bash /dev/stdin x", "input"),
            (". /dev/fd/3", "input"),
            ("source -- /proc/self/fd/0", "input"),
            ("bash -c ls", "ls"),
            ("bash -lc ls x", "ls"),
            ("bash -o pipefail -c ls", "ls"),
            ("bash build.sh -c x", "build.sh"),
            ("bash --norc build.sh", "build.sh"),
            ("source env", "env"),
            ("at now", "input"),
            ("newgrp", "input"),
            ("ls -c x", "nothing"),
            ("source", "nothing"),
        ];
        for (text, expected) in rows {
            let word = |text: &str| Word { raw: text.to_owned(), value: WordValue::Literal(text.to_owned()) };
            let words: Vec<Word> = text.split(' ').map(word).collect();
            let found = match find_command_source(&words) {
                None => "nothing",
                Some(CommandSource::Input) => "input",
                Some(CommandSource::Text(value)) => value.and_then(WordValue::as_literal).unwrap_or("?"),
                Some(CommandSource::File(value)) => value.as_literal().unwrap_or("?"),
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}
