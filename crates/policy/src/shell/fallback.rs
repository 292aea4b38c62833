//! Text that could not be taken apart: searched at every word.

use std::collections::HashSet;

use super::facts::plain_name;
use super::{Class, DenySpelling, Part, Reach, Start, Suggestion, Value, Word};

/// A part that stands for the whole text: each word of it may be a command, a file that is read, written or removed.
pub(super) fn part(text: &str, home: &str) -> Part {
    let separators = |c: char| matches!(c, ';' | '|' | '&' | '(' | ')' | '<' | '>' | '`' | '\n' | '\t');
    let spaced = |text: &str| {
        let blanked: String = text.chars().map(|c| if separators(c) { ' ' } else { c }).collect();
        blanked.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let raw = text.split([' ', '\t', '\n']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let apart = spaced(text);
    let bare = spaced(&text.replace("\\\n", "").replace(['\'', '"', '\\'], "").replace("$", " "));
    let mut deny_spellings = Vec::new();
    for text in [&raw, &apart, &bare] {
        if !deny_spellings.iter().any(|known: &DenySpelling| known.text == **text) {
            deny_spellings.push(DenySpelling {
                text: (*text).clone(),
                start: Start::EveryWord,
                deny_only: false,
            });
        }
    }
    let mut named = Vec::new();
    for word in bare.split(' ') {
        let plain = plain_name(word);
        if plain != word && !plain.is_empty() {
            named.push(plain);
        } else {
            named.push(word.to_owned());
        }
    }
    let named = named.join(" ");
    if named != bare {
        deny_spellings.push(DenySpelling { text: named, start: Start::EveryWord, deny_only: true });
    }
    let mut files = operands(&bare, home);
    if let Some(starred) = starred(text) {
        files.extend(operands(&spaced(&starred.replace(['\'', '"', '\\'], "")), home));
    }
    let removes = bare.split(' ').any(|word| matches!(plain_name(word).as_str(), "rm" | "rmdir" | "find"));
    Part {
        reach: Reach::Searched,
        words: vec![Word {
            raw: raw.clone(),
            value: Value::Unknown { before: String::new(), after: String::new(), guarded: false },
        }],
        raw,
        assignments: Vec::new(),
        redirects: Vec::new(),
        allow_spellings: Vec::new(),
        deny_spellings,
        class: Class::Other,
        program: None,
        critical: if removes { files.clone() } else { Vec::new() },
        writes: files.clone(),
        reads: files,
        lands: Vec::new(),
        recursive: false,
        changes_below: false,
        sweeps: Vec::new(),
        scoped: false,
        glob_asks: false,
        opaque: true,
        suggestion: Suggestion { never: true, ..Suggestion::default() },
    }
}

/// A part that stands for a text that may be no command: each word of it may be one, and that is all.
pub(super) fn doubtful(text: &str) -> Part {
    Part { reach: Reach::Guessed, deny_spellings: spellings_in(text), opaque: false, ..part("", "") }
}

/// What rules are compared with at every word of a text in another language.
pub(super) fn spellings_in(text: &str) -> Vec<DenySpelling> {
    // Lists of words are written with marks between them, line ends and tabs as letters.
    let marks = |c: char| " \"'()[],;|`\t\n".contains(c);
    let plain = text.replace("\\n", " ").replace("\\t", " ");
    let joined = |words: &mut dyn Iterator<Item = &str>| {
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let mut texts = vec![joined(&mut text.split([' ', '\t', '\n'])), joined(&mut plain.split(marks))];
    texts.dedup();
    let spelling = |text| DenySpelling { text, start: Start::EveryWord, deny_only: false };
    texts.into_iter().map(spelling).collect()
}

/// The text with a star for each group like `@(a|b)`, by which a shell may match names. None if there is no such group.
fn starred(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut depth, mut mark) = (0_usize, None);
    let mut found = false;
    for character in text.chars() {
        match (depth, character) {
            (0, '(') if mark.is_some() => {
                out.pop();
                out.push('*');
                found = true;
                depth = 1;
            }
            (0, _) => out.push(character),
            (_, '(') => depth += 1,
            (_, ')') => depth -= 1,
            _ => {}
        }
        mark = Some(character).filter(|mark| depth == 0 && "?*+@!".contains(*mark));
    }
    found.then_some(out)
}

fn operands(text: &str, home: &str) -> Vec<Value> {
    let mut seen = HashSet::new();
    text.split([' ', '=', '{', '}', ','])
        .filter(|word| !word.is_empty() && !word.starts_with('-') && seen.insert(*word))
        .map(|word| {
            let path = match word.strip_prefix('~').or_else(|| word.strip_prefix("HOME")) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
                _ => word.to_owned(),
            };
            if path.contains(['*', '?', '[']) { Value::Glob(path) } else { Value::Literal(path) }
        })
        .collect()
}
