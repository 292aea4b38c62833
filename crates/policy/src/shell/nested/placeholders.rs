//! Commands with placeholders that are filled in when they run: by `xargs`, `parallel` and `find -exec`.

use super::shells::{self, CommandSource};
use super::wrapped::MAX_WRAPPERS;
use super::wrappers;
use crate::shell::programs::builtins;
use crate::shell::programs::effects::extract_program_name;
use crate::shell::{Word, WordValue};

/// Builds an unknown value that is not empty.
fn build_placeholder_value(before: &str, after: &str) -> WordValue {
    WordValue::Unknown { before: before.to_owned(), after: after.to_owned(), nonempty: true }
}

/// Replaces each placeholder in the words by an unknown value.
pub(crate) fn mark_placeholders(words: &[Word], placeholder: &str) -> Vec<Word> {
    let fill = |word: &Word| match word.value.as_literal().and_then(|text| text.split_once(placeholder)) {
        Some((before, after)) => Word { value: build_placeholder_value(before, after), ..word.clone() },
        None => word.clone(),
    };
    words.iter().map(fill).collect()
}

/// The command that `xargs` or `parallel` runs, starting at `start`, with the words of a text, or an unknown value,
/// inserted.
pub(crate) fn fill_command(words: &[Word], start: usize, text: Option<&str>) -> Vec<Word> {
    let marker = find_placeholder(words, start);
    let command = words.get(start..).unwrap_or_default();
    let Some(text) = text else {
        let mut filled = mark_placeholders(&mark_placeholders(command, "{}"), marker.unwrap_or("{}"));
        if marker.is_none() {
            filled.push(Word { raw: String::new(), value: build_placeholder_value("", "") });
        }
        return filled;
    };
    let literal = |text: String| Word { raw: text.clone(), value: WordValue::Literal(text) };
    let Some(marker) = marker else {
        let plain = |text: &str| literal(text.trim_matches(['\'', '"']).to_owned());
        let added = text.split_whitespace().map(plain);
        return command.iter().cloned().chain(added).collect();
    };
    let fill = |word: &Word| match word.value.as_literal() {
        Some(written) => literal(written.replace(marker, text.trim())),
        None => word.clone(),
    };
    command.iter().map(fill).collect()
}

/// Counts the bytes that inserting a text adds to the command.
pub(crate) fn count_added_bytes(words: &[Word], start: usize, text: &str) -> usize {
    let count = find_placeholder(words, start).map_or(1, |marker| {
        let literal =
            words.get(start..).unwrap_or_default().iter().filter_map(|word| word.value.as_literal());
        literal.map(|word| word.matches(marker).count()).sum()
    });
    count.saturating_mul(text.len())
}

/// Finds the placeholder that the options define, if any.
fn find_placeholder(words: &[Word], start: usize) -> Option<&str> {
    let options: Vec<&str> =
        words.get(1..start).unwrap_or_default().iter().filter_map(|word| word.value.as_literal()).collect();
    let mut placeholder = None;
    for (at, option) in options.iter().enumerate() {
        let joined = ["-I", "-i", "--replace="].iter().find_map(|flag| option.strip_prefix(flag));
        match joined {
            Some("") if *option == "-I" => placeholder = options.get(at + 1).copied().or(placeholder),
            Some("") => placeholder = Some("{}"),
            Some(text) => placeholder = Some(text),
            None if *option == "--replace" => placeholder = Some("{}"),
            None => {}
        }
    }
    placeholder
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
    let name = extract_program_name(name);
    if let Some(wrapped) = wrappers::find_wrapped(&name, words) {
        let inner = wrapped.start.and_then(|start| words.get(start..)).unwrap_or_default();
        return wrapped.command_texts.iter().any(unknown)
            || (wrapped.may_start_anywhere && some_unknown())
            || wrapped.resplit_words.is_some_and(|words| runs_unknown_at(&words, depth + 1))
            || runs_unknown_at(inner, depth + 1);
    }
    match shells::find_command_source(words) {
        Some(CommandSource::Text(text)) => text.is_some_and(unknown),
        Some(CommandSource::File(file)) => unknown(file),
        Some(CommandSource::Input) => false,
        None => builtins::takes_command_text(&name) && some_unknown(),
    }
}
