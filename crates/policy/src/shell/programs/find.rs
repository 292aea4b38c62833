//! `find`: read-only searches, and searches with actions.

use super::effects::{self, CommandEffects};
use super::operands;
use crate::shell::nested::placeholders;
use crate::shell::{CommandClass, Word, WordValue};

/// Tests and actions without argument that only read.
const PLAIN_TESTS: &[&str] = &[
    "-empty",
    "-readable",
    "-writable",
    "-executable",
    "-nouser",
    "-nogroup",
    "-true",
    "-false",
    "-depth",
    "-mount",
    "-xdev",
    "-daystart",
    "-prune",
    "-quit",
    "-print",
    "-print0",
    "-ls",
    "-follow",
    "!",
    "-not",
    "-a",
    "-and",
    "-o",
    "-or",
    ",",
    "(",
    ")",
];

/// Tests and actions with one argument that only read.
const TESTS_WITH_VALUE: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-atime",
    "-ctime",
    "-mtime",
    "-amin",
    "-cmin",
    "-mmin",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-maxdepth",
    "-mindepth",
    "-printf",
];

/// Actions that run commands, remove or write.
const ACTIONS: &[&str] = &[
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-delete",
    "-fprint",
    "-fprint0",
    "-fprintf",
    "-fls",
    "-files0-from",
];

/// Determines the effects of a `find` command.
pub(crate) fn determine_effects(arguments: &[Word]) -> CommandEffects {
    let mut effects = CommandEffects {
        reads: find_starting_points(arguments),
        recursive: true,
        restricts_paths: true,
        globs_require_permission: true,
        ..CommandEffects::default()
    };
    let mut words = arguments.iter().map(|word| (word.value.as_literal().unwrap_or_default(), &word.value));
    while let Some((text, _)) = words.next() {
        let file = words.clone().next().map(|(_, value)| value.clone());
        if text.starts_with("-newer") || text == "-samefile" || text == "-files0-from" {
            effects.reads.extend(file);
        } else if matches!(text, "-fprint" | "-fprint0" | "-fprintf" | "-fls") {
            effects.writes.extend(file);
        }
    }
    if changes_found_files(arguments) {
        effects.writes.extend(find_starting_points(arguments));
    }
    // An unknown word may be an action.
    let has_action =
        arguments.iter().any(|word| word.value.as_literal().is_none_or(|text| ACTIONS.contains(&text)));
    if has_action {
        let only_glob = arguments.iter().all(|word| !word.value.is_unknown())
            && !arguments
                .iter()
                .any(|word| word.value.as_literal().is_some_and(|text| ACTIONS.contains(&text)));
        return if only_glob { effects } else { effects.requiring_exact_rule() };
    }
    if is_search_only(arguments) {
        effects.class = CommandClass::ReadOnly;
    }
    effects
}

/// Returns true if found files are removed, or passed to a command that changes files.
fn changes_found_files(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| word.value.as_literal() == Some("-delete"))
        || find_exec_commands(arguments).iter().any(|command| changes_files(command))
}

/// Returns true if a command, or one behind its first words, changes the files it gets.
fn changes_files(command: &[Word]) -> bool {
    const MAX_NAME_WORDS: usize = 8;
    const MAX_ARGUMENTS: usize = 64;
    (0..command.len().min(MAX_NAME_WORDS)).any(|start| {
        let name = command.get(start);
        let arguments: &[Word] =
            command.get(start + 1..command.len().min(start + MAX_ARGUMENTS)).unwrap_or_default();
        let name = name
            .and_then(|word| word.value.as_literal())
            .map(effects::extract_program_name)
            .unwrap_or_default();
        let writes = |effects: CommandEffects| effects.restricts_paths && !effects.writes.is_empty();
        name == "sed" || operands::determine_effects(&name, arguments).is_some_and(writes)
    })
}

/// Finds starting points of the search.
pub(crate) fn find_starting_points(arguments: &[Word]) -> Vec<WordValue> {
    let option = |text: &str| matches!(text, "-H" | "-L" | "-P") || text.starts_with("-O");
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        match first.value.as_literal() {
            Some("-D") => rest = after.get(1..).unwrap_or_default(),
            Some(text) if option(text) => rest = after,
            _ => break,
        }
    }
    let points: Vec<WordValue> = rest
        .iter()
        .take_while(|word| {
            word.value
                .as_literal()
                .is_none_or(|text| !(text.starts_with('-') || matches!(text, "!" | "(" | ",")))
        })
        .map(|word| word.value.clone())
        .collect();
    if points.is_empty() { vec![WordValue::Literal(".".to_owned())] } else { points }
}

fn is_search_only(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().map(|word| word.value.as_literal().unwrap_or_default()).peekable();
    while words.next_if(|text| matches!(*text, "-H" | "-L" | "-P") || is_optimization_level(text)).is_some() {
    }
    while words.next_if(|text| !(text.starts_with('-') || matches!(*text, "!" | "(" | ")" | ","))).is_some() {
    }
    while let Some(text) = words.next() {
        let newer = text.strip_prefix("-newer").is_some_and(|kind| {
            kind.is_empty() || (kind.len() == 2 && kind.bytes().all(|byte| b"aBcmt".contains(&byte)))
        });
        if newer || text == "-samefile" || TESTS_WITH_VALUE.contains(&text) {
            if words.next().is_none() {
                return false;
            }
        } else if !PLAIN_TESTS.contains(&text) {
            return false;
        }
    }
    true
}

fn is_optimization_level(text: &str) -> bool {
    text.strip_prefix("-O")
        .is_some_and(|level| !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `-exec` actions that are analyzed; further ones are searched as text.
pub(crate) const MAX_EXEC_COMMANDS: usize = 8;

/// Finds commands of `-exec` and its like, the first [`MAX_EXEC_COMMANDS`] of them.
pub(crate) fn find_exec_commands(arguments: &[Word]) -> Vec<&[Word]> {
    let mut found = Vec::new();
    let mut rest = arguments;
    let runs = |word: &Word| matches!(word.value.as_literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir"));
    // Everything up to the terminator belongs to the command, another `-exec` included.
    while let Some(start) = rest.iter().position(runs).filter(|_| found.len() < MAX_EXEC_COMMANDS) {
        rest = rest.get(start + 1..).unwrap_or_default();
        let end = rest.iter().position(|word| matches!(word.value.as_literal(), Some(";" | "+")));
        let end = end.unwrap_or(rest.len());
        found.extend(rest.get(..end));
        rest = rest.get(end..).unwrap_or_default();
    }
    found
}

/// A command of `-exec` with `{}` replaced by the starting points; the found files lie at or below them.
pub(crate) fn fill_placeholder(command: &[Word], arguments: &[Word]) -> Vec<Word> {
    let mut filled = Vec::with_capacity(command.len());
    for word in command {
        if word.value.as_literal() == Some("{}") {
            let points = find_starting_points(arguments).into_iter();
            filled.extend(points.map(|value| Word { raw: word.raw.clone(), value }));
        } else {
            filled.extend(placeholders::mark_placeholders(std::slice::from_ref(word), "{}"));
        }
    }
    filled
}
