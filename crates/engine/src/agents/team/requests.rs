//! Requests within a team: shutdown and plan approval. Each has an id, and only an answer to the open request counts.

use whimbrel_os::clock;

use super::delivery::NO_TEAM;
use super::members::{Team, TeamMember};
use super::message::{ControlMessage, TeamMessage};
use super::{LEAD, SentMessage, SessionTeam, to_member_name};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestAnswer {
    /// Approved, with a comment.
    Approve(String),
    /// Rejected, with the reason.
    Reject(String),
}

/// A request or answer that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRequest {
    pub request_id: String,
    pub message: SentMessage,
}

impl SessionTeam {
    /// Asks a teammate to shut down, for the lead.
    pub fn request_shutdown(&self, to: &str, reason: String) -> Result<SentRequest, String> {
        self.with_member(&to_member_name(to), |teams, team, name| {
            let request_id = new_request_id("shutdown", name);
            let control = ControlMessage::ShutdownRequest { request_id: request_id.clone(), reason };
            let message = teams.post_control(team, name, TeamMessage::from_control(LEAD, &control))?;
            find_member(team, name)?.shutdown_request = Some(request_id.clone());
            Ok(SentRequest { request_id, message })
        })
    }

    /// Answers a shutdown request, for a teammate; after an approval it ends with its turn.
    pub fn answer_shutdown(
        &self,
        name: &str,
        request: Option<&str>,
        answer: RequestAnswer,
    ) -> Result<SentRequest, String> {
        self.with_member(name, |teams, team, name| {
            let request = match_open_request(
                find_member(team, name)?.shutdown_request.as_deref(),
                request,
                "There is no shutdown request to answer.",
            )?;
            let (approves, control) = match answer {
                RequestAnswer::Approve(_) => {
                    (true, ControlMessage::ShutdownApproved { request_id: request.clone() })
                }
                RequestAnswer::Reject(reason) => {
                    (false, ControlMessage::ShutdownRejected { request_id: request.clone(), reason })
                }
            };
            let message = teams.post_control(team, LEAD, TeamMessage::from_control(name, &control))?;
            let member = find_member(team, name)?;
            member.shutdown_request = None;
            member.is_leaving |= approves;
            Ok(SentRequest { request_id: request, message })
        })
    }

    /// Submits the plan of a teammate that must have one approved.
    pub fn submit_plan(&self, name: &str, plan: String) -> Result<SentRequest, String> {
        self.with_member(name, |teams, team, name| {
            if find_member(team, name)?.required_plan.is_none() {
                return Err("Your lead requires no plan from you. Send a message instead.".into());
            }
            let request_id = new_request_id("plan", name);
            let control = ControlMessage::PlanRequest { request_id: request_id.clone(), plan };
            let message = teams.post_control(team, LEAD, TeamMessage::from_control(name, &control))?;
            if let Some(pending) = &mut find_member(team, name)?.required_plan {
                pending.request_id = Some(request_id.clone());
            }
            Ok(SentRequest { request_id, message })
        })
    }

    /// Answers a plan, for the lead. An approval releases the plan lock.
    pub fn answer_plan(
        &self,
        to: &str,
        request: Option<&str>,
        answer: RequestAnswer,
    ) -> Result<SentRequest, String> {
        self.with_member(&to_member_name(to), |teams, team, name| {
            let open_request = find_member(team, name)?
                .required_plan
                .as_ref()
                .and_then(|pending| pending.request_id.as_deref());
            let request =
                match_open_request(open_request, request, "It has submitted no plan that awaits approval.")?;
            let (approved, feedback) = match answer {
                RequestAnswer::Approve(text) => (true, text),
                RequestAnswer::Reject(reason) => (false, reason),
            };
            let control = ControlMessage::PlanResponse { request_id: request.clone(), approved, feedback };
            let message = teams.post_control(team, name, TeamMessage::from_control(LEAD, &control))?;
            let member = find_member(team, name)?;
            match (approved, &mut member.required_plan) {
                (true, Some(pending)) => {
                    pending.plan_lock.approve();
                    member.required_plan = None;
                }
                (_, pending) => pending.iter_mut().for_each(|pending| pending.request_id = None),
            }
            Ok(SentRequest { request_id: request, message })
        })
    }

    fn with_member<T>(
        &self,
        name: &str,
        action: impl FnOnce(&Self, &mut Team, &str) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut guard = self.lock();
        action(self, guard.as_mut().ok_or(NO_TEAM)?, name)
    }
}

/// The teammate with this name; the error lists the known ones.
fn find_member<'team>(team: &'team mut Team, name: &str) -> Result<&'team mut TeamMember, String> {
    let known = team.names();
    team.member(name).ok_or_else(|| match name {
        LEAD => "The lead cannot do this; only teammates can.".into(),
        _ => format!("There is no teammate {name}. Team members: {}.", known.join(", ")),
    })
}

/// The id of the open request; an answer need not name it, but must not name another one.
fn match_open_request(open: Option<&str>, answered: Option<&str>, none: &str) -> Result<String, String> {
    match (open, answered.filter(|answered| !answered.is_empty())) {
        (None, _) => Err(none.into()),
        (Some(open), Some(answered)) if open != answered => {
            Err(format!("The request {answered} is outdated. Answer {open}."))
        }
        (Some(open), _) => Ok(open.into()),
    }
}

fn new_request_id(prefix: &str, name: &str) -> String {
    format!("{prefix}-{}@{name}", clock::unix_millis())
}
