//! Commands whose words are filled in when they run: by `xargs`, `parallel` and `find -exec`.

use super::facts::plain_name;
use super::shells::{self, Source};
use super::{Value, Word, builtins, wrappers};

/// How many wrappers are looked through.
const DEEPEST: usize = 8;

/// A word that is not known, and not empty.
fn hole(before: &str, after: &str) -> Value {
    Value::Unknown { before: before.to_owned(), after: after.to_owned(), guarded: true }
}

/// The words with every place that is filled in turned into something unknown.
pub(super) fn with_holes(words: &[Word], mark: &str) -> Vec<Word> {
    let fill = |word: &Word| match word.value.literal().and_then(|text| text.split_once(mark)) {
        Some((before, after)) => Word { value: hole(before, after), ..word.clone() },
        None => word.clone(),
    };
    words.iter().map(fill).collect()
}

/// The command that `xargs` or `parallel` runs, which begins at a place, with what is added to it: words of a text, or
/// something unknown.
pub(super) fn filled(words: &[Word], start: usize, text: Option<&str>) -> Vec<Word> {
    let mark = mark(words, start);
    let command = words.get(start..).unwrap_or_default();
    let Some(text) = text else {
        let mut filled = with_holes(&with_holes(command, "{}"), mark.unwrap_or("{}"));
        if mark.is_none() {
            filled.push(Word { raw: String::new(), value: hole("", "") });
        }
        return filled;
    };
    let literal = |text: String| Word { raw: text.clone(), value: Value::Literal(text) };
    let Some(mark) = mark else {
        let plain = |text: &str| literal(text.trim_matches(['\'', '"']).to_owned());
        let added = text.split_whitespace().map(plain);
        return command.iter().cloned().chain(added).collect();
    };
    let fill = |word: &Word| match word.value.literal() {
        Some(written) => literal(written.replace(mark, text.trim())),
        None => word.clone(),
    };
    command.iter().map(fill).collect()
}

/// How many bytes a text brings into the command that is filled with it.
pub(super) fn growth(words: &[Word], start: usize, text: &str) -> usize {
    let places = mark(words, start).map_or(1, |mark| {
        let literal = words.get(start..).unwrap_or_default().iter().filter_map(|word| word.value.literal());
        literal.map(|word| word.matches(mark).count()).sum()
    });
    places.saturating_mul(text.len())
}

/// What stands in the command for what is read, if the options name it.
fn mark(words: &[Word], start: usize) -> Option<&str> {
    let options: Vec<&str> =
        words.get(1..start).unwrap_or_default().iter().filter_map(|word| word.value.literal()).collect();
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

/// Whether a command runs something that is not known, because some of its words are not.
pub(super) fn runs_unknown(words: &[Word]) -> bool {
    runs(words, 0)
}

fn runs(words: &[Word], depth: usize) -> bool {
    let Some((first, arguments)) = words.split_first() else { return false };
    let Some(name) = first.value.literal() else { return true };
    let unknown = |value: &Value| value.literal().is_none();
    let some_unknown = || arguments.iter().any(|word| unknown(&word.value));
    if depth >= DEEPEST {
        return some_unknown();
    }
    let name = plain_name(name);
    if let Some(behind) = wrappers::behind(&name, words) {
        let inner = behind.start.and_then(|start| words.get(start..)).unwrap_or_default();
        return behind.texts.iter().any(unknown)
            || (behind.anywhere && some_unknown())
            || behind.respelled.is_some_and(|words| runs(&words, depth + 1))
            || runs(inner, depth + 1);
    }
    match shells::source(words) {
        Some(Source::Text(text)) => text.is_some_and(unknown),
        Some(Source::File(file)) => unknown(file),
        Some(Source::Input) => false,
        None => builtins::holds_commands(&name) && some_unknown(),
    }
}
