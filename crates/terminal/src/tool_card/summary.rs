//! What came of a call, in a few words, and the part of its output that is worth showing.

use whimbrel::wire::tool_names::{AGENT, BASH};

use super::{Call, Outcome, format_elapsed};
use crate::diff::FileDiff;

/// Calls that took less time do not say how much.
const MIN_TIME: std::time::Duration = std::time::Duration::from_secs(1);

/// Words that follow the title.
pub(super) fn summary(call: &Call<'_>, outcome: &Outcome<'_>) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(if outcome.is_error { failure(outcome) } else { success(call, outcome) });
    if outcome.elapsed >= MIN_TIME {
        words.push(format_elapsed(outcome.elapsed));
    }
    words
}

fn success(call: &Call<'_>, outcome: &Outcome<'_>) -> Option<String> {
    let structured = |path: &str| outcome.structured?.pointer(path)?.as_u64();
    match call.name {
        "Read" => match structured("/file/numLines") {
            Some(lines) => Some(count(lines, "line")),
            None => {
                outcome.structured?.get("type")?.as_str().filter(|kind| *kind != "text").map(str::to_owned)
            }
        },
        "Grep" if structured("/numLines").is_some() => {
            structured("/numLines").map(|lines| count(lines, "line"))
        }
        "Grep" | "Glob" => structured("/numFiles").map(|files| count(files, "file")),
        "Write" | "Edit" => {
            change(call, outcome).map(|diff| format!("+{} -{}", diff.added(), diff.removed()))
        }
        "WebFetch" => structured("/bytes").map(size),
        AGENT | "Task" => {
            let calls = structured("/totalToolUseCount").map(|calls| count(calls, "call"));
            let tokens = structured("/totalTokens").map(|tokens| format!("{} tokens", short_number(tokens)));
            let words: Vec<String> = calls.into_iter().chain(tokens).collect();
            (!words.is_empty()).then(|| words.join(", "))
        }
        _ => None,
    }
}

fn failure(outcome: &Outcome<'_>) -> Option<String> {
    let code = outcome.text.strip_prefix("Exit code ")?;
    let code = code.lines().next().unwrap_or_default();
    Some(format!("exit {code}"))
}

/// The change that a call made to a file.
pub(super) fn change(call: &Call<'_>, outcome: &Outcome<'_>) -> Option<FileDiff> {
    if !matches!(call.name, "Write" | "Edit") || outcome.is_error {
        return None;
    }
    let path = call.field("file_path")?;
    let is_new = outcome.structured.and_then(|result| result.get("type")?.as_str()) == Some("create");
    if is_new {
        return Some(FileDiff::from_texts(path, None, Some(call.field("content").unwrap_or_default())));
    }
    FileDiff::from_patch(path, outcome.structured?.get("structuredPatch")?)
}

/// Whether the output of a call is shown below its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown<'a> {
    Nothing,
    /// The first lines.
    Beginning(&'a str),
    /// The last lines: where a failure tells why.
    End(&'a str),
}

pub(super) fn shown<'a>(call: &Call<'_>, outcome: &Outcome<'a>) -> Shown<'a> {
    let text = outcome.text.trim_end();
    if outcome.is_error {
        let output = text
            .strip_prefix("Exit code ")
            .map(|rest| rest.split_once('\n').map_or("", |(_, output)| output));
        return match output.unwrap_or(text) {
            "" => Shown::Nothing,
            output => Shown::End(output),
        };
    }
    match call.name {
        BASH | "Monitor" | "TaskOutput" if !text.is_empty() => Shown::Beginning(text),
        _ if call.mcp_names().is_some() && !text.is_empty() => Shown::Beginning(text),
        _ => Shown::Nothing,
    }
}

fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..=1_023 => count(bytes, "byte"),
        1_024..=1_048_575 => format!("{} KB", bytes / 1_024),
        _ => format!("{} MB", bytes / 1_048_576),
    }
}

/// A number in at most four characters: `950`, `12k`, `3.4M`.
pub(crate) fn short_number(number: u64) -> String {
    match number {
        0..=999 => number.to_string(),
        1_000..=9_999 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        10_000..=999_999 => format!("{}k", number / 1_000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}
