//! The gate before every tool call: the rules decide, and where they say so the host is asked. One answer comes out.

use std::sync::Arc;

use serde_json::{Map, Value};
use whimbrel_policy::{Decision, Judged, Place, Question, Reason};
use whimbrel_wire::codec::restore;
use whimbrel_wire::control::CanUseTool;
use whimbrel_wire::permission::{Destination, PermissionMode, PermissionResult, PermissionUpdate};
use whimbrel_wire::system::{InformationLevel, Informational};

use crate::ask::{Ask, NoAnswer};
use crate::outbox::Outbox;
use crate::permission::Rights;
use crate::permission::question::question;
use crate::state::StateSign;
use crate::toolbox::Offered;
use crate::tools::Trouble;

/// Whoever can be asked for a permission.
#[derive(Debug, Clone)]
pub enum Asks {
    /// The host, by `can_use_tool`.
    Host(Ask),
    /// Nobody.
    Nobody,
}

/// The gate of a session.
#[derive(Clone)]
pub struct Gate {
    /// What the session may do.
    pub rights: Rights,
    /// Whom to ask.
    pub asks: Asks,
    /// Shows the host that the session waits for it.
    pub state: StateSign,
    /// The way to the host.
    pub outbox: Outbox,
    /// The subagent that asks; none on the main line.
    pub agent_id: Option<Arc<str>>,
}

/// The gate's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Permit {
    /// Make the call.
    Go {
        /// With this input.
        input: Value,
        /// On this file, if it is about one.
        place: Option<Place>,
    },
    /// Do not.
    No {
        /// What the model is told.
        message: String,
        /// Whether the whole turn stops.
        stop: bool,
        /// What decided: a rule, the mode, the host.
        by: Refuser,
    },
}

/// Who refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refuser {
    /// A rule or the mode.
    Rules,
    /// The host said no.
    Host,
    /// The host could not be asked, or its answer made no sense.
    NoAnswer,
}

impl Gate {
    /// Judges a call and asks if need be. Input that the host changed is judged again, but not asked about again.
    pub async fn pass(&self, listed: &Offered, id: &str, input: Value) -> Result<Permit, Trouble> {
        let name = listed.tool().name();
        // Input that does not fit is an error of the model, not a matter of permission.
        listed.tool().touches(&input)?;
        let Judged { decision, place } = self.rights.judge(name, listed.facts(), &input, None);
        match decision {
            Decision::Allow(_) => Ok(Permit::Go { input, place }),
            Decision::Deny(reason) => refused(name, &reason),
            Decision::Ask(why) => match self.ask(listed, id, &input, &why).await {
                // The host allows what it was shown, wherever the path may lead by now.
                Ok(allowed) if allowed == input => Ok(Permit::Go { input, place }),
                Ok(changed) => self.judge_changed(listed, changed),
                Err(refusal) => Ok(refusal),
            },
        }
    }

    fn judge_changed(&self, listed: &Offered, input: Value) -> Result<Permit, Trouble> {
        let name = listed.tool().name();
        listed.tool().touches(&input)?;
        let Judged { decision, place } = self.rights.judge(name, listed.facts(), &input, None);
        match decision {
            Decision::Deny(reason) if !matches!(reason, Reason::Mode(_)) => refused(name, &reason),
            Decision::Allow(_) | Decision::Deny(_) | Decision::Ask(_) => Ok(Permit::Go { input, place }),
        }
    }

    /// The input that the host allows, or its refusal.
    async fn ask(&self, listed: &Offered, id: &str, input: &Value, why: &Question) -> Result<Value, Permit> {
        let tool = listed.tool().name();
        let Asks::Host(ask) = &self.asks else {
            let message = format!(
                "{tool} needs a permission, and this session has nobody to ask. Allow the tool, or start with a permission callback."
            );
            return Err(Permit::No { message, stop: false, by: Refuser::NoAnswer });
        };
        let question = CanUseTool {
            agent_id: self.agent_id.as_deref().map(Into::into),
            ..question(tool, listed.facts(), id, input, why)
        };
        let waiting = self.state.requires_action().await;
        let answer = ask.ask(question).await;
        waiting.over().await;
        if let Ok(PermissionResult::Allow { updated_permissions: Some(updates), .. }) = &answer {
            self.change(updates).await;
        }
        read_answer(tool, input, answer)
    }

    /// Makes the changes that came with an answer; what could not be done is told.
    async fn change(&self, updates: &[PermissionUpdate]) {
        let mut problems = self.rights.apply(updates);
        let in_memory = |update: &PermissionUpdate| {
            matches!(update.destination(), Destination::Session | Destination::CliArg)
        };
        if !updates.iter().all(in_memory) {
            problems.push(NOT_WRITTEN.into());
        }
        for content in problems {
            let level = InformationLevel::Warning;
            self.outbox.notify(Informational { content, level, ..Informational::default() }).await;
        }
    }
}

/// What the host is told when it wants a change kept in a file.
const NOT_WRITTEN: &str = "This version of Whimbrel does not write settings files yet: the change of permissions counts for this session only.";

/// What the model is told of a refusal.
fn refused(tool: &str, reason: &Reason) -> Result<Permit, Trouble> {
    let message = match reason {
        Reason::InvalidInput(text) => return Err(Trouble::Refused(format!("InputValidationError: {text}"))),
        Reason::Mode(PermissionMode::DontAsk) => {
            format!("{tool} needs a permission, and this session never asks for one.")
        }
        reason => format!("{tool} is not permitted here. {}", reason.text()),
    };
    Ok(Permit::No { message, stop: false, by: Refuser::Rules })
}

fn read_answer(
    tool: &str,
    input: &Value,
    answer: Result<PermissionResult, NoAnswer>,
) -> Result<Value, Permit> {
    match answer {
        // An input without any field is how some hosts say that they change nothing.
        Ok(PermissionResult::Allow { updated_input: Some(updated), .. }) if !updated.is_empty() => {
            Ok(take_back(input, updated))
        }
        Ok(PermissionResult::Allow { .. }) => Ok(input.clone()),
        Ok(PermissionResult::Deny { message, interrupt, .. }) => {
            let message =
                if message.is_empty() { format!("The user does not want {tool} to run.") } else { message };
            Err(Permit::No { message, stop: interrupt, by: Refuser::Host })
        }
        Err(error) => Err(Permit::No {
            message: format!("Tool permission request failed: {error}"),
            stop: false,
            by: Refuser::NoAnswer,
        }),
    }
}

/// The input that the host gave back. Hosts often echo what they were shown, and that may have been shortened to fit a
/// line: what was cut then means the whole.
fn take_back(input: &Value, updated: Map<String, Value>) -> Value {
    let mut updated = Value::Object(updated);
    restore(&mut updated, input);
    updated
}
