//! What the agents of a team ask each other in a fixed form: to end, and to approve a plan. Each request has a name, and
//! only the answer to the one that is open counts: an answer to an older one changes nothing.

use super::letter::{Form, Letter};
use super::mail::NO_TEAM;
use super::roll::{Member, Team};
use super::{LEAD, Receipt, Teams, bare};
use crate::clock;

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, with these words.
    Yes(String),
    /// No, for this reason.
    No(String),
}

/// Something that was asked or answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The name of the request.
    pub request: String,
    /// What became of the letter.
    pub receipt: Receipt,
}

impl Teams {
    /// The lead asks a teammate to end.
    pub fn ask_to_leave(&self, to: &str, reason: String) -> Result<Asked, String> {
        self.with_member(&bare(to), |teams, team, name| {
            let request = named("shutdown", name);
            let form = Form::ShutdownRequest { request: request.clone(), reason };
            let receipt = teams.post_form(team, name, Letter::of_form(LEAD, &form))?;
            of(team, name)?.asked_to_leave = Some(request.clone());
            Ok(Asked { request, receipt })
        })
    }

    /// A teammate says whether it ends; if so it does once its turn is over.
    pub fn answer_to_leave(
        &self,
        name: &str,
        request: Option<&str>,
        answer: Answer,
    ) -> Result<Asked, String> {
        self.with_member(name, |teams, team, name| {
            let request =
                open(of(team, name)?.asked_to_leave.as_deref(), request, "Nobody has asked you to end.")?;
            let (leaves, form) = match answer {
                Answer::Yes(_) => (true, Form::ShutdownApproved { request: request.clone() }),
                Answer::No(reason) => (false, Form::ShutdownRejected { request: request.clone(), reason }),
            };
            let receipt = teams.post_form(team, LEAD, Letter::of_form(name, &form))?;
            let member = of(team, name)?;
            member.asked_to_leave = None;
            member.leaving |= leaves;
            Ok(Asked { request, receipt })
        })
    }

    /// A teammate that owes a plan hands it in.
    pub fn hand_in_plan(&self, name: &str, plan: String) -> Result<Asked, String> {
        self.with_member(name, |teams, team, name| {
            if of(team, name)?.plan.is_none() {
                return Err("You owe your lead no plan. What you want to say goes into a message.".into());
            }
            let request = named("plan", name);
            let form = Form::PlanRequest { request: request.clone(), plan };
            let receipt = teams.post_form(team, LEAD, Letter::of_form(name, &form))?;
            if let Some(owed) = &mut of(team, name)?.plan {
                owed.request = Some(request.clone());
            }
            Ok(Asked { request, receipt })
        })
    }

    /// The lead says what it thinks of a plan. From a yes on the teammate may do what the lead's session may.
    pub fn answer_plan(&self, to: &str, request: Option<&str>, answer: Answer) -> Result<Asked, String> {
        self.with_member(&bare(to), |teams, team, name| {
            let waiting = of(team, name)?.plan.as_ref().and_then(|owed| owed.request.as_deref());
            let request = open(waiting, request, "It has handed in no plan that waits for an answer.")?;
            let (approved, feedback) = match answer {
                Answer::Yes(words) => (true, words),
                Answer::No(reason) => (false, reason),
            };
            let form = Form::PlanAnswer { request: request.clone(), approved, feedback };
            let receipt = teams.post_form(team, name, Letter::of_form(LEAD, &form))?;
            let member = of(team, name)?;
            match (approved, &mut member.plan) {
                (true, Some(owed)) => {
                    owed.pledge.redeem();
                    member.plan = None;
                }
                (_, owed) => owed.iter_mut().for_each(|owed| owed.request = None),
            }
            Ok(Asked { request, receipt })
        })
    }

    fn with_member<T>(
        &self,
        name: &str,
        act: impl FnOnce(&Self, &mut Team, &str) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut place = self.team();
        act(self, place.as_mut().ok_or(NO_TEAM)?, name)
    }
}

/// The teammate of this name.
fn of<'team>(team: &'team mut Team, name: &str) -> Result<&'team mut Member, String> {
    let known = team.names();
    team.member(name).ok_or_else(|| match name {
        LEAD => "That is for teammates, not for the lead.".into(),
        _ => format!("No teammate is called {name}. There is: {}.", known.join(", ")),
    })
}

/// The open request that an answer is for; an answer need not name it.
fn open(open: Option<&str>, answered: Option<&str>, none: &str) -> Result<String, String> {
    match (open, answered.filter(|answered| !answered.is_empty())) {
        (None, _) => Err(none.into()),
        (Some(open), Some(answered)) if open != answered => {
            Err(format!("The request {answered} does not count any more. The one to answer is {open}."))
        }
        (Some(open), _) => Ok(open.into()),
    }
}

fn named(what: &str, name: &str) -> String {
    format!("{what}-{}@{name}", clock::milliseconds())
}
