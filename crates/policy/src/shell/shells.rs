//! Where a shell takes its commands from.

use super::facts::plain_name;
use super::interpreters::SHELLS;
use super::{Value, Word};

/// Where a shell takes its commands from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source<'a> {
    /// The text after `-c`; none if there is none.
    Text(Option<&'a Value>),
    /// A file.
    File(&'a Value),
    /// Its input.
    Input,
}

/// Programs that hand what they read to a shell.
const READERS: &[&str] = &["at", "batch", "newgrp", "sg"];

/// Where the command takes commands from, if it is a shell or reads a file of commands into this one.
pub(super) fn source(words: &[Word]) -> Option<Source<'_>> {
    let (first, arguments) = words.split_first()?;
    let name = plain_name(first.value.literal()?);
    if matches!(name.as_str(), "source" | ".") {
        let start = usize::from(arguments.first().is_some_and(|word| word.value.literal() == Some("--")));
        return arguments.get(start).map(|word| of_operand(&word.value));
    }
    if READERS.contains(&name.as_str()) {
        return Some(Source::Input);
    }
    SHELLS.contains(&name.as_str()).then(|| of_shell(arguments))
}

fn of_shell(arguments: &[Word]) -> Source<'_> {
    let mut at = 0;
    let mut text = false;
    let mut input = false;
    while let Some(option) = arguments.get(at).and_then(|word| word.value.literal()) {
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
        _ if text => Source::Text(operand),
        Some(value) if !input => of_operand(value),
        Some(_) | None => Source::Input,
    }
}

fn of_operand(value: &Value) -> Source<'_> {
    match value.literal() {
        Some(path) if is_stream(path) => Source::Input,
        Some(_) | None => Source::File(value),
    }
}

/// Whether a path means something that is open already.
fn is_stream(path: &str) -> bool {
    matches!(path, "-" | "/dev/stdin")
        || path.starts_with("/dev/fd/")
        || (path.starts_with("/proc/") && path.contains("/fd/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_commands_come_from() {
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
            let word = |text: &str| Word { raw: text.to_owned(), value: Value::Literal(text.to_owned()) };
            let words: Vec<Word> = text.split(' ').map(word).collect();
            let found = match source(&words) {
                None => "nothing",
                Some(Source::Input) => "input",
                Some(Source::Text(value)) => value.and_then(Value::literal).unwrap_or("?"),
                Some(Source::File(value)) => value.literal().unwrap_or("?"),
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}
