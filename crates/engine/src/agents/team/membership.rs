//! Membership of a teammate: an RAII handle that removes the member on drop, however the teammate ends. It is
//! identified by the task id, so that a member of a deleted team cannot affect a later team with the same names.

use std::sync::Arc;

use whimbrel_tools::internal_events::{InternalEvent, Notification};
use whimbrel_tools::permission::PlanLock;

use super::delivery::NO_TEAM;
use super::message::{ControlMessage, TeamMessage, TeammateInput};
use super::{MemberSpec, SessionTeam, validate_name};

/// Removes the member on drop.
pub struct Membership {
    team: SessionTeam,
    name: String,
    task_id: String,
    /// Whether a teammate runs whose end was not reported to the lead yet.
    active: bool,
}

impl SessionTeam {
    /// Adds a member and returns its membership, which holds the final name. With a plan lock, a plan must be
    /// approved first.
    pub fn join(&self, spec: &MemberSpec, plan_lock: Option<PlanLock>) -> Result<Membership, String> {
        let requested = validate_name(&spec.name)?;
        let mut guard = self.lock();
        let team = guard.as_mut().ok_or(NO_TEAM)?;
        let name = team.add_member(spec, &requested, plan_lock)?;
        Ok(Membership { team: self.clone(), name, task_id: spec.task_id.clone(), active: false })
    }
}

impl Membership {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Marks the teammate as running: if it vanishes, the lead is notified.
    pub(super) fn activate(&mut self) {
        self.active = true;
    }

    /// Ends the membership without a failure report.
    pub(super) fn leave(mut self) {
        self.active = false;
    }

    /// Waits for input and takes all of it; `None` once the teammate must end.
    pub(super) async fn receive(&self) -> Option<Vec<TeammateInput>> {
        loop {
            let notify = {
                let mut guard = self.team.lock();
                let team = guard.as_mut()?;
                let writer = team.writer.clone();
                let member = team.member_by_task(&self.name, &self.task_id)?;
                if member.is_leaving {
                    return None;
                }
                if !member.mailbox.is_empty() {
                    member.is_running = true;
                    member.wrote_to_lead = false;
                    let inputs = member.mailbox.drain(..).collect();
                    if let Some(writer) = writer {
                        writer.mark_read(&self.name);
                    }
                    return Some(inputs);
                }
                Arc::clone(&member.notify)
            };
            notify.notified().await;
        }
    }

    /// Returns whether the teammate has no work.
    pub(super) fn is_idle(&self) -> bool {
        let mut guard = self.team.lock();
        let member = guard.as_mut().and_then(|team| team.member_by_task(&self.name, &self.task_id));
        member.is_none_or(|member| !member.is_active())
    }

    /// Ends a turn. If there is no more input, notifies the lead, which starts a turn only if the teammate has not
    /// messaged it.
    pub(super) fn mark_idle(&self) {
        let mut guard = self.team.lock();
        if let Some(team) = &mut *guard
            && let Some(member) = team.member_by_task(&self.name, &self.task_id)
        {
            member.is_running = false;
            let (idle, wrote_to_lead) = (member.mailbox.is_empty(), member.wrote_to_lead);
            if idle && !member.is_leaving {
                let message = TeamMessage::from_control(&self.name, &ControlMessage::Idle);
                team.notify_lead(&message, !wrote_to_lead, &self.team.shared.event_sender);
            }
        }
        self.recheck_idle();
    }

    /// Sends the lead a report in the teammate's name.
    pub(super) fn report_to_lead(&self, text: String) {
        if let Some(team) = &mut *self.team.lock()
            && let Some(member) = team.member_by_task(&self.name, &self.task_id)
        {
            member.wrote_to_lead = true;
            team.notify_lead(&TeamMessage::new(&self.name, text, None), true, &self.team.shared.event_sender);
        }
    }

    /// Notifies the lead that the teammate was stopped; starts no turn, because the lead may have stopped it itself.
    pub(super) fn notify_stopped(&self) {
        let message =
            TeamMessage::new(&self.name, format!("{} was stopped and has left the team.", self.name), None);
        let notification = Notification { starts_turn: false, ..Notification::from_peer(message.render()) };
        let _ = self.team.shared.event_sender.send(InternalEvent::Notification(Box::new(notification)));
    }

    /// Wakes the event loop, which may have nothing left to wait for.
    fn recheck_idle(&self) {
        let _ = self.team.shared.event_sender.send(InternalEvent::RecheckIdle);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if self.active {
            self.report_to_lead(format!(
                "{} failed with an internal error and has left the team. Start another teammate for its work, or do it yourself.",
                self.name
            ));
        }
        if let Some(team) = &mut *self.team.lock() {
            team.remove_member(&self.name, &self.task_id);
        }
        self.recheck_idle();
    }
}
