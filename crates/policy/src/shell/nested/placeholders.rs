//! Commands with placeholders that are filled in when they run: by `xargs`, `parallel` and `find -exec`.

use super::shells::{self, CommandSource};
use super::wrappers;
use crate::shell::programs::builtins;
use crate::shell::programs::effects::program_name;
use crate::shell::{Word, WordValue};

/// Wrappers that are looked through.
const MAX_WRAPPERS: usize = 8;

/// An unknown value that is not empty.
fn placeholder_value(before: &str, after: &str) -> WordValue {
    WordValue::Unknown { before: before.to_owned(), after: after.to_owned(), nonempty: true }
}

/// Replaces each placeholder in the words by an unknown value.
pub(crate) fn mark_placeholders(words: &[Word], mark: &str) -> Vec<Word> {
    let fill = |word: &Word| match word.value.as_literal().and_then(|text| text.split_once(mark)) {
        Some((before, after)) => Word { value: placeholder_value(before, after), ..word.clone() },
        None => word.clone(),
    };
    words.iter().map(fill).collect()
}

/// The command that `xargs` or `parallel` runs, starting at `start`, with the words of a text, or an unknown value,
/// inserted.
pub(crate) fn fill_command(words: &[Word], start: usize, text: Option<&str>) -> Vec<Word> {
    let mark = placeholder(words, start);
    let command = words.get(start..).unwrap_or_default();
    let Some(text) = text else {
        let mut filled = mark_placeholders(&mark_placeholders(command, "{}"), mark.unwrap_or("{}"));
        if mark.is_none() {
            filled.push(Word { raw: String::new(), value: placeholder_value("", "") });
        }
        return filled;
    };
    let literal = |text: String| Word { raw: text.clone(), value: WordValue::Literal(text) };
    let Some(mark) = mark else {
        let plain = |text: &str| literal(text.trim_matches(['\'', '"']).to_owned());
        let added = text.split_whitespace().map(plain);
        return command.iter().cloned().chain(added).collect();
    };
    let fill = |word: &Word| match word.value.as_literal() {
        Some(written) => literal(written.replace(mark, text.trim())),
        None => word.clone(),
    };
    command.iter().map(fill).collect()
}

/// Bytes that inserting a text adds to the command.
pub(crate) fn added_bytes(words: &[Word], start: usize, text: &str) -> usize {
    let places = placeholder(words, start).map_or(1, |mark| {
        let literal =
            words.get(start..).unwrap_or_default().iter().filter_map(|word| word.value.as_literal());
        literal.map(|word| word.matches(mark).count()).sum()
    });
    places.saturating_mul(text.len())
}

/// The placeholder that the options define, if any.
fn placeholder(words: &[Word], start: usize) -> Option<&str> {
    let options: Vec<&str> =
        words.get(1..start).unwrap_or_default().iter().filter_map(|word| word.value.as_literal()).collect();
    let mut mark = None;
    for (at, option) in options.iter().enumerate() {
        let joined = ["-I", "-i", "--replace="].iter().find_map(|flag| option.strip_prefix(flag));
        match joined {
            Some("") if *option == "-I" => mark = options.get(at + 1).copied().or(mark),
            Some("") => mark = Some("{}"),
            Some(text) => mark = Some(text),
            None if *option == "--replace" => mark = Some("{}"),
            None => {}
        }
    }
    mark
}

/// Returns true if a command runs something unknown, because some of its words are unknown.
pub(crate) fn runs_unknown_command(words: &[Word]) -> bool {
    runs_unknown_at(words, 0)
}

fn runs_unknown_at(words: &[Word], depth: usize) -> bool {
    let Some((first, arguments)) = words.split_first() else { return false };
    let Some(name) = first.value.as_literal() else { return true };
    let unknown = |value: &WordValue| value.as_literal().is_none();
    let some_unknown = || arguments.iter().any(|word| unknown(&word.value));
    if depth >= MAX_WRAPPERS {
        return some_unknown();
    }
    let name = program_name(name);
    if let Some(behind) = wrappers::find_wrapped(&name, words) {
        let inner = behind.start.and_then(|start| words.get(start..)).unwrap_or_default();
        return behind.command_texts.iter().any(unknown)
            || (behind.may_start_anywhere && some_unknown())
            || behind.resplit_words.is_some_and(|words| runs_unknown_at(&words, depth + 1))
            || runs_unknown_at(inner, depth + 1);
    }
    match shells::command_source(words) {
        Some(CommandSource::Text(text)) => text.is_some_and(unknown),
        Some(CommandSource::File(file)) => unknown(file),
        Some(CommandSource::Input) => false,
        None => builtins::takes_command_text(&name) && some_unknown(),
    }
}
