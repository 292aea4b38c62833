//! Commands that only read with the flags listed. One row each; the odd ones have a function.

use super::facts::Facts;
use super::options::{Arguments, NONE, Options, check};
use super::{Class, Value, Word};

/// What the operands of a checked command are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Files to read.
    Files,
    /// A pattern unless an option gave one, then files.
    PatternThenFiles,
    /// There may be none.
    None,
    /// At most one file.
    OneFile,
}

struct Row {
    name: &'static str,
    options: Options,
    operands: Operands,
    /// Options after which the first operand is a file already.
    patterns: &'static [&'static str],
    /// Whether unquoted globs are taken.
    globs: bool,
    /// Options that make it go down into directories; `*` if it always does.
    recursive: &'static [&'static str],
}

const ROW: Row =
    Row { name: "", options: NONE, operands: Operands::Files, patterns: &[], globs: false, recursive: &[] };

const GREP: Options = Options {
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

const SUM: Row =
    Row { options: Options { flags: "btz", long: &["binary", "text", "zero", "tag"], ..NONE }, ..ROW };

const ROWS: &[Row] = &[
    Row {
        name: "grep",
        options: GREP,
        operands: Operands::PatternThenFiles,
        patterns: &["-e", "-f", "--regexp", "--file"],
        globs: true,
        recursive: &["-r", "-d", "--recursive", "--directories"],
    },
    Row {
        name: "egrep",
        options: GREP,
        operands: Operands::PatternThenFiles,
        patterns: &["-e", "-f", "--regexp", "--file"],
        globs: true,
        recursive: &["-r", "-d", "--recursive", "--directories"],
    },
    Row {
        name: "fgrep",
        options: GREP,
        operands: Operands::PatternThenFiles,
        patterns: &["-e", "-f", "--regexp", "--file"],
        globs: true,
        recursive: &["-r", "-d", "--recursive", "--directories"],
    },
    Row {
        name: "rg",
        options: Options {
            flags: "isSlcnNovwxFHIuaq",
            values: "ABCmegtT",
            paths: "f",
            long: &["hidden", "no-ignore", "json", "stats", "no-heading", "type-list"],
            long_values: &["color", "glob", "type", "max-count", "max-depth"],
            ..NONE
        },
        operands: Operands::PatternThenFiles,
        patterns: &["-e", "-f", "--type-list"],
        globs: false,
        recursive: &["*"],
    },
    Row {
        name: "sort",
        options: Options {
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
            ..NONE
        },
        ..ROW
    },
    Row {
        name: "uniq",
        options: Options { flags: "cdDuiz", values: "fsw", ..NONE },
        operands: Operands::None,
        ..ROW
    },
    Row {
        name: "tree",
        options: Options {
            flags: "adfipshDFrtJXCn",
            values: "LIP",
            long: &["dirsfirst", "noreport", "prune"],
            ..NONE
        },
        recursive: &["*"],
        ..ROW
    },
    Row {
        name: "file",
        options: Options { flags: "biLhkrs0", long: &["mime", "mime-type", "brief"], ..NONE },
        ..ROW
    },
    Row { name: "hostname", options: Options { flags: "sfI", ..NONE }, operands: Operands::None, ..ROW },
    Row {
        name: "base64",
        options: Options { flags: "dDi", values: "w", long: &["decode"], ..NONE },
        operands: Operands::OneFile,
        ..ROW
    },
    Row { name: "md5sum", ..SUM },
    Row { name: "sha1sum", ..SUM },
    Row { name: "sha224sum", ..SUM },
    Row { name: "sha256sum", ..SUM },
    Row { name: "sha384sum", ..SUM },
    Row { name: "sha512sum", ..SUM },
];

/// What such a command does, if it is one.
pub(super) fn facts(name: &str, arguments: &[Word]) -> Option<Facts> {
    let row = ROWS.iter().find(|row| row.name == name);
    let read_only = match (name, row) {
        (_, Some(row)) => check(arguments, &row.options).and_then(|sorted| by_row(row, &sorted)),
        ("date", _) => date(arguments),
        ("ps", _) => processes(arguments).then(Facts::default),
        ("node" | "python" | "python3", _) => version(name, arguments).then(Facts::default),
        _ => return None,
    };
    let globs = arguments.iter().any(|word| matches!(word.value, Value::Glob(_)));
    let takes_globs = row.is_some_and(|row| row.globs);
    match read_only {
        Some(facts) if takes_globs || !globs => {
            Some(Facts { class: Class::ReadOnly, scoped: true, minds_globs: !takes_globs, ..facts })
        }
        _ if matches!(name, "node" | "python" | "python3") => super::operands::facts(name, arguments),
        // With other flags: not read-only, but what looks like a file is searched all the same.
        _ => {
            Some(Facts { scoped: true, minds_globs: !takes_globs, ..super::operands::loose(name, arguments) })
        }
    }
}

fn by_row(row: &Row, sorted: &Arguments<'_>) -> Option<Facts> {
    let skip = usize::from(row.operands == Operands::PatternThenFiles && !sorted.has(row.patterns));
    let most = match row.operands {
        Operands::None => 0,
        Operands::OneFile => 1,
        Operands::Files | Operands::PatternThenFiles => usize::MAX,
    };
    // `-D` decides what happens with devices; only to skip them is harmless.
    let devices = row.name.ends_with("grep") && sorted.has(&["-D"]);
    // A glob in place of the pattern finds files: the first is the pattern, the others are read.
    let wild = sorted.operands.iter().take(skip).any(|pattern| matches!(pattern, Value::Glob(_)));
    if sorted.operands.len() > most || devices || wild {
        return None;
    }
    let recursive = row.recursive.contains(&"*") || sorted.has(row.recursive);
    let mut reads = sorted.reads(skip);
    if recursive && sorted.operands.len() <= skip {
        reads.push(Value::Literal(".".to_owned()));
    }
    Some(Facts { reads, recursive, ..Facts::default() })
}

fn date(arguments: &[Word]) -> Option<Facts> {
    let options = Options {
        flags: "uR",
        values: "d",
        paths: "r",
        long: &["utc"],
        long_values: &["date", "rfc-3339"],
        long_paths: &["reference"],
        ..NONE
    };
    let iso = |word: &&Word| {
        let text = word.value.literal().unwrap_or_default();
        !matches!(text, "-I" | "-Idate" | "-Ihours" | "-Iminutes" | "-Iseconds" | "-Ins")
    };
    let others: Vec<Word> = arguments.iter().filter(iso).cloned().collect();
    let sorted = check(&others, &options)?;
    let formats =
        sorted.operands.iter().all(|operand| operand.literal().is_some_and(|text| text.starts_with('+')));
    formats.then(|| Facts { reads: sorted.paths.clone(), ..Facts::default() })
}

fn processes(arguments: &[Word]) -> bool {
    let Some(sorted) =
        check(arguments, &Options { flags: "efAalw", values: "up", long: &["forest"], ..NONE })
    else {
        return false;
    };
    sorted.operands.iter().all(|operand| matches!(operand.literal(), Some("aux" | "ax" | "axf")))
}

fn version(name: &str, arguments: &[Word]) -> bool {
    match arguments {
        [only] => match only.value.literal() {
            Some("--version") => true,
            Some("-v") => name == "node",
            _ => false,
        },
        _ => false,
    }
}
