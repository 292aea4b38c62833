//! Expansion of raw words into values.

use super::braces;
use crate::shell::analyzer::budget::WORD_OVERHEAD;
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
    variables: &VariableEnv<'_>,
    mode: ExpansionMode,
    causes: &mut Vec<UnanalyzableCause>,
) -> Vec<Word> {
    if let [WordPiece::Plain(text)] = word.pieces.as_slice()
        && !text.contains(['~', '{', '*', '?', '['])
    {
        return vec![Word { raw: word.raw.clone(), value: WordValue::Literal(text.clone()) }];
    }
    let mut chars = expand_tilde(expand_word_chars(word, variables, mode, causes), variables, mode, causes);
    if !braces::may_expand(&chars) {
        let mut words = split_words(&chars, &word.raw, variables);
        let quoted = word.pieces.iter().any(|piece| matches!(piece, WordPiece::Quoted(_)));
        if words.is_empty() && quoted && !["$@", "${@}", "[@]}"].iter().any(|all| word.raw.contains(all)) {
            words.push(Word { raw: word.raw.clone(), value: WordValue::Literal(String::new()) });
        }
        return words;
    }
    causes.push(UnanalyzableCause::Braces);
    let expanded = if variables.is_budget_exhausted() { None } else { braces::expand_braces(&mut chars) };
    let length = expanded
        .as_ref()
        .map_or(OVERFLOW_LENGTH, |all| all.iter().map(|word| word.len() + WORD_OVERHEAD).sum());
    let enough = variables.spend_text(length);
    match expanded.filter(|_| enough) {
        Some(all) => all
            .into_iter()
            .flat_map(|chars| split_words(&expand_tilde(chars, variables, mode, causes), "", variables))
            .map(|word| Word { raw: render_value(&word.value), ..word })
            .collect(),
        None => vec![Word { raw: word.raw.clone(), value: WordValue::FULLY_UNKNOWN }],
    }
}

/// Expands a word where it is not split, as in an assignment or redirect.
pub(crate) fn expand_single(
    word: &RawWord,
    variables: &VariableEnv<'_>,
    causes: &mut Vec<UnanalyzableCause>,
) -> WordValue {
    expand_single_with(word, variables, LAST_VALUE, causes)
}

/// Like `expand_single`, in an expansion mode.
pub(crate) fn expand_single_with(
    word: &RawWord,
    variables: &VariableEnv<'_>,
    mode: ExpansionMode,
    causes: &mut Vec<UnanalyzableCause>,
) -> WordValue {
    build_value(&expand_tilde(expand_word_chars(word, variables, mode, causes), variables, mode, causes))
}

/// Renders the text of a value, with `$?` for the unknown part.
pub(crate) fn render_value(value: &WordValue) -> String {
    match value {
        WordValue::Literal(text) | WordValue::Glob(text) => text.clone(),
        WordValue::Unknown { before, after, .. } => format!("{before}$?{after}"),
    }
}

fn expand_word_chars(
    word: &RawWord,
    variables: &VariableEnv<'_>,
    mode: ExpansionMode,
    causes: &mut Vec<UnanalyzableCause>,
) -> Vec<WordChar> {
    let mut chars = Vec::with_capacity(word.raw.len());
    let unknown_is_empty = matches!(mode, ExpansionMode::UnknownAsEmpty(_));
    let too_long = is_overlong(word, variables, mode);
    if too_long {
        causes.push(UnanalyzableCause::TooDeep);
    }
    for piece in &word.pieces {
        match piece {
            WordPiece::Variable { nonempty, .. } if too_long => {
                chars.push(WordChar::Unknown { nonempty: *nonempty });
            }
            WordPiece::Plain(text) => chars.extend(text.chars().map(WordChar::Plain)),
            WordPiece::Quoted(text) => chars.extend(text.chars().map(WordChar::Quoted)),
            WordPiece::Unknown if unknown_is_empty => {}
            WordPiece::Unknown => chars.push(WordChar::Unknown { nonempty: false }),
            WordPiece::Variable { name, quoted, nonempty } => {
                if name == "HOME" && !variables.is_home_fixed {
                    causes.push(UnanalyzableCause::Variable);
                }
                match variables.value(name, mode).filter(|text| variables.spend_text(text.len())) {
                    Some(text) if *quoted => chars.extend(text.chars().map(quoted_char)),
                    Some(text) => chars.extend(text.chars().map(WordChar::Expanded)),
                    None if unknown_is_empty && !nonempty => {}
                    None => chars.push(WordChar::Unknown { nonempty: *nonempty }),
                }
            }
        }
    }
    chars
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
fn is_overlong(word: &RawWord, variables: &VariableEnv<'_>, mode: ExpansionMode) -> bool {
    let lengths = word.pieces.iter().filter_map(|piece| match piece {
        WordPiece::Variable { name, .. } => Some(variables.value(name, mode).map_or(0, str::len)),
        WordPiece::Plain(_) | WordPiece::Quoted(_) | WordPiece::Unknown => None,
    });
    let (count, total) = lengths.fold((0, 0), |(count, total), length| (count + 1, total + length));
    count > 1 && total > MAX_JOINED_LENGTH
}

/// Expands `~` at the start of a word, and after `=` or `:` in an assignment.
fn expand_tilde(
    chars: Vec<WordChar>,
    variables: &VariableEnv<'_>,
    mode: ExpansionMode,
    causes: &mut Vec<UnanalyzableCause>,
) -> Vec<WordChar> {
    if !chars.contains(&WordChar::Plain('~')) {
        return chars;
    }
    let mut out = Vec::with_capacity(chars.len() + variables.home.len());
    let mut assigning = false;
    let mut resolved = 0;
    for (at, word_char) in chars.iter().enumerate() {
        if at < resolved {
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        assigning |= *word_char == WordChar::Plain('=');
        let starts_tilde = match before {
            None => true,
            Some(WordChar::Plain('=' | ':')) => assigning,
            Some(_) => false,
        };
        if *word_char != WordChar::Plain('~') || !starts_tilde {
            out.push(*word_char);
            continue;
        }
        match chars.get(at + 1) {
            None | Some(WordChar::Plain('/' | ':')) => {
                if before.is_some() || !variables.is_home_fixed {
                    causes.push(UnanalyzableCause::Variable);
                }
                match variables.value("HOME", mode) {
                    Some(home) => out.extend(home.chars().map(WordChar::Quoted)),
                    None => out.push(WordChar::Unknown { nonempty: false }),
                }
            }
            // `~+` is the current directory.
            Some(WordChar::Plain('+')) if matches!(chars.get(at + 2), None | Some(WordChar::Plain('/'))) => {
                causes.push(UnanalyzableCause::Variable);
                out.push(WordChar::Quoted('.'));
                resolved = at + 2;
            }
            // A quoted character in the prefix prevents tilde expansion.
            Some(WordChar::Quoted(_) | WordChar::Unknown { .. } | WordChar::Expanded(_)) => {
                out.push(WordChar::Quoted('~'));
            }
            Some(WordChar::Plain(_)) => {
                causes.push(UnanalyzableCause::Variable);
                match parse_tilde_user(chars.get(at + 1..).unwrap_or_default()) {
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

/// Parses the user name after `~`, if nothing else precedes the first slash.
fn parse_tilde_user(chars: &[WordChar]) -> Option<String> {
    let name = chars.iter().take_while(|word_char| **word_char != WordChar::Plain('/')).map(|word_char| {
        match word_char {
            WordChar::Plain(c) if c.is_ascii_lowercase() || *c == '_' => Some(*c),
            _ => None,
        }
    });
    name.collect::<Option<String>>().filter(|name| !name.is_empty())
}

/// Splits a word where values of variables are split.
fn split_words(chars: &[WordChar], raw: &str, variables: &VariableEnv<'_>) -> Vec<Word> {
    let blank =
        |word_char: &WordChar| matches!(word_char, WordChar::Expanded(c) if variables.is_separator(*c));
    if !chars.iter().any(blank) {
        if chars.is_empty() {
            return Vec::new();
        }
        return vec![Word { raw: raw.to_owned(), value: build_value(chars) }];
    }
    chars
        .split(blank)
        .filter(|chars| !chars.is_empty())
        .map(|chars| {
            let value = build_value(chars);
            Word { raw: render_value(&value), value }
        })
        .collect()
}

fn build_value(chars: &[WordChar]) -> WordValue {
    let unknown = |word_char: &WordChar| matches!(word_char, WordChar::Unknown { .. });
    if let (Some(first), Some(last)) = (chars.iter().position(unknown), chars.iter().rposition(unknown)) {
        let (before, rest) = chars.split_at(first);
        let after = rest.get(last - first + 1..).unwrap_or_default();
        let nonempty = rest
            .iter()
            .filter(|word_char| unknown(word_char))
            .all(|word_char| *word_char == WordChar::Unknown { nonempty: true });
        return WordValue::Unknown {
            before: render_plain_text(before),
            after: render_glob_pattern(after),
            nonempty,
        };
    }
    if is_glob(chars) {
        WordValue::Glob(render_glob_pattern(chars))
    } else {
        WordValue::Literal(render_plain_text(chars))
    }
}

fn is_glob(chars: &[WordChar]) -> bool {
    let mut open = false;
    chars.iter().any(|word_char| match word_char {
        WordChar::Plain('*' | '?') | WordChar::Expanded('*' | '?') => true,
        WordChar::Plain('[') | WordChar::Expanded('[') => {
            open = true;
            false
        }
        WordChar::Plain(']') | WordChar::Expanded(']') => open,
        _ => false,
    })
}

fn render_plain_text(chars: &[WordChar]) -> String {
    chars
        .iter()
        .filter_map(|word_char| match word_char {
            WordChar::Plain(c) | WordChar::Quoted(c) | WordChar::Expanded(c) => Some(*c),
            WordChar::Unknown { .. } => None,
        })
        .collect()
}

fn render_glob_pattern(chars: &[WordChar]) -> String {
    let mut out = String::with_capacity(chars.len());
    for word_char in chars {
        match word_char {
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
