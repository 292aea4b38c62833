//! The gate before every tool call: the rules decide, and where they say so the host is asked. One answer comes out.

use std::sync::Arc;

use serde_json::{Map, Value};
use whimbrel_policy::{Decision, Question, Reason};
use whimbrel_wire::codec::restore;
use whimbrel_wire::control::CanUseTool;
use whimbrel_wire::permission::{Destination, PermissionMode, PermissionResult, PermissionUpdate};
use whimbrel_wire::system::{InformationLevel, Informational};

use crate::ask::{Ask, NoAnswer};
use crate::outbox::Outbox;
use crate::permission::question::question;
use crate::permission::{ModeSwitch, Rights};
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
    /// Make the call, with this input.
    Go(Value),
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
        let mode = self.rights.mode();
        match self.rights.judge(name, listed.facts(), &input, None) {
            Decision::Allow(_) => Ok(Permit::Go(input)),
            Decision::Deny(reason) => refused(name, &reason),
            Decision::Ask(why) => {
                let permit = self.ask(listed, id, &input, &why).await;
                let Permit::Go(changed) = &permit else { return Ok(permit) };
                if *changed != input {
                    listed.tool().touches(changed)?;
                    if let Decision::Deny(reason) =
                        self.rights.judge_in(mode, name, listed.facts(), changed, None)
                        && !matches!(reason, Reason::Mode(_))
                    {
                        return refused(name, &reason);
                    }
                }
                Ok(permit)
            }
        }
    }

    /// Turns the mode of the session.
    pub fn mode_switch(&self) -> ModeSwitch {
        ModeSwitch::new(self.rights.clone(), self.outbox.clone())
    }

    async fn ask(&self, listed: &Offered, id: &str, input: &Value, why: &Question) -> Permit {
        let tool = listed.tool().name();
        let Asks::Host(ask) = &self.asks else {
            let message = format!(
                "{tool} needs a permission, and this session has nobody to ask. Allow the tool, or start with a permission callback."
            );
            return Permit::No { message, stop: false, by: Refuser::NoAnswer };
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
        let mode = self.rights.mode();
        let mut problems = self.rights.apply(updates);
        if self.rights.mode() != mode {
            self.mode_switch().tell().await;
        }
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

fn read_answer(tool: &str, input: &Value, answer: Result<PermissionResult, NoAnswer>) -> Permit {
    match answer {
        // An input without any field is how some hosts say that they change nothing.
        Ok(PermissionResult::Allow { updated_input: Some(updated), .. }) if !updated.is_empty() => {
            Permit::Go(take_back(input, updated))
        }
        Ok(PermissionResult::Allow { .. }) => Permit::Go(input.clone()),
        Ok(PermissionResult::Deny { message, interrupt, .. }) => {
            let message =
                if message.is_empty() { format!("The user does not want {tool} to run.") } else { message };
            Permit::No { message, stop: interrupt, by: Refuser::Host }
        }
        Err(error) => Permit::No {
            message: format!("Tool permission request failed: {error}"),
            stop: false,
            by: Refuser::NoAnswer,
        },
    }
}

/// The input that the host gave back. Hosts often echo what they were shown, and that may have been shortened to fit a
/// line: what was cut then means the whole.
fn take_back(input: &Value, updated: Map<String, Value>) -> Value {
    let mut updated = Value::Object(updated);
    restore(&mut updated, input);
    updated
}
