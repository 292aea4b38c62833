//! The gate before every tool call: the rules decide, and where they say so the host is asked. One answer comes out.

use std::sync::Arc;

use serde_json::{Map, Value};
use whimbrel_wire::codec::restore;
use whimbrel_wire::control::CanUseTool;
use whimbrel_wire::permission::PermissionResult;

use crate::ask::{Ask, NoAnswer};
use crate::knobs::KnobsReader;
use crate::permission::{Decision, Question, decide, paths};
use crate::state::StateSign;
use crate::tools::{AnyTool, Touches, Trouble};
use crate::workspace::Workspace;

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
    /// The mode of the session.
    pub knobs: KnobsReader,
    /// Whom to ask.
    pub asks: Asks,
    /// Tools allowed by name.
    pub allowed: Arc<[String]>,
    /// Tools denied by name.
    pub denied: Arc<[String]>,
    /// What lies inside.
    pub workspace: Arc<Workspace>,
    /// Shows the host that the session waits for it.
    pub state: StateSign,
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
    pub async fn pass(&self, tool: &dyn AnyTool, id: &str, input: Value) -> Result<Permit, Trouble> {
        let touches = tool.touches(&input)?;
        match self.judge(tool, &touches) {
            Decision::Allow => Ok(Permit::Go(input)),
            Decision::Deny(message) => Ok(Permit::No { message, stop: false, by: Refuser::Rules }),
            Decision::Ask => {
                let blocked = self.outside(&touches);
                let permit = self.ask(tool.name(), id, &input, blocked).await;
                if let Permit::Go(changed) = &permit
                    && *changed != input
                {
                    let touches = tool.touches(changed)?;
                    if let Decision::Deny(message) = self.judge(tool, &touches) {
                        return Ok(Permit::No { message, stop: false, by: Refuser::Rules });
                    }
                }
                Ok(permit)
            }
        }
    }

    fn judge(&self, tool: &dyn AnyTool, touches: &Touches) -> Decision {
        let mode = self.knobs.borrow().mode;
        decide(&Question {
            tool: tool.name(),
            touches,
            inside: self.outside(touches).is_none(),
            mode,
            allowed: &self.allowed,
            denied: &self.denied,
        })
    }

    /// The first path that a call touches outside the workspace.
    fn outside(&self, touches: &Touches) -> Option<String> {
        let (Touches::Reads(paths) | Touches::Writes(paths)) = touches else { return None };
        let resolved = paths.iter().map(|path| paths::real(&self.workspace.resolve(path)));
        resolved
            .into_iter()
            .find(|path| !self.workspace.contains(path))
            .map(|path| path.display().to_string())
    }

    async fn ask(&self, tool: &str, id: &str, input: &Value, blocked_path: Option<String>) -> Permit {
        let Asks::Host(ask) = &self.asks else {
            let message = format!(
                "{tool} needs a permission, and this session has nobody to ask. Allow the tool, or start with a permission callback."
            );
            return Permit::No { message, stop: false, by: Refuser::NoAnswer };
        };
        let question = CanUseTool {
            tool_name: tool.to_owned(),
            input: input.as_object().cloned().unwrap_or_default(),
            tool_use_id: id.to_owned(),
            blocked_path,
            agent_id: self.agent_id.as_deref().map(Into::into),
            ..CanUseTool::default()
        };
        let waiting = self.state.requires_action().await;
        let answer = ask.ask(question).await;
        waiting.over().await;
        read_answer(tool, input, answer)
    }
}

fn read_answer(tool: &str, input: &Value, answer: Result<PermissionResult, NoAnswer>) -> Permit {
    match answer {
        Ok(PermissionResult::Allow { updated_input: None, .. }) => Permit::Go(input.clone()),
        Ok(PermissionResult::Allow { updated_input: Some(updated), .. }) => {
            Permit::Go(take_back(input, updated))
        }
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
