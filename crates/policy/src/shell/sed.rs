//! `sed`: printing lines, one substitution, and everything else.

use super::facts::Facts;
use super::given::{Known, NOTHING, read};
use super::{Class, Value, Word};

/// What a `sed` command does.
pub(super) fn facts(arguments: &[Word]) -> Facts {
    let mut facts = wide(arguments);
    let Some((options, rest)) = options(arguments) else { return unclear(facts, arguments) };
    let Some(script) = rest.first().and_then(|word| word.value.literal()) else {
        return unclear(facts, arguments);
    };
    let files = rest.get(1..).unwrap_or_default();
    let plain = files.iter().all(|file| file.value.literal().is_some_and(|text| !text.starts_with('-')));
    let in_place = options.contains(&"-i");
    let quiet = options.contains(&"-n");
    if plain && quiet && !in_place && prints_lines(script) {
        facts.class = Class::ReadOnly;
        facts.writes.clear();
        return facts;
    }
    if plain && is_substitution(script) {
        if files.is_empty() && !in_place {
            facts.class = Class::ReadOnly;
            return facts;
        }
        if !files.is_empty() && !quiet {
            facts.class = Class::AcceptEdits;
            return facts;
        }
    }
    unclear(facts, arguments)
}

/// The options in front, if all are of the plain kind, and the rest.
fn options(arguments: &[Word]) -> Option<(Vec<&str>, &[Word])> {
    let mut options = Vec::new();
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        let text = first.value.literal()?;
        if !text.starts_with('-') {
            break;
        }
        if !matches!(text, "-n" | "-E" | "-r" | "-i") {
            return None;
        }
        options.push(text);
        rest = after;
    }
    Some((options, rest))
}

/// `5p`, `1,3p`, joined by `;`.
pub(super) fn prints_lines(script: &str) -> bool {
    let number =
        |text: &str| !text.is_empty() && text.len() < 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    script.split(';').all(|command| {
        command.trim().strip_suffix('p').is_some_and(|range| match range.split_once(',') {
            Some((from, to)) => number(from) && number(to),
            None => number(range),
        })
    })
}

/// One `s` command with harmless flags.
pub(super) fn is_substitution(script: &str) -> bool {
    let mut characters = script.trim_matches(' ').chars();
    if characters.next() != Some('s') {
        return false;
    }
    let Some(delimiter) = characters.next().filter(|c| "/|#,:".contains(*c)) else { return false };
    let mut parts = 0;
    let mut flags = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\n' => return false,
            _ if parts == 2 => flags.push(character),
            '\\' if characters.next().is_none_or(|escaped| escaped == '\n') => return false,
            // In a bracket expression the delimiter would not end the part.
            '[' if parts == 0 => return bracketed(script, delimiter),
            _ if character == delimiter => parts += 1,
            _ => {}
        }
    }
    parts == 2 && flags_are_harmless(&flags)
}

/// With brackets in the pattern: only if nothing after the last delimiter or inside could be a command.
fn bracketed(script: &str, delimiter: char) -> bool {
    let body = script.trim_matches(' ').get(2..).unwrap_or_default();
    let parts: Vec<&str> = body.split(delimiter).collect();
    match parts.as_slice() {
        [_, _, flags] => flags_are_harmless(flags) && !body.contains(['\n', '\\']),
        _ => false,
    }
}

fn flags_are_harmless(flags: &str) -> bool {
    flags.bytes().all(|flag| b"gpiImM0123456789".contains(&flag))
}

/// All that might be a file, for refusing.
fn wide(arguments: &[Word]) -> Facts {
    let known = Known {
        values: "el",
        long_values: &["expression", "line-length"],
        reads: &["-f", "--file"],
        ..NOTHING
    };
    let given = read(arguments, &known);
    let scripted = given.has(&["-e", "-f"])
        || given
            .seen
            .iter()
            .any(|seen| seen.len() > 2 && ["--expression", "--file"].iter().any(|o| o.starts_with(seen)));
    let files = given.all_reads(usize::from(!scripted));
    let mut reads = files.clone();
    let mut writes = files;
    for text in arguments.iter().filter_map(|word| word.value.literal()) {
        if !is_substitution(text) && !prints_lines(text) {
            writes.extend(named_after(text, ['w', 'W']));
            reads.extend(named_after(text, ['r', 'R']));
        }
    }
    Facts { reads, writes, scoped: true, minds_globs: true, ..Facts::default() }
}

/// The files that a script may name behind one of these letters: each reaches to the end of its line.
fn named_after(script: &str, letters: [char; 2]) -> Vec<Value> {
    const MOST: usize = 32;
    let found = script.match_indices(letters).take(MOST);
    let rest = found.filter_map(|(at, letter)| script.get(at + letter.len()..)?.lines().next());
    let named = rest.map(|rest| rest.trim_start_matches(' '));
    named.filter(|path| !path.is_empty()).map(|path| Value::Literal(path.to_owned())).collect()
}

/// Not one of the plain forms: commands that write, run or load make it exact-only.
fn unclear(facts: Facts, arguments: &[Word]) -> Facts {
    let risky = arguments.iter().any(|word| {
        let text = word.value.literal().unwrap_or("w");
        match text.strip_prefix('-') {
            Some(option) => option.contains('f') || text.starts_with("--file") || reaches_out(option),
            None => reaches_out(text),
        }
    });
    if risky { facts.exact_only() } else { facts }
}

/// Whether a script may write, read another file or run something. A file name may be taken for one; that asks.
fn reaches_out(script: &str) -> bool {
    if is_substitution(script) {
        return false;
    }
    // Text inside an `s` or `y` command and its like cannot be told apart safely, so any such letter counts where a
    // command could stand: at the start, after an address, a separator, a brace or the flags of `s`.
    let bytes = script.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        b"wWerRF".contains(byte)
            && match at.checked_sub(1).and_then(|at| bytes.get(at)) {
                None => true,
                Some(before) => !before.is_ascii_alphabetic() || b"gpiImM".contains(before),
            }
            && looks_like_script(script)
    })
}

fn looks_like_script(text: &str) -> bool {
    text.contains([' ', ';', '{', '/', '|', '#', ',', ':', '$', '\n'])
        || text.bytes().all(|byte| byte.is_ascii_digit() || b"wWerRF".contains(&byte))
        || text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_substitution_is_harmless() {
        let rows = [
            ("s/a/b/", true),
            ("s/a/b/g", true),
            ("s|a|b|2", true),
            ("s/[a-z]/x/", true),
            ("s/a/b/w f", false),
            ("s/a/b/e", false),
            ("s/a/b/;e id", false),
            ("s/[/]/b/e id/", false),
            ("s/a\\/b/c/", true),
            ("s/a/b", false),
            ("s/a/\nb/", false),
            ("1d", false),
            ("saxbx", false),
        ];
        for (script, expected) in rows {
            assert_eq!(is_substitution(script), expected, "{script}");
        }
    }
}
