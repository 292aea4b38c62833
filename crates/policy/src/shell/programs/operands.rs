//! Commands that are fully described by the files they read and write.

mod table;

use super::argv::{NO_OPTIONS, ParsedArgs, parse_args};
use super::effects::CommandEffects;
use crate::shell::{DirTarget, Word, WordValue};
use table::{OperandFiles, OperandRow, ROWS, TARGET_OPTIONS};

/// Effects of a listed command.
pub(crate) fn effects(name: &str, arguments: &[Word]) -> Option<CommandEffects> {
    let versioned = name
        .strip_prefix("python")
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    let row = ROWS.iter().find(|row| row.names.contains(&if versioned { "python" } else { name }))?;
    let given = parse_args(arguments, &row.options);
    let mut facts = CommandEffects {
        reads: given.reads.clone(),
        writes: given.writes.clone(),
        recursive: row.recursive.contains(&"*") || given.has_option(row.recursive),
        writes_recursively: writes_recursively(row, arguments, &given),
        restricts_paths: row.is_writer,
        asks_for_globs: row.is_writer,
        ..CommandEffects::default()
    };
    sort_operands(row, &given, &mut facts);
    add_guesses(row, &given, &mut facts);
    add_special_files(name, arguments, &given, &mut facts);
    // Standard output.
    facts.writes.retain(|value| value.as_literal() != Some("-"));
    Some(facts)
}

/// Returns true if it changes everything below what it writes. An unknown word may be the option for that.
fn writes_recursively(row: &OperandRow, arguments: &[Word], given: &ParsedArgs<'_>) -> bool {
    let unknown = || arguments.iter().any(|word| word.value.as_literal().is_none());
    row.recursive_writes.contains(&"*")
        || given.may_have_option(row.recursive_writes)
        || !row.recursive_writes.is_empty() && unknown()
}

/// Like `effects`, for a command that may not be listed: its operands count as read then.
pub(crate) fn effects_or_reads(name: &str, arguments: &[Word]) -> CommandEffects {
    effects(name, arguments).unwrap_or_else(|| CommandEffects {
        reads: parse_args(arguments, &NO_OPTIONS).all_reads(0),
        ..CommandEffects::default()
    })
}

fn sort_operands(row: &OperandRow, given: &ParsedArgs<'_>, facts: &mut CommandEffects) {
    let operands: Vec<WordValue> = file_operands(given).cloned().collect();
    match row.files {
        OperandFiles::Read => facts.reads.extend(operands),
        OperandFiles::ReadAfterFirst(options) => {
            facts.reads.extend(operands.into_iter().skip(usize::from(!given.has_option(options))));
        }
        OperandFiles::Written => facts.writes.extend(operands),
        OperandFiles::WrittenAfterFirst => {
            facts.writes.extend(operands.into_iter().skip(usize::from(!given.has_option(&["--reference"]))));
        }
        OperandFiles::Changed(unless) => {
            if !given.has_option(unless) {
                facts.writes.extend(operands.iter().cloned());
            }
            facts.reads.extend(operands);
        }
        OperandFiles::Copied | OperandFiles::Moved => add_copy(row, given, operands, facts),
        OperandFiles::ByOptions => {}
    }
}

/// Adds a copy: the last operand is the target, or the directory named by an option. Files go into it if it is a
/// directory.
fn add_copy(row: &OperandRow, given: &ParsedArgs<'_>, operands: Vec<WordValue>, facts: &mut CommandEffects) {
    let mut sources = operands;
    let by_option = given.has_unknown_option || given.has_option(TARGET_OPTIONS);
    let mut targets = if by_option { given.writes.clone() } else { Vec::new() };
    if !given.has_option(TARGET_OPTIONS) && sources.len() != 1 {
        let target = sources.pop();
        facts.writes.extend(target.clone());
        targets.extend(target);
    }
    if targets.is_empty() {
        // With one operand the copy or link goes to the working directory.
        targets.push(literal("."));
    }
    for directory in &targets {
        let lands =
            sources.iter().map(|from| DirTarget { directory: directory.clone(), source: from.clone() });
        facts.dir_targets.extend(lands);
    }
    if row.files == OperandFiles::Moved {
        facts.writes.extend(sources.iter().cloned());
    }
    facts.reads.extend(sources);
}

/// Adds the values of unknown options, and operands that may be such values, as possible files.
fn add_guesses(row: &OperandRow, given: &ParsedArgs<'_>, facts: &mut CommandEffects) {
    facts.reads.extend(given.possible_files.iter().cloned());
    if row.is_writer && given.has_unknown_option {
        let possible: Vec<WordValue> = file_operands(given).chain(&given.possible_files).cloned().collect();
        facts.reads.extend(file_operands(given).cloned());
        facts.writes.extend(possible);
    }
}

fn file_operands<'a>(given: &'a ParsedArgs<'_>) -> impl Iterator<Item = &'a WordValue> {
    given.operands.iter().copied().filter(|value| !is_remote(value))
}

/// Returns true for `host:path` and URLs, which are not local files.
fn is_remote(value: &WordValue) -> bool {
    value.as_literal().is_some_and(|text| {
        text.split_once(':')
            .is_some_and(|(host, _)| !host.is_empty() && !host.contains('/') && !host.contains('.'))
            || text.contains("://")
    })
}

/// Adds files of programs with their own argument syntax.
fn add_special_files(name: &str, arguments: &[Word], given: &ParsedArgs<'_>, facts: &mut CommandEffects) {
    match name {
        "dd" => add_dd_files(arguments, facts),
        "curl" => {
            for text in arguments.iter().filter_map(|word| word.value.as_literal()) {
                let scheme = text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file://"));
                if let Some(path) = text.get(7..).filter(|_| scheme) {
                    facts.reads.push(literal(path.strip_prefix("localhost").unwrap_or(path)));
                } else if let Some((_, path)) = text.split_once('@').or_else(|| text.split_once("=<"))
                    && !text.contains("://")
                {
                    facts.reads.push(literal(path.split(';').next().unwrap_or(path)));
                }
            }
            if given.has_option(&["-O", "--remote-name", "--remote-name-all"]) {
                facts.dir_targets.extend(downloaded_files(arguments, given));
            }
        }
        "wget" if !given.has_option(&["-O", "--output-document"]) => {
            facts.dir_targets.extend(downloaded_files(arguments, given))
        }
        "install" if given.has_option(&["-d", "--directory"]) => {
            facts.writes.extend(file_operands(given).cloned())
        }
        "tar" => {
            // The archive may be written or read; letters without a dash take one word each.
            facts.reads.extend(given.writes.iter().cloned());
            let bundle = arguments.first().and_then(|word| word.value.as_literal()).unwrap_or_default();
            let taking = bundle.chars().filter(|letter| "fTXCbgIKLNV".contains(*letter));
            if bundle.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                let named = taking.zip(arguments.iter().skip(1)).filter(|(letter, _)| *letter == 'f');
                facts.writes.extend(named.map(|(_, word)| word.value.clone()));
            }
            let extracts = given.may_have_option(&["-x", "--extract", "--get"])
                || !bundle.starts_with('-') && !bundle.contains(['/', '.']) && bundle.contains('x');
            if extracts {
                let letters = bundle.chars().filter(|letter| "fTXCbgIFKLNV".contains(*letter));
                let named = letters.zip(arguments.iter().skip(1)).filter(|(letter, _)| *letter == 'C');
                facts.bulk_write_dirs = named.map(|(_, word)| word.value.clone()).collect();
                facts.bulk_write_dirs.extend(super::directories::option_directories_of(name, arguments));
            }
        }
        // The first operand is read; the next one is written, or is the prefix of written names.
        "split" | "uniq" | "xxd" => facts.writes.extend(file_operands(given).skip(1).cloned()),
        // `-m` removes the packed files.
        "zip" if given.may_have_option(&["-m", "--move"]) => {
            facts.writes.extend(file_operands(given).cloned());
            facts.writes_recursively = true;
        }
        "zip" => facts.writes.extend(file_operands(given).take(1).cloned()),
        "awk" | "gawk" | "perl" | "ruby" if works_in_place(name, arguments) => {
            facts.writes.extend(file_operands(given).cloned());
        }
        _ => {}
    }
}

/// Returns true if a program edits its files in place.
fn works_in_place(name: &str, arguments: &[Word]) -> bool {
    let mut texts = arguments.iter().filter_map(|word| word.value.as_literal());
    if name.ends_with("awk") {
        return texts.any(|text| text.trim_start_matches("--include=").trim_start_matches("-i") == "inplace");
    }
    // These letters take the rest of the word.
    texts.any(|text| {
        let bundle = text.strip_prefix('-').unwrap_or_default();
        bundle.chars().take_while(|letter| !"-eEmMIxCDFrK".contains(*letter)).any(|letter| letter == 'i')
    })
}

/// Adds the files of `dd if=FILE of=FILE`.
fn add_dd_files(arguments: &[Word], facts: &mut CommandEffects) {
    facts.reads.clear();
    facts.restricts_paths = true;
    facts.asks_for_globs = true;
    for word in arguments {
        let text = word.value.as_literal().unwrap_or(&word.raw);
        let value =
            |path: &str| if word.value.as_literal().is_some() { literal(path) } else { word.value.clone() };
        if let Some(path) = text.strip_prefix("if=") {
            facts.reads.push(value(path));
        } else if let Some(path) = text.strip_prefix("of=") {
            facts.writes.push(value(path));
        }
    }
}

/// Files downloaded under the name in their URL.
fn downloaded_files<'a>(
    arguments: &'a [Word],
    given: &ParsedArgs<'_>,
) -> impl Iterator<Item = DirTarget> + 'a {
    let directories = if given.writes.is_empty() { vec![literal(".")] } else { given.writes.clone() };
    arguments.iter().flat_map(move |word| {
        let path = match &word.value {
            WordValue::Literal(text) | WordValue::Glob(text) => {
                text.split(['?', '#']).next().unwrap_or_default()
            }
            WordValue::Unknown { .. } => "",
        };
        let path = path.split_once("://").map_or(path, |(_, path)| path);
        let from = path.contains('/').then(|| literal(path));
        let lands = directories.iter().map(move |directory| Some((directory, from.clone()?)));
        lands
            .flatten()
            .map(|(directory, source)| DirTarget { directory: directory.clone(), source })
            .collect::<Vec<_>>()
    })
}

fn literal(text: &str) -> WordValue {
    WordValue::Literal(text.to_owned())
}

#[cfg(test)]
mod tests;
