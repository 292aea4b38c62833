//! A teammate's place in its team: what it gets there, and that it is free again when the teammate is gone, in whatever
//! way. A seat is known by its task, so that one of a team that was dissolved has nothing to do with a later team, though
//! both may have somebody of the same name.

use std::sync::Arc;

use super::letter::{Form, Letter, Mail};
use super::mail::NO_TEAM;
use super::{MemberFacts, Teams, checked};
use crate::inbox::{News, Post};
use crate::permission::Pledge;

/// A place in a team. Given back when it is dropped.
pub struct Seat {
    teams: Teams,
    name: String,
    task_id: String,
    /// Whether somebody lives here, of whose end the lead has not heard.
    inhabited: bool,
}

impl Teams {
    /// Takes a teammate in; its seat has the name that it has from now on. Who has made a pledge owes a plan.
    pub fn join(&self, facts: &MemberFacts, pledge: Option<Pledge>) -> Result<Seat, String> {
        let wanted = checked(&facts.name)?;
        let mut place = self.team();
        let team = place.as_mut().ok_or(NO_TEAM)?;
        let name = team.admit(facts, &wanted, pledge)?;
        Ok(Seat { teams: self.clone(), name, task_id: facts.task_id.clone(), inhabited: false })
    }
}

impl Seat {
    /// The name of whoever has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Somebody lives here now: if it vanishes, the lead is told.
    pub(super) fn move_in(&mut self) {
        self.inhabited = true;
    }

    /// Whoever lives here ends in an orderly way.
    pub(super) fn move_out(mut self) {
        self.inhabited = false;
    }

    /// Waits for mail and gives all of it; none once it is to end.
    pub(super) async fn mail(&self) -> Option<Vec<Mail>> {
        loop {
            let bell = {
                let mut place = self.teams.team();
                let team = place.as_mut()?;
                let record = team.record.clone();
                let member = team.own(&self.name, &self.task_id)?;
                if member.leaving {
                    return None;
                }
                if !member.mail.is_empty() {
                    member.working = true;
                    member.wrote_to_lead = false;
                    let mail = member.mail.drain(..).collect();
                    if let Some(record) = record {
                        record.mark_read(&self.name);
                    }
                    return Some(mail);
                }
                Arc::clone(&member.bell)
            };
            bell.notified().await;
        }
    }

    /// Whether whoever lives here has nothing to do.
    pub(super) fn rests(&self) -> bool {
        let mut place = self.teams.team();
        let member = place.as_mut().and_then(|team| team.own(&self.name, &self.task_id));
        member.is_none_or(|member| !member.is_active())
    }

    /// A turn is over. If there is nothing to do, the lead is told, and woken unless it has heard from here.
    pub(super) fn rest(&self) {
        let mut place = self.teams.team();
        if let Some(team) = &mut *place
            && let Some(member) = team.own(&self.name, &self.task_id)
        {
            member.working = false;
            let (idle, heard) = (member.mail.is_empty(), member.wrote_to_lead);
            if idle && !member.leaving {
                let letter = Letter::of_form(&self.name, &Form::Idle);
                team.tell_lead(&letter, !heard, &self.teams.shared.inbox);
            }
        }
        self.nudge();
    }

    /// Tells the lead something that whoever lives here does not say itself.
    pub(super) fn report(&self, text: String) {
        if let Some(team) = &mut *self.teams.team()
            && let Some(member) = team.own(&self.name, &self.task_id)
        {
            member.wrote_to_lead = true;
            team.tell_lead(&Letter::new(&self.name, text, None), true, &self.teams.shared.inbox);
        }
    }

    /// Whoever lives here was stopped: the lead hears of it with its next turn. It may have done it itself.
    pub(super) fn was_stopped(&self) {
        let letter = Letter::new(&self.name, format!("{} was stopped and is gone.", self.name), None);
        let news = News { wakes: false, ..News::of_mail(letter.shown()) };
        let _ = self.teams.shared.inbox.send(Post::News(Box::new(news)));
    }

    /// The session may have nothing left to wait for.
    fn nudge(&self) {
        let _ = self.teams.shared.inbox.send(Post::Quiet);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.inhabited {
            self.report(format!(
                "{} broke down and is gone. Start another one for its work, or do it yourself.",
                self.name
            ));
        }
        if let Some(team) = &mut *self.teams.team() {
            team.dismiss(&self.name, &self.task_id);
        }
        self.nudge();
    }
}
