//! Progress frames of command hooks: started, output, finished.

use whimbrel_os::ids;
use whimbrel_process::{CommandOutput, ProcessExit};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::system::{HookOutcome, HookProgress, HookResponse, HookStarted, System, SystemEvent};

use super::inputs::HookCall;
use super::matcher::match_target;
use crate::frame_sender::FrameSender;

/// Events whose hook runs are reported to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressPolicy {
    /// SessionStart and Setup only.
    StartupOnly,
    All,
}

/// Reports one hook run.
pub(super) struct ProgressReporter {
    /// `None` if the run is not reported.
    sender: Option<FrameSender>,
    /// True between the started and the finished frame.
    started: bool,
    hook_id: String,
    hook_name: String,
    hook_event: String,
}

impl ProgressReporter {
    pub(super) fn new(
        outbox: &FrameSender,
        announce: ProgressPolicy,
        event: HookEvent,
        occasion: &HookCall,
    ) -> Self {
        let wanted =
            announce == ProgressPolicy::All || matches!(event, HookEvent::SessionStart | HookEvent::Setup);
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

    pub(super) fn is_enabled(&self) -> bool {
        self.sender.is_some()
    }

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

    /// Reports output. A full channel drops the frame; the final one has everything.
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

    /// Reports the end; `ending` is `None` if we ended the process.
    pub(super) async fn report_finished(&mut self, ending: Option<ProcessExit>, heard: &CommandOutput) {
        let (exit_code, outcome) = match ending {
            Some(ProcessExit::Exited(0)) => (Some(0), HookOutcome::Success),
            Some(ProcessExit::Exited(code)) => (Some(code), HookOutcome::Error),
            Some(ProcessExit::Killed(_) | ProcessExit::TimedOut | ProcessExit::Unknown) => {
                (None, HookOutcome::Error)
            }
            None => (None, HookOutcome::Cancelled),
        };
        let Some(outbox) = &self.sender else { return };
        outbox.notify(HookResponse { exit_code, outcome, ..self.response_frame(Some(heard)) }).await;
        self.started = false;
    }

    /// Reports the cancellation without waiting, since this runs in `drop`.
    pub(super) fn report_cancelled(&mut self, heard: Option<&CommandOutput>) {
        if let Some(outbox) = self.sender.as_ref().filter(|_| self.started) {
            let event = SystemEvent::from(self.response_frame(heard));
            outbox.send_detached(System {
                event,
                uuid: ids::new_uuid(),
                session_id: outbox.session_id().to_owned(),
            });
            self.started = false;
        }
    }

    /// Response frame of a cancelled run.
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

/// Every started run gets a finished frame.
impl Drop for ProgressReporter {
    fn drop(&mut self) {
        self.report_cancelled(None);
    }
}
