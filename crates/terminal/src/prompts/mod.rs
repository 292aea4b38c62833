//! Requests of the engine that the user answers: permission prompts, plans and questions. Each is a menu and a rule how
//! its outcome becomes an answer; a queue keeps their order.

mod permission;
mod plan;
mod question;

use std::time::Duration;

use tokio::time::Instant;
use whimbrel::CanUseTool;
use whimbrel::PermissionResult;

use crate::keys::KeyTable;
use crate::menu::{Menu, MenuOutcome};
use crate::screen::Key;

pub(crate) use question::QuestionPrompt;

/// While keys come closer than this before and after a prompt appears, they were meant for the input line.
const TYPE_AHEAD_PAUSE: Duration = Duration::from_millis(300);

/// After text that no choice has, the user is writing a message: keys within this time go on with it.
const MESSAGE_PAUSE: Duration = Duration::from_secs(2);

/// Names a request of the engine.
pub(crate) type RequestId = u64;

/// A request with its menu.
#[derive(Debug, Clone)]
pub(crate) struct Prompt {
    pub(crate) id: RequestId,
    pub(crate) request: CanUseTool,
    /// The subagent that asks, in words; empty for the main agent.
    pub(crate) agent: String,
    pub(crate) place: RequestPlace,
    kind: PromptKind,
    /// When it appeared on the screen.
    shown_at: Option<Instant>,
    /// Keys before this time are not for the prompt.
    guarded_until: Option<Instant>,
}

#[derive(Debug, Clone)]
enum PromptKind {
    Permission(permission::PermissionPrompt),
    Plan(Menu),
    Questions(QuestionPrompt),
}

/// Where the request itself is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestPlace {
    LiveArea,
    /// The live area had no room for all of it.
    Scrollback,
}

/// What an answer does beside the answer itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PromptAnswer {
    Answer(PermissionResult),
    /// The call is refused and the turn interrupted.
    RefuseAndInterrupt(PermissionResult),
}

/// What a key did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PromptOutcome {
    Open,
    Answered(PromptAnswer),
    /// The key belongs to the input line: it was typed before the prompt could be read.
    TypeAhead,
}

impl Prompt {
    pub(crate) fn new(id: RequestId, request: CanUseTool, agent: String) -> Self {
        let kind = match request.tool_name.as_str() {
            "ExitPlanMode" => PromptKind::Plan(plan::menu()),
            "AskUserQuestion" => match QuestionPrompt::new(&request.input) {
                Some(questions) => PromptKind::Questions(questions),
                None => PromptKind::Permission(permission::PermissionPrompt::new(&request)),
            },
            _ => PromptKind::Permission(permission::PermissionPrompt::new(&request)),
        };
        Self { id, request, agent, place: RequestPlace::LiveArea, kind, shown_at: None, guarded_until: None }
    }

    /// The menu that is open.
    pub(crate) fn menu(&self) -> &Menu {
        match &self.kind {
            PromptKind::Permission(prompt) => &prompt.menu,
            PromptKind::Plan(menu) => menu,
            PromptKind::Questions(questions) => questions.menu(),
        }
    }

    pub(crate) fn menu_mut(&mut self) -> &mut Menu {
        match &mut self.kind {
            PromptKind::Permission(prompt) => &mut prompt.menu,
            PromptKind::Plan(menu) => menu,
            PromptKind::Questions(questions) => questions.menu_mut(),
        }
    }

    /// The plan, if it is about one.
    pub(crate) fn plan(&self) -> Option<&str> {
        match self.kind {
            PromptKind::Plan(_) => self.request.input.get("plan").and_then(serde_json::Value::as_str),
            PromptKind::Permission(_) | PromptKind::Questions(_) => None,
        }
    }

    /// The questions, if it is about some.
    pub(crate) fn questions(&self) -> Option<&QuestionPrompt> {
        match &self.kind {
            PromptKind::Questions(questions) => Some(questions),
            PromptKind::Permission(_) | PromptKind::Plan(_) => None,
        }
    }

    /// Returns whether the call itself has to be shown.
    pub(crate) fn shows_call(&self) -> bool {
        matches!(self.kind, PromptKind::Permission(_))
    }

    /// Returns whether it is on the screen.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown_at.is_some()
    }

    /// Notes that the prompt is on the screen; `last_key` is when the user typed last.
    pub(crate) fn show(&mut self, now: Instant, last_key: Option<Instant>) {
        if self.shown_at.is_some() {
            return;
        }
        self.shown_at = Some(now);
        let is_typing = last_key.is_some_and(|last| now.saturating_duration_since(last) < TYPE_AHEAD_PAUSE);
        self.guarded_until = is_typing.then(|| now + TYPE_AHEAD_PAUSE);
    }

    /// Handles a key.
    pub(crate) fn handle_key(&mut self, key: &Key, keys: &KeyTable) -> PromptOutcome {
        if self.is_type_ahead(key) {
            return PromptOutcome::TypeAhead;
        }
        if !matches!(self.kind, PromptKind::Questions(_)) && self.menu().is_unrelated_text(key, keys) {
            self.guarded_until = Some(key.at + MESSAGE_PAUSE);
            return PromptOutcome::TypeAhead;
        }
        let outcome = self.menu_mut().handle_key(key, keys);
        let answer = match &mut self.kind {
            PromptKind::Permission(prompt) => prompt.answer(outcome),
            PromptKind::Plan(_) => plan::answer(outcome),
            PromptKind::Questions(questions) => questions.answer(outcome, &self.request.input),
        };
        answer.map_or(PromptOutcome::Open, PromptOutcome::Answered)
    }

    /// Answers with an outcome of the menu, for front ends that read lines.
    pub(crate) fn answer(&mut self, outcome: MenuOutcome) -> Option<PromptAnswer> {
        match &mut self.kind {
            PromptKind::Permission(prompt) => prompt.answer(outcome),
            PromptKind::Plan(_) => plan::answer(outcome),
            PromptKind::Questions(questions) => questions.answer(outcome, &self.request.input),
        }
    }

    /// Returns whether a key was typed before the prompt could be read.
    fn is_type_ahead(&mut self, key: &Key) -> bool {
        let Some(shown_at) = self.shown_at else { return true };
        match &mut self.guarded_until {
            Some(until) if key.at < *until => {
                *until = (*until).max(key.at + TYPE_AHEAD_PAUSE);
                true
            }
            _ => key.at < shown_at,
        }
    }

    /// Returns whether the rules of an answer would have allowed this request, too: the same updates were offered for it.
    pub(crate) fn is_settled_by(&self, answer: &PermissionResult) -> bool {
        let PermissionResult::Allow { updated_permissions: Some(updates), .. } = answer else { return false };
        match &self.kind {
            PromptKind::Permission(prompt) => prompt.is_covered_by(updates),
            PromptKind::Plan(_) | PromptKind::Questions(_) => false,
        }
    }
}

/// The answer of a user who does not want the call.
pub(crate) fn refusal() -> PermissionResult {
    PermissionResult::deny("The user refused the call. Stop and wait for what the user says.")
}

#[cfg(test)]
mod tests;
