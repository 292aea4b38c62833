//! The mail of a team: who comes and goes, who writes, and who waits for what.

use std::sync::Arc;

use super::letter::{Form, Letter};
use super::roll::{MemberFacts, Team};
use super::{LEAD, Receipt, Teams, bare, checked};
use crate::inbox::Post;

const NO_TEAM: &str = "There is no team. Found one with TeamCreate.";

impl Teams {
    /// Takes a teammate in and gives the name it has from now on.
    pub fn join(&self, facts: MemberFacts) -> Result<MemberFacts, String> {
        let wanted = checked(&facts.name)?;
        let mut place = self.team();
        let team = place.as_mut().ok_or(NO_TEAM)?;
        let name = team.admit(&facts, &wanted)?;
        Ok(MemberFacts { name, ..facts })
    }

    /// A teammate is gone.
    pub fn leave(&self, name: &str) {
        if let Some(team) = &mut *self.team() {
            team.dismiss(name);
        }
    }

    /// Writes a letter to somebody. What the engine itself tells costs nothing of what the team may write.
    pub fn send(&self, to: &str, letter: Letter) -> Result<Receipt, String> {
        let to = bare(to);
        let mut place = self.team();
        let team = place.as_mut().ok_or(NO_TEAM)?;
        let most = self.shared.most_letters;
        if team.written >= most {
            return Err(format!(
                "The team has written {most} letters, and that is the limit. Finish with what you have."
            ));
        }
        let receipt = team.deliver(to, letter, &self.shared.inbox)?;
        team.written += 1;
        Ok(receipt)
    }

    /// Writes a letter to everybody but its writer.
    pub fn broadcast(&self, letter: &Letter) -> Result<Vec<Receipt>, String> {
        let names = |team: &Team| {
            let members = team.members.iter().map(|member| member.facts.name.clone());
            members.chain([LEAD.to_owned()]).filter(|name| *name != letter.from).collect()
        };
        let names: Vec<String> = self.team().as_ref().map(names).ok_or(NO_TEAM)?;
        names.iter().map(|name| self.send(name, letter.clone())).collect()
    }

    /// A teammate agrees to end; it does once its turn is over.
    pub fn agree_to_leave(&self, name: &str) {
        if let Some(member) = self.team().as_mut().and_then(|team| team.member(name)) {
            member.leaving = true;
        }
    }

    /// Waits for mail to a teammate and gives all of it; none once it is to end.
    pub(super) async fn mail(&self, name: &str) -> Option<Vec<Letter>> {
        loop {
            let bell = {
                let mut place = self.team();
                let team = place.as_mut()?;
                let record = team.record.clone();
                let member = team.member(name)?;
                if member.leaving {
                    return None;
                }
                if !member.letters.is_empty() {
                    member.working = true;
                    member.wrote_to_lead = false;
                    let letters = member.letters.drain(..).collect();
                    if let Some(record) = record {
                        record.mark_read(name);
                    }
                    return Some(letters);
                }
                Arc::clone(&member.bell)
            };
            bell.notified().await;
        }
    }

    /// A teammate's turn is over. If it has nothing to do, the lead is told, and woken unless it has heard from it.
    pub(super) fn rest(&self, name: &str) {
        let mut place = self.team();
        if let Some(team) = &mut *place
            && let Some(member) = team.member(name)
        {
            member.working = false;
            let (idle, heard) = (member.letters.is_empty(), member.wrote_to_lead);
            if idle && !member.leaving {
                let letter = Letter::of_form(name, &Form::Idle);
                team.tell_lead(&letter, !heard, &self.shared.inbox);
            }
        }
        // The session may have nothing left to wait for.
        let _ = self.shared.inbox.send(Post::Quiet);
    }

    /// Tells the lead something of a teammate that the teammate does not say itself.
    pub(super) fn report(&self, name: &str, text: String) {
        if let Some(team) = &mut *self.team() {
            if let Some(member) = team.member(name) {
                member.wrote_to_lead = true;
            }
            team.tell_lead(&Letter::new(name, text, None), true, &self.shared.inbox);
        }
    }

    /// Waits until what has been written by now is on disk, too.
    pub async fn settle(&self) {
        let record = self.team().as_ref().and_then(|team| team.record.clone());
        if let Some(record) = record {
            record.settle().await;
        }
    }
}
