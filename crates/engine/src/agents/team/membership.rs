//! A teammate's place in its team: what it gets there, and that it is free again when the teammate is gone, in whatever
//! way. A seat is known by its task, so that one of a team that was dissolved has nothing to do with a later team, though
//! both may have somebody of the same name.

use std::sync::Arc;

use super::message::{ControlMessage, TeamMessage, TeammateInput};
use super::delivery::NO_TEAM;
use super::{MemberFacts, SessionTeam, validate_name};
use crate::internal_events::{Notification, InternalEvent};
use crate::permission::PlanLock;

/// A place in a team. Given back when it is dropped.
pub struct Membership {
    team: SessionTeam,
    name: String,
    task_id: String,
    /// Whether somebody lives here, of whose end the lead has not heard.
    active: bool,
}

impl SessionTeam {
    /// Takes a teammate in; its seat has the name that it has from now on. Who has made a pledge owes a plan.
    pub fn join(&self, facts: &MemberFacts, pledge: Option<PlanLock>) -> Result<Membership, String> {
        let wanted = validate_name(&facts.name)?;
        let mut place = self.lock();
        let team = place.as_mut().ok_or(NO_TEAM)?;
        let name = team.add_member(facts, &wanted, pledge)?;
        Ok(Membership { team: self.clone(), name, task_id: facts.task_id.clone(), active: false })
    }
}

impl Membership {
    /// The name of whoever has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Somebody lives here now: if it vanishes, the lead is told.
    pub(super) fn activate(&mut self) {
        self.active = true;
    }

    /// Whoever lives here ends in an orderly way.
    pub(super) fn leave(mut self) {
        self.active = false;
    }

    /// Waits for mail and gives all of it; none once it is to end.
    pub(super) async fn receive(&self) -> Option<Vec<TeammateInput>> {
        loop {
            let bell = {
                let mut place = self.team.lock();
                let team = place.as_mut()?;
                let record = team.writer.clone();
                let member = team.member_by_task(&self.name, &self.task_id)?;
                if member.is_leaving {
                    return None;
                }
                if !member.inbox.is_empty() {
                    member.is_running = true;
                    member.wrote_to_lead = false;
                    let mail = member.inbox.drain(..).collect();
                    if let Some(record) = record {
                        record.mark_read(&self.name);
                    }
                    return Some(mail);
                }
                Arc::clone(&member.wake)
            };
            bell.notified().await;
        }
    }

    /// Whether whoever lives here has nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        let mut place = self.team.lock();
        let member = place.as_mut().and_then(|team| team.member_by_task(&self.name, &self.task_id));
        member.is_none_or(|member| !member.is_active())
    }

    /// A turn is over. If there is nothing to do, the lead is told, and woken unless it has heard from here.
    pub(super) fn mark_idle(&self) {
        let mut place = self.team.lock();
        if let Some(team) = &mut *place
            && let Some(member) = team.member_by_task(&self.name, &self.task_id)
        {
            member.is_running = false;
            let (idle, heard) = (member.inbox.is_empty(), member.wrote_to_lead);
            if idle && !member.is_leaving {
                let letter = TeamMessage::from_control(&self.name, &ControlMessage::Idle);
                team.notify_lead(&letter, !heard, &self.team.shared.event_sender);
            }
        }
        self.recheck_idle();
    }

    /// Tells the lead something that whoever lives here does not say itself.
    pub(super) fn report_to_lead(&self, text: String) {
        if let Some(team) = &mut *self.team.lock()
            && let Some(member) = team.member_by_task(&self.name, &self.task_id)
        {
            member.wrote_to_lead = true;
            team.notify_lead(&TeamMessage::new(&self.name, text, None), true, &self.team.shared.event_sender);
        }
    }

    /// Whoever lives here was stopped: the lead hears of it with its next turn. It may have done it itself.
    pub(super) fn notify_stopped(&self) {
        let letter = TeamMessage::new(&self.name, format!("{} was stopped and is gone.", self.name), None);
        let news = Notification { starts_turn: false, ..Notification::from_peer(letter.render()) };
        let _ = self.team.shared.event_sender.send(InternalEvent::Notification(Box::new(news)));
    }

    /// The session may have nothing left to wait for.
    fn recheck_idle(&self) {
        let _ = self.team.shared.event_sender.send(InternalEvent::RecheckIdle);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if self.active {
            self.report_to_lead(format!(
                "{} broke down and is gone. Start another one for its work, or do it yourself.",
                self.name
            ));
        }
        if let Some(team) = &mut *self.team.lock() {
            team.remove_member(&self.name, &self.task_id);
        }
        self.recheck_idle();
    }
}
