//! Asking about a call, and what an answer means. Host and hooks are asked at the same time; the first answer counts. If
//! a rule or the mode decides meanwhile, the question is taken back.

use std::future::pending;
use std::pin::pin;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use whimbrel_policy::{Decision, Judged};
use whimbrel_wire::codec::restore;
use whimbrel_wire::control::{AskError, CanUseTool};
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::permission::PermissionResult;

use super::{Asked, Asks, Gate, Halt, Hooks, Permit, Refuser, called, prompt_tool};
use crate::ask::NoAnswer;
use crate::hooks::Scene;
use crate::permission::question::question;

/// What came of asking.
pub(super) enum Answer {
    /// It may be made.
    Allowed {
        /// With this input.
        input: Value,
        /// Who says so.
        by: Answerer,
    },
    /// It may not, or nobody could answer.
    Refused(Permit),
    /// Nobody needs to answer any more: this is decided.
    Moot(Judged),
}

/// Whoever answers a question about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answerer {
    /// The host, for the person.
    Host,
    /// A hook, in the person's place.
    Hook,
}

impl From<Answerer> for Refuser {
    fn from(answerer: Answerer) -> Self {
        match answerer {
            Answerer::Host => Self::Host,
            Answerer::Hook => Self::Hook,
        }
    }
}

/// Who was first.
enum First {
    Hook(PermissionResult),
    Host(Result<PermissionResult, NoAnswer>),
    Decided(Judged),
    Nobody,
}

impl Gate {
    /// Asks about a call.
    pub(super) async fn ask(&self, asked: &Asked<'_>, cancel: &CancellationToken) -> Answer {
        let tool = asked.listed.tool().name();
        let first = match &self.asks {
            Asks::Nobody => match self.hooks_answer(asked, cancel).await {
                Some(answer) => First::Hook(answer),
                None => return Answer::Refused(self.nobody(asked, cancel).await),
            },
            Asks::Host(_) | Asks::Tool(..) => {
                let question = CanUseTool {
                    agent_id: self.lookout.agent_id().map(Into::into),
                    mcp_server: asked.listed.provenance().cloned(),
                    ..question((tool, asked.listed.facts()), asked.id, asked.input, asked.why, |path| {
                        self.rights.shown(path)
                    })
                };
                let waiting = match self.asks {
                    Asks::Host(_) => Some(self.state.requires_action().await),
                    Asks::Tool(..) | Asks::Nobody => None,
                };
                self.call_the_person(tool, asked.hooks, cancel);
                let first = tokio::select! {
                    biased;
                    first = self.first_answer(asked, question, cancel) => first,
                    decision = self.decided(asked) => First::Decided(decision),
                    () = self.too_long() => First::Nobody,
                };
                if let Some(waiting) = waiting {
                    waiting.over().await;
                }
                first
            }
        };
        let (answer, by) = match first {
            First::Decided(decision) => return Answer::Moot(decision),
            First::Nobody => return failed("nobody has answered in time"),
            First::Hook(answer) => (Ok(answer), Answerer::Hook),
            First::Host(Err(NoAnswer::Deaf)) => return Answer::Refused(self.unheard(asked, cancel).await),
            First::Host(Ok(PermissionResult::Allow { tool_use_id: Some(other), .. }))
                if other != asked.id =>
            {
                return failed("the answer is about another call");
            }
            First::Host(answer) => (answer, Answerer::Host),
        };
        if let Ok(PermissionResult::Allow { updated_permissions, unread, .. }) = &answer {
            self.change(updated_permissions.clone().unwrap_or_default(), unread).await;
        }
        if let Err(NoAnswer::Failed(AskError::WrongShape(error))) = &answer {
            let text =
                format!("The answer to the question about {tool} cannot be read and counts as no: {error}");
            self.outbox.warn(text).await;
        }
        read(tool, asked.input, answer, by)
    }

    /// The first answer of hooks or host. Where the host cannot answer the hooks have all the time that they need.
    async fn first_answer(
        &self,
        asked: &Asked<'_>,
        question: CanUseTool,
        cancel: &CancellationToken,
    ) -> First {
        let mut hooks = pin!(self.hooks_answer(asked, cancel));
        let mut host = pin!(self.asks.put(question, cancel));
        tokio::select! {
            biased;
            answer = &mut hooks => match answer {
                Some(answer) => First::Hook(answer),
                None => First::Host(host.await),
            },
            answer = &mut host => match answer {
                Err(error) if error == NoAnswer::Deaf || matches!(self.asks, Asks::Tool(..)) => {
                    hooks.await.map_or(First::Host(Err(error)), First::Hook)
                }
                answer => First::Host(answer),
            },
        }
    }

    /// Tells the hooks that the person should look. Nobody waits for that.
    fn call_the_person(&self, tool: &str, hooks: Hooks, cancel: &CancellationToken) {
        if hooks == Hooks::Heard || !self.lookout.listens(HookEvent::Notification) {
            return;
        }
        let (lookout, cancel) = (self.lookout.clone(), cancel.clone());
        let message = format!("A permission is needed to use {tool}");
        tokio::spawn(async move {
            let told = |scene: &Scene| scene.notification("permission_prompt", message, None);
            lookout.raise(HookEvent::Notification, told, &cancel).await;
        });
    }

    /// What hooks say in the person's place, if anything.
    async fn hooks_answer(&self, asked: &Asked<'_>, cancel: &CancellationToken) -> Option<PermissionResult> {
        if asked.hooks == Hooks::Heard {
            return None;
        }
        let call = called(asked.listed, asked.id, asked.input);
        let suggestions = &asked.why.suggestions;
        let request = self.lookout.raise(
            HookEvent::PermissionRequest,
            |scene| scene.permission_request(call, suggestions.clone()),
            cancel,
        );
        request.await.permission
    }

    /// Ends when a change of rules or mode decides the call.
    async fn decided(&self, asked: &Asked<'_>) -> Judged {
        // What only a person can answer is not decided by anything else.
        if asked.listed.facts().requires_interaction {
            return pending().await;
        }
        let name = asked.listed.tool().name();
        let mut changes = self.rights.changes();
        loop {
            let judged =
                self.rights.judge(name, &asked.listed.facts_of(asked.input), asked.input, asked.hook.clone());
            if !matches!(judged.decision, Decision::Ask(_)) {
                return judged;
            }
            changes.next().await;
        }
    }

    /// Ends when the question has waited too long.
    async fn too_long(&self) {
        match self.patience {
            Some(patience) => tokio::time::sleep(patience).await,
            None => pending().await,
        }
    }

    /// The host no longer hears anything, and no hook has answered in its place.
    async fn unheard(&self, asked: &Asked<'_>, cancel: &CancellationToken) -> Permit {
        let message = format!("Tool permission request failed: {}", NoAnswer::Deaf);
        let call = called(asked.listed, asked.id, asked.input);
        Permit::no(self.told_of_refusal(call, message, cancel).await, Refuser::NoAnswer)
    }

    async fn nobody(&self, asked: &Asked<'_>, cancel: &CancellationToken) -> Permit {
        let call = called(asked.listed, asked.id, asked.input);
        let message = format!(
            "{} needs a permission, and this session has nobody to ask. Allow the tool, or start with a permission callback.",
            call.name
        );
        Permit::no(self.told_of_refusal(call, message, cancel).await, Refuser::NoAnswer)
    }
}

impl Asks {
    /// Asks whoever can be asked.
    async fn put(
        &self,
        question: CanUseTool,
        cancel: &CancellationToken,
    ) -> Result<PermissionResult, NoAnswer> {
        match self {
            Self::Host(ask) => ask.ask(question).await,
            Self::Tool(supply, name) => prompt_tool::ask(supply, name, question, cancel).await,
            Self::Nobody => Err(NoAnswer::Deaf),
        }
    }
}

/// What an answer means.
fn read(tool: &str, input: &Value, answer: Result<PermissionResult, NoAnswer>, by: Answerer) -> Answer {
    match answer {
        // An input without any field is how some hosts say that they change nothing.
        Ok(PermissionResult::Allow { updated_input: Some(updated), .. }) if !updated.is_empty() => {
            Answer::Allowed { input: take_back(input, updated), by }
        }
        Ok(PermissionResult::Allow { .. }) => Answer::Allowed { input: input.clone(), by },
        Ok(PermissionResult::Deny { message, interrupt, .. }) => {
            let message =
                if message.is_empty() { format!("The user does not want {tool} to run.") } else { message };
            let halt = interrupt.then_some(Halt::Refused);
            Answer::Refused(Permit { halt, ..Permit::no(message, by.into()) })
        }
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(error: &str) -> Answer {
    let message = format!("Tool permission request failed: {error}");
    Answer::Refused(Permit::no(message, Refuser::NoAnswer))
}

/// The input that the host gave back. Hosts often echo what they were shown, and that may have been shortened to fit a
/// line: what was cut then means the whole.
fn take_back(input: &Value, updated: Map<String, Value>) -> Value {
    let mut updated = Value::Object(updated);
    restore(&mut updated, input);
    updated
}
