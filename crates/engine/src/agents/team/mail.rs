//! The mail of a team: who writes to whom, and how much.

use std::sync::Arc;
use std::time::Duration;

use super::letter::{Letter, Mail, counted};
use super::roll::Team;
use super::{LEAD, Receipt, Teams, bare};

pub(super) const NO_TEAM: &str = "There is no team. Found one with TeamCreate.";

/// How long after somebody has joined others may still be on their way: those who are started by one reply begin to work
/// one after the other, and write to each other at once.
const GATHERING: Duration = Duration::from_secs(2);

/// How many letters in a fixed form a team may write beyond its limit: whoever has come to it must still be able to end.
const RESERVE: usize = 200;

impl Teams {
    /// Writes a letter to somebody.
    pub fn send(&self, to: &str, letter: Letter) -> Result<Receipt, String> {
        let mut place = self.team();
        let team = place.as_mut().ok_or(NO_TEAM)?;
        self.post(team, &bare(to), letter, self.shared.most_letters)
    }

    /// Writes a letter in the order of its writer's calls, and also to somebody who is about to join.
    pub async fn write(&self, to: &str, letter: Letter) -> Result<Receipt, String> {
        let pen = self.team().as_mut().and_then(|team| Some(Arc::clone(&team.member(&letter.from)?.pen)));
        let Some(pen) = pen else { return self.send(to, letter) };
        let _in_turn = pen.lock().await;
        self.gather(&bare(to)).await;
        self.send(to, letter)
    }

    /// Writes a letter to everybody but its writer, and gives whom it has reached. It fails only if it has reached nobody:
    /// whoever writes it again after a failure must not write to some of them twice.
    pub fn broadcast(&self, letter: &Letter) -> Result<Vec<Receipt>, String> {
        let mut place = self.team();
        let team = place.as_mut().ok_or(NO_TEAM)?;
        let mut names = team.names();
        names.rotate_left(1);
        names.retain(|name| *name != letter.from);
        let most = self.shared.most_letters;
        let sent = names.iter().map(|name| self.post(team, name, letter.clone(), most));
        let (reached, missed): (Vec<_>, Vec<_>) = sent.partition(Result::is_ok);
        match missed.into_iter().find_map(Result::err) {
            Some(why) if reached.is_empty() => Err(why),
            _ => Ok(reached.into_iter().flatten().collect()),
        }
    }

    /// Waits for somebody of this name to join, as long as others do.
    async fn gather(&self, name: &str) {
        loop {
            let mut arrivals = match &*self.team() {
                Some(team) if !team.knows(name) => team.arrivals.subscribe(),
                _ => return,
            };
            let until = *arrivals.borrow_and_update() + GATHERING;
            if !matches!(tokio::time::timeout_at(until, arrivals.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Posts a letter in a fixed form.
    pub(super) fn post_form(&self, team: &mut Team, to: &str, letter: Letter) -> Result<Receipt, String> {
        self.post(team, to, letter, self.shared.most_letters.saturating_add(RESERVE))
    }

    fn post(&self, team: &mut Team, to: &str, letter: Letter, most: usize) -> Result<Receipt, String> {
        if team.written >= most {
            let most = self.shared.most_letters;
            return Err(format!(
                "The team has written {}, and that is the limit. Finish with what you have.",
                counted(most)
            ));
        }
        let receipt = team.deliver(to, letter, &self.shared.inbox)?;
        team.written += 1;
        Ok(receipt)
    }

    /// Brings a teammate, which is known by its task, news of its own background work. Gives them back if it is not there.
    pub fn tell(&self, task_id: Option<&str>, news: String) -> Option<String> {
        let mut place = self.team();
        let mut members = place.iter_mut().flat_map(|team| &mut team.members);
        let owner = members.find(|member| task_id == Some(&member.facts.task_id) && !member.leaving);
        match owner {
            Some(member) => {
                member.take_in(Mail::News(news));
                None
            }
            None => Some(news),
        }
    }

    /// Brings a teammate its first errand. That is no letter that anybody writes, so it counts for nothing.
    pub(super) fn brief(&self, name: &str, errand: Letter) -> Result<Receipt, String> {
        debug_assert_eq!(errand.from, LEAD);
        let mut place = self.team();
        place.as_mut().ok_or(NO_TEAM)?.deliver(name, errand, &self.shared.inbox)
    }

    /// Waits until what has been written by now is on disk, too.
    pub async fn settle(&self) {
        let record = self.team().as_ref().and_then(|team| team.record.clone());
        if let Some(record) = record {
            record.settle().await;
        }
    }
}
