//! Parses the output of one hook: exit code and streams of a command, or the host's or endpoint's response. Pure,
//! except for [`truncate_texts`], which saves long texts to files.
//!
//! A command's output that begins with `{` is parsed as JSON. Exit codes:
//! - 0: the output counts; output that is not JSON is text;
//! - 2: the hook blocks, with the JSON's reason or else with stderr;
//! - other: the hook has failed; only the blocking part of its JSON counts. A failed WorktreeCreate or WorktreeRemove
//!   hook blocks.
//!
//! Of partly invalid JSON only the blocking part counts ([`blocking_part`](super::blocking_part)), and the error is
//! reported.

mod exit_code;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use whimbrel_os::{files, ids};
use whimbrel_process::{CommandOutput, ProcessExit};
use whimbrel_wire::hook::{AsyncOutput, HookEvent, HookOutput, HookSpecific, SyncOutput};

use self::exit_code::exit_error;
use super::blocking_part::{blocking_part, check_event_name, keep_first_duplicates};

/// Hook with its output.
#[derive(Debug, Clone, PartialEq)]
pub struct HookResult {
    /// Display name of the hook.
    pub hook: Arc<str>,
    pub output: ParsedOutput,
}

/// Parsed output of a hook.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedOutput {
    Empty,
    /// It continues in the background; its output comes too late for this event.
    Async,
    /// Valid JSON output.
    Output(Box<SyncOutput>),
    /// Partly invalid output.
    Partial {
        /// The blocking part of it.
        blocking: Box<SyncOutput>,
        error: String,
    },
    /// Text that is not JSON.
    Text(String),
    Block {
        reason: String,
        /// Other fields of its output.
        output: Option<Box<SyncOutput>>,
    },
    Failed(String),
    TimedOut(Duration),
    /// Cancelled with the turn or the session.
    Cancelled,
}

impl ParsedOutput {
    /// Summary for the log.
    pub fn summary(&self) -> String {
        match self {
            Self::Empty => "no output".into(),
            Self::Async => "continues in the background".into(),
            Self::Output(_) | Self::Text(_) => "answered".into(),
            Self::Partial { error, .. } => format!("invalid output: {error}"),
            Self::Block { .. } => "blocked".into(),
            Self::Failed(error) => format!("failed: {error}"),
            Self::TimedOut(limit) => format!("timed out after {} s", limit.as_secs()),
            Self::Cancelled => "cancelled".into(),
        }
    }

    /// Parses the response body of an HTTP hook.
    pub(super) fn from_http(event: HookEvent, text: &str) -> Self {
        let trimmed = text.trim().trim_start_matches('\u{feff}');
        let parsed = match trimmed.starts_with('{') {
            true => parse_json(event, trimmed),
            false => ParsedJson::Text(trimmed.to_owned()),
        };
        match parsed {
            ParsedJson::Valid(output) => Self::Output(output),
            ParsedJson::Partial { blocking, error } => Self::Partial { blocking, error },
            ParsedJson::Async => Self::Async,
            ParsedJson::Invalid(reason) => Self::Failed(reason),
            ParsedJson::Text(text) if text.is_empty() => Self::Empty,
            ParsedJson::Text(text) => Self::Text(text),
        }
    }

    /// Parses the host's response.
    pub(super) fn from_host(event: HookEvent, output: HookOutput) -> Self {
        match validate(event, output) {
            ParsedJson::Valid(output) if *output == SyncOutput::default() => Self::Empty,
            ParsedJson::Valid(output) => Self::Output(output),
            ParsedJson::Partial { blocking, error } => Self::Partial { blocking, error },
            ParsedJson::Async => Self::Async,
            ParsedJson::Invalid(reason) => Self::Failed(reason),
            ParsedJson::Text(_) => Self::Empty,
        }
    }

    /// Error text, if the hook failed.
    pub(super) fn error(&self) -> Option<String> {
        match self {
            Self::Failed(reason) | Self::Partial { error: reason, .. } => Some(reason.clone()),
            Self::TimedOut(limit) => Some(format!("it did not finish within {} s", limit.as_secs_f64())),
            Self::Empty
            | Self::Async
            | Self::Output(_)
            | Self::Text(_)
            | Self::Block { .. }
            | Self::Cancelled => None,
        }
    }

    /// Texts that may reach the model.
    pub(super) fn model_texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Text(text) => vec![text],
            Self::Output(output) | Self::Partial { blocking: output, .. } => output_texts(output),
            Self::Block { reason, output: rest } => {
                let rest = rest.iter_mut().flat_map(|output| output_texts(output));
                std::iter::once(reason).chain(rest).collect()
            }
            Self::Empty | Self::Async | Self::Failed(_) | Self::TimedOut(_) | Self::Cancelled => Vec::new(),
        }
    }
}

/// Parses the first line of output as a request to go async.
pub(super) fn parse_async_request(first_line: &str) -> Option<AsyncOutput> {
    match serde_json::from_str(first_line.trim()) {
        Ok(HookOutput::Async(request)) => Some(request),
        Ok(HookOutput::Sync(_)) | Err(_) => None,
    }
}

/// Parses the output of an async hook: all of it, or the last line that is valid JSON. The initial async request is
/// skipped.
pub(super) fn parse_late_output(
    event: HookEvent,
    exit: ProcessExit,
    command_output: &CommandOutput,
) -> ParsedOutput {
    let raw = command_output.stdout.raw();
    let rest = match raw.split_once('\n') {
        Some((first, rest)) if parse_async_request(first).is_some() => rest,
        Some(_) | None => &raw,
    };
    for candidate in std::iter::once(rest).chain(rest.lines().rev()).map(str::trim) {
        if candidate.starts_with('{')
            && let ParsedJson::Valid(output) = parse_json(event, candidate)
        {
            return ParsedOutput::Output(output);
        }
    }
    match exit {
        // Text that is not JSON has no use here.
        ProcessExit::Exited(0) => ParsedOutput::Empty,
        ProcessExit::Exited(_) | ProcessExit::Killed(_) | ProcessExit::TimedOut | ProcessExit::Unknown => {
            ParsedOutput::Failed(exit_error(exit, &command_output.stderr.text()))
        }
    }
}

/// Parsed stdout.
enum ParsedJson {
    Valid(Box<SyncOutput>),
    /// Partly invalid JSON, with its blocking part.
    Partial {
        blocking: Box<SyncOutput>,
        error: String,
    },
    /// Async request.
    Async,
    /// Invalid JSON.
    Invalid(String),
    /// Text that is not JSON.
    Text(String),
}

impl ParsedJson {
    fn parse(event: HookEvent, output: &CommandOutput) -> Self {
        let raw = output.stdout.raw();
        let trimmed = raw.trim().trim_start_matches('\u{feff}');
        if trimmed.starts_with('{') && output.stdout.is_truncated() {
            return Self::Invalid(format!("its output of {} is too large", output.stdout.size()));
        }
        if trimmed.starts_with('{') {
            return parse_json(event, trimmed);
        }
        Self::Text(output.stdout.text().trim().to_owned())
    }

    /// Blocking part of the output.
    fn into_blocking(self) -> Option<Box<SyncOutput>> {
        match self {
            Self::Valid(output) => blocking_part(*output).map(Box::new),
            Self::Partial { blocking, .. } => Some(blocking),
            Self::Async | Self::Invalid(_) | Self::Text(_) => None,
        }
    }
}

fn parse_json(event: HookEvent, json: &str) -> ParsedJson {
    let last = match serde_json::from_str(json) {
        Ok(output) => validate(event, output),
        Err(error) => return parse_prefix(event, json, format!("its output is not valid: {error}")),
    };
    let Some(first) = keep_first_duplicates(json) else { return last };
    let first = serde_json::from_value(first).map(|output| validate(event, output));
    let error = "its output has duplicate keys and is ambiguous".to_owned();
    match first.ok().and_then(ParsedJson::into_blocking).or_else(|| last.into_blocking()) {
        Some(blocking) => ParsedJson::Partial { blocking, error },
        None => ParsedJson::Invalid(error),
    }
}

/// Blocking part of output that starts as JSON and continues as something else.
fn parse_prefix(event: HookEvent, json: &str, error: String) -> ParsedJson {
    let outputs = serde_json::Deserializer::from_str(json).into_iter::<HookOutput>().map_while(Result::ok);
    match outputs.filter_map(|output| validate(event, output).into_blocking()).next() {
        Some(blocking) => ParsedJson::Partial { blocking, error },
        None => ParsedJson::Invalid(error),
    }
}

/// Validates field types and event name; of invalid output only the blocking part is kept.
fn validate(event: HookEvent, output: HookOutput) -> ParsedJson {
    let mut output = match output {
        HookOutput::Async(_) => return ParsedJson::Async,
        HookOutput::Sync(output) => output,
    };
    let mut errors = Vec::new();
    if !output.invalid_fields.is_empty() {
        errors.push(format!(
            "its output is not valid: {}",
            std::mem::take(&mut output.invalid_fields).join("; ")
        ));
    }
    errors.extend(check_event_name(event, &mut output));
    if errors.is_empty() {
        return ParsedJson::Valid(Box::new(output));
    }
    let error = errors.join("; ");
    match blocking_part(output) {
        Some(blocking) => ParsedJson::Partial { blocking: Box::new(blocking), error },
        None => ParsedJson::Invalid(error),
    }
}

/// Texts of an output that may reach the model.
fn output_texts(output: &mut SyncOutput) -> Vec<&mut String> {
    let SyncOutput { reason, specific, .. } = output;
    let mut texts: Vec<&mut String> = reason.iter_mut().collect();
    if let Some(specific) = specific {
        if let HookSpecific::PreToolUse(answer) = specific {
            texts.extend(&mut answer.permission_decision_reason);
            texts.extend(&mut answer.additional_context);
        } else {
            texts.extend(additional_context(specific));
        }
    }
    texts
}

/// Additional context of an output.
pub(super) fn additional_context(specific: &mut HookSpecific) -> Option<&mut String> {
    use HookSpecific as On;
    match specific {
        On::PreToolUse(output) => output.additional_context.as_mut(),
        On::PostToolUse(output) => output.additional_context.as_mut(),
        On::UserPromptSubmit(output) => output.additional_context.as_mut(),
        On::UserPromptExpansion(output) => output.additional_context.as_mut(),
        On::SessionStart(output) => output.additional_context.as_mut(),
        On::PostToolUseFailure(output)
        | On::PostToolBatch(output)
        | On::Notification(output)
        | On::Setup(output)
        | On::Stop(output)
        | On::SubagentStart(output)
        | On::SubagentStop(output)
        | On::PostModelSwitch(output) => output.additional_context.as_mut(),
        On::PermissionRequest(_)
        | On::PermissionDenied(_)
        | On::PreModelSwitch(_)
        | On::Elicitation(_)
        | On::ElicitationResult(_)
        | On::CwdChanged(_)
        | On::FileChanged(_)
        | On::MessageDisplay(_)
        | On::WorktreeCreate(_)
        | On::Other(_) => None,
    }
}

/// Longer texts are truncated.
const MAX_TEXT_CHARS: usize = 10_000;
/// Length of the part shown.
const SHOWN_CHARS: usize = 2_000;

/// Truncates long texts. The whole text is saved under `output_dir`.
pub(super) fn truncate_texts(output: &mut ParsedOutput, output_dir: &Path) {
    for text in output.model_texts() {
        if text.char_indices().nth(MAX_TEXT_CHARS).is_some() {
            *text = spill_text(text, output_dir);
        }
    }
}

fn spill_text(text: &str, output_dir: &Path) -> String {
    let end = text.char_indices().nth(SHOWN_CHARS).map_or(text.len(), |(end, _)| end);
    let omitted = text.len() - end;
    let path = output_dir.join("hooks").join(format!("{}.txt", ids::new_task_id('h')));
    let rest = match files::create(&path, text.as_bytes()) {
        Ok(_) => format!("Full text: {}", path.display()),
        Err(error) => format!("The rest is lost: {} cannot be written: {error}", path.display()),
    };
    format!("{}\n[... {omitted} more bytes. {rest}]", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_saved_and_a_short_one_kept() {
        let dir = tempfile::tempdir().unwrap();
        let long_text = "ü".repeat(MAX_TEXT_CHARS + 1);
        let mut output = ParsedOutput::Text(long_text.clone());
        truncate_texts(&mut output, dir.path());
        let ParsedOutput::Text(text) = &output else { panic!() };
        assert!(text.len() < 2 * SHOWN_CHARS + 500 && text.starts_with("üüü"), "{text}");
        let path = text.split("Full text: ").nth(1).unwrap().trim_end_matches(']');
        assert_eq!(std::fs::read_to_string(path).unwrap(), long_text);

        let mut output = ParsedOutput::Text("ü".repeat(MAX_TEXT_CHARS));
        truncate_texts(&mut output, dir.path());
        assert_eq!(output, ParsedOutput::Text("ü".repeat(MAX_TEXT_CHARS)));
    }

    #[test]
    fn a_failure_to_save_is_reported() {
        let mut parsed = ParsedOutput::Block { reason: "x".repeat(MAX_TEXT_CHARS + 1), output: None };
        truncate_texts(&mut parsed, Path::new("/dev/null"));
        let ParsedOutput::Block { reason, .. } = parsed else { panic!() };
        assert!(reason.contains("The rest is lost"), "{reason}");
    }
}
