//! Builds a simple command: the texts that rules match, and its effects.

use super::rule_suggestion;
use crate::shell::nested::{shells, wrappers};
use crate::shell::parser::syntax::RawCommand;
use crate::shell::programs::effects::{self, CommandEffects, extract_program_name};
use crate::shell::programs::{accepted_edits, builtins, operands, read_only_with_flags};
use crate::shell::vars::safe_assignment;
use crate::shell::words::match_texts::{join_raw_text, list_allow_texts, list_deny_texts};
use crate::shell::{
    AllowText, Assignment, CheckScope, CommandClass, Redirect, RequiredRule, RuleSuggestion, SimpleCommand,
    Word, WordValue,
};

/// Wrappers that an allow rule looks through.
const MAX_WRAPPERS: usize = 8;

/// A parsed command with its words expanded.
pub(crate) struct ExpandedCommand<'a> {
    pub(crate) command: &'a RawCommand,
    pub(crate) words: &'a [Word],
    /// Assignments, each with its text.
    pub(crate) assignments: &'a [(String, Assignment)],
    pub(crate) redirects: Vec<Redirect>,
}

/// A command without the wrappers that an allow rule looks through.
pub(super) struct UnwrappedCommand<'a> {
    words: &'a [Word],
    pub(super) wrapped: bool,
    /// True if all removed wrappers are ones that read-only commands may have.
    is_read_only_wrapper: bool,
    /// True if arguments are added when it runs.
    takes_more_arguments: bool,
}

/// Builds a command that must be allowed.
pub(crate) fn build_checked_command(expanded: &ExpandedCommand<'_>) -> SimpleCommand {
    let stripped = strip_wrappers(expanded);
    let command = expanded.command;
    let name = stripped.words.first().and_then(|word| word.value.as_literal());
    let mut effects = effects::determine_command_effects(stripped.words);
    restrict_effects(&mut effects, expanded, &stripped, name);
    let reads_input = name.is_some_and(|name| shells::is_interpreter(&extract_program_name(name)))
        && (!command.stdin_texts.is_empty() || command.after_pipe || !command.redirects.is_empty());
    let raw = render_with_assignments(expanded, |_| true);
    let glob = stripped.words.iter().any(|word| matches!(word.value, WordValue::Glob(_)));
    SimpleCommand {
        check_scope: command.check_scope(),
        deny_texts: list_deny_texts(&raw, expanded.words),
        allow_texts: build_allow_texts(expanded, &stripped, &effects, &raw, reads_input),
        suggestion: rule_suggestion::build_suggestion(expanded, &stripped, &effects, reads_input),
        raw,
        words: expanded.words.to_vec(),
        assignments: expanded.assignments.iter().map(|(_, assignment)| assignment.clone()).collect(),
        redirects: expanded.redirects.clone(),
        class: effects.class,
        program: name.map(str::to_owned),
        reads: effects.reads,
        writes: effects.writes,
        dir_targets: effects.dir_targets,
        recursive: effects.recursive,
        writes_recursively: effects.writes_recursively,
        bulk_write_dirs: effects.bulk_write_dirs,
        removals: effects.removals,
        restricts_paths: effects.restricts_paths,
        has_risky_glob: effects.globs_require_permission && glob,
        opaque: expanded.words.first().is_some_and(|word| word.value.as_literal().is_none()),
    }
}

/// Builds a command for the deny analysis only.
pub(crate) fn build_searched_command(words: &[Word]) -> SimpleCommand {
    let effects = effects::determine_command_effects(words);
    let raw = join_raw_text(words);
    SimpleCommand {
        check_scope: CheckScope::DenyOnly,
        deny_texts: list_deny_texts(&raw, words),
        allow_texts: Vec::new(),
        raw,
        words: words.to_vec(),
        assignments: Vec::new(),
        redirects: Vec::new(),
        class: effects.class,
        program: words.first().and_then(|word| word.value.as_literal()).map(str::to_owned),
        reads: effects.reads,
        writes: effects.writes,
        dir_targets: effects.dir_targets,
        recursive: effects.recursive,
        writes_recursively: effects.writes_recursively,
        bulk_write_dirs: effects.bulk_write_dirs,
        removals: effects.removals,
        restricts_paths: effects.restricts_paths,
        has_risky_glob: false,
        opaque: words.first().is_some_and(|word| word.value.as_literal().is_none()),
        suggestion: RuleSuggestion::default(),
    }
}

/// Withdraws effects that do not hold under the wrappers, assignments and pipes around the command.
fn restrict_effects(
    effects: &mut CommandEffects,
    expanded: &ExpandedCommand<'_>,
    stripped: &UnwrappedCommand<'_>,
    name: Option<&str>,
) {
    let command = expanded.command;
    if command.is_test {
        *effects = CommandEffects { class: CommandClass::ReadOnly, ..CommandEffects::default() };
    }
    if expanded.words.is_empty() {
        return;
    }
    let safe = expanded.assignments.iter().all(|(_, assignment)| assignment.safe);
    let read_only = effects.class == CommandClass::ReadOnly
        && safe
        && stripped.is_read_only_wrapper
        && !stripped.takes_more_arguments;
    let edits = effects.class == CommandClass::AcceptEdits && safe && !stripped.takes_more_arguments;
    if matches!(effects.class, CommandClass::ReadOnly | CommandClass::AcceptEdits) && !(read_only || edits) {
        effects.class = CommandClass::Other;
    }
    if stripped.takes_more_arguments && effects.restricts_paths {
        effects.reads.push(WordValue::FULLY_UNKNOWN);
    }
    let xargs = expanded.words.first().and_then(|word| word.value.as_literal()) == Some("xargs");
    if xargs && safe && command.after_pipe && !command.before_pipe && only_prints(expanded.words) {
        *effects = CommandEffects { class: CommandClass::ReadOnly, ..CommandEffects::default() };
    }
    if name.is_none() {
        effects.required_rule = RequiredRule::ExactRule;
    }
}

/// Removes wrappers in their plain forms.
fn strip_wrappers<'a>(expanded: &ExpandedCommand<'a>) -> UnwrappedCommand<'a> {
    let words = expanded.words;
    // `time` is a reserved word only at the start of a pipeline.
    let mut timed = !expanded.command.after_pipe
        && expanded.assignments.is_empty()
        && expanded.redirects.is_empty()
        && words.first().is_some_and(|word| word.raw == "time");
    let mut stripped =
        UnwrappedCommand { words, wrapped: false, is_read_only_wrapper: true, takes_more_arguments: false };
    for _ in 0..MAX_WRAPPERS {
        let Some(count) = wrappers::strip_length(stripped.words) else { break };
        let name = stripped.words.first().and_then(|word| word.value.as_literal()).unwrap_or_default();
        let rest = stripped.words.get(count..).unwrap_or_default();
        if name == "xargs" {
            if depends_on_arguments(rest) {
                break;
            }
            stripped.takes_more_arguments = true;
        }
        stripped.is_read_only_wrapper &= matches!(name, "timeout" | "command" | "builtin");
        stripped.wrapped = true;
        stripped.words = if timed { skip_safe_assignments(rest) } else { rest };
        timed = false;
    }
    stripped
}

/// Skips the safe assignments that may follow `time`.
fn skip_safe_assignments(words: &[Word]) -> &[Word] {
    let safe = |word: &&Word| {
        word.raw.split_once('=').is_some_and(|(name, raw)| {
            let value = word
                .value
                .as_literal()
                .and_then(|text| text.split_once('='))
                .map(|(_, value)| value.to_owned());
            value.is_some_and(|value| {
                safe_assignment::is_safe_assignment(name, raw, &WordValue::Literal(value))
            })
        })
    };
    words.get(words.iter().take_while(safe).count()..).unwrap_or_default()
}

/// Returns true if unknown additional arguments could change what the command does.
fn depends_on_arguments(words: &[Word]) -> bool {
    let Some(name) = words.first().and_then(|word| word.value.as_literal()) else { return true };
    let plain = extract_program_name(name);
    let arguments = words.get(1..).unwrap_or_default();
    rule_suggestion::suggests_exact_rule_only(&plain)
        || shells::is_interpreter(&plain)
        || builtins::find_required_rule(&plain).is_some()
        || matches!(plain.as_str(), "git" | "jq" | "cd" | "make" | "tar" | "zip")
        || read_only_with_flags::determine_effects(&plain, arguments).is_some()
        || accepted_edits::determine_edit_effects(&plain, arguments).is_some()
        || operands::determine_effects(&plain, arguments).is_some_and(|effects| effects.restricts_paths)
}

/// Returns true for `xargs` with plain options before a command that only prints.
fn only_prints(words: &[Word]) -> bool {
    let Some(texts) = words.iter().skip(1).map(|word| word.value.as_literal()).collect::<Option<Vec<&str>>>()
    else {
        return false;
    };
    let mut rest = texts.as_slice();
    loop {
        rest = match rest {
            ["-0" | "-r" | "-t", after @ ..] => after,
            ["-n", number, after @ ..] if number.bytes().all(|byte| byte.is_ascii_digit()) => after,
            ["-I", placeholder, after @ ..] if !placeholder.is_empty() && !placeholder.starts_with('-') => {
                after
            }
            ["printf", first, ..] => return !first.starts_with('-'),
            ["echo" | "basename" | "dirname", ..] => return true,
            _ => return false,
        };
    }
}

/// Text of a command with some of its assignments.
pub(super) fn render_with_assignments(
    expanded: &ExpandedCommand<'_>,
    wanted: impl Fn(&Assignment) -> bool,
) -> String {
    let mut texts: Vec<&str> = expanded
        .assignments
        .iter()
        .filter(|(_, assignment)| wanted(assignment))
        .map(|(raw, _)| raw.as_str())
        .collect();
    let words = join_raw_text(expanded.words);
    if !words.is_empty() {
        texts.push(&words);
    }
    texts.join(" ")
}

fn build_allow_texts(
    expanded: &ExpandedCommand<'_>,
    stripped: &UnwrappedCommand<'_>,
    effects: &CommandEffects,
    raw: &str,
    reads_input: bool,
) -> Vec<AllowText> {
    let mut texts = Vec::new();
    if expanded.words.is_empty() || expanded.command.is_test {
        return texts;
    }
    let exact = |text: String| AllowText { text, required_rule: RequiredRule::ExactRule };
    if expanded.assignments.iter().all(|(_, assignment)| assignment.safe) {
        texts = list_allow_texts(
            stripped.words,
            effects.required_rule,
            stripped.takes_more_arguments || reads_input,
        );
        if stripped.wrapped && !reads_input {
            texts.extend(list_allow_texts(expanded.words, RequiredRule::ExactRule, false));
        }
    } else if !reads_input && !list_allow_texts(expanded.words, RequiredRule::ExactRule, false).is_empty() {
        texts.push(exact(render_with_assignments(expanded, |assignment| !assignment.safe)));
    }
    if !expanded.assignments.is_empty() && !texts.is_empty() && !reads_input {
        texts.push(exact(raw.to_owned()));
    }
    texts.dedup();
    texts
}
