//! Delivery of messages within a team, and the limit on their number.

use std::sync::Arc;
use std::time::Duration;

use super::message::{TeamMessage, TeammateInput, count_text};
use super::state::Team;
use super::{LEAD, Receipt, SessionTeam, to_member_name};

pub(super) const NO_TEAM: &str = "There is no team. Found one with TeamCreate.";

/// Time after the last join during which further members may join: agents started by one reply start one after the
/// other and may message each other at once.
const JOIN_GRACE: Duration = Duration::from_secs(2);

/// Extra control messages allowed beyond the limit, so that a team that reached it can still shut down.
const CONTROL_MESSAGE_RESERVE: usize = 200;

impl SessionTeam {
    /// Sends a message.
    pub fn send(&self, to: &str, letter: TeamMessage) -> Result<Receipt, String> {
        let mut place = self.lock();
        let team = place.as_mut().ok_or(NO_TEAM)?;
        self.post_message(team, &to_member_name(to), letter, self.shared.max_messages)
    }

    /// Sends a message in the order of its sender's calls; waits briefly for a recipient that is about to join.
    pub async fn send_in_order(&self, to: &str, letter: TeamMessage) -> Result<Receipt, String> {
        let pen =
            self.lock().as_mut().and_then(|team| Some(Arc::clone(&team.member(&letter.from)?.send_lock)));
        let Some(pen) = pen else { return self.send(to, letter) };
        let _in_turn = pen.lock().await;
        self.wait_for_member(&to_member_name(to)).await;
        self.send(to, letter)
    }

    /// Sends a message to all other members; returns the receipts. Fails only if no member was reached, so that a
    /// retry does not send duplicates.
    pub fn broadcast(&self, letter: &TeamMessage) -> Result<Vec<Receipt>, String> {
        let mut place = self.lock();
        let team = place.as_mut().ok_or(NO_TEAM)?;
        let mut names = team.names();
        names.rotate_left(1);
        names.retain(|name| *name != letter.from);
        let most = self.shared.max_messages;
        let sent = names.iter().map(|name| self.post_message(team, name, letter.clone(), most));
        let (reached, missed): (Vec<_>, Vec<_>) = sent.partition(Result::is_ok);
        match missed.into_iter().find_map(Result::err) {
            Some(why) if reached.is_empty() => Err(why),
            _ => Ok(reached.into_iter().flatten().collect()),
        }
    }

    /// Waits for a member to join, as long as others keep joining.
    async fn wait_for_member(&self, name: &str) {
        loop {
            let mut arrivals = match &*self.lock() {
                Some(team) if !team.has_member(name) => team.last_joined.subscribe(),
                _ => return,
            };
            let until = *arrivals.borrow_and_update() + JOIN_GRACE;
            if !matches!(tokio::time::timeout_at(until, arrivals.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Sends a control message.
    pub(super) fn post_control(
        &self,
        team: &mut Team,
        to: &str,
        letter: TeamMessage,
    ) -> Result<Receipt, String> {
        self.post_message(team, to, letter, self.shared.max_messages.saturating_add(CONTROL_MESSAGE_RESERVE))
    }

    fn post_message(
        &self,
        team: &mut Team,
        to: &str,
        letter: TeamMessage,
        most: usize,
    ) -> Result<Receipt, String> {
        if team.message_count >= most {
            let most = self.shared.max_messages;
            return Err(format!(
                "The team has written {}, and that is the limit. Finish with what you have.",
                count_text(most)
            ));
        }
        let receipt = team.deliver(to, letter, &self.shared.event_sender)?;
        team.message_count += 1;
        Ok(receipt)
    }

    /// Delivers a notification to the teammate that owns the task; returns it if that teammate is gone.
    pub fn deliver_notification(&self, task_id: Option<&str>, news: String) -> Option<String> {
        let mut place = self.lock();
        let mut members = place.iter_mut().flat_map(|team| &mut team.members);
        let owner = members.find(|member| task_id == Some(&member.facts.task_id) && !member.is_leaving);
        match owner {
            Some(member) => {
                member.push_input(TeammateInput::Notification(news));
                None
            }
            None => Some(news),
        }
    }

    /// Delivers the first task of a teammate. It does not count towards the message limit.
    pub(super) fn deliver_first_task(&self, name: &str, errand: TeamMessage) -> Result<Receipt, String> {
        debug_assert_eq!(errand.from, LEAD);
        let mut place = self.lock();
        place.as_mut().ok_or(NO_TEAM)?.deliver(name, errand, &self.shared.event_sender)
    }

    /// Waits until all changes so far are on disk.
    pub async fn flush(&self) {
        let record = self.lock().as_ref().and_then(|team| team.writer.clone());
        if let Some(record) = record {
            record.flush().await;
        }
    }
}
