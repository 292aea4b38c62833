//! One simple command as a part: what rules see of it, and what it does.

use super::facts::{self, Facts, plain_name};
use super::spelling::{allow, deny, written};
use super::syntax::Simple;
use super::{AllowSpelling, Assignment, By, Class, Part, Reach, Redirect, Suggestion, Value, Word};
use super::{assignment, builtins, checked, edits, interpreters, operands, wrappers};

/// How many wrappers an allow rule looks through.
const DEEPEST: usize = 8;

/// A command with its words resolved.
pub(super) struct Written<'a> {
    pub(super) command: &'a Simple,
    pub(super) words: &'a [Word],
    /// The assignments, each with its text.
    pub(super) assignments: &'a [(String, Assignment)],
    pub(super) redirects: Vec<Redirect>,
}

/// What is left when the wrappers that an allow rule looks through are dropped.
struct Stripped<'a> {
    words: &'a [Word],
    wrapped: bool,
    /// Whether only wrappers were dropped that read-only commands may have.
    plain: bool,
    /// Whether arguments are added when it runs.
    more_arguments: bool,
}

/// A part that must be allowed.
pub(super) fn judged(given: &Written<'_>) -> Part {
    let stripped = strip(given);
    let command = given.command;
    let name = stripped.words.first().and_then(|word| word.value.literal());
    let mut facts = facts::of(stripped.words);
    narrow(&mut facts, given, &stripped, name);
    let fed = name.is_some_and(|name| interpreters::is_interpreter(&plain_name(name)))
        && (!command.input.is_empty() || command.after_pipe || !command.redirects.is_empty());
    let raw = with_assignments(given, |_| true);
    let glob = stripped.words.iter().any(|word| matches!(word.value, Value::Glob(_)));
    Part {
        reach: command.reach(),
        deny_spellings: deny(&raw, given.words),
        allow_spellings: allow_spellings(given, &stripped, &facts, &raw, fed),
        suggestion: suggestion(given, &stripped, &facts, fed),
        raw,
        words: given.words.to_vec(),
        assignments: given.assignments.iter().map(|(_, assignment)| assignment.clone()).collect(),
        redirects: given.redirects.clone(),
        class: facts.class,
        program: name.map(str::to_owned),
        reads: facts.reads,
        writes: facts.writes,
        lands: facts.lands,
        recursive: facts.recursive,
        changes_below: facts.changes_below,
        sweeps: facts.sweeps,
        critical: facts.critical,
        scoped: facts.scoped,
        glob_asks: facts.minds_globs && glob,
        opaque: given.words.first().is_some_and(|word| word.value.literal().is_none()),
    }
}

/// A part that is only searched.
pub(super) fn searched(words: &[Word]) -> Part {
    let facts = facts::of(words);
    let raw = written(words);
    Part {
        reach: Reach::Searched,
        deny_spellings: deny(&raw, words),
        allow_spellings: Vec::new(),
        raw,
        words: words.to_vec(),
        assignments: Vec::new(),
        redirects: Vec::new(),
        class: facts.class,
        program: words.first().and_then(|word| word.value.literal()).map(str::to_owned),
        reads: facts.reads,
        writes: facts.writes,
        lands: facts.lands,
        recursive: facts.recursive,
        changes_below: facts.changes_below,
        sweeps: facts.sweeps,
        critical: facts.critical,
        scoped: facts.scoped,
        glob_asks: false,
        opaque: words.first().is_some_and(|word| word.value.literal().is_none()),
        suggestion: Suggestion::default(),
    }
}

/// Takes back what does not hold under the wrappers, assignments and pipes around the command.
fn narrow(facts: &mut Facts, given: &Written<'_>, stripped: &Stripped<'_>, name: Option<&str>) {
    let command = given.command;
    if command.condition {
        *facts = Facts { class: Class::ReadOnly, ..Facts::default() };
    }
    if given.words.is_empty() {
        return;
    }
    let safe = given.assignments.iter().all(|(_, assignment)| assignment.safe);
    let read_only = facts.class == Class::ReadOnly && safe && stripped.plain && !stripped.more_arguments;
    let edits = facts.class == Class::AcceptEdits && safe && !stripped.more_arguments;
    if matches!(facts.class, Class::ReadOnly | Class::AcceptEdits) && !(read_only || edits) {
        facts.class = Class::Other;
    }
    if stripped.more_arguments && facts.scoped {
        facts.reads.push(Value::Unknown { before: String::new(), after: String::new(), guarded: false });
    }
    let xargs = given.words.first().and_then(|word| word.value.literal()) == Some("xargs");
    if xargs && safe && command.after_pipe && !command.before_pipe && lists_only(given.words) {
        *facts = Facts { class: Class::ReadOnly, ..Facts::default() };
    }
    if name.is_none() {
        facts.by = By::ExactRule;
    }
}

/// Drops wrappers in their plain forms.
fn strip<'a>(given: &Written<'a>) -> Stripped<'a> {
    let words = given.words;
    // `time` is a word of the shell only where a pipeline begins.
    let mut timed = !given.command.after_pipe
        && given.assignments.is_empty()
        && given.redirects.is_empty()
        && words.first().is_some_and(|word| word.raw == "time");
    let mut stripped = Stripped { words, wrapped: false, plain: true, more_arguments: false };
    for _ in 0..DEEPEST {
        let Some(count) = wrappers::allow_strips(stripped.words) else { break };
        let name = stripped.words.first().and_then(|word| word.value.literal()).unwrap_or_default();
        let rest = stripped.words.get(count..).unwrap_or_default();
        if name == "xargs" {
            if refuses_more(rest) {
                break;
            }
            stripped.more_arguments = true;
        }
        stripped.plain &= matches!(name, "timeout" | "command" | "builtin");
        stripped.wrapped = true;
        stripped.words = if timed { without_assignments(rest) } else { rest };
        timed = false;
    }
    stripped
}

/// What follows the safe assignments that may stand after `time`.
fn without_assignments(words: &[Word]) -> &[Word] {
    let safe = |word: &&Word| {
        word.raw.split_once('=').is_some_and(|(name, raw)| {
            let value =
                word.value.literal().and_then(|text| text.split_once('=')).map(|(_, value)| value.to_owned());
            value.is_some_and(|value| assignment::is_safe(name, raw, &Value::Literal(value)))
        })
    };
    words.get(words.iter().take_while(safe).count()..).unwrap_or_default()
}

/// Whether arguments that are not known would change what the command does.
fn refuses_more(words: &[Word]) -> bool {
    let Some(name) = words.first().and_then(|word| word.value.literal()) else { return true };
    let plain = plain_name(name);
    let arguments = words.get(1..).unwrap_or_default();
    wrappers::is_exact_only(&plain)
        || interpreters::is_interpreter(&plain)
        || builtins::least_rule(&plain).is_some()
        || matches!(plain.as_str(), "git" | "jq" | "cd" | "make" | "tar" | "zip")
        || checked::facts(&plain, arguments).is_some()
        || edits::facts(&plain, arguments).is_some()
        || operands::facts(&plain, arguments).is_some_and(|facts| facts.scoped)
}

/// `xargs` with plain options before a command that only prints.
fn lists_only(words: &[Word]) -> bool {
    let Some(texts) = words.iter().skip(1).map(|word| word.value.literal()).collect::<Option<Vec<&str>>>()
    else {
        return false;
    };
    let mut rest = texts.as_slice();
    loop {
        rest = match rest {
            ["-0" | "-r" | "-t", after @ ..] => after,
            ["-n", number, after @ ..] if number.bytes().all(|byte| byte.is_ascii_digit()) => after,
            ["-I", mark, after @ ..] if !mark.is_empty() && !mark.starts_with('-') => after,
            ["printf", first, ..] => return !first.starts_with('-'),
            ["echo" | "basename" | "dirname", ..] => return true,
            _ => return false,
        };
    }
}

/// The text of a command, with some of its assignments.
fn with_assignments(given: &Written<'_>, wanted: impl Fn(&Assignment) -> bool) -> String {
    let mut texts: Vec<&str> =
        given.assignments.iter().filter(|(_, one)| wanted(one)).map(|(raw, _)| raw.as_str()).collect();
    let words = written(given.words);
    if !words.is_empty() {
        texts.push(&words);
    }
    texts.join(" ")
}

fn allow_spellings(
    given: &Written<'_>,
    stripped: &Stripped<'_>,
    facts: &Facts,
    raw: &str,
    fed: bool,
) -> Vec<AllowSpelling> {
    let mut spellings = Vec::new();
    if given.words.is_empty() || given.command.condition {
        return spellings;
    }
    let exact = |text: String| AllowSpelling { text, by: By::ExactRule };
    if given.assignments.iter().all(|(_, assignment)| assignment.safe) {
        spellings = allow(stripped.words, facts.by, stripped.more_arguments || fed);
        if stripped.wrapped && !fed {
            spellings.extend(allow(given.words, By::ExactRule, false));
        }
    } else if !fed && !allow(given.words, By::ExactRule, false).is_empty() {
        spellings.push(exact(with_assignments(given, |assignment| !assignment.safe)));
    }
    if !given.assignments.is_empty() && !spellings.is_empty() && !fed {
        spellings.push(exact(raw.to_owned()));
    }
    spellings.dedup();
    spellings
}

fn suggestion(given: &Written<'_>, stripped: &Stripped<'_>, facts: &Facts, fed: bool) -> Suggestion {
    let exact = with_assignments(given, |assignment| !assignment.safe);
    let literal =
        |at: usize| given.words.get(at).filter(|word| word.value.literal() == Some(word.raw.as_str()));
    let first = literal(0).map(|word| word.raw.as_str()).unwrap_or_default();
    let plain = plain_name(first);
    let runs = wrappers::is_never_by_star(&plain)
        || builtins::least_rule(&plain) == Some(By::ExactRule)
        || (plain == "find" && facts.by == By::ExactRule);
    let safe = given.assignments.iter().all(|(_, assignment)| assignment.safe);
    let bare = safe && !stripped.wrapped && given.command.input.is_empty() && facts.by == By::AnyRule;
    let prefix = literal(1)
        .filter(|second| {
            bare && !first.is_empty() && !wrappers::is_exact_only(&plain) && is_subcommand(&second.raw)
        })
        .map(|second| format!("{first} {}", second.raw));
    Suggestion { exact, prefix, never: runs || fed || given.words.is_empty() || given.command.condition }
}

/// `run`, `install-deps`: lower-case words joined by dashes.
fn is_subcommand(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.split('-').all(part)
}
