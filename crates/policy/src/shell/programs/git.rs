//! `git`: read-only subcommands and flags, and the files of the others.

use super::allowed_options::{AllowedOptions, CheckedArgs, NONE_ALLOWED, check_args};
use super::argv::{NO_OPTIONS, OptionSpec, ParsedArgs, parse_args};
use super::effects::CommandEffects;
use crate::shell::{CommandClass, DirTarget, RequiredRule, Word, WordValue};

/// Global options with a value in the next word.
const GLOBAL_VALUE_OPTIONS: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"];

/// Global options that select other programs or another repository.
const RISKY_GLOBAL_OPTIONS: &[&str] = &["-c", "--config-env", "--exec-path", "--git-dir", "--work-tree"];

const HISTORY_OPTIONS: AllowedOptions = AllowedOptions {
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
    ..NONE_ALLOWED
};

const REVISION_OPTIONS: AllowedOptions = AllowedOptions {
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
    ..NONE_ALLOWED
};

/// Operands that a subcommand accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubcommandOperands {
    /// Revisions and paths.
    Any,
    /// None, unless one of these options makes them patterns of a listing.
    ListedBy(&'static [&'static str]),
    /// A pattern unless an option supplies one, then revisions and paths.
    PatternFirst,
}

const READ_ONLY_SUBCOMMANDS: &[(&str, AllowedOptions, SubcommandOperands)] = &[
    (
        "status",
        AllowedOptions {
            flags: "sbvz",
            long: &["short", "branch", "long", "show-stash"],
            long_optional: &["porcelain", "ignored"],
            ..NONE_ALLOWED
        },
        SubcommandOperands::Any,
    ),
    ("log", HISTORY_OPTIONS, SubcommandOperands::Any),
    ("show", HISTORY_OPTIONS, SubcommandOperands::Any),
    ("diff", HISTORY_OPTIONS, SubcommandOperands::Any),
    ("shortlog", HISTORY_OPTIONS, SubcommandOperands::Any),
    (
        "blame",
        AllowedOptions {
            flags: "ewsl",
            values: "L",
            long: &["porcelain"],
            long_values: &["date"],
            long_paths: &["ignore-revs-file"],
            ..NONE_ALLOWED
        },
        SubcommandOperands::Any,
    ),
    (
        "branch",
        AllowedOptions {
            flags: "arvl",
            long: &["all", "remotes", "show-current", "list"],
            long_values: &["sort"],
            long_optional: &["merged", "no-merged", "contains", "points-at"],
            ..NONE_ALLOWED
        },
        SubcommandOperands::ListedBy(&[
            "-l",
            "--list",
            "--merged",
            "--no-merged",
            "--contains",
            "--points-at",
        ]),
    ),
    (
        "tag",
        AllowedOptions {
            flags: "l",
            long: &["list"],
            long_values: &["sort"],
            long_optional: &["contains", "points-at"],
            ..NONE_ALLOWED
        },
        SubcommandOperands::ListedBy(&["-l", "--list", "--contains", "--points-at"]),
    ),
    ("rev-parse", REVISION_OPTIONS, SubcommandOperands::Any),
    ("rev-list", REVISION_OPTIONS, SubcommandOperands::Any),
    ("merge-base", REVISION_OPTIONS, SubcommandOperands::Any),
    ("describe", REVISION_OPTIONS, SubcommandOperands::Any),
    ("for-each-ref", REVISION_OPTIONS, SubcommandOperands::Any),
    ("ls-files", REVISION_OPTIONS, SubcommandOperands::Any),
    (
        "grep",
        AllowedOptions { flags: "inlcwvEFP", values: "e", long: &["cached"], ..NONE_ALLOWED },
        SubcommandOperands::PatternFirst,
    ),
];

/// Subcommands whose operands are files to read, for the deny analysis.
const READING_SUBCOMMANDS: &[&str] =
    &["add", "show", "log", "blame", "diff", "grep", "cat-file", "stash", "archive", "hash-object"];

/// Subcommands whose operands are files to change.
const WRITING_SUBCOMMANDS: &[&str] = &["checkout", "restore", "rm", "mv", "clean"];

/// Subcommands that may change any file: with one of the first options, or without operands if that list is empty.
/// The second options make them harmless.
const BULK_WRITING_SUBCOMMANDS: &[(&str, &[&str], &[&str])] = &[
    ("clean", &[], &["-n", "--dry-run"]),
    ("reset", &["--hard", "--merge", "--keep"], &[]),
    ("checkout", &["-f", "--force"], &[]),
    ("switch", &["-f", "--force", "--discard-changes"], &[]),
];

/// Actions of `git stash` that change no file.
const HARMLESS_STASH_ACTIONS: &[&str] = &["list", "show", "drop", "clear", "create", "store"];

/// Options of other subcommands, for the deny analysis.
const DENY_OPTIONS: OptionSpec = OptionSpec {
    values: "mnSGUL",
    long_values: &["grep", "author", "format", "pretty", "since", "until"],
    reads: &["-O", "--ignore-revs-file"],
    writes: &["--output"],
    ..NO_OPTIONS
};

/// The same for subcommands that write output files.
const OUTPUT_OPTIONS: OptionSpec =
    OptionSpec { values: "nNv", writes: &["-o", "--output", "--output-directory"], ..NO_OPTIONS };

/// Arguments from the subcommand on, without global options.
pub(crate) fn skip_global_options(arguments: &[Word]) -> &[Word] {
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        match first.value.as_literal() {
            Some(text) if GLOBAL_VALUE_OPTIONS.contains(&text) => rest = after.get(1..).unwrap_or_default(),
            Some(text) if text.starts_with('-') => rest = after,
            _ => break,
        }
    }
    rest
}

/// Determines the effects of a `git` command.
pub(crate) fn determine_effects(arguments: &[Word]) -> CommandEffects {
    let rest = skip_global_options(arguments);
    let globals = arguments.get(..arguments.len() - rest.len()).unwrap_or_default();
    let mut effects = determine_deny_effects(rest);
    let writes_output = effects.required_rule == RequiredRule::ExactRule;
    for (index, word) in globals.iter().enumerate() {
        let text = word.value.as_literal().unwrap_or("-c");
        if text == "-C" {
            effects.reads.extend(globals.get(index + 1).map(|word| word.value.clone()));
        }
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        if RISKY_GLOBAL_OPTIONS.contains(&name) || (text.starts_with("-c") && !text.starts_with("--")) {
            return effects.requiring_exact_rule();
        }
    }
    if writes_output {
        return effects.requiring_exact_rule();
    }
    if globals.is_empty() && is_read_only(rest) {
        effects.class = CommandClass::ReadOnly;
        effects.globs_require_permission = true;
    }
    effects
}

fn determine_deny_effects(rest: &[Word]) -> CommandEffects {
    let mut effects = CommandEffects { restricts_paths: true, ..CommandEffects::default() };
    let Some((subcommand, arguments)) = rest.split_first() else { return effects };
    let name = subcommand.value.as_literal().unwrap_or_default();
    let listed = READ_ONLY_SUBCOMMANDS.iter().any(|(listed, ..)| *listed == name);
    effects.globs_require_permission = listed || WRITING_SUBCOMMANDS.contains(&name);
    let spec = if matches!(name, "archive" | "format-patch") { &OUTPUT_OPTIONS } else { &DENY_OPTIONS };
    let mut args = parse_args(arguments, spec);
    let is_path = |value: &WordValue| !value.is_unknown() && value.known_start().contains('/');
    args.possible_files.retain(is_path);
    let skip = usize::from(name == "grep" && !args.has_option(&["-e", "-f"]));
    let files: Vec<WordValue> = args.all_reads(skip).iter().flat_map(with_path_in_revision).collect();
    effects.writes_recursively = true;
    if writes_in_bulk(name, &args) {
        effects.bulk_write_dirs.push(WordValue::Literal(".".to_owned()));
    }
    effects.writes = args.writes.clone();
    if !effects.writes.is_empty() {
        effects.required_rule = RequiredRule::ExactRule;
    }
    if name == "bundle" && arguments.first().and_then(|word| word.value.as_literal()) == Some("create") {
        effects.writes.extend(files.get(1).cloned());
    }
    if WRITING_SUBCOMMANDS.contains(&name) {
        if let (Some(directory), "mv") = (files.last(), name) {
            let dir_target =
                |from: &WordValue| DirTarget { directory: directory.clone(), source: from.clone() };
            effects.dir_targets = files.iter().map(dir_target).collect();
        }
        effects.writes.extend(files);
    } else if READING_SUBCOMMANDS.contains(&name) || listed {
        effects.reads = files;
        effects.recursive =
            matches!(name, "grep" | "diff" | "show" | "log" | "archive" | "add") && effects.reads.is_empty();
    }
    effects
}

/// Returns true if a subcommand may change any file of the work tree.
fn writes_in_bulk(name: &str, args: &ParsedArgs<'_>) -> bool {
    if name == "stash" {
        let action = args.operands.first().and_then(|value| value.as_literal());
        return action.is_none_or(|action| !HARMLESS_STASH_ACTIONS.contains(&action));
    }
    let row = BULK_WRITING_SUBCOMMANDS.iter().find(|(listed, ..)| *listed == name);
    row.is_some_and(|(_, options, harmless)| {
        let applies =
            if options.is_empty() { args.operands.is_empty() } else { args.may_have_option(options) };
        applies && !args.has_option(harmless)
    })
}

/// `REV:path` names a file of the tree.
fn with_path_in_revision(value: &WordValue) -> Vec<WordValue> {
    let mut values = vec![value.clone()];
    let inside = match value {
        WordValue::Literal(text) => text.split_once(':').map(|(_, path)| WordValue::Literal(path.to_owned())),
        WordValue::Glob(text) => text.split_once(':').map(|(_, path)| WordValue::Glob(path.to_owned())),
        WordValue::Unknown { .. } => None,
    };
    values.extend(inside.filter(|value| value.as_literal() != Some("")));
    values
}

fn is_read_only(rest: &[Word]) -> bool {
    let Some(texts) = rest.iter().map(|word| word.value.as_literal()).collect::<Option<Vec<&str>>>() else {
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
            Some((&"show", _)) => is_allowed_form("log", words.get(1..).unwrap_or_default()),
            Some((first, _)) => first.starts_with('-') && is_allowed_form("log", words),
        },
        "status" => {
            let untracked =
                |word: &Word| matches!(word.value.as_literal(), Some("-u" | "-uno" | "-unormal" | "-uall"));
            let others: Vec<Word> = words.iter().filter(|word| !untracked(word)).cloned().collect();
            is_allowed_form("status", &others)
        }
        name => is_allowed_form(name, words),
    }
}

fn is_allowed_form(name: &str, words: &[Word]) -> bool {
    let Some((_, options, operands)) = READ_ONLY_SUBCOMMANDS.iter().find(|(listed, ..)| *listed == name)
    else {
        return false;
    };
    let Some(checked) = check_args(words, options) else { return false };
    // A format may request signatures, which another program verifies.
    let signed = words.iter().any(|word| {
        word.value
            .as_literal()
            .is_some_and(|text| text.contains("%G") || text.to_ascii_lowercase().contains("signature"))
    });
    !signed && operands_fit(*operands, &checked)
}

fn operands_fit(operands: SubcommandOperands, checked: &CheckedArgs<'_>) -> bool {
    match operands {
        SubcommandOperands::Any | SubcommandOperands::PatternFirst => true,
        SubcommandOperands::ListedBy(options) => checked.operands.is_empty() || checked.has_option(options),
    }
}
