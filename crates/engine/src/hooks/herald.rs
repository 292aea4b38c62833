//! Tells the host that a command is at work as a hook: that it began, what it prints, how it ended.

use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::system::{HookOutcome, HookProgress, HookResponse, HookStarted, System, SystemEvent};

use super::events::Occasion;
use super::matcher::subject;
use crate::ids;
use crate::outbox::Outbox;
use crate::tasks::{Ending, Heard};

/// Of which events the host hears that hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announce {
    /// Of those before the first turn only.
    Beginning,
    /// Of all.
    All,
}

/// Speaks for one run of a hook.
pub(super) struct Herald {
    /// None where the host does not want to hear.
    to: Option<Outbox>,
    /// Whether the host has heard of the beginning and not yet of the end.
    open: bool,
    hook_id: String,
    hook_name: String,
    hook_event: String,
}

impl Herald {
    /// A herald for the next run.
    pub(super) fn new(outbox: &Outbox, announce: Announce, event: HookEvent, occasion: &Occasion) -> Self {
        let wanted = announce == Announce::All || matches!(event, HookEvent::SessionStart | HookEvent::Setup);
        if !wanted {
            let (hook_id, hook_name, hook_event) = Default::default();
            return Self { to: None, open: false, hook_id, hook_name, hook_event };
        }
        let hook_name = match subject(&occasion.input.event) {
            Some(subject) => format!("{event}:{subject}"),
            None => event.to_string(),
        };
        let (to, hook_id) = (Some(outbox.clone()), ids::uuid());
        Self { to, open: false, hook_id, hook_name, hook_event: event.to_string() }
    }

    /// Whether anybody listens.
    pub(super) fn is_heard(&self) -> bool {
        self.to.is_some()
    }

    /// The hook began.
    pub(super) async fn began(&mut self) {
        let Some(outbox) = &self.to else { return };
        outbox
            .notify(HookStarted {
                hook_id: self.hook_id.clone(),
                hook_name: self.hook_name.clone(),
                hook_event: self.hook_event.clone(),
            })
            .await;
        self.open = true;
    }

    /// The hook printed something. Whoever is too slow to hear it hears it at the end.
    pub(super) fn prints(&self, heard: &Heard) {
        let Some(outbox) = &self.to else { return };
        let event = SystemEvent::from(HookProgress {
            hook_id: self.hook_id.clone(),
            hook_name: self.hook_name.clone(),
            hook_event: self.hook_event.clone(),
            stdout: heard.stdout.shown(),
            stderr: heard.stderr.shown(),
            output: heard.both.shown(),
        });
        outbox.try_send(System { event, uuid: ids::uuid(), session_id: outbox.session().to_owned() });
    }

    /// The hook ended; `ending` is none if we ended it.
    pub(super) async fn ended(&mut self, ending: Option<Ending>, heard: &Heard) {
        let (exit_code, outcome) = match ending {
            Some(Ending::Exited(0)) => (Some(0), HookOutcome::Success),
            Some(Ending::Exited(code)) => (Some(code), HookOutcome::Error),
            Some(Ending::Killed(_) | Ending::TimedOut | Ending::Unknown) => (None, HookOutcome::Error),
            None => (None, HookOutcome::Cancelled),
        };
        let Some(outbox) = &self.to else { return };
        outbox.notify(HookResponse { exit_code, outcome, ..self.response(Some(heard)) }).await;
        self.open = false;
    }

    /// Nobody waits for the hook any more, and nobody can be waited for.
    pub(super) fn cut_off(&mut self, heard: Option<&Heard>) {
        if let Some(outbox) = self.to.as_ref().filter(|_| self.open) {
            let event = SystemEvent::from(self.response(heard));
            outbox.post(System { event, uuid: ids::uuid(), session_id: outbox.session().to_owned() });
            self.open = false;
        }
    }

    /// The notice of an end that was none of the hook's own.
    fn response(&self, heard: Option<&Heard>) -> HookResponse {
        HookResponse {
            hook_id: self.hook_id.clone(),
            hook_name: self.hook_name.clone(),
            hook_event: self.hook_event.clone(),
            output: heard.map(|heard| heard.both.shown()).unwrap_or_default(),
            stdout: heard.map(|heard| heard.stdout.shown()).unwrap_or_default(),
            stderr: heard.map(|heard| heard.stderr.shown()).unwrap_or_default(),
            exit_code: None,
            outcome: HookOutcome::Cancelled,
        }
    }
}

/// Whatever began has an end.
impl Drop for Herald {
    fn drop(&mut self) {
        self.cut_off(None);
    }
}
