//! Edit: replaces a text in a file. Searching and replacing are pure functions; line endings, encoding and mode of the
//! file are kept.

use std::ops::Range;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_os::files;
use whimbrel_wire::content::ResultContent;

use super::encoding::{DecodedText, encode};
use super::file_errors;
use super::file_target::{FileTarget, TargetState};
use super::patch::{self, truncate_chars};
use super::read_before_write;
use super::similar_text::find_most_similar;
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult, lenient};
use crate::workspace::{ReadState, Workspace};

pub(super) struct EditTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct EditInput {
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
    type Input = EditInput;

    const NAME: &'static str = "Edit";

    const DESCRIPTION: &'static str = "Replaces text in a file that you have read. old_string must match exactly, \
        including whitespace but without Read's line numbers, and must be unique: include enough surrounding lines. An \
        empty old_string creates the file.";

    fn effects(input: &EditInput) -> Effects {
        Effects::Writes(vec![input.file_path.clone()])
    }

    async fn run(&self, input: EditInput, call: ToolContext) -> ToolResult {
        let work = files::run_blocking(move || edit_file(&input, &call)).await;
        work.unwrap_or_else(|error| Err(ToolError::Failed(error.to_string())))
    }

    fn examples() -> Vec<Example> {
        let three = &[("a.txt", "one\ntwo\nthree\n")];
        let read = || ("Read", json!({"file_path": "a.txt"}));
        let edit = |old: &str, new: &str| json!({"file_path": "a.txt", "old_string": old, "new_string": new});
        vec![
            Example::new("replaces a unique match", edit("two", "2"))
                .with_files(three)
                .after_call(read().0, read().1)
                .expect_output(&["updated", "2\t2"])
                .expect_files(&[("a.txt", "one\n2\nthree\n")]),
            Example::new("rejects an unread file", edit("two", "2"))
                .with_files(three)
                .expect_error(&["not been read"])
                .expect_files(three),
            Example::new("lists the lines of several matches", edit("same", "other"))
                .with_files(&[("a.txt", "same\nelse\nsame\n")])
                .after_call(read().0, read().1)
                .expect_error(&["2 places", "lines 1, 3", "replace_all"]),
            Example::new(
                "replaces every match with replace_all",
                json!({"file_path": "a.txt", "old_string": "same", "new_string": "other", "replace_all": true}),
            )
            .with_files(&[("a.txt", "same\nelse\nsame\n")])
            .after_call(read().0, read().1)
            .expect_output(&["2 places"])
            .expect_files(&[("a.txt", "other\nelse\nother\n")]),
            Example::new("reports a difference in whitespace", edit("  if x:\n    go()", "pass"))
                .with_files(&[("a.txt", "def f():\n\tif x:\n\t\tgo()\n")])
                .after_call(read().0, read().1)
                .expect_error(&["not found", "lines 2-3", "whitespace"]),
            Example::new("creates a file if old_string is empty", edit("", "hello\n"))
                .expect_output(&["created"])
                .expect_files(&[("a.txt", "hello\n")]),
        ]
    }
}

fn edit_file(input: &EditInput, call: &ToolContext) -> ToolResult {
    if input.old_string == input.new_string {
        return Err(ToolError::Rejected(
            "old_string and new_string are identical: nothing to change.".into(),
        ));
    }
    let (workspace, target) = (&*call.workspace, FileTarget::resolve(call, &input.file_path)?);
    let path = target.path.as_path();
    if input.old_string.is_empty() {
        return create_file(input, workspace, &target);
    }
    let TargetState::File(existing) = target.load(workspace)? else {
        return Err(ToolError::Rejected(file_errors::missing_file_message(path, &workspace.cwd())));
    };
    if existing.read_state == ReadState::Unread {
        return Err(read_before_write::unread_error(path));
    }
    if path.extension().is_some_and(|extension| extension == "ipynb") {
        return Err(ToolError::Rejected(format!("{} is a notebook: use NotebookEdit.", path.display())));
    }
    let decoded = existing.require_editable(path)?;
    let ranges = find_matches(&decoded.text, &input.old_string);
    if existing.read_state == ReadState::Changed && ranges.len() != 1 {
        return Err(read_before_write::changed_error(path));
    }
    if ranges.is_empty() || (ranges.len() > 1 && !input.replace_all) {
        return Err(ToolError::Rejected(match_error_message(
            &decoded.text,
            &input.old_string,
            &ranges,
            path,
        )));
    }
    let new_size = ranges.len().saturating_mul(input.new_string.len()).saturating_add(decoded.text.len());
    if new_size > MAX_RESULT_BYTES {
        let text = format!(
            "{} would grow to more than {} MB. Use a command instead.",
            path.display(),
            MAX_RESULT_BYTES / 1_000_000
        );
        return Err(ToolError::Rejected(text));
    }
    let new = replace_matches(&decoded.text, &ranges, &input.new_string);
    let mut output = write_edit(input, workspace, &target, decoded, &new, ranges.len())?;
    if let (ReadState::Changed, ResultContent::Text(text)) = (existing.read_state, &mut output.content) {
        text.push_str("\nNote: the file had changed since you read it.");
    }
    Ok(output)
}

/// Writes the new text in the file's encoding.
fn write_edit(
    input: &EditInput,
    workspace: &Workspace,
    target: &FileTarget,
    old: &DecodedText,
    new: &str,
    ranges: usize,
) -> ToolResult {
    let path = target.path.as_path();
    let Some(bytes) = encode(new, old.encoding) else {
        let text = format!(
            "{} is encoded in Windows-1252, which cannot represent some characters of \
                new_string.",
            path.display()
        );
        return Err(ToolError::Rejected(text));
    };
    let stamp = target.replace(&bytes)?;
    target.record_seen(workspace, stamp, Some(new));
    let times = if ranges > 1 { format!(" in {ranges} places") } else { String::new() };
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
fn create_file(input: &EditInput, workspace: &Workspace, target: &FileTarget) -> ToolResult {
    let (path, bytes) = (target.path.as_path(), input.new_string.as_bytes());
    let stamp = match target.load(workspace)? {
        TargetState::Missing => target.create(bytes)?,
        TargetState::File(existing) if existing.require_editable(path)?.text.is_empty() => {
            target.replace(bytes)?
        }
        TargetState::File(_) => {
            let text = format!(
                "{} already exists and is not empty. Put the text to replace in old_string.",
                path.display()
            );
            return Err(ToolError::Rejected(text));
        }
    };
    target.record_seen(workspace, stamp, Some(&input.new_string));
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
    input: &EditInput,
    workspace: &Workspace,
    path: &Path,
    old: &str,
    new: &str,
    headline: &str,
) -> ToolOutput {
    let hunks = patch::compute_hunks(old, new);
    workspace.add_changed_lines(patch::count_changed_lines(&hunks));
    let text = if old.is_empty() {
        headline.to_owned()
    } else {
        format!("{headline}\n{}", patch::render_snippet(&hunks))
    };
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

/// Byte ranges where `old` occurs. A newline in `old` also matches CRLF.
fn find_matches(text: &str, old: &str) -> Vec<Range<usize>> {
    if !text.contains('\r') {
        return text.match_indices(old).map(|(offset, matched)| offset..offset + matched.len()).collect();
    }
    let mut normalized = String::with_capacity(text.len());
    // Positions in `normalized` where a `\r` was removed before the newline.
    let mut removed_returns = Vec::new();
    for line in text.split_inclusive('\n') {
        match line.strip_suffix("\r\n") {
            Some(line) => {
                normalized.push_str(line);
                removed_returns.push(normalized.len());
                normalized.push('\n');
            }
            None => normalized.push_str(line),
        }
    }
    let original_offset =
        |offset: usize| offset + removed_returns.partition_point(|removed| *removed < offset);
    normalized
        .match_indices(&old.replace("\r\n", "\n"))
        .map(|(offset, matched)| original_offset(offset)..original_offset(offset + matched.len()))
        .collect()
}

/// Replaces all ranges by `new`, using the line ending of each range.
fn replace_matches(text: &str, ranges: &[Range<usize>], new: &str) -> String {
    let crlf_text = text.contains("\r\n").then(|| new.replace("\r\n", "\n").replace('\n', "\r\n"));
    let mut result = String::with_capacity(text.len() + new.len() * ranges.len());
    let mut end = 0;
    for range in ranges {
        result.push_str(&text[end..range.start]);
        match &crlf_text {
            Some(new) if uses_crlf_at(text, range.start) => result.push_str(new),
            _ => result.push_str(new),
        }
        end = range.end;
    }
    result.push_str(&text[end..]);
    result
}

/// Returns whether the line at this position (or the one before, for the last line) ends with CRLF.
fn uses_crlf_at(text: &str, position: usize) -> bool {
    let end = text[position..].find('\n').map(|end| position + end).or_else(|| text[..position].rfind('\n'));
    end.is_some_and(|end| text[..end].ends_with('\r'))
}

/// Explains why there is no unique match, with a remedy.
fn match_error_message(text: &str, old: &str, ranges: &[Range<usize>], path: &Path) -> String {
    if ranges.is_empty() {
        return format!("old_string was not found in {}.{}", path.display(), mismatch_hint(text, old));
    }
    let lines: Vec<_> =
        ranges.iter().take(10).map(|range| line_number(text, range.start).to_string()).collect();
    let more = if ranges.len() > lines.len() { ", ..." } else { "" };
    format!(
        "old_string matches {} places in {} (lines {}{more}). Add surrounding text to make it unique, or set \
         replace_all.",
        ranges.len(),
        path.display(),
        lines.join(", ")
    )
}

fn line_number(text: &str, position: usize) -> usize {
    patch::count_newlines(&text.as_bytes()[..position]) + 1
}

/// A hint at the likely mistake.
fn mismatch_hint(text: &str, old: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let old_lines: Vec<&str> = old.trim().lines().map(str::trim).collect();
    if old_lines.is_empty() {
        return String::new();
    }
    if let Some(index) = lines
        .windows(old_lines.len())
        .position(|window| window.iter().map(|line| line.trim()).eq(old_lines.iter().copied()))
    {
        let excerpt =
            lines[index..index + old_lines.len()].iter().take(5).copied().collect::<Vec<_>>().join("\n");
        return format!(
            " The lines {}-{} differ only in whitespace:\n{excerpt}",
            index + 1,
            index + old_lines.len()
        );
    }
    if old_lines
        .iter()
        .all(|line| line.split_once('\t').is_some_and(|(number, _)| number.parse::<usize>().is_ok()))
    {
        return " Omit the line number and tab that Read puts before each line.".into();
    }
    closest_line_hint(&lines, old_lines[0])
}

/// The line most similar to the first line searched for.
fn closest_line_hint(lines: &[&str], target: &str) -> String {
    let is_short = |line: &str| line.len() <= 200;
    let candidates = lines.iter().map(|line| line.trim()).filter(|line| is_short(line)).take(5_000);
    let found = if is_short(target) { find_most_similar(target, candidates) } else { None };
    let Some(found) = found else { return String::new() };
    let number = lines.iter().position(|line| line.trim() == found).unwrap_or_default() + 1;
    format!(" The most similar line is {number}: {}", truncate_chars(found, 200))
}

#[cfg(test)]
mod tests;
