//! Tells the host that a command is at work as a hook: that it began, what it prints, how it ended.

use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::system::{HookOutcome, HookProgress, HookResponse, HookStarted, System, SystemEvent};

use super::inputs::HookCall;
use super::matcher::match_target;
use crate::ids;
use crate::frame_sender::FrameSender;
use crate::tasks::{ProcessExit, CommandOutput};

/// Of which events the host hears that hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressPolicy {
    /// Of those before the first turn only.
    StartupOnly,
    /// Of all.
    All,
}

/// Speaks for one run of a hook.
pub(super) struct ProgressReporter {
    /// None where the host does not want to hear.
    sender: Option<FrameSender>,
    /// Whether the host has heard of the beginning and not yet of the end.
    started: bool,
    hook_id: String,
    hook_name: String,
    hook_event: String,
}

impl ProgressReporter {
    /// A herald for the next run.
    pub(super) fn new(outbox: &FrameSender, announce: ProgressPolicy, event: HookEvent, occasion: &HookCall) -> Self {
        let wanted = announce == ProgressPolicy::All || matches!(event, HookEvent::SessionStart | HookEvent::Setup);
        if !wanted {
            let (hook_id, hook_name, hook_event) = Default::default();
            return Self { sender: None, started: false, hook_id, hook_name, hook_event };
        }
        let hook_name = match match_target(&occasion.input.event) {
            Some(subject) => format!("{event}:{subject}"),
            None => event.to_string(),
        };
        let (to, hook_id) = (Some(outbox.clone()), ids::new_uuid());
        Self { sender: to, started: false, hook_id, hook_name, hook_event: event.to_string() }
    }

    /// Whether anybody listens.
    pub(super) fn is_enabled(&self) -> bool {
        self.sender.is_some()
    }

    /// The hook began.
    pub(super) async fn report_started(&mut self) {
        let Some(outbox) = &self.sender else { return };
        outbox
            .notify(HookStarted {
                hook_id: self.hook_id.clone(),
                hook_name: self.hook_name.clone(),
                hook_event: self.hook_event.clone(),
            })
            .await;
        self.started = true;
    }

    /// The hook printed something. Whoever is too slow to hear it hears it at the end.
    pub(super) fn report_output(&self, heard: &CommandOutput) {
        let Some(outbox) = &self.sender else { return };
        let event = SystemEvent::from(HookProgress {
            hook_id: self.hook_id.clone(),
            hook_name: self.hook_name.clone(),
            hook_event: self.hook_event.clone(),
            stdout: heard.stdout.shown_text(),
            stderr: heard.stderr.shown_text(),
            output: heard.combined.shown_text(),
        });
        outbox.try_send(System { event, uuid: ids::new_uuid(), session_id: outbox.session_id().to_owned() });
    }

    /// The hook ended; `ending` is none if we ended it.
    pub(super) async fn report_finished(&mut self, ending: Option<ProcessExit>, heard: &CommandOutput) {
        let (exit_code, outcome) = match ending {
            Some(ProcessExit::Exited(0)) => (Some(0), HookOutcome::Success),
            Some(ProcessExit::Exited(code)) => (Some(code), HookOutcome::Error),
            Some(ProcessExit::Killed(_) | ProcessExit::TimedOut | ProcessExit::Unknown) => (None, HookOutcome::Error),
            None => (None, HookOutcome::Cancelled),
        };
        let Some(outbox) = &self.sender else { return };
        outbox.notify(HookResponse { exit_code, outcome, ..self.response_frame(Some(heard)) }).await;
        self.started = false;
    }

    /// Nobody waits for the hook any more, and nobody can be waited for.
    pub(super) fn report_cancelled(&mut self, heard: Option<&CommandOutput>) {
        if let Some(outbox) = self.sender.as_ref().filter(|_| self.started) {
            let event = SystemEvent::from(self.response_frame(heard));
            outbox.send_detached(System { event, uuid: ids::new_uuid(), session_id: outbox.session_id().to_owned() });
            self.started = false;
        }
    }

    /// The notice of an end that was none of the hook's own.
    fn response_frame(&self, heard: Option<&CommandOutput>) -> HookResponse {
        HookResponse {
            hook_id: self.hook_id.clone(),
            hook_name: self.hook_name.clone(),
            hook_event: self.hook_event.clone(),
            output: heard.map(|heard| heard.combined.shown_text()).unwrap_or_default(),
            stdout: heard.map(|heard| heard.stdout.shown_text()).unwrap_or_default(),
            stderr: heard.map(|heard| heard.stderr.shown_text()).unwrap_or_default(),
            exit_code: None,
            outcome: HookOutcome::Cancelled,
        }
    }
}

/// Whatever began has an end.
impl Drop for ProgressReporter {
    fn drop(&mut self) {
        self.report_cancelled(None);
    }
}
