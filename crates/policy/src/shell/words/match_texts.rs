//! Texts that rules are matched against.

use super::expand::render_value;
use crate::shell::programs::effects::extract_program_name;
use crate::shell::programs::git;
use crate::shell::{AllowText, DenyText, MatchStart, QUOTED_BLANK, RequiredRule, Word, WordValue};

/// Represents arguments that are added when the command runs, so that only a `*` matches them.
const ADDED_ARGUMENTS: &str = " \u{1e}";

/// Returns true if a command word is non-empty plain ASCII, so that a rule can name it.
fn is_plain_command(word: &Word) -> bool {
    word.value.as_literal().is_some_and(|text| {
        !text.is_empty()
            && text.is_ascii()
            && !text.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_control())
    })
}

/// Renders the text for allow rules: the words without quotes, with quoted blanks marked.
fn render_allow_text(words: &[Word]) -> String {
    let mut out = String::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        match &word.value {
            WordValue::Literal(text) if text.is_empty() => out.push_str("\"\""),
            WordValue::Literal(text) => {
                out.extend(
                    text.chars().map(|c| if matches!(c, ' ' | '\t' | '\n') { QUOTED_BLANK } else { c }),
                );
            }
            WordValue::Glob(_) | WordValue::Unknown { .. } => out.push_str(&word.raw),
        }
    }
    out
}

/// Joins the words as written.
pub(crate) fn join_raw_text(words: &[Word]) -> String {
    let mut out = String::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(&word.raw);
    }
    out
}

/// Lists texts for allow rules, given a command without wrappers and safe assignments.
pub(crate) fn list_allow_texts(
    words: &[Word],
    required_rule: RequiredRule,
    more_arguments: bool,
) -> Vec<AllowText> {
    if !words.first().is_some_and(is_plain_command) {
        return Vec::new();
    }
    let mut texts = vec![render_allow_text(words)];
    let raw = join_raw_text(words);
    if texts.first() != Some(&raw) {
        texts.push(raw);
    }
    let added = if more_arguments { ADDED_ARGUMENTS } else { "" };
    texts.into_iter().map(|text| AllowText { text: text + added, required_rule }).collect()
}

/// Lists texts for deny and ask rules.
pub(crate) fn list_deny_texts(raw: &str, words: &[Word]) -> Vec<DenyText> {
    let mut texts: Vec<(String, bool)> = Vec::with_capacity(4);
    let mut add = |text: String, deny_only: bool| {
        if !text.is_empty()
            && !texts.iter().any(|(known, only)| *known == text && (*only == deny_only || !only))
        {
            texts.push((text, deny_only));
        }
    };
    add(raw.to_owned(), false);
    let values: Vec<String> = words.iter().map(render_deny_text).collect();
    let joined = values.join(" ");
    let first = values.first().map_or("", String::as_str);
    let rest = joined.get(first.len()..).unwrap_or_default().to_owned();
    let last = first.rsplit('/').next().unwrap_or(first);
    let base = last.strip_suffix(".exe").unwrap_or(last).to_owned();
    let plain = extract_program_name(first);
    if base != first {
        add(format!("{base}{rest}"), false);
    }
    if plain != base {
        add(format!("{plain}{rest}"), true);
    }
    if plain == "git" && words.get(1).is_some_and(|word| word.raw.starts_with('-')) {
        let after = git::skip_global_options(words.get(1..).unwrap_or_default());
        let texts: Vec<String> = after.iter().map(render_deny_text).collect();
        add(format!("git {}", texts.join(" ")), false);
    }
    add(joined, false);
    texts
        .into_iter()
        .map(|(text, deny_only)| DenyText { text, match_start: MatchStart::Beginning, deny_only })
        .collect()
}

/// Renders a word as deny rules match it: its value without quotes, or the text as written if the value is not literal.
fn render_deny_text(word: &Word) -> String {
    match &word.value {
        WordValue::Literal(text) => text.clone(),
        WordValue::Glob(_) | WordValue::Unknown { .. } => {
            if word.raw.is_empty() {
                render_value(&word.value)
            } else {
                word.raw.clone()
            }
        }
    }
}
