//! Commands that are fully described by the files they read and write.

mod table;

use super::argv::{NO_OPTIONS, ParsedArgs, parse_args};
use super::effects::CommandEffects;
use crate::shell::{DirTarget, Word, WordValue};
use table::{OperandFiles, OperandRow, ROWS, TARGET_OPTIONS};

/// Determines the effects of a listed command.
pub(crate) fn determine_effects(name: &str, arguments: &[Word]) -> Option<CommandEffects> {
    let versioned = name
        .strip_prefix("python")
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
    let row = ROWS.iter().find(|row| row.names.contains(&if versioned { "python" } else { name }))?;
    let args = parse_args(arguments, &row.options);
    let mut effects = CommandEffects {
        reads: args.reads.clone(),
        writes: args.writes.clone(),
        recursive: row.recursive.contains(&"*") || args.has_option(row.recursive),
        writes_recursively: writes_recursively(row, arguments, &args),
        restricts_paths: row.is_writer,
        globs_require_permission: row.is_writer,
        ..CommandEffects::default()
    };
    sort_operands(row, &args, &mut effects);
    add_possible_files(row, &args, &mut effects);
    add_special_files(name, arguments, &args, &mut effects);
    // Standard output.
    effects.writes.retain(|value| value.as_literal() != Some("-"));
    Some(effects)
}

/// Returns true if it changes everything below what it writes. An unknown word may be the option for that.
fn writes_recursively(row: &OperandRow, arguments: &[Word], args: &ParsedArgs<'_>) -> bool {
    let unknown = || arguments.iter().any(|word| word.value.as_literal().is_none());
    row.recursive_writes.contains(&"*")
        || args.may_have_option(row.recursive_writes)
        || !row.recursive_writes.is_empty() && unknown()
}

/// Like `determine_effects`, for a command that may not be listed: its operands count as read then.
pub(crate) fn determine_effects_or_reads(name: &str, arguments: &[Word]) -> CommandEffects {
    determine_effects(name, arguments).unwrap_or_else(|| CommandEffects {
        reads: parse_args(arguments, &NO_OPTIONS).all_reads(0),
        ..CommandEffects::default()
    })
}

fn sort_operands(row: &OperandRow, args: &ParsedArgs<'_>, effects: &mut CommandEffects) {
    let operands: Vec<WordValue> = file_operands(args).cloned().collect();
    match row.files {
        OperandFiles::Read => effects.reads.extend(operands),
        OperandFiles::ReadAfterFirst(options) => {
            effects.reads.extend(operands.into_iter().skip(usize::from(!args.has_option(options))));
        }
        OperandFiles::Written => effects.writes.extend(operands),
        OperandFiles::WrittenAfterFirst => {
            effects.writes.extend(operands.into_iter().skip(usize::from(!args.has_option(&["--reference"]))));
        }
        OperandFiles::Changed(unless) => {
            if !args.has_option(unless) {
                effects.writes.extend(operands.iter().cloned());
            }
            effects.reads.extend(operands);
        }
        OperandFiles::Copied | OperandFiles::Moved => add_copy(row, args, operands, effects),
        OperandFiles::ByOptions => {}
    }
}

/// Adds a copy: the last operand is the target, or the directory named by an option. Files go into it if it is a
/// directory.
fn add_copy(row: &OperandRow, args: &ParsedArgs<'_>, operands: Vec<WordValue>, effects: &mut CommandEffects) {
    let mut sources = operands;
    let by_option = args.has_unknown_option || args.has_option(TARGET_OPTIONS);
    let mut targets = if by_option { args.writes.clone() } else { Vec::new() };
    if !args.has_option(TARGET_OPTIONS) && sources.len() != 1 {
        let target = sources.pop();
        effects.writes.extend(target.clone());
        targets.extend(target);
    }
    if targets.is_empty() {
        // With one operand the copy or link goes to the working directory.
        targets.push(literal("."));
    }
    for directory in &targets {
        let dir_targets =
            sources.iter().map(|from| DirTarget { directory: directory.clone(), source: from.clone() });
        effects.dir_targets.extend(dir_targets);
    }
    if row.files == OperandFiles::Moved {
        effects.writes.extend(sources.iter().cloned());
    }
    effects.reads.extend(sources);
}

/// Adds the values of unknown options, and operands that may be such values, as possible files.
fn add_possible_files(row: &OperandRow, args: &ParsedArgs<'_>, effects: &mut CommandEffects) {
    effects.reads.extend(args.possible_files.iter().cloned());
    if row.is_writer && args.has_unknown_option {
        let possible: Vec<WordValue> = file_operands(args).chain(&args.possible_files).cloned().collect();
        effects.reads.extend(file_operands(args).cloned());
        effects.writes.extend(possible);
    }
}

fn file_operands<'a>(args: &'a ParsedArgs<'_>) -> impl Iterator<Item = &'a WordValue> {
    args.operands.iter().copied().filter(|value| !is_remote(value))
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
fn add_special_files(name: &str, arguments: &[Word], args: &ParsedArgs<'_>, effects: &mut CommandEffects) {
    match name {
        "dd" => add_dd_files(arguments, effects),
        "curl" => {
            for text in arguments.iter().filter_map(|word| word.value.as_literal()) {
                let scheme = text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file://"));
                if let Some(path) = text.get(7..).filter(|_| scheme) {
                    effects.reads.push(literal(path.strip_prefix("localhost").unwrap_or(path)));
                } else if let Some((_, path)) = text.split_once('@').or_else(|| text.split_once("=<"))
                    && !text.contains("://")
                {
                    effects.reads.push(literal(path.split(';').next().unwrap_or(path)));
                }
            }
            if args.has_option(&["-O", "--remote-name", "--remote-name-all"]) {
                effects.dir_targets.extend(downloaded_files(arguments, args));
            }
        }
        "wget" if !args.has_option(&["-O", "--output-document"]) => {
            effects.dir_targets.extend(downloaded_files(arguments, args));
        }
        "install" if args.has_option(&["-d", "--directory"]) => {
            effects.writes.extend(file_operands(args).cloned());
        }
        "tar" => {
            // The archive may be written or read; letters without a dash take one word each.
            effects.reads.extend(args.writes.iter().cloned());
            let bundle = arguments.first().and_then(|word| word.value.as_literal()).unwrap_or_default();
            let value_letters = bundle.chars().filter(|letter| "fTXCbgIKLNV".contains(*letter));
            if bundle.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                let named = value_letters.zip(arguments.iter().skip(1)).filter(|(letter, _)| *letter == 'f');
                effects.writes.extend(named.map(|(_, word)| word.value.clone()));
            }
            let extracts = args.may_have_option(&["-x", "--extract", "--get"])
                || !bundle.starts_with('-') && !bundle.contains(['/', '.']) && bundle.contains('x');
            if extracts {
                let letters = bundle.chars().filter(|letter| "fTXCbgIFKLNV".contains(*letter));
                let named = letters.zip(arguments.iter().skip(1)).filter(|(letter, _)| *letter == 'C');
                effects.bulk_write_dirs = named.map(|(_, word)| word.value.clone()).collect();
                effects
                    .bulk_write_dirs
                    .extend(super::directories::find_option_directories_of(name, arguments));
            }
        }
        // The first operand is read; the next one is written, or is the prefix of written names.
        "split" | "uniq" | "xxd" => effects.writes.extend(file_operands(args).skip(1).cloned()),
        // `-m` removes the packed files.
        "zip" if args.may_have_option(&["-m", "--move"]) => {
            effects.writes.extend(file_operands(args).cloned());
            effects.writes_recursively = true;
        }
        "zip" => effects.writes.extend(file_operands(args).take(1).cloned()),
        "awk" | "gawk" | "perl" | "ruby" if works_in_place(name, arguments) => {
            effects.writes.extend(file_operands(args).cloned());
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
fn add_dd_files(arguments: &[Word], effects: &mut CommandEffects) {
    effects.reads.clear();
    effects.restricts_paths = true;
    effects.globs_require_permission = true;
    for word in arguments {
        let text = word.value.as_literal().unwrap_or(&word.raw);
        let value =
            |path: &str| if word.value.as_literal().is_some() { literal(path) } else { word.value.clone() };
        if let Some(path) = text.strip_prefix("if=") {
            effects.reads.push(value(path));
        } else if let Some(path) = text.strip_prefix("of=") {
            effects.writes.push(value(path));
        }
    }
}

/// Files downloaded under the name in their URL.
fn downloaded_files<'a>(
    arguments: &'a [Word],
    args: &ParsedArgs<'_>,
) -> impl Iterator<Item = DirTarget> + 'a {
    let directories = if args.writes.is_empty() { vec![literal(".")] } else { args.writes.clone() };
    arguments.iter().flat_map(move |word| {
        let path = match &word.value {
            WordValue::Literal(text) | WordValue::Glob(text) => {
                text.split(['?', '#']).next().unwrap_or_default()
            }
            WordValue::Unknown { .. } => "",
        };
        let path = path.split_once("://").map_or(path, |(_, path)| path);
        let from = path.contains('/').then(|| literal(path));
        let dir_targets = directories.iter().map(move |directory| Some((directory, from.clone()?)));
        dir_targets
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
