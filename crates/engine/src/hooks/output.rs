//! What one hook said, read from an exit code and two outputs or from the host's answer; pure.
//!
//! A command's output is meant as an answer in JSON if it begins with `{`. Its exit code:
//! - 0: the answer counts; output that is no JSON is text;
//! - 2: the hook blocks, whatever else it says, with the answer's reason or else with its complaints;
//! - any other: the hook has failed; of an answer only what holds something up counts. A hook that has to make or remove a
//!   work tree blocks.
//!
//! Of an answer that is wrong in part only what holds something up counts ([`restraint`](super::restraint)); the hook has
//! failed besides, or altogether.

use std::sync::Arc;
use std::time::Duration;

use whimbrel_wire::hook::{AsyncOutput, HookEvent, HookOutput, HookSpecific, SyncOutput};

use super::salvage::{check_event_name, blocking_part};
use super::duplicate_keys::keep_first_duplicates;
use crate::tasks::{ProcessExit, CommandOutput};

/// A hook and what it said.
#[derive(Debug, Clone, PartialEq)]
pub struct HookResult {
    /// The hook, as people are told of it.
    pub hook: Arc<str>,
    /// What it said.
    pub output: ParsedOutput,
}

/// What a hook said.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedOutput {
    /// Nothing.
    Empty,
    /// It goes on by itself; what it will say comes too late for the event.
    Async,
    /// An answer.
    Output(Box<SyncOutput>),
    /// An answer that is wrong in part.
    Partial {
        /// What of it counts: what holds something up.
        blocking: Box<SyncOutput>,
        /// What is wrong with it.
        error: String,
    },
    /// Text that is no answer.
    Text(String),
    /// It blocks.
    Block {
        /// Why.
        reason: String,
        /// What it said besides.
        output: Option<Box<SyncOutput>>,
    },
    /// It failed, and how.
    Failed(String),
    /// It took longer than it may.
    TimedOut(Duration),
    /// It was stopped, because nobody waits any more.
    Cancelled,
}

impl ParsedOutput {
    /// What kind of thing it said, in a few words.
    pub fn summary(&self) -> String {
        match self {
            Self::Empty => "said nothing".into(),
            Self::Async => "goes on in the background".into(),
            Self::Output(_) | Self::Text(_) => "answered".into(),
            Self::Partial { error: flaw, .. } => format!("answered badly: {flaw}"),
            Self::Block { .. } => "blocked".into(),
            Self::Failed(fault) => format!("failed: {fault}"),
            Self::TimedOut(limit) => format!("took longer than {} s", limit.as_secs()),
            Self::Cancelled => "was stopped".into(),
        }
    }

    /// Reads what a command said that has ended.
    pub(super) fn from_command(event: HookEvent, ending: ProcessExit, heard: &CommandOutput) -> Self {
        let answer = ParsedJson::parse(event, heard);
        match (ending, answer) {
            (ProcessExit::Exited(2), answer) => to_block(answer, &heard.stderr.text()),
            (ProcessExit::Exited(code), _) if code != 0 && is_worktree_event(event) => {
                Self::Block { reason: exit_error(ending, &heard.stderr.text()), output: None }
            }
            (ProcessExit::Exited(0), ParsedJson::Valid(output)) => Self::Output(output),
            (_, ParsedJson::Valid(output)) => {
                let flaw = exit_error(ending, &heard.stderr.text());
                match blocking_part(*output) {
                    Some(legible) => Self::Partial { blocking: Box::new(legible), error: flaw },
                    None => Self::Failed(flaw),
                }
            }
            (_, ParsedJson::Partial { legible, flaw }) => Self::Partial { blocking: legible, error: flaw },
            (_, ParsedJson::Async) => Self::Empty,
            (_, ParsedJson::Invalid(reason)) => Self::Failed(reason),
            (ProcessExit::Exited(0), ParsedJson::Text(text)) if text.is_empty() => Self::Empty,
            (ProcessExit::Exited(0), ParsedJson::Text(text)) => Self::Text(text),
            (_, ParsedJson::Text(_)) => Self::Failed(exit_error(ending, &heard.stderr.text())),
        }
    }

    /// Reads what a web address said.
    pub(super) fn from_http(event: HookEvent, text: &str) -> Self {
        let trimmed = text.trim().trim_start_matches('\u{feff}');
        let answer = match trimmed.starts_with('{') {
            true => parse_json(event, trimmed),
            false => ParsedJson::Text(trimmed.to_owned()),
        };
        match answer {
            ParsedJson::Valid(output) => Self::Output(output),
            ParsedJson::Partial { legible, flaw } => Self::Partial { blocking: legible, error: flaw },
            ParsedJson::Async => Self::Async,
            ParsedJson::Invalid(reason) => Self::Failed(reason),
            ParsedJson::Text(text) if text.is_empty() => Self::Empty,
            ParsedJson::Text(text) => Self::Text(text),
        }
    }

    /// Reads the answer of a host.
    pub(super) fn from_host(event: HookEvent, output: HookOutput) -> Self {
        match validate(event, output) {
            ParsedJson::Valid(output) if *output == SyncOutput::default() => Self::Empty,
            ParsedJson::Valid(output) => Self::Output(output),
            ParsedJson::Partial { legible, flaw } => Self::Partial { blocking: legible, error: flaw },
            ParsedJson::Async => Self::Async,
            ParsedJson::Invalid(reason) => Self::Failed(reason),
            ParsedJson::Text(_) => Self::Empty,
        }
    }

    /// A failure, if it is one, in words.
    pub(super) fn error(&self) -> Option<String> {
        match self {
            Self::Failed(reason) | Self::Partial { error: reason, .. } => Some(reason.clone()),
            Self::TimedOut(limit) => Some(format!("it did not end within {} s", limit.as_secs_f64())),
            Self::Empty
            | Self::Async
            | Self::Output(_)
            | Self::Text(_)
            | Self::Block { .. }
            | Self::Cancelled => None,
        }
    }

    /// Every text that a model may come to read.
    pub(super) fn model_texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Text(text) => vec![text],
            Self::Output(output) | Self::Partial { blocking: output, .. } => output_texts(output),
            Self::Block { reason, output: besides } => {
                let besides = besides.iter_mut().flat_map(|output| output_texts(output));
                std::iter::once(reason).chain(besides).collect()
            }
            Self::Empty | Self::Async | Self::Failed(_) | Self::TimedOut(_) | Self::Cancelled => Vec::new(),
        }
    }
}

/// Whether a hook's first line asks for time: it goes on, and nobody has to wait.
pub(super) fn parse_async_request(first_line: &str) -> Option<AsyncOutput> {
    match serde_json::from_str(first_line.trim()) {
        Ok(HookOutput::Async(later)) => Some(later),
        Ok(HookOutput::Sync(_)) | Err(_) => None,
    }
}

/// What a hook says that nobody waited for: all of it, or the last line that is an answer. A first line that only
/// asked for time does not count.
pub(super) fn parse_late_output(event: HookEvent, ending: ProcessExit, heard: &CommandOutput) -> ParsedOutput {
    let raw = heard.stdout.raw();
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
    match ending {
        // What is no answer has nowhere to go.
        ProcessExit::Exited(0) => ParsedOutput::Empty,
        ProcessExit::Exited(_) | ProcessExit::Killed(_) | ProcessExit::TimedOut | ProcessExit::Unknown => {
            ParsedOutput::Failed(exit_error(ending, &heard.stderr.text()))
        }
    }
}

/// What stands in a command's output.
enum ParsedJson {
    /// An answer.
    Valid(Box<SyncOutput>),
    /// One that is wrong in part, and what of it counts.
    Partial { legible: Box<SyncOutput>, flaw: String },
    /// A promise of one.
    Async,
    /// Something that was meant as an answer and is none.
    Invalid(String),
    /// Something else.
    Text(String),
}

impl ParsedJson {
    fn parse(event: HookEvent, heard: &CommandOutput) -> Self {
        let raw = heard.stdout.raw();
        let trimmed = raw.trim().trim_start_matches('\u{feff}');
        if trimmed.starts_with('{') && heard.stdout.is_truncated() {
            return Self::Invalid(format!(
                "it printed {}, which is too much for an answer",
                heard.stdout.size()
            ));
        }
        if trimmed.starts_with('{') {
            return parse_json(event, trimmed);
        }
        Self::Text(heard.stdout.text().trim().to_owned())
    }

    /// What of it holds something up.
    fn into_blocking(self) -> Option<Box<SyncOutput>> {
        match self {
            Self::Valid(output) => blocking_part(*output).map(Box::new),
            Self::Partial { legible, .. } => Some(legible),
            Self::Async | Self::Invalid(_) | Self::Text(_) => None,
        }
    }
}

fn parse_json(event: HookEvent, json: &str) -> ParsedJson {
    let last = match serde_json::from_str(json) {
        Ok(output) => validate(event, output),
        Err(error) => return parse_prefix(event, json, format!("its answer cannot be read: {error}")),
    };
    let Some(first) = keep_first_duplicates(json) else { return last };
    let first = serde_json::from_value(first).map(|output| validate(event, output));
    let flaw = "its answer has a key twice, so nobody knows what it means".to_owned();
    match first.ok().and_then(ParsedJson::into_blocking).or_else(|| last.into_blocking()) {
        Some(legible) => ParsedJson::Partial { legible, flaw },
        None => ParsedJson::Invalid(flaw),
    }
}

/// What counts of an output that begins as an answer and goes on as something else.
fn parse_prefix(event: HookEvent, json: &str, flaw: String) -> ParsedJson {
    let whole = serde_json::Deserializer::from_str(json).into_iter::<HookOutput>().map_while(Result::ok);
    match whole.filter_map(|output| validate(event, output).into_blocking()).next() {
        Some(legible) => ParsedJson::Partial { legible, flaw },
        None => ParsedJson::Invalid(flaw),
    }
}

/// An answer in a wrong shape, or to another event than the one that was raised, is none, except for what holds something up.
fn validate(event: HookEvent, output: HookOutput) -> ParsedJson {
    let mut output = match output {
        HookOutput::Async(_) => return ParsedJson::Async,
        HookOutput::Sync(output) => output,
    };
    let mut flaws = Vec::new();
    if !output.invalid_fields.is_empty() {
        flaws.push(format!("its answer cannot be read: {}", std::mem::take(&mut output.invalid_fields).join("; ")));
    }
    flaws.extend(check_event_name(event, &mut output));
    if flaws.is_empty() {
        return ParsedJson::Valid(Box::new(output));
    }
    let flaw = flaws.join("; ");
    match blocking_part(output) {
        Some(legible) => ParsedJson::Partial { legible: Box::new(legible), flaw },
        None => ParsedJson::Invalid(flaw),
    }
}

/// A hook that ended with code 2.
fn to_block(answer: ParsedJson, complaints: &str) -> ParsedOutput {
    let (given, besides) = match answer {
        ParsedJson::Valid(mut output) | ParsedJson::Partial { legible: mut output, .. } => {
            (take_reason(&mut output), Some(output))
        }
        ParsedJson::Async | ParsedJson::Invalid(_) | ParsedJson::Text(_) => (None, None),
    };
    let complaints = Some(complaints.trim()).filter(|text| !text.is_empty());
    let reason = given.or_else(|| complaints.map(Into::into));
    ParsedOutput::Block { reason: reason.unwrap_or_else(|| "The hook gave no reason.".into()), output: besides }
}

/// The reason in an answer. The answer's own verdict goes with it: the exit code has said it already.
fn take_reason(output: &mut SyncOutput) -> Option<String> {
    output.decision = None;
    let general = output.reason.take();
    let specific = match &mut output.specific {
        Some(HookSpecific::PreToolUse(answer)) => {
            answer.permission_decision = None;
            answer.permission_decision_reason.take()
        }
        Some(HookSpecific::PreModelSwitch(answer)) => {
            answer.permission_decision = None;
            answer.permission_decision_reason.take()
        }
        Some(HookSpecific::PermissionRequest(_)) => {
            output.specific = None;
            None
        }
        _ => None,
    };
    specific.or(general)
}

/// A failure in words: how the command ended, and the first line of its complaints.
fn exit_error(ending: ProcessExit, complaints: &str) -> String {
    let how = match ending {
        ProcessExit::Exited(code) => format!("it ended with code {code}"),
        ProcessExit::Killed(signal) => format!("it was ended by signal {signal}"),
        ProcessExit::TimedOut => "it took too long".into(),
        ProcessExit::Unknown => "it ended in an unknown way".into(),
    };
    match complaints.trim().lines().next() {
        Some(line) => format!("{how}: {line}"),
        None => how,
    }
}

fn is_worktree_event(event: HookEvent) -> bool {
    matches!(event, HookEvent::WorktreeCreate | HookEvent::WorktreeRemove)
}

/// The texts of an answer that a model may come to read.
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

/// What an answer tells the model besides.
pub(super) fn additional_context(specific: &mut HookSpecific) -> Option<&mut String> {
    use HookSpecific as On;
    match specific {
        On::PreToolUse(answer) => answer.additional_context.as_mut(),
        On::PostToolUse(answer) => answer.additional_context.as_mut(),
        On::UserPromptSubmit(answer) => answer.additional_context.as_mut(),
        On::UserPromptExpansion(answer) => answer.additional_context.as_mut(),
        On::SessionStart(answer) => answer.additional_context.as_mut(),
        On::PostToolUseFailure(answer)
        | On::PostToolBatch(answer)
        | On::Notification(answer)
        | On::Setup(answer)
        | On::Stop(answer)
        | On::SubagentStart(answer)
        | On::SubagentStop(answer)
        | On::PostModelSwitch(answer) => answer.additional_context.as_mut(),
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
