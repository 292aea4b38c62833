//! Commands that are read-only with the listed flags only. One row each; irregular ones have a function.

use super::allowed_options::{AllowedOptions, CheckedArgs, NONE_ALLOWED, check_args};
use super::effects::CommandEffects;
use crate::shell::{CommandClass, Word, WordValue};

/// Operands that a checked command accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperandKind {
    /// Files to read.
    Files,
    /// A pattern unless an option gave one, then files.
    PatternThenFiles,
    None,
    /// At most one file.
    OneFile,
}

struct Row {
    name: &'static str,
    options: AllowedOptions,
    operands: OperandKind,
    /// Options that supply the pattern, so that the first operand is a file.
    patterns: &'static [&'static str],
    /// True if unquoted globs are accepted.
    globs: bool,
    /// Options that make it recursive; `*` if it always is.
    recursive: &'static [&'static str],
}

const ROW: Row = Row {
    name: "",
    options: NONE_ALLOWED,
    operands: OperandKind::Files,
    patterns: &[],
    globs: false,
    recursive: &[],
};

const GREP: AllowedOptions = AllowedOptions {
    flags: "abcEFGHhIiLlnoPqrsTUvwxyZz",
    values: "ABCmedD",
    paths: "f",
    long: &[
        "text",
        "byte-offset",
        "count",
        "extended-regexp",
        "fixed-strings",
        "basic-regexp",
        "with-filename",
        "no-filename",
        "ignore-case",
        "no-ignore-case",
        "files-without-match",
        "files-with-matches",
        "line-number",
        "only-matching",
        "perl-regexp",
        "quiet",
        "silent",
        "recursive",
        "no-messages",
        "initial-tab",
        "binary",
        "invert-match",
        "word-regexp",
        "line-regexp",
        "null",
        "null-data",
        "line-buffered",
    ],
    long_values: &[
        "after-context",
        "before-context",
        "context",
        "max-count",
        "regexp",
        "directories",
        "include",
        "exclude",
        "exclude-dir",
        "label",
        "binary-files",
    ],
    long_optional: &["color", "colour"],
    long_paths: &["file", "exclude-from"],
    digits: true,
};

const SUM: Row = Row {
    options: AllowedOptions { flags: "btz", long: &["binary", "text", "zero", "tag"], ..NONE_ALLOWED },
    ..ROW
};

const ROWS: &[Row] = &[
    Row {
        name: "grep",
        options: GREP,
        operands: OperandKind::PatternThenFiles,
        patterns: &["-e", "-f", "--regexp", "--file"],
        globs: true,
        recursive: &["-r", "-d", "--recursive", "--directories"],
    },
    Row {
        name: "egrep",
        options: GREP,
        operands: OperandKind::PatternThenFiles,
        patterns: &["-e", "-f", "--regexp", "--file"],
        globs: true,
        recursive: &["-r", "-d", "--recursive", "--directories"],
    },
    Row {
        name: "fgrep",
        options: GREP,
        operands: OperandKind::PatternThenFiles,
        patterns: &["-e", "-f", "--regexp", "--file"],
        globs: true,
        recursive: &["-r", "-d", "--recursive", "--directories"],
    },
    Row {
        name: "rg",
        options: AllowedOptions {
            flags: "isSlcnNovwxFHIuaq",
            values: "ABCmegtT",
            paths: "f",
            long: &["hidden", "no-ignore", "json", "stats", "no-heading", "type-list"],
            long_values: &["color", "glob", "type", "max-count", "max-depth"],
            ..NONE_ALLOWED
        },
        operands: OperandKind::PatternThenFiles,
        patterns: &["-e", "-f", "--type-list"],
        globs: false,
        recursive: &["*"],
    },
    Row {
        name: "sort",
        options: AllowedOptions {
            flags: "bdfghiMnRrVcCmsuz",
            values: "ktS",
            long: &[
                "ignore-leading-blanks",
                "dictionary-order",
                "ignore-case",
                "general-numeric-sort",
                "human-numeric-sort",
                "ignore-nonprinting",
                "month-sort",
                "numeric-sort",
                "random-sort",
                "reverse",
                "version-sort",
                "merge",
                "stable",
                "unique",
                "zero-terminated",
            ],
            long_values: &["key", "field-separator", "buffer-size", "parallel"],
            long_optional: &["check", "sort"],
            ..NONE_ALLOWED
        },
        ..ROW
    },
    Row {
        name: "uniq",
        options: AllowedOptions { flags: "cdDuiz", values: "fsw", ..NONE_ALLOWED },
        operands: OperandKind::None,
        ..ROW
    },
    Row {
        name: "tree",
        options: AllowedOptions {
            flags: "adfipshDFrtJXCn",
            values: "LIP",
            long: &["dirsfirst", "noreport", "prune"],
            ..NONE_ALLOWED
        },
        recursive: &["*"],
        ..ROW
    },
    Row {
        name: "file",
        options: AllowedOptions { flags: "biLhkrs0", long: &["mime", "mime-type", "brief"], ..NONE_ALLOWED },
        ..ROW
    },
    Row {
        name: "hostname",
        options: AllowedOptions { flags: "sfI", ..NONE_ALLOWED },
        operands: OperandKind::None,
        ..ROW
    },
    Row {
        name: "base64",
        options: AllowedOptions { flags: "dDi", values: "w", long: &["decode"], ..NONE_ALLOWED },
        operands: OperandKind::OneFile,
        ..ROW
    },
    Row { name: "md5sum", ..SUM },
    Row { name: "sha1sum", ..SUM },
    Row { name: "sha224sum", ..SUM },
    Row { name: "sha256sum", ..SUM },
    Row { name: "sha384sum", ..SUM },
    Row { name: "sha512sum", ..SUM },
];

/// Determines the effects of a checked command; `None` if it is not listed.
pub(crate) fn determine_effects(name: &str, arguments: &[Word]) -> Option<CommandEffects> {
    let row = ROWS.iter().find(|row| row.name == name);
    let read_only = match (name, row) {
        (_, Some(row)) => {
            check_args(arguments, &row.options).and_then(|checked| determine_row_effects(row, &checked))
        }
        ("date", _) => determine_date_effects(arguments),
        ("ps", _) => is_read_only_ps(arguments).then(CommandEffects::default),
        ("node" | "python" | "python3", _) => is_version_query(name, arguments).then(CommandEffects::default),
        _ => return None,
    };
    let globs = arguments.iter().any(|word| matches!(word.value, WordValue::Glob(_)));
    let takes_globs = row.is_some_and(|row| row.globs);
    match read_only {
        Some(effects) if takes_globs || !globs => Some(CommandEffects {
            class: CommandClass::ReadOnly,
            restricts_paths: true,
            globs_require_permission: !takes_globs,
            ..effects
        }),
        _ if matches!(name, "node" | "python" | "python3") => {
            super::operands::determine_effects(name, arguments)
        }
        // With other flags it is not read-only, but possible files are still reported.
        _ => Some(CommandEffects {
            restricts_paths: true,
            globs_require_permission: !takes_globs,
            ..super::operands::determine_effects_or_reads(name, arguments)
        }),
    }
}

fn determine_row_effects(row: &Row, checked: &CheckedArgs<'_>) -> Option<CommandEffects> {
    let skip =
        usize::from(row.operands == OperandKind::PatternThenFiles && !checked.has_option(row.patterns));
    let max_operands = match row.operands {
        OperandKind::None => 0,
        OperandKind::OneFile => 1,
        OperandKind::Files | OperandKind::PatternThenFiles => usize::MAX,
    };
    // `-D` selects the treatment of devices; only skipping them is harmless.
    let devices = row.name.ends_with("grep") && checked.has_option(&["-D"]);
    // A glob as pattern expands to files: the first becomes the pattern, the others are read.
    let has_glob_pattern =
        checked.operands.iter().take(skip).any(|pattern| matches!(pattern, WordValue::Glob(_)));
    if checked.operands.len() > max_operands || devices || has_glob_pattern {
        return None;
    }
    let recursive = row.recursive.contains(&"*") || checked.has_option(row.recursive);
    let mut reads = checked.read_values(skip);
    if recursive && checked.operands.len() <= skip {
        reads.push(WordValue::Literal(".".to_owned()));
    }
    Some(CommandEffects { reads, recursive, ..CommandEffects::default() })
}

fn determine_date_effects(arguments: &[Word]) -> Option<CommandEffects> {
    let options = AllowedOptions {
        flags: "uR",
        values: "d",
        paths: "r",
        long: &["utc"],
        long_values: &["date", "rfc-3339"],
        long_paths: &["reference"],
        ..NONE_ALLOWED
    };
    let iso = |word: &&Word| {
        let text = word.value.as_literal().unwrap_or_default();
        !matches!(text, "-I" | "-Idate" | "-Ihours" | "-Iminutes" | "-Iseconds" | "-Ins")
    };
    let others: Vec<Word> = arguments.iter().filter(iso).cloned().collect();
    let checked = check_args(&others, &options)?;
    let formats =
        checked.operands.iter().all(|operand| operand.as_literal().is_some_and(|text| text.starts_with('+')));
    formats.then(|| CommandEffects { reads: checked.paths.clone(), ..CommandEffects::default() })
}

fn is_read_only_ps(arguments: &[Word]) -> bool {
    let Some(checked) = check_args(
        arguments,
        &AllowedOptions { flags: "efAalw", values: "up", long: &["forest"], ..NONE_ALLOWED },
    ) else {
        return false;
    };
    checked.operands.iter().all(|operand| matches!(operand.as_literal(), Some("aux" | "ax" | "axf")))
}

fn is_version_query(name: &str, arguments: &[Word]) -> bool {
    match arguments {
        [only] => match only.value.as_literal() {
            Some("--version") => true,
            Some("-v") => name == "node",
            _ => false,
        },
        _ => false,
    }
}
