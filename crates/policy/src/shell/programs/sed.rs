//! `sed`: printing lines, a single substitution, and everything else.

use super::argv::{NO_OPTIONS, OptionSpec, parse_args};
use super::effects::CommandEffects;
use crate::shell::{CommandClass, Word, WordValue};

/// Determines the effects of a `sed` command.
pub(crate) fn determine_effects(arguments: &[Word]) -> CommandEffects {
    let mut effects = determine_deny_effects(arguments);
    let Some((options, rest)) = split_leading_options(arguments) else {
        return restrict_unclear_effects(effects, arguments);
    };
    let Some(script) = rest.first().and_then(|word| word.value.as_literal()) else {
        return restrict_unclear_effects(effects, arguments);
    };
    let files = rest.get(1..).unwrap_or_default();
    let plain = files.iter().all(|file| file.value.as_literal().is_some_and(|text| !text.starts_with('-')));
    let in_place = options.contains(&"-i");
    let quiet = options.contains(&"-n");
    if plain && quiet && !in_place && only_prints_lines(script) {
        effects.class = CommandClass::ReadOnly;
        effects.writes.clear();
        return effects;
    }
    if plain && is_harmless_substitution(script) {
        if files.is_empty() && !in_place {
            effects.class = CommandClass::ReadOnly;
            return effects;
        }
        if !files.is_empty() && !quiet {
            effects.class = CommandClass::AcceptEdits;
            return effects;
        }
    }
    restrict_unclear_effects(effects, arguments)
}

/// Splits off the leading options; `None` if one of them is not plain.
fn split_leading_options(arguments: &[Word]) -> Option<(Vec<&str>, &[Word])> {
    let mut options = Vec::new();
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        let text = first.value.as_literal()?;
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

/// Returns true for `5p`, `1,3p`, joined by `;`.
pub(crate) fn only_prints_lines(script: &str) -> bool {
    let number =
        |text: &str| !text.is_empty() && text.len() < 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    script.split(';').all(|command| {
        command.trim().strip_suffix('p').is_some_and(|range| match range.split_once(',') {
            Some((from, to)) => number(from) && number(to),
            None => number(range),
        })
    })
}

/// Returns true for a single `s` command with harmless flags.
pub(crate) fn is_harmless_substitution(script: &str) -> bool {
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
            // A delimiter in a bracket expression does not end the pattern.
            '[' if parts == 0 => return is_harmless_with_brackets(script, delimiter),
            _ if character == delimiter => parts += 1,
            _ => {}
        }
    }
    parts == 2 && are_flags_harmless(&flags)
}

/// With brackets in the pattern: true only if nothing could be a command.
fn is_harmless_with_brackets(script: &str, delimiter: char) -> bool {
    let body = script.trim_matches(' ').get(2..).unwrap_or_default();
    let parts: Vec<&str> = body.split(delimiter).collect();
    match parts.as_slice() {
        [_, _, flags] => are_flags_harmless(flags) && !body.contains(['\n', '\\']),
        _ => false,
    }
}

fn are_flags_harmless(flags: &str) -> bool {
    flags.bytes().all(|flag| b"gpiImM0123456789".contains(&flag))
}

/// Determines all possible files, for the deny analysis.
fn determine_deny_effects(arguments: &[Word]) -> CommandEffects {
    let spec = OptionSpec {
        values: "el",
        long_values: &["expression", "line-length"],
        reads: &["-f", "--file"],
        ..NO_OPTIONS
    };
    let args = parse_args(arguments, &spec);
    let has_script_option = args.has_option(&["-e", "-f"])
        || args
            .options
            .iter()
            .any(|seen| seen.len() > 2 && ["--expression", "--file"].iter().any(|o| o.starts_with(seen)));
    let files = args.all_reads(usize::from(!has_script_option));
    let mut reads = files.clone();
    let mut writes = files;
    for text in arguments.iter().filter_map(|word| word.value.as_literal()) {
        if !is_harmless_substitution(text) && !only_prints_lines(text) {
            writes.extend(find_files_after_letter(text, ['w', 'W']));
            reads.extend(find_files_after_letter(text, ['r', 'R']));
        }
    }
    CommandEffects {
        reads,
        writes,
        restricts_paths: true,
        globs_require_permission: true,
        ..CommandEffects::default()
    }
}

/// Finds files that a script may name after one of these letters, each up to the end of its line.
fn find_files_after_letter(script: &str, letters: [char; 2]) -> Vec<WordValue> {
    const MAX_FILES: usize = 32;
    let found = script.match_indices(letters).take(MAX_FILES);
    let rest = found.filter_map(|(at, letter)| script.get(at + letter.len()..)?.lines().next());
    let named = rest.map(|rest| rest.trim_start_matches(' '));
    named.filter(|path| !path.is_empty()).map(|path| WordValue::Literal(path.to_owned())).collect()
}

/// Restricts the effects of other forms: scripts that write, run or load files require an exact rule.
fn restrict_unclear_effects(effects: CommandEffects, arguments: &[Word]) -> CommandEffects {
    let risky = arguments.iter().any(|word| {
        let text = word.value.as_literal().unwrap_or("w");
        match text.strip_prefix('-') {
            Some(option) => {
                option.contains('f') || text.starts_with("--file") || may_access_files_or_run(option)
            }
            None => may_access_files_or_run(text),
        }
    });
    if risky { effects.requiring_exact_rule() } else { effects }
}

/// Returns true if a script may write, read another file or run something. A file name may look like one; that
/// only leads to a permission request.
fn may_access_files_or_run(script: &str) -> bool {
    if is_harmless_substitution(script) {
        return false;
    }
    // The text of `s`, `y` and similar commands cannot be separated reliably, so each such letter counts where a
    // command could start: at the start, after an address, a separator, a brace or the flags of `s`.
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
    fn single_substitution_is_harmless() {
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
            assert_eq!(is_harmless_substitution(script), expected, "{script}");
        }
    }
}
