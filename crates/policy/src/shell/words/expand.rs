//! Expansion of raw words into values.

use super::braces;
use crate::shell::analyzer::limits::WORD_OVERHEAD;
use crate::shell::parser::syntax::{RawWord, WordPiece};
use crate::shell::vars::env::{ExpansionMode, LAST_VALUE, VariableEnv};
use crate::shell::{UnanalyzableCause, Word, WordValue};

/// Text that several variables may add to one word: with `x=$x$x` a value doubles each time.
const MAX_JOINED_LENGTH: usize = 4_096;

/// Cost in characters of a brace expansion with too many words.
const OVERFLOW_LENGTH: usize = 4_096;

/// One character of a word, or an unknown part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordChar {
    /// A character outside quotes.
    Plain(char),
    /// A literal character.
    Quoted(char),
    /// A character from an unquoted variable: it may split the word or form a glob, but not a brace.
    Expanded(char),
    Unknown {
        /// True if the shell stops when it is empty.
        nonempty: bool,
    },
}

/// Expands a word, usually into one, and collects what prevents an allow decision.
pub(crate) fn expand_word(
    word: &RawWord,
    scope: &VariableEnv<'_>,
    reading: ExpansionMode,
    kinds: &mut Vec<UnanalyzableCause>,
) -> Vec<Word> {
    if let [WordPiece::Plain(text)] = word.pieces.as_slice()
        && !text.contains(['~', '{', '*', '?', '['])
    {
        return vec![Word { raw: word.raw.clone(), value: WordValue::Literal(text.clone()) }];
    }
    let mut atoms = expand_tilde(word_chars(word, scope, reading, kinds), scope, reading, kinds);
    if !braces::may_expand(&atoms) {
        let mut words = split_words(&atoms, &word.raw, scope);
        let quoted = word.pieces.iter().any(|piece| matches!(piece, WordPiece::Quoted(_)));
        if words.is_empty() && quoted && !["$@", "${@}", "[@]}"].iter().any(|all| word.raw.contains(all)) {
            words.push(Word { raw: word.raw.clone(), value: WordValue::Literal(String::new()) });
        }
        return words;
    }
    kinds.push(UnanalyzableCause::Braces);
    let expanded = if scope.is_budget_exhausted() { None } else { braces::expand_braces(&mut atoms) };
    let length = expanded
        .as_ref()
        .map_or(OVERFLOW_LENGTH, |all| all.iter().map(|word| word.len() + WORD_OVERHEAD).sum());
    let enough = scope.take_text_budget(length);
    match expanded.filter(|_| enough) {
        Some(all) => all
            .into_iter()
            .flat_map(|atoms| split_words(&expand_tilde(atoms, scope, reading, kinds), "", scope))
            .map(|word| Word { raw: value_text(&word.value), ..word })
            .collect(),
        None => vec![Word {
            raw: word.raw.clone(),
            value: WordValue::Unknown { before: String::new(), after: String::new(), nonempty: false },
        }],
    }
}

/// Expands a word where it is not split, as in an assignment or redirect.
pub(crate) fn expand_single(
    word: &RawWord,
    scope: &VariableEnv<'_>,
    kinds: &mut Vec<UnanalyzableCause>,
) -> WordValue {
    expand_single_with(word, scope, LAST_VALUE, kinds)
}

/// Like `expand_single`, in an expansion mode.
pub(crate) fn expand_single_with(
    word: &RawWord,
    scope: &VariableEnv<'_>,
    reading: ExpansionMode,
    kinds: &mut Vec<UnanalyzableCause>,
) -> WordValue {
    build_value(&expand_tilde(word_chars(word, scope, reading, kinds), scope, reading, kinds))
}

/// Text of a value, with `$?` for the unknown part.
pub(crate) fn value_text(value: &WordValue) -> String {
    match value {
        WordValue::Literal(text) | WordValue::Glob(text) => text.clone(),
        WordValue::Unknown { before, after, .. } => format!("{before}$?{after}"),
    }
}

fn word_chars(
    word: &RawWord,
    scope: &VariableEnv<'_>,
    reading: ExpansionMode,
    kinds: &mut Vec<UnanalyzableCause>,
) -> Vec<WordChar> {
    let mut atoms = Vec::with_capacity(word.raw.len());
    let is_nothing = matches!(reading, ExpansionMode::UnknownAsEmpty(_));
    let overlong = is_overlong(word, scope, reading);
    if overlong {
        kinds.push(UnanalyzableCause::TooDeep);
    }
    for piece in &word.pieces {
        match piece {
            WordPiece::Variable { nonempty: guarded, .. } if overlong => {
                atoms.push(WordChar::Unknown { nonempty: *guarded })
            }
            WordPiece::Plain(text) => atoms.extend(text.chars().map(WordChar::Plain)),
            WordPiece::Quoted(text) => atoms.extend(text.chars().map(WordChar::Quoted)),
            WordPiece::Unknown if is_nothing => {}
            WordPiece::Unknown => atoms.push(WordChar::Unknown { nonempty: false }),
            WordPiece::Variable { name, quoted, nonempty: guarded } => {
                if name == "HOME" && !scope.is_home_fixed {
                    kinds.push(UnanalyzableCause::Variable);
                }
                match scope.value(name, reading).filter(|text| scope.take_text_budget(text.len())) {
                    Some(text) if *quoted => atoms.extend(text.chars().map(quoted_char)),
                    Some(text) => atoms.extend(text.chars().map(WordChar::Expanded)),
                    None if is_nothing && !guarded => {}
                    None => atoms.push(WordChar::Unknown { nonempty: *guarded }),
                }
            }
        }
    }
    atoms
}

/// A character of a quoted variable. Glob characters stay active, because a loop variable may hold the pattern of its
/// files.
fn quoted_char(character: char) -> WordChar {
    match character {
        '*' | '?' | '[' | ']' => WordChar::Plain(character),
        _ => WordChar::Quoted(character),
    }
}

/// Returns true if several variables add too much text to a word.
fn is_overlong(word: &RawWord, scope: &VariableEnv<'_>, reading: ExpansionMode) -> bool {
    let lengths = word.pieces.iter().filter_map(|piece| match piece {
        WordPiece::Variable { name, .. } => Some(scope.value(name, reading).map_or(0, str::len)),
        WordPiece::Plain(_) | WordPiece::Quoted(_) | WordPiece::Unknown => None,
    });
    let (count, total) = lengths.fold((0, 0), |(count, total), length| (count + 1, total + length));
    count > 1 && total > MAX_JOINED_LENGTH
}

/// Expands `~` at the start of a word, and after `=` or `:` in an assignment.
fn expand_tilde(
    atoms: Vec<WordChar>,
    scope: &VariableEnv<'_>,
    reading: ExpansionMode,
    kinds: &mut Vec<UnanalyzableCause>,
) -> Vec<WordChar> {
    if !atoms.contains(&WordChar::Plain('~')) {
        return atoms;
    }
    let mut out = Vec::with_capacity(atoms.len() + scope.home.len());
    let mut assigning = false;
    let mut resolved = 0;
    for (at, atom) in atoms.iter().enumerate() {
        if at < resolved {
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| atoms.get(at));
        assigning |= *atom == WordChar::Plain('=');
        let begins = match before {
            None => true,
            Some(WordChar::Plain('=' | ':')) => assigning,
            Some(_) => false,
        };
        if *atom != WordChar::Plain('~') || !begins {
            out.push(*atom);
            continue;
        }
        match atoms.get(at + 1) {
            None | Some(WordChar::Plain('/' | ':')) => {
                if before.is_some() || !scope.is_home_fixed {
                    kinds.push(UnanalyzableCause::Variable);
                }
                match scope.value("HOME", reading) {
                    Some(home) => out.extend(home.chars().map(WordChar::Quoted)),
                    None => out.push(WordChar::Unknown { nonempty: false }),
                }
            }
            // `~+` is the current directory.
            Some(WordChar::Plain('+')) if matches!(atoms.get(at + 2), None | Some(WordChar::Plain('/'))) => {
                kinds.push(UnanalyzableCause::Variable);
                out.push(WordChar::Quoted('.'));
                resolved = at + 2;
            }
            // A quoted character in the prefix prevents tilde expansion.
            Some(WordChar::Quoted(_) | WordChar::Unknown { .. } | WordChar::Expanded(_)) => {
                out.push(WordChar::Quoted('~'))
            }
            Some(WordChar::Plain(_)) => {
                kinds.push(UnanalyzableCause::Variable);
                match tilde_user(atoms.get(at + 1..).unwrap_or_default()) {
                    Some(name) => {
                        // The usual locations of home directories.
                        let home = if name == "root" { "/root".to_owned() } else { format!("/home/{name}") };
                        out.extend(home.chars().map(WordChar::Quoted));
                        resolved = at + 1 + name.len();
                    }
                    None => out.push(WordChar::Unknown { nonempty: false }),
                }
            }
        }
    }
    out
}

/// The user name after `~`, if nothing else precedes the first slash.
fn tilde_user(atoms: &[WordChar]) -> Option<String> {
    let name = atoms.iter().take_while(|atom| **atom != WordChar::Plain('/')).map(|atom| match atom {
        WordChar::Plain(c) if c.is_ascii_lowercase() || *c == '_' => Some(*c),
        _ => None,
    });
    name.collect::<Option<String>>().filter(|name| !name.is_empty())
}

/// Splits a word where values of variables are split.
fn split_words(atoms: &[WordChar], raw: &str, scope: &VariableEnv<'_>) -> Vec<Word> {
    let blank = |atom: &WordChar| matches!(atom, WordChar::Expanded(c) if scope.is_separator(*c));
    if !atoms.iter().any(blank) {
        if atoms.is_empty() {
            return Vec::new();
        }
        return vec![Word { raw: raw.to_owned(), value: build_value(atoms) }];
    }
    atoms
        .split(blank)
        .filter(|atoms| !atoms.is_empty())
        .map(|atoms| {
            let value = build_value(atoms);
            Word { raw: value_text(&value), value }
        })
        .collect()
}

fn build_value(atoms: &[WordChar]) -> WordValue {
    let unknown = |atom: &WordChar| matches!(atom, WordChar::Unknown { .. });
    if let (Some(first), Some(last)) = (atoms.iter().position(unknown), atoms.iter().rposition(unknown)) {
        let (before, rest) = atoms.split_at(first);
        let after = rest.get(last - first + 1..).unwrap_or_default();
        let guarded = rest
            .iter()
            .filter(|atom| unknown(atom))
            .all(|atom| *atom == WordChar::Unknown { nonempty: true });
        return WordValue::Unknown {
            before: plain_text(before),
            after: glob_pattern(after),
            nonempty: guarded,
        };
    }
    if is_glob(atoms) { WordValue::Glob(glob_pattern(atoms)) } else { WordValue::Literal(plain_text(atoms)) }
}

fn is_glob(atoms: &[WordChar]) -> bool {
    let mut open = false;
    atoms.iter().any(|atom| match atom {
        WordChar::Plain('*' | '?') | WordChar::Expanded('*' | '?') => true,
        WordChar::Plain('[') | WordChar::Expanded('[') => {
            open = true;
            false
        }
        WordChar::Plain(']') | WordChar::Expanded(']') => open,
        _ => false,
    })
}

fn plain_text(atoms: &[WordChar]) -> String {
    atoms
        .iter()
        .filter_map(|atom| match atom {
            WordChar::Plain(c) | WordChar::Quoted(c) | WordChar::Expanded(c) => Some(*c),
            WordChar::Unknown { .. } => None,
        })
        .collect()
}

fn glob_pattern(atoms: &[WordChar]) -> String {
    let mut out = String::with_capacity(atoms.len());
    for atom in atoms {
        match atom {
            WordChar::Quoted(c) => {
                if matches!(c, '*' | '?' | '[' | ']' | '\\') {
                    out.push('\\');
                }
                out.push(*c);
            }
            WordChar::Plain(c) | WordChar::Expanded(c) => out.push(*c),
            WordChar::Unknown { .. } => {}
        }
    }
    out
}
