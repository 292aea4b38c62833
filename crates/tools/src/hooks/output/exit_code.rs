//! Meaning of the exit code of a hook command: 0 is success, 2 blocks, and any other code is a failure, which blocks only
//! where a worktree is created or removed.

use whimbrel_process::{CommandOutput, ProcessExit};
use whimbrel_wire::hook::{HookEvent, HookSpecific, SyncOutput};

use super::{ParsedJson, ParsedOutput};
use crate::hooks::blocking_part::blocking_part;

impl ParsedOutput {
    /// Parses the output of a command that has ended.
    pub(in crate::hooks) fn from_command(
        event: HookEvent,
        exit: ProcessExit,
        command_output: &CommandOutput,
    ) -> Self {
        let parsed = ParsedJson::parse(event, command_output);
        match (exit, parsed) {
            (ProcessExit::Exited(2), parsed) => to_block(parsed, &command_output.stderr.text()),
            (ProcessExit::Exited(code), _) if code != 0 && is_worktree_event(event) => {
                Self::Block { reason: exit_error(exit, &command_output.stderr.text()), output: None }
            }
            (ProcessExit::Exited(0), ParsedJson::Valid(output)) => Self::Output(output),
            (_, ParsedJson::Valid(output)) => {
                let error = exit_error(exit, &command_output.stderr.text());
                match blocking_part(*output) {
                    Some(blocking) => Self::Partial { blocking: Box::new(blocking), error },
                    None => Self::Failed(error),
                }
            }
            (_, ParsedJson::Partial { blocking, error }) => Self::Partial { blocking, error },
            (_, ParsedJson::Async) => Self::Empty,
            (_, ParsedJson::Invalid(reason)) => Self::Failed(reason),
            (ProcessExit::Exited(0), ParsedJson::Text(text)) if text.is_empty() => Self::Empty,
            (ProcessExit::Exited(0), ParsedJson::Text(text)) => Self::Text(text),
            (_, ParsedJson::Text(_)) => Self::Failed(exit_error(exit, &command_output.stderr.text())),
        }
    }
}

/// Output of a hook that exited with code 2.
fn to_block(parsed: ParsedJson, stderr: &str) -> ParsedOutput {
    let (own_reason, rest) = match parsed {
        ParsedJson::Valid(mut output) | ParsedJson::Partial { blocking: mut output, .. } => {
            (take_reason(&mut output), Some(output))
        }
        ParsedJson::Async | ParsedJson::Invalid(_) | ParsedJson::Text(_) => (None, None),
    };
    let stderr = Some(stderr.trim()).filter(|text| !text.is_empty());
    let reason = own_reason.or_else(|| stderr.map(Into::into));
    ParsedOutput::Block { reason: reason.unwrap_or_else(|| "The hook gave no reason.".into()), output: rest }
}

/// Takes the reason and clears the output's own decision, which the exit code overrides.
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

/// Error text: how the command ended, and the first line of stderr.
pub(super) fn exit_error(exit: ProcessExit, stderr: &str) -> String {
    let outcome = match exit {
        ProcessExit::Exited(code) => format!("it exited with code {code}"),
        ProcessExit::Killed(signal) => format!("it was killed by signal {signal}"),
        ProcessExit::TimedOut => "it timed out".into(),
        ProcessExit::Unknown => "it ended with an unknown status".into(),
    };
    match stderr.trim().lines().next() {
        Some(line) => format!("{outcome}: {line}"),
        None => outcome,
    }
}

fn is_worktree_event(event: HookEvent) -> bool {
    matches!(event, HookEvent::WorktreeCreate | HookEvent::WorktreeRemove)
}
