//! Commands that are read-only with any flags. One row each.

use super::argv::{NO_OPTIONS, OptionSpec, parse_args};
use super::builtins;
use super::effects::CommandEffects;
use crate::shell::{CommandClass, RequiredRule, Word, WordValue};

/// A command that is read-only with any flags.
#[derive(Debug)]
struct ReadOnlyProgram {
    name: &'static str,
    /// Letters and long options with a value that is not a file.
    values: &'static str,
    long_values: &'static [&'static str],
    /// Options whose value is a file.
    paths: &'static [&'static str],
    /// Options with which it is not read-only.
    disallowed: &'static [&'static str],
    /// Options that make it recursive; `*` if it always is.
    recursive: &'static [&'static str],
}

const fn reader(name: &'static str, values: &'static str) -> ReadOnlyProgram {
    ReadOnlyProgram { name, values, long_values: &[], paths: &[], disallowed: &[], recursive: &[] }
}

const READERS: &[ReadOnlyProgram] = &[
    ReadOnlyProgram { recursive: &["-R", "--recursive"], ..reader("ls", "ITw") },
    reader("cat", ""),
    ReadOnlyProgram { long_values: &["separator"], ..reader("tac", "s") },
    reader("nl", "bdfhilnsvw"),
    reader("rev", ""),
    ReadOnlyProgram { long_values: &["lines", "bytes"], ..reader("head", "nc") },
    ReadOnlyProgram { long_values: &["lines", "bytes", "pid", "sleep-interval"], ..reader("tail", "ncs") },
    ReadOnlyProgram { disallowed: &["--files0-from"], ..reader("wc", "") },
    ReadOnlyProgram {
        long_values: &["delimiter", "fields", "characters", "bytes", "output-delimiter"],
        ..reader("cut", "bcdf")
    },
    ReadOnlyProgram { long_values: &["delimiters"], ..reader("paste", "d") },
    ReadOnlyProgram { long_values: &["output-delimiter"], ..reader("comm", "") },
    ReadOnlyProgram {
        long_values: &["separator", "output-separator", "output-width"],
        ..reader("column", "cosNHRTWOrpil")
    },
    reader("fold", "w"),
    reader("fmt", "wpg"),
    reader("expand", "t"),
    reader("unexpand", "t"),
    reader("pr", "ehilnNosSwWD"),
    ReadOnlyProgram {
        long_values: &["address-radix", "skip-bytes", "read-bytes", "format"],
        ..reader("od", "AjNStw")
    },
    ReadOnlyProgram { paths: &["-f"], ..reader("hexdump", "ens") },
    reader("strings", "entTds"),
    ReadOnlyProgram { long_values: &["format", "printf"], ..reader("stat", "c") },
    ReadOnlyProgram {
        long_values: &["max-depth", "exclude", "block-size", "threshold", "time-style"],
        paths: &["-X", "--exclude-from"],
        disallowed: &["--files0-from"],
        recursive: &["*"],
        ..reader("du", "dBt")
    },
    ReadOnlyProgram { long_values: &["output", "type", "exclude-type", "block-size"], ..reader("df", "Btx") },
    ReadOnlyProgram {
        long_values: &["label", "ignore-matching-lines", "exclude", "width", "unified", "context"],
        paths: &["-X", "--exclude-from", "--from-file", "--to-file"],
        disallowed: &["-l", "--paginate"],
        // Directories are compared file by file, even without an option.
        recursive: &["*"],
        ..reader("diff", "IFLWxSUC")
    },
    ReadOnlyProgram { long_values: &["ignore-initial", "bytes"], ..reader("cmp", "in") },
    ReadOnlyProgram { paths: &["--relative-to", "--relative-base"], ..reader("realpath", "") },
    reader("readlink", ""),
    reader("tsort", ""),
];

/// Commands that access no files, with any arguments.
const FILELESS_READERS: &[&str] = &[
    "tr", "numfmt", "expr", "seq", "cal", "echo", "true", "false", "whoami", "id", "groups", "uname", "arch",
    "nproc", "uptime", "free", "locale", "which", "type", "basename", "dirname", "sleep",
];

/// Determines the effects of such a command; `None` if it is not listed.
pub(crate) fn determine_effects(name: &str, arguments: &[Word]) -> Option<CommandEffects> {
    if FILELESS_READERS.contains(&name) {
        return Some(CommandEffects {
            class: CommandClass::ReadOnly,
            restricts_paths: true,
            ..CommandEffects::default()
        });
    }
    if let Some(read_only) = check_fileless_reader(name, arguments) {
        let (class, required_rule) = if read_only {
            (CommandClass::ReadOnly, RequiredRule::AnyRule)
        } else {
            (CommandClass::Other, RequiredRule::NamingRule)
        };
        return Some(CommandEffects {
            class,
            required_rule,
            restricts_paths: true,
            ..CommandEffects::default()
        });
    }
    let row = READERS.iter().find(|row| row.name == name)?;
    let spec =
        OptionSpec { values: row.values, long_values: row.long_values, reads: row.paths, ..NO_OPTIONS };
    let parsed = parse_args(arguments, &spec);
    let disallowed = parsed.options.iter().any(|seen| {
        row.disallowed.iter().any(|disallowed| {
            // Long options may be abbreviated.
            seen == disallowed
                || (seen.len() > 3 && disallowed.starts_with("--") && disallowed.starts_with(seen.as_str()))
        })
    });
    let reads_list = name == "strings" && parsed.operands.iter().any(|operand| begins_with(operand, '@'));
    let certain = arguments.iter().all(|word| !word.value.is_unknown());
    let class =
        if disallowed || reads_list || !certain { CommandClass::Other } else { CommandClass::ReadOnly };
    let recursive = row.recursive.contains(&"*") || parsed.has_option(row.recursive);
    Some(CommandEffects {
        class,
        reads: parsed.all_reads(0),
        recursive,
        restricts_paths: true,
        ..CommandEffects::default()
    })
}

fn begins_with(value: &WordValue, wanted: char) -> bool {
    match value {
        WordValue::Literal(text) | WordValue::Glob(text) => text.starts_with(wanted),
        WordValue::Unknown { .. } => true,
    }
}

/// Returns true if a `printf` format may contain `%n`, which assigns the number of printed characters to a variable.
fn format_sets_variable(format: &str) -> bool {
    let details = |c: char| c.is_ascii_digit() || "-+ #.*'hlLjzt".contains(c);
    format == UNKNOWN_WORD
        || format.split('%').skip(1).any(|conversion| conversion.trim_start_matches(details).starts_with('n'))
}

/// Represents an unknown word.
const UNKNOWN_WORD: &str = "\0";

/// Checks commands without files that are read-only only in some forms; `None` if the command is not one of them.
fn check_fileless_reader(name: &str, arguments: &[Word]) -> Option<bool> {
    let texts: Vec<&str> =
        arguments.iter().map(|word| word.value.as_literal().unwrap_or(UNKNOWN_WORD)).collect();
    Some(match name {
        "pwd" => matches!(texts.as_slice(), [] | ["-L" | "-P"]),
        "printf" => match texts.as_slice() {
            ["--", format, ..] => !format_sets_variable(format),
            [format, ..] => !format.starts_with('-') && !format_sets_variable(format),
            [] => false,
        },
        "history" => match texts.as_slice() {
            [] => true,
            [number] => !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()),
            _ => false,
        },
        // A file name matched by a glob could be an operator.
        "test" | "[" if texts.contains(&UNKNOWN_WORD) => false,
        "test" => !builtins::evaluates_operands(texts.into_iter()),
        "[" => texts.last() == Some(&"]") && !builtins::evaluates_operands(texts.into_iter()),
        _ => return None,
    })
}
