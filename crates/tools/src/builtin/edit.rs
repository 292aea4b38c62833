//! Edit: replaces texts in a file. Searching and replacing are pure functions; line endings, encoding and mode of the
//! file are kept.

mod input;

use std::ops::Range;
use std::path::Path;

use serde_json::json;
use whimbrel_os::files;
use whimbrel_wire::content::ResultContent;

use self::input::{Change, EditInput, Replacement};
use super::encoding::{DecodedText, encode};
use super::file_errors;
use super::file_target::{FileTarget, TargetState};
use super::patch::{self, truncate_chars};
use super::read_before_write;
use super::similar_text::find_most_similar;
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::workspace::{ReadState, Workspace};

pub(super) struct EditTool;

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
            Example::new(
                "applies several edits in order",
                json!({"file_path": "a.txt", "edits": [
                    {"old_string": "two", "new_string": "one"},
                    {"old_string": "one", "new_string": "1", "replace_all": true},
                ]}),
            )
            .with_files(three)
            .after_call(read().0, read().1)
            .expect_output(&["3 places"])
            .expect_files(&[("a.txt", "1\n1\nthree\n")]),
            Example::new(
                "names each edit that fails and changes nothing",
                json!({"file_path": "a.txt", "edits": [
                    {"old_string": "1", "new_string": "2"},
                    {"old_string": "two", "new_string": "2"},
                    {"old_string": "e", "new_string": "E"},
                ]}),
            )
            .with_files(three)
            .after_call(read().0, read().1)
            .expect_error(&["Edit 1: old_string was not found", "Edit 3: old_string matches 3", "Nothing was"])
            .expect_files(three),
        ]
    }
}

fn edit_file(input: &EditInput, call: &ToolContext) -> ToolResult {
    collect_errors(&input.change, input.change.replacements().iter().map(check_replacement))?;
    let (workspace, target) = (&*call.workspace, FileTarget::resolve(call, &input.file_path)?);
    let path = target.path.as_path();
    if let Change::One(replacement) = &input.change
        && replacement.old_string.is_empty()
    {
        return create_file(&input.change, &replacement.new_string, workspace, &target);
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
    let edited = apply_change(&decoded.text, &input.change, existing.read_state, path)?;
    let mut output = write_edit(&input.change, workspace, &target, decoded, &edited)?;
    if let (ReadState::Changed, ResultContent::Text(text)) = (existing.read_state, &mut output.content) {
        text.push_str("\nNote: the file had changed since you read it.");
    }
    Ok(output)
}

fn check_replacement(replacement: &Replacement) -> Result<(), String> {
    match replacement.old_string == replacement.new_string {
        true => Err("old_string and new_string are identical: nothing to change.".into()),
        false => Ok(()),
    }
}

/// Fails with the errors of all replacements that failed.
fn collect_errors(
    change: &Change,
    results: impl Iterator<Item = Result<(), String>>,
) -> Result<(), ToolError> {
    let errors = results.enumerate().filter_map(|(index, result)| Some((index, result.err()?)));
    let mut errors: Vec<String> = errors.map(|(index, error)| change.name_error(index, &error)).collect();
    if errors.is_empty() {
        return Ok(());
    }
    if let Change::Several(_) = change {
        errors.push("Nothing was changed.".into());
    }
    Err(ToolError::Rejected(errors.join("\n")))
}

/// The new text, and in how many places it differs.
struct EditedText {
    text: String,
    places: usize,
}

/// Applies the replacements in order. One that fails is skipped, so that the errors of all are found.
fn apply_change(
    text: &str,
    change: &Change,
    read_state: ReadState,
    path: &Path,
) -> Result<EditedText, ToolError> {
    let mut edited = EditedText { text: text.to_owned(), places: 0 };
    let apply = |replacement| {
        let (text, places) = apply_replacement(&edited.text, replacement, read_state, path)?;
        edited = EditedText { text, places: edited.places + places };
        Ok(())
    };
    let results: Vec<_> = change.replacements().iter().map(apply).collect();
    collect_errors(change, results.into_iter())?;
    Ok(edited)
}

fn apply_replacement(
    text: &str,
    replacement: &Replacement,
    read_state: ReadState,
    path: &Path,
) -> Result<(String, usize), String> {
    let Replacement { old_string, new_string, replace_all } = replacement;
    if old_string.is_empty() {
        return Err("old_string is empty. Name the text to replace.".into());
    }
    let ranges = find_matches(text, old_string);
    if read_state == ReadState::Changed && ranges.len() != 1 {
        return Err(read_before_write::changed_error(path).reason().to_owned());
    }
    if ranges.is_empty() || (ranges.len() > 1 && !replace_all) {
        return Err(match_error_message(text, old_string, &ranges, path));
    }
    if ranges.len().saturating_mul(new_string.len()).saturating_add(text.len()) > MAX_RESULT_BYTES {
        return Err(format!(
            "{} would grow to more than {} MB. Use a command instead.",
            path.display(),
            MAX_RESULT_BYTES / 1_000_000
        ));
    }
    Ok((replace_matches(text, &ranges, new_string), ranges.len()))
}

/// Writes the new text in the file's encoding.
fn write_edit(
    change: &Change,
    workspace: &Workspace,
    target: &FileTarget,
    old: &DecodedText,
    edited: &EditedText,
) -> ToolResult {
    let path = target.path.as_path();
    let Some(bytes) = encode(&edited.text, old.encoding) else {
        let text = format!(
            "{} is encoded in Windows-1252, which cannot represent some characters of new_string.",
            path.display()
        );
        return Err(ToolError::Rejected(text));
    };
    let stamp = target.replace(&bytes)?;
    target.record_seen(workspace, stamp, Some(&edited.text));
    let places = if edited.places > 1 { format!(" in {} places", edited.places) } else { String::new() };
    let headline = format!("File updated{places}: {}", path.display());
    Ok(edit_result(change, workspace, path, &old.text, &edited.text, &headline))
}

/// Creates a file with `new_string`; an existing empty file is allowed.
fn create_file(change: &Change, text: &str, workspace: &Workspace, target: &FileTarget) -> ToolResult {
    let (path, bytes) = (target.path.as_path(), text.as_bytes());
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
    target.record_seen(workspace, stamp, Some(text));
    Ok(edit_result(change, workspace, path, "", text, &format!("File created: {}", path.display())))
}

fn edit_result(
    change: &Change,
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
    let replacements = change.replacements();
    let join = |side: fn(&Replacement) -> &str| replacements.iter().map(side).collect::<Vec<_>>().join("\n");
    let mut meta = json!({
        "filePath": path.to_string_lossy(),
        "oldString": join(|replacement| &replacement.old_string),
        "newString": join(|replacement| &replacement.new_string),
        "originalFile": null,
        "structuredPatch": hunks,
        "userModified": false,
        "replaceAll": replacements.iter().all(|replacement| replacement.replace_all),
    });
    if let Change::Several(replacements) = change {
        meta["edits"] = json!(replacements);
    }
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
pub(super) fn replace_matches(text: &str, ranges: &[Range<usize>], new: &str) -> String {
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
