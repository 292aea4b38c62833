//! From words as they are written to what they stand for.

use super::braces;
use super::limits::PER_WORD;
use super::scope::{LAST, Reading, Scope};
use super::syntax::{Piece, RawWord};
use super::{Kind, Value, Word};

/// How much text several variables may bring into one word: with `x=$x$x` a value doubles each time.
const LONGEST_JOINED: usize = 4_096;

/// As how much text braces count that stand for too many words.
const TOO_MANY: usize = 4_096;

/// One character of a word, or a stretch that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Atom {
    /// A character outside quotes.
    Plain(char),
    /// A character that stands for itself.
    Quoted(char),
    /// A character out of a variable outside quotes: it may end the word or be a glob, but is no brace.
    Expanded(char),
    /// Not known.
    Unknown {
        /// Whether the shell stops if it is empty.
        guarded: bool,
    },
}

/// The words that a word stands for, mostly one, and the obstacles found on the way.
pub(super) fn expand(
    word: &RawWord,
    scope: &Scope<'_>,
    reading: Reading,
    kinds: &mut Vec<Kind>,
) -> Vec<Word> {
    if let [Piece::Plain(text)] = word.pieces.as_slice()
        && !text.contains(['~', '{', '*', '?', '['])
    {
        return vec![Word { raw: word.raw.clone(), value: Value::Literal(text.clone()) }];
    }
    let mut atoms = tilde(atoms(word, scope, reading, kinds), scope, reading, kinds);
    if !braces::possible(&atoms) {
        let mut words = split(&atoms, &word.raw, scope);
        let quoted = word.pieces.iter().any(|piece| matches!(piece, Piece::Quoted(_)));
        if words.is_empty() && quoted && !["$@", "${@}", "[@]}"].iter().any(|all| word.raw.contains(all)) {
            words.push(Word { raw: word.raw.clone(), value: Value::Literal(String::new()) });
        }
        return words;
    }
    kinds.push(Kind::Braces);
    let expanded = if scope.is_full() { None } else { braces::expand(&mut atoms) };
    let length = expanded.as_ref().map_or(TOO_MANY, |all| all.iter().map(|word| word.len() + PER_WORD).sum());
    let enough = scope.has_room(length);
    match expanded.filter(|_| enough) {
        Some(all) => all
            .into_iter()
            .flat_map(|atoms| split(&tilde(atoms, scope, reading, kinds), "", scope))
            .map(|word| Word { raw: text_of(&word.value), ..word })
            .collect(),
        None => vec![Word {
            raw: word.raw.clone(),
            value: Value::Unknown { before: String::new(), after: String::new(), guarded: false },
        }],
    }
}

/// What a word stands for where it is not split, as in an assignment or a redirect.
pub(super) fn single(word: &RawWord, scope: &Scope<'_>, kinds: &mut Vec<Kind>) -> Value {
    single_by(word, scope, LAST, kinds)
}

/// The same by some reading.
pub(super) fn single_by(word: &RawWord, scope: &Scope<'_>, reading: Reading, kinds: &mut Vec<Kind>) -> Value {
    value(&tilde(atoms(word, scope, reading, kinds), scope, reading, kinds))
}

/// The text of a value, as far as it has one.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Literal(text) | Value::Glob(text) => text.clone(),
        Value::Unknown { before, after, .. } => format!("{before}$?{after}"),
    }
}

fn atoms(word: &RawWord, scope: &Scope<'_>, reading: Reading, kinds: &mut Vec<Kind>) -> Vec<Atom> {
    let mut atoms = Vec::with_capacity(word.raw.len());
    let is_nothing = matches!(reading, Reading::Nothing(_));
    let overlong = is_overlong(word, scope, reading);
    if overlong {
        kinds.push(Kind::TooDeep);
    }
    for piece in &word.pieces {
        match piece {
            Piece::Variable { guarded, .. } if overlong => atoms.push(Atom::Unknown { guarded: *guarded }),
            Piece::Plain(text) => atoms.extend(text.chars().map(Atom::Plain)),
            Piece::Quoted(text) => atoms.extend(text.chars().map(Atom::Quoted)),
            Piece::Unknown if is_nothing => {}
            Piece::Unknown => atoms.push(Atom::Unknown { guarded: false }),
            Piece::Variable { name, quoted, guarded } => {
                if name == "HOME" && !scope.home_certain {
                    kinds.push(Kind::Variable);
                }
                match scope.value(name, reading).filter(|text| scope.has_room(text.len())) {
                    Some(text) if *quoted => atoms.extend(text.chars().map(quoted_atom)),
                    Some(text) => atoms.extend(text.chars().map(Atom::Expanded)),
                    None if is_nothing && !guarded => {}
                    None => atoms.push(Atom::Unknown { guarded: *guarded }),
                }
            }
        }
    }
    atoms
}

/// A character of a variable in quotes. The pattern of a loop stands for the files that it goes through.
fn quoted_atom(character: char) -> Atom {
    match character {
        '*' | '?' | '[' | ']' => Atom::Plain(character),
        _ => Atom::Quoted(character),
    }
}

/// Whether several variables bring more text into a word than is followed.
fn is_overlong(word: &RawWord, scope: &Scope<'_>, reading: Reading) -> bool {
    let lengths = word.pieces.iter().filter_map(|piece| match piece {
        Piece::Variable { name, .. } => Some(scope.value(name, reading).map_or(0, str::len)),
        Piece::Plain(_) | Piece::Quoted(_) | Piece::Unknown => None,
    });
    let (count, total) = lengths.fold((0, 0), |(count, total), length| (count + 1, total + length));
    count > 1 && total > LONGEST_JOINED
}

/// Resolves `~` at the start of a word, and after `=` or `:` in one that looks like an assignment.
fn tilde(atoms: Vec<Atom>, scope: &Scope<'_>, reading: Reading, kinds: &mut Vec<Kind>) -> Vec<Atom> {
    if !atoms.contains(&Atom::Plain('~')) {
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
        assigning |= *atom == Atom::Plain('=');
        let begins = match before {
            None => true,
            Some(Atom::Plain('=' | ':')) => assigning,
            Some(_) => false,
        };
        if *atom != Atom::Plain('~') || !begins {
            out.push(*atom);
            continue;
        }
        match atoms.get(at + 1) {
            None | Some(Atom::Plain('/' | ':')) => {
                if before.is_some() || !scope.home_certain {
                    kinds.push(Kind::Variable);
                }
                match scope.value("HOME", reading) {
                    Some(home) => out.extend(home.chars().map(Atom::Quoted)),
                    None => out.push(Atom::Unknown { guarded: false }),
                }
            }
            // The directory that the command is in.
            Some(Atom::Plain('+')) if matches!(atoms.get(at + 2), None | Some(Atom::Plain('/'))) => {
                kinds.push(Kind::Variable);
                out.push(Atom::Quoted('.'));
                resolved = at + 2;
            }
            // A quoted character in the prefix makes it plain text.
            Some(Atom::Quoted(_) | Atom::Unknown { .. } | Atom::Expanded(_)) => out.push(Atom::Quoted('~')),
            Some(Atom::Plain(_)) => {
                kinds.push(Kind::Variable);
                match user(atoms.get(at + 1..).unwrap_or_default()) {
                    Some(name) => {
                        // Where homes mostly are.
                        let home = if name == "root" { "/root".to_owned() } else { format!("/home/{name}") };
                        out.extend(home.chars().map(Atom::Quoted));
                        resolved = at + 1 + name.len();
                    }
                    None => out.push(Atom::Unknown { guarded: false }),
                }
            }
        }
    }
    out
}

/// The name of a user after `~`, if nothing else is there up to the first slash.
fn user(atoms: &[Atom]) -> Option<String> {
    let name = atoms.iter().take_while(|atom| **atom != Atom::Plain('/')).map(|atom| match atom {
        Atom::Plain(c) if c.is_ascii_lowercase() || *c == '_' => Some(*c),
        _ => None,
    });
    name.collect::<Option<String>>().filter(|name| !name.is_empty())
}

/// Splits where values of variables are split.
fn split(atoms: &[Atom], raw: &str, scope: &Scope<'_>) -> Vec<Word> {
    let blank = |atom: &Atom| matches!(atom, Atom::Expanded(c) if scope.splits(*c));
    if !atoms.iter().any(blank) {
        if atoms.is_empty() {
            return Vec::new();
        }
        return vec![Word { raw: raw.to_owned(), value: value(atoms) }];
    }
    atoms
        .split(blank)
        .filter(|atoms| !atoms.is_empty())
        .map(|atoms| {
            let value = value(atoms);
            Word { raw: text_of(&value), value }
        })
        .collect()
}

fn value(atoms: &[Atom]) -> Value {
    let unknown = |atom: &Atom| matches!(atom, Atom::Unknown { .. });
    if let (Some(first), Some(last)) = (atoms.iter().position(unknown), atoms.iter().rposition(unknown)) {
        let (before, rest) = atoms.split_at(first);
        let after = rest.get(last - first + 1..).unwrap_or_default();
        let guarded =
            rest.iter().filter(|atom| unknown(atom)).all(|atom| *atom == Atom::Unknown { guarded: true });
        return Value::Unknown { before: plain_text(before), after: pattern(after), guarded };
    }
    if is_glob(atoms) { Value::Glob(pattern(atoms)) } else { Value::Literal(plain_text(atoms)) }
}

fn is_glob(atoms: &[Atom]) -> bool {
    let mut open = false;
    atoms.iter().any(|atom| match atom {
        Atom::Plain('*' | '?') | Atom::Expanded('*' | '?') => true,
        Atom::Plain('[') | Atom::Expanded('[') => {
            open = true;
            false
        }
        Atom::Plain(']') | Atom::Expanded(']') => open,
        _ => false,
    })
}

fn plain_text(atoms: &[Atom]) -> String {
    atoms
        .iter()
        .filter_map(|atom| match atom {
            Atom::Plain(c) | Atom::Quoted(c) | Atom::Expanded(c) => Some(*c),
            Atom::Unknown { .. } => None,
        })
        .collect()
}

fn pattern(atoms: &[Atom]) -> String {
    let mut out = String::with_capacity(atoms.len());
    for atom in atoms {
        match atom {
            Atom::Quoted(c) => {
                if matches!(c, '*' | '?' | '[' | ']' | '\\') {
                    out.push('\\');
                }
                out.push(*c);
            }
            Atom::Plain(c) | Atom::Expanded(c) => out.push(*c),
            Atom::Unknown { .. } => {}
        }
    }
    out
}
