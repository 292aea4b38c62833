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

use super::restraint::{readdress, restraint};
use super::twice::by_first_keys;
use crate::tasks::{Ending, Heard};

/// A hook and what it said.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The hook, as people are told of it.
    pub hook: Arc<str>,
    /// What it said.
    pub said: Said,
}

/// What a hook said.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Nothing.
    Nothing,
    /// It goes on by itself; what it will say comes too late for the event.
    Later,
    /// An answer.
    Answer(Box<SyncOutput>),
    /// An answer that is wrong in part.
    Flawed {
        /// What of it counts: what holds something up.
        legible: Box<SyncOutput>,
        /// What is wrong with it.
        flaw: String,
    },
    /// Text that is no answer.
    Text(String),
    /// It blocks.
    Block {
        /// Why.
        reason: String,
        /// What it said besides.
        besides: Option<Box<SyncOutput>>,
    },
    /// It failed, and how.
    Fault(String),
    /// It took longer than it may.
    TimedOut(Duration),
    /// It was stopped, because nobody waits any more.
    Cancelled,
}

impl Said {
    /// What kind of thing it said, in a few words.
    pub fn told(&self) -> String {
        match self {
            Self::Nothing => "said nothing".into(),
            Self::Later => "goes on in the background".into(),
            Self::Answer(_) | Self::Text(_) => "answered".into(),
            Self::Flawed { flaw, .. } => format!("answered badly: {flaw}"),
            Self::Block { .. } => "blocked".into(),
            Self::Fault(fault) => format!("failed: {fault}"),
            Self::TimedOut(limit) => format!("took longer than {} s", limit.as_secs()),
            Self::Cancelled => "was stopped".into(),
        }
    }

    /// Reads what a command said that has ended.
    pub(super) fn by_command(event: HookEvent, ending: Ending, heard: &Heard) -> Self {
        let answer = Answer::read(event, heard);
        match (ending, answer) {
            (Ending::Exited(2), answer) => blocked(answer, &heard.stderr.text()),
            (Ending::Exited(code), _) if code != 0 && makes_work_trees(event) => {
                Self::Block { reason: failure(ending, &heard.stderr.text()), besides: None }
            }
            (Ending::Exited(0), Answer::Given(output)) => Self::Answer(output),
            (_, Answer::Given(output)) => {
                let flaw = failure(ending, &heard.stderr.text());
                match restraint(*output) {
                    Some(legible) => Self::Flawed { legible: Box::new(legible), flaw },
                    None => Self::Fault(flaw),
                }
            }
            (_, Answer::Flawed { legible, flaw }) => Self::Flawed { legible, flaw },
            (_, Answer::Later) => Self::Nothing,
            (_, Answer::Wrong(reason)) => Self::Fault(reason),
            (Ending::Exited(0), Answer::Text(text)) if text.is_empty() => Self::Nothing,
            (Ending::Exited(0), Answer::Text(text)) => Self::Text(text),
            (_, Answer::Text(_)) => Self::Fault(failure(ending, &heard.stderr.text())),
        }
    }

    /// Reads what a web address said.
    pub(super) fn by_text(event: HookEvent, text: &str) -> Self {
        let trimmed = text.trim().trim_start_matches('\u{feff}');
        let answer = match trimmed.starts_with('{') {
            true => read_json(event, trimmed),
            false => Answer::Text(trimmed.to_owned()),
        };
        match answer {
            Answer::Given(output) => Self::Answer(output),
            Answer::Flawed { legible, flaw } => Self::Flawed { legible, flaw },
            Answer::Later => Self::Later,
            Answer::Wrong(reason) => Self::Fault(reason),
            Answer::Text(text) if text.is_empty() => Self::Nothing,
            Answer::Text(text) => Self::Text(text),
        }
    }

    /// Reads the answer of a host.
    pub(super) fn by_host(event: HookEvent, output: HookOutput) -> Self {
        match check(event, output) {
            Answer::Given(output) if *output == SyncOutput::default() => Self::Nothing,
            Answer::Given(output) => Self::Answer(output),
            Answer::Flawed { legible, flaw } => Self::Flawed { legible, flaw },
            Answer::Later => Self::Later,
            Answer::Wrong(reason) => Self::Fault(reason),
            Answer::Text(_) => Self::Nothing,
        }
    }

    /// A failure, if it is one, in words.
    pub(super) fn fault(&self) -> Option<String> {
        match self {
            Self::Fault(reason) | Self::Flawed { flaw: reason, .. } => Some(reason.clone()),
            Self::TimedOut(limit) => Some(format!("it did not end within {} s", limit.as_secs_f64())),
            Self::Nothing
            | Self::Later
            | Self::Answer(_)
            | Self::Text(_)
            | Self::Block { .. }
            | Self::Cancelled => None,
        }
    }

    /// Every text that a model may come to read.
    pub(super) fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Text(text) => vec![text],
            Self::Answer(output) | Self::Flawed { legible: output, .. } => texts_of(output),
            Self::Block { reason, besides } => {
                let besides = besides.iter_mut().flat_map(|output| texts_of(output));
                std::iter::once(reason).chain(besides).collect()
            }
            Self::Nothing | Self::Later | Self::Fault(_) | Self::TimedOut(_) | Self::Cancelled => Vec::new(),
        }
    }
}

/// Whether a hook's first line asks for time: it goes on, and nobody has to wait.
pub(super) fn asks_for_time(first_line: &str) -> Option<AsyncOutput> {
    match serde_json::from_str(first_line.trim()) {
        Ok(HookOutput::Async(later)) => Some(later),
        Ok(HookOutput::Sync(_)) | Err(_) => None,
    }
}

/// What a hook says that nobody waited for: all of it, or the last line that is an answer. A first line that only
/// asked for time does not count.
pub(super) fn late_answer(event: HookEvent, ending: Ending, heard: &Heard) -> Said {
    let raw = heard.stdout.raw();
    let rest = match raw.split_once('\n') {
        Some((first, rest)) if asks_for_time(first).is_some() => rest,
        Some(_) | None => &raw,
    };
    for candidate in std::iter::once(rest).chain(rest.lines().rev()).map(str::trim) {
        if candidate.starts_with('{')
            && let Answer::Given(output) = read_json(event, candidate)
        {
            return Said::Answer(output);
        }
    }
    match ending {
        // What is no answer has nowhere to go.
        Ending::Exited(0) => Said::Nothing,
        Ending::Exited(_) | Ending::Killed(_) | Ending::TimedOut | Ending::Unknown => {
            Said::Fault(failure(ending, &heard.stderr.text()))
        }
    }
}

/// What stands in a command's output.
enum Answer {
    /// An answer.
    Given(Box<SyncOutput>),
    /// One that is wrong in part, and what of it counts.
    Flawed { legible: Box<SyncOutput>, flaw: String },
    /// A promise of one.
    Later,
    /// Something that was meant as an answer and is none.
    Wrong(String),
    /// Something else.
    Text(String),
}

impl Answer {
    fn read(event: HookEvent, heard: &Heard) -> Self {
        let raw = heard.stdout.raw();
        let trimmed = raw.trim().trim_start_matches('\u{feff}');
        if trimmed.starts_with('{') && heard.stdout.is_cut() {
            return Self::Wrong(format!(
                "it printed {}, which is too much for an answer",
                heard.stdout.size()
            ));
        }
        if trimmed.starts_with('{') {
            return read_json(event, trimmed);
        }
        Self::Text(heard.stdout.text().trim().to_owned())
    }

    /// What of it holds something up.
    fn restraint(self) -> Option<Box<SyncOutput>> {
        match self {
            Self::Given(output) => restraint(*output).map(Box::new),
            Self::Flawed { legible, .. } => Some(legible),
            Self::Later | Self::Wrong(_) | Self::Text(_) => None,
        }
    }
}

fn read_json(event: HookEvent, json: &str) -> Answer {
    let last = match serde_json::from_str(json) {
        Ok(output) => check(event, output),
        Err(error) => return read_beginning(event, json, format!("its answer cannot be read: {error}")),
    };
    let Some(first) = by_first_keys(json) else { return last };
    let first = serde_json::from_value(first).map(|output| check(event, output));
    let flaw = "its answer has a key twice, so nobody knows what it means".to_owned();
    match first.ok().and_then(Answer::restraint).or_else(|| last.restraint()) {
        Some(legible) => Answer::Flawed { legible, flaw },
        None => Answer::Wrong(flaw),
    }
}

/// What counts of an output that begins as an answer and goes on as something else.
fn read_beginning(event: HookEvent, json: &str, flaw: String) -> Answer {
    let whole = serde_json::Deserializer::from_str(json).into_iter::<HookOutput>().map_while(Result::ok);
    match whole.filter_map(|output| check(event, output).restraint()).next() {
        Some(legible) => Answer::Flawed { legible, flaw },
        None => Answer::Wrong(flaw),
    }
}

/// An answer in a wrong shape, or to another event than the one that was raised, is none, except for what holds something up.
fn check(event: HookEvent, output: HookOutput) -> Answer {
    let mut output = match output {
        HookOutput::Async(_) => return Answer::Later,
        HookOutput::Sync(output) => output,
    };
    let mut flaws = Vec::new();
    if !output.flaws.is_empty() {
        flaws.push(format!("its answer cannot be read: {}", std::mem::take(&mut output.flaws).join("; ")));
    }
    flaws.extend(readdress(event, &mut output));
    if flaws.is_empty() {
        return Answer::Given(Box::new(output));
    }
    let flaw = flaws.join("; ");
    match restraint(output) {
        Some(legible) => Answer::Flawed { legible: Box::new(legible), flaw },
        None => Answer::Wrong(flaw),
    }
}

/// A hook that ended with code 2.
fn blocked(answer: Answer, complaints: &str) -> Said {
    let (given, besides) = match answer {
        Answer::Given(mut output) | Answer::Flawed { legible: mut output, .. } => {
            (take_reason(&mut output), Some(output))
        }
        Answer::Later | Answer::Wrong(_) | Answer::Text(_) => (None, None),
    };
    let complaints = Some(complaints.trim()).filter(|text| !text.is_empty());
    let reason = given.or_else(|| complaints.map(Into::into));
    Said::Block { reason: reason.unwrap_or_else(|| "The hook gave no reason.".into()), besides }
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
fn failure(ending: Ending, complaints: &str) -> String {
    let how = match ending {
        Ending::Exited(code) => format!("it ended with code {code}"),
        Ending::Killed(signal) => format!("it was ended by signal {signal}"),
        Ending::TimedOut => "it took too long".into(),
        Ending::Unknown => "it ended in an unknown way".into(),
    };
    match complaints.trim().lines().next() {
        Some(line) => format!("{how}: {line}"),
        None => how,
    }
}

fn makes_work_trees(event: HookEvent) -> bool {
    matches!(event, HookEvent::WorktreeCreate | HookEvent::WorktreeRemove)
}

/// The texts of an answer that a model may come to read.
fn texts_of(output: &mut SyncOutput) -> Vec<&mut String> {
    let SyncOutput { reason, specific, .. } = output;
    let mut texts: Vec<&mut String> = reason.iter_mut().collect();
    if let Some(specific) = specific {
        if let HookSpecific::PreToolUse(answer) = specific {
            texts.extend(&mut answer.permission_decision_reason);
            texts.extend(&mut answer.additional_context);
        } else {
            texts.extend(context_of(specific));
        }
    }
    texts
}

/// What an answer tells the model besides.
pub(super) fn context_of(specific: &mut HookSpecific) -> Option<&mut String> {
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
