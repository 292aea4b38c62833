//! Delivery of messages within a team: into mailboxes, which wakes idle teammates, or to the lead; and the limit on
//! their number.

use std::sync::Arc;
use std::time::Duration;

use whimbrel_tools::internal_events::{EventSender, InternalEvent, Notification};

use super::members::{Team, TeamMember};
use super::message::{TeamMessage, TeammateInput, count_text};
use super::{LEAD, SentMessage, SessionTeam, to_member_name};

pub(super) const NO_TEAM: &str = "There is no team. Create one with TeamCreate.";

/// Time after the last join during which further members may join: agents started by one reply start one after the
/// other and may message each other at once.
const JOIN_GRACE: Duration = Duration::from_secs(2);

/// Extra control messages allowed beyond the limit, so that a team that reached it can still shut down.
const CONTROL_MESSAGE_RESERVE: usize = 200;

impl SessionTeam {
    pub fn send(&self, to: &str, message: TeamMessage) -> Result<SentMessage, String> {
        let mut guard = self.lock();
        let team = guard.as_mut().ok_or(NO_TEAM)?;
        self.post_message(team, &to_member_name(to), message, self.shared.max_messages)
    }

    /// Sends a message in the order of its sender's calls; waits briefly for a recipient that is about to join.
    pub async fn send_in_order(&self, to: &str, message: TeamMessage) -> Result<SentMessage, String> {
        let send_lock =
            self.lock().as_mut().and_then(|team| Some(Arc::clone(&team.member(&message.from)?.send_lock)));
        let Some(send_lock) = send_lock else { return self.send(to, message) };
        let _guard = send_lock.lock().await;
        self.wait_for_member(&to_member_name(to)).await;
        self.send(to, message)
    }

    /// Sends a message to all other members; returns what was sent. Fails only if no member was reached, so that a
    /// retry does not send duplicates.
    pub fn broadcast(&self, message: &TeamMessage) -> Result<Vec<SentMessage>, String> {
        let mut guard = self.lock();
        let team = guard.as_mut().ok_or(NO_TEAM)?;
        let mut names = team.names();
        names.rotate_left(1);
        names.retain(|name| *name != message.from);
        let limit = self.shared.max_messages;
        let sent = names.iter().map(|name| self.post_message(team, name, message.clone(), limit));
        let (reached, failed): (Vec<_>, Vec<_>) = sent.partition(Result::is_ok);
        match failed.into_iter().find_map(Result::err) {
            Some(reason) if reached.is_empty() => Err(reason),
            _ => Ok(reached.into_iter().flatten().collect()),
        }
    }

    /// Waits for a member to join, as long as others keep joining.
    async fn wait_for_member(&self, name: &str) {
        loop {
            let mut joins = match &*self.lock() {
                Some(team) if !team.has_member(name) => team.last_joined.subscribe(),
                _ => return,
            };
            let deadline = *joins.borrow_and_update() + JOIN_GRACE;
            if !matches!(tokio::time::timeout_at(deadline, joins.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Sends a control message.
    pub(super) fn post_control(
        &self,
        team: &mut Team,
        to: &str,
        message: TeamMessage,
    ) -> Result<SentMessage, String> {
        self.post_message(team, to, message, self.shared.max_messages.saturating_add(CONTROL_MESSAGE_RESERVE))
    }

    fn post_message(
        &self,
        team: &mut Team,
        to: &str,
        message: TeamMessage,
        limit: usize,
    ) -> Result<SentMessage, String> {
        if team.message_count >= limit {
            let limit = self.shared.max_messages;
            return Err(format!(
                "The team has reached its limit of {}. Finish with what you have.",
                count_text(limit)
            ));
        }
        let sent = team.deliver(to, message, &self.shared.event_sender)?;
        team.message_count += 1;
        Ok(sent)
    }

    /// Delivers a notification to the teammate that owns the task; returns it if that teammate has left.
    pub fn deliver_notification(&self, task_id: Option<&str>, notification: String) -> Option<String> {
        let mut guard = self.lock();
        let mut members = guard.iter_mut().flat_map(|team| &mut team.members);
        let owner = members.find(|member| task_id == Some(&member.spec.task_id) && !member.is_leaving);
        match owner {
            Some(member) => {
                member.push_input(TeammateInput::Notification(notification));
                None
            }
            None => Some(notification),
        }
    }

    /// Delivers the first task of a teammate. It does not count towards the message limit.
    pub(super) fn deliver_first_task(&self, name: &str, task: TeamMessage) -> Result<SentMessage, String> {
        debug_assert_eq!(task.from, LEAD);
        let mut guard = self.lock();
        guard.as_mut().ok_or(NO_TEAM)?.deliver(name, task, &self.shared.event_sender)
    }

    /// Waits until all changes so far are on disk.
    pub async fn flush(&self) {
        let writer = self.lock().as_ref().and_then(|team| team.writer.clone());
        if let Some(writer) = writer {
            writer.flush().await;
        }
    }
}

impl Team {
    /// Delivers a message to a member or to the lead.
    fn deliver(
        &mut self,
        to: &str,
        mut message: TeamMessage,
        event_sender: &EventSender,
    ) -> Result<SentMessage, String> {
        if to == message.from {
            return Err(format!("{to} is you. Send the message to another member, or continue."));
        }
        message.color = self.member(&message.from).map(|member| member.color.to_owned());
        if to == LEAD {
            if let Some(sender) = self.member(&message.from.clone()) {
                sender.wrote_to_lead = true;
            }
            self.notify_lead(&message, true, event_sender);
            return Ok(SentMessage { to: to.into(), recipient_is_running: false });
        }
        let known = self.names();
        let Some(member) = self.member(to) else {
            return Err(format!("There is no team member {to}. Team members: {}.", known.join(", ")));
        };
        let recipient_is_running = member.is_running;
        member.push_input(TeammateInput::Message(message.clone()));
        self.write_message(to, &message);
        Ok(SentMessage { to: to.into(), recipient_is_running })
    }

    /// Notifies the lead; `starts_turn` says whether that starts a turn.
    pub(super) fn notify_lead(&self, message: &TeamMessage, starts_turn: bool, event_sender: &EventSender) {
        self.write_message(LEAD, message);
        let notification = Notification { starts_turn, ..Notification::from_peer(message.render()) };
        // The event loop may have ended.
        let _ = event_sender.send(InternalEvent::Notification(Box::new(notification)));
    }

    fn write_message(&self, to: &str, message: &TeamMessage) {
        if let Some(writer) = &self.writer {
            writer.add_message(to, message.clone());
        }
    }
}

impl TeamMember {
    /// Adds input and wakes the teammate.
    fn push_input(&mut self, input: TeammateInput) {
        self.mailbox.push_back(input);
        self.notify.notify_one();
    }
}
