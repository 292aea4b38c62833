//! `git`: the subcommands and flags that only read, and the files of the others.

use super::facts::Facts;
use super::given::{Given, Known, NOTHING, read};
use super::options::{Arguments, NONE, Options, check};
use super::{By, Class, Landing, Value, Word};

/// Global options that have a value in the next word.
const GLOBAL_VALUES: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"];

/// Global options that make other programs or another repository count.
const GLOBAL_RISKS: &[&str] = &["-c", "--config-env", "--exec-path", "--git-dir", "--work-tree"];

const HISTORY: Options = Options {
    flags: "psuwbiMRe",
    values: "nUSG",
    paths: "O",
    long: &[
        "patch",
        "numstat",
        "shortstat",
        "summary",
        "name-only",
        "name-status",
        "oneline",
        "graph",
        "all",
        "abbrev-commit",
        "no-merges",
        "merges",
        "first-parent",
        "reverse",
        "topo-order",
        "follow",
        "no-color",
        "cached",
        "staged",
        "check",
        "quiet",
        "exit-code",
        "merge-base",
        "no-ext-diff",
        "no-textconv",
        "no-index",
    ],
    long_values: &[
        "max-count",
        "format",
        "date",
        "since",
        "until",
        "after",
        "before",
        "author",
        "grep",
        "diff-filter",
    ],
    long_optional: &["stat", "pretty", "decorate", "branches", "tags", "remotes", "word-diff", "color"],
    digits: true,
    ..NONE
};

const REVISIONS: Options = Options {
    flags: "cdmosz",
    long: &[
        "verify",
        "show-toplevel",
        "git-dir",
        "is-inside-work-tree",
        "count",
        "all",
        "left-right",
        "always",
        "others",
        "exclude-standard",
    ],
    long_values: &["format", "sort"],
    long_optional: &["short", "abbrev-ref", "tags", "dirty"],
    ..NONE
};

/// How the words after a subcommand are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Revisions and paths.
    Any,
    /// None, unless one of the options is there, which makes them patterns to list.
    ListedBy(&'static [&'static str]),
    /// A pattern unless an option gave one, then revisions and paths.
    PatternFirst,
}

const SUBCOMMANDS: &[(&str, Options, Operands)] = &[
    (
        "status",
        Options {
            flags: "sbvz",
            long: &["short", "branch", "long", "show-stash"],
            long_optional: &["porcelain", "ignored"],
            ..NONE
        },
        Operands::Any,
    ),
    ("log", HISTORY, Operands::Any),
    ("show", HISTORY, Operands::Any),
    ("diff", HISTORY, Operands::Any),
    ("shortlog", HISTORY, Operands::Any),
    (
        "blame",
        Options {
            flags: "ewsl",
            values: "L",
            long: &["porcelain"],
            long_values: &["date"],
            long_paths: &["ignore-revs-file"],
            ..NONE
        },
        Operands::Any,
    ),
    (
        "branch",
        Options {
            flags: "arvl",
            long: &["all", "remotes", "show-current", "list"],
            long_values: &["sort"],
            long_optional: &["merged", "no-merged", "contains", "points-at"],
            ..NONE
        },
        Operands::ListedBy(&["-l", "--list", "--merged", "--no-merged", "--contains", "--points-at"]),
    ),
    (
        "tag",
        Options {
            flags: "l",
            long: &["list"],
            long_values: &["sort"],
            long_optional: &["contains", "points-at"],
            ..NONE
        },
        Operands::ListedBy(&["-l", "--list", "--contains", "--points-at"]),
    ),
    ("rev-parse", REVISIONS, Operands::Any),
    ("rev-list", REVISIONS, Operands::Any),
    ("merge-base", REVISIONS, Operands::Any),
    ("describe", REVISIONS, Operands::Any),
    ("for-each-ref", REVISIONS, Operands::Any),
    ("ls-files", REVISIONS, Operands::Any),
    ("grep", Options { flags: "inlcwvEFP", values: "e", long: &["cached"], ..NONE }, Operands::PatternFirst),
];

/// Subcommands whose operands are files that are read, for refusing.
const READING: &[&str] =
    &["add", "show", "log", "blame", "diff", "grep", "cat-file", "stash", "archive", "hash-object"];

/// Subcommands whose operands are files that are changed.
const WRITING: &[&str] = &["checkout", "restore", "rm", "mv", "clean"];

/// Subcommands that change whatever they find if they have one of these options, or no operand where none is listed;
/// and the options with which they change nothing.
const SWEEPING: &[(&str, &[&str], &[&str])] = &[
    ("clean", &[], &["-n", "--dry-run"]),
    ("reset", &["--hard", "--merge", "--keep"], &[]),
    ("checkout", &["-f", "--force"], &[]),
    ("switch", &["-f", "--force", "--discard-changes"], &[]),
];

/// What `git stash` does without changing a file.
const KEEPING: &[&str] = &["list", "show", "drop", "clear", "create", "store"];

/// Options of the others, for refusing.
const WIDE: Known = Known {
    values: "mnSGUL",
    long_values: &["grep", "author", "format", "pretty", "since", "until"],
    reads: &["-O", "--ignore-revs-file"],
    writes: &["--output"],
    ..NOTHING
};

/// The same for those that put files somewhere.
const PUTTING: Known = Known { values: "nNv", writes: &["-o", "--output", "--output-directory"], ..NOTHING };

/// The words from the subcommand on, without the global options.
pub(super) fn without_globals(arguments: &[Word]) -> &[Word] {
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        match first.value.literal() {
            Some(text) if GLOBAL_VALUES.contains(&text) => rest = after.get(1..).unwrap_or_default(),
            Some(text) if text.starts_with('-') => rest = after,
            _ => break,
        }
    }
    rest
}

/// What a `git` command does.
pub(super) fn facts(arguments: &[Word]) -> Facts {
    let rest = without_globals(arguments);
    let globals = arguments.get(..arguments.len() - rest.len()).unwrap_or_default();
    let mut facts = wide(rest);
    let puts = facts.by == By::ExactRule;
    for (at, word) in globals.iter().enumerate() {
        let text = word.value.literal().unwrap_or("-c");
        if text == "-C" {
            facts.reads.extend(globals.get(at + 1).map(|word| word.value.clone()));
        }
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        if GLOBAL_RISKS.contains(&name) || (text.starts_with("-c") && !text.starts_with("--")) {
            return facts.exact_only();
        }
    }
    if puts {
        return facts.exact_only();
    }
    if globals.is_empty() && reads_only(rest) {
        facts.class = Class::ReadOnly;
        facts.minds_globs = true;
    }
    facts
}

fn wide(rest: &[Word]) -> Facts {
    let mut facts = Facts { scoped: true, ..Facts::default() };
    let Some((subcommand, arguments)) = rest.split_first() else { return facts };
    let name = subcommand.value.literal().unwrap_or_default();
    let listed = SUBCOMMANDS.iter().any(|(listed, ..)| *listed == name);
    facts.minds_globs = listed || WRITING.contains(&name);
    let known = if matches!(name, "archive" | "format-patch") { &PUTTING } else { &WIDE };
    let mut given = read(arguments, known);
    let is_path =
        |value: &Value| matches!(value, Value::Literal(text) | Value::Glob(text) if text.contains('/'));
    given.guesses.retain(is_path);
    let skip = usize::from(name == "grep" && !given.has(&["-e", "-f"]));
    let files: Vec<Value> = given.all_reads(skip).iter().flat_map(with_path_in_revision).collect();
    facts.changes_below = true;
    if sweeps(name, &given) {
        facts.sweeps.push(Value::Literal(".".to_owned()));
    }
    facts.writes = given.writes.clone();
    if !facts.writes.is_empty() {
        facts.by = By::ExactRule;
    }
    if name == "bundle" && arguments.first().and_then(|word| word.value.literal()) == Some("create") {
        facts.writes.extend(files.get(1).cloned());
    }
    if WRITING.contains(&name) {
        if let (Some(directory), "mv") = (files.last(), name) {
            let lands = |from: &Value| Landing { directory: directory.clone(), from: from.clone() };
            facts.lands = files.iter().map(lands).collect();
        }
        facts.writes.extend(files);
    } else if READING.contains(&name) || listed {
        facts.reads = files;
        facts.recursive =
            matches!(name, "grep" | "diff" | "show" | "log" | "archive" | "add") && facts.reads.is_empty();
    }
    facts
}

/// Whether a subcommand may change anything in the tree.
fn sweeps(name: &str, given: &Given<'_>) -> bool {
    if name == "stash" {
        let deed = given.operands.first().and_then(|value| value.literal());
        return deed.is_none_or(|deed| !KEEPING.contains(&deed));
    }
    let row = SWEEPING.iter().find(|(listed, ..)| *listed == name);
    row.is_some_and(|(_, options, harmless)| {
        let asked = if options.is_empty() { given.operands.is_empty() } else { given.may_have(options) };
        asked && !given.has(harmless)
    })
}

/// `REV:path` names a file of the tree.
fn with_path_in_revision(value: &Value) -> Vec<Value> {
    let mut values = vec![value.clone()];
    let inside = match value {
        Value::Literal(text) => text.split_once(':').map(|(_, path)| Value::Literal(path.to_owned())),
        Value::Glob(text) => text.split_once(':').map(|(_, path)| Value::Glob(path.to_owned())),
        Value::Unknown { .. } => None,
    };
    values.extend(inside.filter(|value| value.literal() != Some("")));
    values
}

fn reads_only(rest: &[Word]) -> bool {
    let Some(texts) = rest.iter().map(|word| word.value.literal()).collect::<Option<Vec<&str>>>() else {
        return false;
    };
    let Some((name, arguments)) = texts.split_first() else { return false };
    let words = rest.get(1..).unwrap_or_default();
    match *name {
        "remote" => matches!(arguments, [] | ["-v"]),
        "stash" => match arguments {
            ["list"] => true,
            ["show"] | ["show", "-p"] => true,
            ["show", reference] | ["show", "-p", reference] => !reference.starts_with('-'),
            _ => false,
        },
        "worktree" => matches!(arguments, ["list"] | ["list", "--porcelain"]),
        "config" => matches!(arguments, ["--get", key] if !key.starts_with('-')),
        "cat-file" => matches!(
            arguments,
            ["-t" | "-s" | "-e" | "-p" | "blob" | "tree" | "commit" | "tag", object] if !object.starts_with('-')
        ),
        "reflog" => match arguments.split_first() {
            None => true,
            Some((&"show", _)) => permitted("log", words.get(1..).unwrap_or_default()),
            Some((first, _)) => first.starts_with('-') && permitted("log", words),
        },
        "status" => {
            let untracked =
                |word: &Word| matches!(word.value.literal(), Some("-u" | "-uno" | "-unormal" | "-uall"));
            let others: Vec<Word> = words.iter().filter(|word| !untracked(word)).cloned().collect();
            permitted("status", &others)
        }
        name => permitted(name, words),
    }
}

fn permitted(name: &str, words: &[Word]) -> bool {
    let Some((_, options, operands)) = SUBCOMMANDS.iter().find(|(listed, ..)| *listed == name) else {
        return false;
    };
    let Some(sorted) = check(words, options) else { return false };
    // A format can ask for signatures, which another program checks.
    let signed = words.iter().any(|word| {
        word.value
            .literal()
            .is_some_and(|text| text.contains("%G") || text.to_ascii_lowercase().contains("signature"))
    });
    !signed && fits(*operands, &sorted)
}

fn fits(operands: Operands, sorted: &Arguments<'_>) -> bool {
    match operands {
        Operands::Any | Operands::PatternFirst => true,
        Operands::ListedBy(options) => sorted.operands.is_empty() || sorted.has(options),
    }
}
