//! Progress frames of command hooks: started, output, finished.

use whimbrel_os::ids;
use whimbrel_process::{CommandOutput, ProcessExit};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::system::{HookOutcome, HookProgress, HookResponse, HookStarted, System, SystemEvent};

use super::inputs::HookCall;
use super::matcher::match_target;
use whimbrel_transport::frame_sender::FrameSender;

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
        frames: &FrameSender,
        policy: ProgressPolicy,
        event: HookEvent,
        hook_call: &HookCall,
    ) -> Self {
        let is_reported =
            policy == ProgressPolicy::All || matches!(event, HookEvent::SessionStart | HookEvent::Setup);
        if !is_reported {
            let (hook_id, hook_name, hook_event) = Default::default();
            return Self { sender: None, started: false, hook_id, hook_name, hook_event };
        }
        let hook_name = match match_target(&hook_call.input.event) {
            Some(target) => format!("{event}:{target}"),
            None => event.to_string(),
        };
        let (sender, hook_id) = (Some(frames.clone()), ids::new_uuid());
        Self { sender, started: false, hook_id, hook_name, hook_event: event.to_string() }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.sender.is_some()
    }

    pub(super) async fn report_started(&mut self) {
        let Some(frames) = &self.sender else { return };
        frames
            .notify(HookStarted {
                hook_id: self.hook_id.clone(),
                hook_name: self.hook_name.clone(),
                hook_event: self.hook_event.clone(),
            })
            .await;
        self.started = true;
    }

    /// Reports output. A full channel drops the frame; the final one has everything.
    pub(super) fn report_output(&self, command_output: &CommandOutput) {
        let Some(frames) = &self.sender else { return };
        let event = SystemEvent::from(HookProgress {
            hook_id: self.hook_id.clone(),
            hook_name: self.hook_name.clone(),
            hook_event: self.hook_event.clone(),
            stdout: command_output.stdout.shown_text(),
            stderr: command_output.stderr.shown_text(),
            output: command_output.combined.shown_text(),
        });
        frames.try_send(System { event, uuid: ids::new_uuid(), session_id: frames.session_id().to_string() });
    }

    /// Reports the end; `exit` is `None` if we ended the process.
    pub(super) async fn report_finished(&mut self, exit: Option<ProcessExit>, output: &CommandOutput) {
        let (exit_code, outcome) = match exit {
            Some(ProcessExit::Exited(0)) => (Some(0), HookOutcome::Success),
            Some(ProcessExit::Exited(code)) => (Some(code), HookOutcome::Error),
            Some(ProcessExit::Killed(_) | ProcessExit::TimedOut | ProcessExit::Unknown) => {
                (None, HookOutcome::Error)
            }
            None => (None, HookOutcome::Cancelled),
        };
        let Some(frames) = &self.sender else { return };
        frames.notify(HookResponse { exit_code, outcome, ..self.response_frame(Some(output)) }).await;
        self.started = false;
    }

    /// Reports the cancellation without waiting, since this runs in `drop`.
    pub(super) fn report_cancelled(&mut self, output: Option<&CommandOutput>) {
        if let Some(frames) = self.sender.as_ref().filter(|_| self.started) {
            let event = SystemEvent::from(self.response_frame(output));
            frames.send_detached(System {
                event,
                uuid: ids::new_uuid(),
                session_id: frames.session_id().to_string(),
            });
            self.started = false;
        }
    }

    /// Response frame of a cancelled run.
    fn response_frame(&self, command_output: Option<&CommandOutput>) -> HookResponse {
        HookResponse {
            hook_id: self.hook_id.clone(),
            hook_name: self.hook_name.clone(),
            hook_event: self.hook_event.clone(),
            output: command_output
                .map(|command_output| command_output.combined.shown_text())
                .unwrap_or_default(),
            stdout: command_output
                .map(|command_output| command_output.stdout.shown_text())
                .unwrap_or_default(),
            stderr: command_output
                .map(|command_output| command_output.stderr.shown_text())
                .unwrap_or_default(),
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
