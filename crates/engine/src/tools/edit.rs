//! Edit: replaces a text in a file. Searching and replacing are pure functions; line endings, encoding and mode of the
//! file are kept.

use std::ops::Range;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_os::files;
use whimbrel_session_store::text_diff;
use whimbrel_wire::content::ResultContent;

use super::encoding::{DecodedText, encode};
use super::file_target::{self, FileTarget, ReadState, TargetState};
use super::patch::{self, truncate_chars};
use super::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, file_errors, lenient};
use crate::workspace::Workspace;

pub(super) struct EditTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    file_path: String,
    old_string: String,
    new_string: String,
    /// Replace every match
    #[serde(default, deserialize_with = "lenient::flag")]
    replace_all: bool,
}

/// Maximum size of the edited text.
const MAX_RESULT_BYTES: usize = 64_000_000;

impl Tool for EditTool {
    type Input = Input;

    const NAME: &'static str = "Edit";

    const DESCRIPTION: &'static str = "Replaces text in a file that you have read. old_string must match exactly, \
        whitespace included but without Read's line numbers, and only once: include enough lines around it. An empty \
        old_string creates the file.";

    fn effects(input: &Input) -> Effects {
        Effects::Writes(vec![input.file_path.clone()])
    }

    async fn run(&self, input: Input, call: ToolContext) -> ToolResult {
        let work = files::run_blocking(move || edit_file(&input, &call)).await;
        work.unwrap_or_else(|error| Err(ToolError::Failed(error.to_string())))
    }

    fn examples() -> Vec<Example> {
        let three = &[("a.txt", "one\ntwo\nthree\n")];
        let read = || ("Read", json!({"file_path": "a.txt"}));
        let edit = |old: &str, new: &str| json!({"file_path": "a.txt", "old_string": old, "new_string": new});
        vec![
            Example::new("replaces a text that is there once", edit("two", "2"))
                .with_files(three)
                .after_call(read().0, read().1)
                .expect_output(&["updated", "2\t2"])
                .expect_files(&[("a.txt", "one\n2\nthree\n")]),
            Example::new("needs a file that was read", edit("two", "2"))
                .with_files(three)
                .expect_error(&["not been read"])
                .expect_files(three),
            Example::new("says where a text is that is there more than once", edit("same", "other"))
                .with_files(&[("a.txt", "same\nelse\nsame\n")])
                .after_call(read().0, read().1)
                .expect_error(&["2 places", "lines 1, 3", "replace_all"]),
            Example::new(
                "replaces every match if asked to",
                json!({"file_path": "a.txt", "old_string": "same", "new_string": "other", "replace_all": true}),
            )
            .with_files(&[("a.txt", "same\nelse\nsame\n")])
            .after_call(read().0, read().1)
            .expect_output(&["2 places"])
            .expect_files(&[("a.txt", "other\nelse\nother\n")]),
            Example::new("points at what differs only in whitespace", edit("  if x:\n    go()", "pass"))
                .with_files(&[("a.txt", "def f():\n\tif x:\n\t\tgo()\n")])
                .after_call(read().0, read().1)
                .expect_error(&["not found", "lines 2-3", "whitespace"]),
            Example::new("makes a file if there is nothing to replace", edit("", "hello\n"))
                .expect_output(&["created"])
                .expect_files(&[("a.txt", "hello\n")]),
        ]
    }
}

fn edit_file(input: &Input, call: &ToolContext) -> ToolResult {
    if input.old_string == input.new_string {
        return Err(ToolError::Rejected(
            "old_string and new_string are the same: there is nothing to change.".into(),
        ));
    }
    let (workspace, site) = (&*call.workspace, FileTarget::resolve(call, &input.file_path)?);
    let path = site.path.as_path();
    if input.old_string.is_empty() {
        return create_file(input, workspace, &site);
    }
    let TargetState::File(existing) = site.load(workspace)? else {
        return Err(ToolError::Rejected(file_errors::missing_file_message(path, &workspace.cwd())));
    };
    if existing.read_state == ReadState::Unread {
        return Err(file_target::unread_error(path));
    }
    if path.extension().is_some_and(|extension| extension == "ipynb") {
        return Err(ToolError::Rejected(format!("{} is a notebook: use NotebookEdit.", path.display())));
    }
    let decoded = existing.require_editable(path)?;
    let places = find_matches(&decoded.text, &input.old_string);
    if existing.read_state == ReadState::Changed && places.len() != 1 {
        return Err(file_target::changed_error(path));
    }
    if places.is_empty() || (places.len() > 1 && !input.replace_all) {
        return Err(ToolError::Rejected(match_error_message(
            &decoded.text,
            &input.old_string,
            &places,
            path,
        )));
    }
    let grown = places.len().saturating_mul(input.new_string.len()).saturating_add(decoded.text.len());
    if grown > MAX_RESULT_BYTES {
        let text = format!(
            "{} would grow to more than {} MB. Write it with a command instead.",
            path.display(),
            MAX_RESULT_BYTES / 1_000_000
        );
        return Err(ToolError::Rejected(text));
    }
    let new = replace_matches(&decoded.text, &places, &input.new_string);
    let mut done = write_edit(input, workspace, &site, decoded, &new, places.len())?;
    if let (ReadState::Changed, ResultContent::Text(text)) = (existing.read_state, &mut done.content) {
        text.push_str("\nSomebody else had changed the file since you read it.");
    }
    Ok(done)
}

/// Writes the new text in the file's encoding.
fn write_edit(
    input: &Input,
    workspace: &Workspace,
    site: &FileTarget,
    old: &DecodedText,
    new: &str,
    places: usize,
) -> ToolResult {
    let path = site.path.as_path();
    let Some(bytes) = encode(new, old.encoding) else {
        let text =
            format!("{} is in Windows-1252, which has no bytes for some of the new text.", path.display());
        return Err(ToolError::Rejected(text));
    };
    let stamp = site.replace(&bytes)?;
    site.record_seen(workspace, stamp, Some(new));
    let times = if places > 1 { format!(" in {places} places") } else { String::new() };
    Ok(edit_result(
        input,
        workspace,
        path,
        &old.text,
        new,
        &format!("File updated{times}: {}", path.display()),
    ))
}

/// Creates a file with `new_string`; an existing empty file is allowed.
fn create_file(input: &Input, workspace: &Workspace, site: &FileTarget) -> ToolResult {
    let (path, bytes) = (site.path.as_path(), input.new_string.as_bytes());
    let stamp = match site.load(workspace)? {
        TargetState::Missing => site.create(bytes)?,
        TargetState::File(existing) if existing.require_editable(path)?.text.is_empty() => {
            site.replace(bytes)?
        }
        TargetState::File(_) => {
            let text = format!(
                "{} is there already and not empty. Say what to replace in old_string.",
                path.display()
            );
            return Err(ToolError::Rejected(text));
        }
    };
    site.record_seen(workspace, stamp, Some(&input.new_string));
    Ok(edit_result(
        input,
        workspace,
        path,
        "",
        &input.new_string,
        &format!("File created: {}", path.display()),
    ))
}

fn edit_result(
    input: &Input,
    workspace: &Workspace,
    path: &Path,
    old: &str,
    new: &str,
    says: &str,
) -> ToolOutput {
    let hunks = patch::compute_hunks(old, new);
    workspace.add_changed_lines(patch::count_changed_lines(&hunks));
    let text =
        if old.is_empty() { says.to_owned() } else { format!("{says}\n{}", patch::render_snippet(&hunks)) };
    let mut meta = json!({
        "filePath": path.to_string_lossy(),
        "oldString": input.old_string,
        "newString": input.new_string,
        "originalFile": null,
        "structuredPatch": hunks,
        "userModified": false,
        "replaceAll": input.replace_all,
    });
    meta["originalFile"] = patch::text_for_host(old);
    ToolOutput::text(text, meta)
}

/// Byte ranges where `old` occurs. A `
/// ` in `old` also matches `\r
/// `.
fn find_matches(text: &str, old: &str) -> Vec<Range<usize>> {
    if !text.contains('\r') {
        return text.match_indices(old).map(|(at, found)| at..at + found.len()).collect();
    }
    let mut plain = String::with_capacity(text.len());
    // Positions in `plain` where a `\r` was removed before the `
    // `.
    let mut missing = Vec::new();
    for line in text.split_inclusive('\n') {
        match line.strip_suffix("\r\n") {
            Some(line) => {
                plain.push_str(line);
                missing.push(plain.len());
                plain.push('\n');
            }
            None => plain.push_str(line),
        }
    }
    let real = |at: usize| at + missing.partition_point(|missing| *missing < at);
    plain
        .match_indices(&old.replace("\r\n", "\n"))
        .map(|(at, found)| real(at)..real(at + found.len()))
        .collect()
}

/// Replaces all ranges by `new`, using the line ending of each place.
fn replace_matches(text: &str, places: &[Range<usize>], new: &str) -> String {
    let with_returns = text.contains("\r\n").then(|| new.replace("\r\n", "\n").replace('\n', "\r\n"));
    let mut result = String::with_capacity(text.len() + new.len() * places.len());
    let mut end = 0;
    for place in places {
        result.push_str(&text[end..place.start]);
        match &with_returns {
            Some(new) if uses_crlf_at(text, place.start) => result.push_str(new),
            _ => result.push_str(new),
        }
        end = place.end;
    }
    result.push_str(&text[end..]);
    result
}

/// Returns whether the line at this position (or the one before, for the last line) ends with `\r
/// `.
fn uses_crlf_at(text: &str, at: usize) -> bool {
    let end = text[at..].find('\n').map(|end| at + end).or_else(|| text[..at].rfind('\n'));
    end.is_some_and(|end| text[..end].ends_with('\r'))
}

/// Explains why there is no unique match, with a remedy.
fn match_error_message(text: &str, old: &str, places: &[Range<usize>], path: &Path) -> String {
    if places.is_empty() {
        return format!("old_string was not found in {}.{}", path.display(), mismatch_hint(text, old));
    }
    let lines: Vec<_> =
        places.iter().take(10).map(|place| line_number(text, place.start).to_string()).collect();
    let more = if places.len() > lines.len() { ", ..." } else { "" };
    format!(
        "old_string matches {} places in {} (lines {}{more}). Add text around the one you mean, or set replace_all.",
        places.len(),
        path.display(),
        lines.join(", ")
    )
}

fn line_number(text: &str, at: usize) -> usize {
    patch::count_newlines(&text.as_bytes()[..at]) + 1
}

/// A hint at the likely mistake.
fn mismatch_hint(text: &str, old: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.trim().lines().map(str::trim).collect();
    if wanted.is_empty() {
        return String::new();
    }
    if let Some(at) = lines
        .windows(wanted.len())
        .position(|window| window.iter().map(|line| line.trim()).eq(wanted.iter().copied()))
    {
        let there = lines[at..at + wanted.len()].iter().take(5).copied().collect::<Vec<_>>().join("\n");
        return format!(" The lines {}-{} differ only in whitespace:\n{there}", at + 1, at + wanted.len());
    }
    if wanted
        .iter()
        .all(|line| line.split_once('\t').is_some_and(|(number, _)| number.parse::<usize>().is_ok()))
    {
        return " Leave out the line numbers and tabs that Read puts before each line.".into();
    }
    closest_line_hint(&lines, wanted[0])
}

/// The line most similar to the first line searched for.
fn closest_line_hint(lines: &[&str], wanted: &str) -> String {
    let short = |line: &str| line.len() <= 200;
    let candidates = lines.iter().map(|line| line.trim()).filter(|line| short(line)).take(5_000);
    let found = if short(wanted) { text_diff::closest_match(wanted, candidates) } else { None };
    let Some(found) = found else { return String::new() };
    let number = lines.iter().position(|line| line.trim() == found).unwrap_or_default() + 1;
    format!(" The nearest line is {number}: {}", truncate_chars(found, 200))
}

#[cfg(test)]
mod tests;
