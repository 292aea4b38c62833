//! The gate before every tool call: hooks have their say, the rules decide, and where they say so the host is asked. One
//! answer comes out.

mod prompt;
mod outcome;
mod prompt_tool;

use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_policy::{Decision, PreToolDecision, ResolvedDecision, ResolvedFile, PermissionQuestion, Reason, ToolKind};
use whimbrel_wire::codec::MAX_LINE_OUT;
use whimbrel_wire::hook::{HookEvent, HookPermissionDecision};
use whimbrel_wire::permission::{PermissionMode, PermissionUpdate};

use crate::host_requests::HostRequests;
use crate::files;
use crate::hooks::{ToolCallRef, MergedOutput, HookDispatcher, MergedDecision, join_reasons};
use crate::mcp::ToolCache;
use crate::frame_sender::FrameSender;
use crate::permission::{ModeSwitch, PermissionState};
use crate::state_notifier::StateNotifier;
use crate::tool_set::ToolEntry;
use crate::tools::ToolError;
use prompt::{PromptOutcome, AnsweredBy};
pub use outcome::{EndTurn, CheckOutcome, DeniedBy, CheckDecision};

/// Whoever can be asked for a permission.
#[derive(Debug, Clone)]
pub enum Prompter {
    /// The host, by `can_use_tool`.
    Host(HostRequests),
    /// A tool of an MCP server.
    Tool(ToolCache, String),
    /// Nobody.
    Unavailable,
}

/// The gate of an agent.
#[derive(Clone)]
pub struct PermissionChecker {
    /// What the session may do.
    pub permissions: PermissionState,
    /// Whom to ask.
    pub prompter: Prompter,
    /// How long a question waits for its answer; none waits as long as it takes.
    pub prompt_timeout: Option<Duration>,
    /// Tells hooks.
    pub hooks: HookDispatcher,
    /// Shows the host that the session waits for it.
    pub state_notifier: StateNotifier,
    /// The way to the host.
    pub frames: FrameSender,
}

impl PermissionChecker {
    /// A gate without hooks and with nobody to ask.
    #[cfg(test)]
    pub(crate) fn for_tests(
        permissions: PermissionState,
        workspace: &std::sync::Arc<crate::workspace::Workspace>,
        frames: FrameSender,
    ) -> Self {
        let (hooks, base) = (crate::hooks::HookExecutor::default(), whimbrel_wire::hook::HookBase::default());
        let workspace = std::sync::Arc::clone(workspace);
        Self {
            hooks: HookDispatcher::new(hooks, permissions.clone(), workspace, frames.clone(), base),
            state_notifier: StateNotifier::new(frames.clone(), crate::state_notifier::StateSubscription::Off),
            prompter: Prompter::Unavailable,
            prompt_timeout: None,
            permissions,
            frames,
        }
    }

    /// Judges a call and asks if need be. Input that a hook changed is judged as if the model had written it; input that
    /// the host changed is judged again, but not asked about again.
    pub async fn check(
        &self,
        listed: &ToolEntry,
        id: &str,
        mut input: Value,
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        // Input that does not fit is an error of the model, not a matter of permission.
        listed.tool().effects(&input)?;
        if listed.facts().kind == ToolKind::Shell && !fits_prompt(&input) {
            return Err(ToolError::Rejected(format!("InputValidationError: {INPUT_TOO_LONG}")));
        }
        let mut said = self.run_pre_hooks(listed, id, &input, cancel).await;
        let rewritten = said.updated_input.take().map(Value::Object);
        let rewrote_input = rewritten.is_some();
        if let Some(rewritten) = rewritten {
            listed.tool().effects(&rewritten)?;
            input = rewritten;
        }
        let rewritten = rewrote_input.then(|| input.clone());
        let mut permit = match self.hook_verdict(listed, &said, rewrote_input) {
            Ok(hook) => self.decide(listed, id, input, hook, cancel).await?,
            Err(HookObjection::Deny(message)) => CheckOutcome::deny(message, DeniedBy::Hook),
            Err(HookObjection::Defer) => {
                let halt = Some(EndTurn::Deferred);
                CheckOutcome { decision: CheckDecision::Defer(input), notes: Vec::new(), end_turn: halt }
            }
        };
        permit.notes.append(&mut said.contexts);
        if let CheckDecision::Deny { changed: changed @ None, .. } = &mut permit.decision {
            *changed = rewritten;
        }
        Ok(permit)
    }

    /// Goes on with a call that a hook wanted to put off, as if it had said nothing: only a call that stands alone can be.
    pub async fn check_ignoring_defer(
        &self,
        listed: &ToolEntry,
        id: &str,
        input: Value,
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        let text = "A PreToolUse hook wants to put a call off. That is possible only if the reply has no other call: the rules decide.";
        self.frames.warn(text).await;
        self.decide(listed, id, input, None, cancel).await
    }

    /// Tells the hooks that a call is about to be made.
    async fn run_pre_hooks(&self, listed: &ToolEntry, id: &str, input: &Value, cancel: &CancellationToken) -> MergedOutput {
        let call = tool_call_ref(listed, id, input);
        self.hooks.dispatch(HookEvent::PreToolUse, |scene| scene.pre_tool_use(call), cancel).await
    }

    /// What the hooks say about the call, for the rules.
    fn hook_verdict(
        &self,
        listed: &ToolEntry,
        said: &MergedOutput,
        rewrote_input: bool,
    ) -> Result<Option<PreToolDecision>, HookObjection> {
        if said.interrupted {
            return Err(HookObjection::Deny("The turn was interrupted before the hooks had agreed.".into()));
        }
        let Some(MergedDecision { decision, reasons }) = &said.decision else { return Ok(None) };
        let (text, source) = (join_reasons(reasons), "PreToolUse".to_owned());
        match decision {
            HookPermissionDecision::Allow => Ok(Some(PreToolDecision::Allow { source, text, rewrote_input })),
            HookPermissionDecision::Ask => Ok(Some(PreToolDecision::Ask { source, text })),
            HookPermissionDecision::Defer => Err(HookObjection::Defer),
            HookPermissionDecision::Deny => {
                let text = if text.is_empty() { "it gave no reason".into() } else { text };
                Err(HookObjection::Deny(format!("PreToolUse:{} hook error: {text}", listed.tool().name())))
            }
        }
    }

    /// Lets the rules decide, and asks where they say so.
    async fn decide(
        &self,
        listed: &ToolEntry,
        id: &str,
        input: Value,
        hook: Option<PreToolDecision>,
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        let name = listed.tool().name();
        let mode = self.permissions.mode_for_server(listed.tool().server());
        let judged = self.permissions.decide_in_mode(mode, name, &listed.facts_for_input(&input), &input, hook.clone());
        let ResolvedDecision { decision, file: place } = judged;
        match decision {
            Decision::Allow(_) => Ok(CheckOutcome::allow(input, place)),
            Decision::Deny(reason) => self.deny(listed, id, &input, &reason, cancel).await,
            Decision::Ask(why) => {
                let asked = PromptRequest { listed, id, input: &input, question: &why, hook, request_hooks: RequestHooks::Run };
                self.prompt(&asked, mode, place, cancel).await
            }
        }
    }

    /// Asks about a call, and does as the answer says.
    async fn prompt(
        &self,
        asked: &PromptRequest<'_>,
        mode: PermissionMode,
        place: Option<ResolvedFile>,
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        let PromptRequest { listed, id, input, .. } = *asked;
        if listed.facts().kind == ToolKind::Mcp && !fits_prompt(input) {
            return Ok(CheckOutcome::deny(format!("This needs a permission. {INPUT_TOO_LONG}"), DeniedBy::NoAnswer));
        }
        match self.request_answer(asked, cancel).await {
            // Whoever allows it allows what was shown, wherever the path may lead by now.
            PromptOutcome::Allowed { input: allowed, .. } if allowed == *input => Ok(CheckOutcome::allow(allowed, place)),
            PromptOutcome::Allowed { input: changed, by } => {
                Box::pin(self.recheck_changed_input(listed, id, changed, (mode, by), cancel)).await
            }
            PromptOutcome::Denied(permit) => Ok(permit),
            PromptOutcome::Superseded(ResolvedDecision { decision: Decision::Deny(reason), .. }) => {
                self.deny(listed, id, input, &reason, cancel).await
            }
            PromptOutcome::Superseded(ResolvedDecision { file: place, .. }) => Ok(CheckOutcome::allow(input.clone(), place)),
        }
    }

    /// Judges input that whoever was asked has changed, in the mode that it was asked about. If it was the host, only what
    /// denies counts, all else has been answered. A hook cannot answer for what it wrote itself, except in a question that
    /// its input answers: the host is asked about that, if there is one.
    async fn recheck_changed_input(
        &self,
        listed: &ToolEntry,
        id: &str,
        input: Value,
        (mode, by): (PermissionMode, AnsweredBy),
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        listed.tool().effects(&input)?;
        let name = listed.tool().name();
        let ResolvedDecision { decision, file: place } =
            self.permissions.decide_in_mode(mode, name, &listed.facts_for_input(&input), &input, None);
        match decision {
            Decision::Deny(reason) if !matches!(reason, Reason::Mode(_)) => {
                Ok(self.deny(listed, id, &input, &reason, cancel).await?.with_changed_input(input))
            }
            Decision::Ask(why) if by == AnsweredBy::Hook && why.reason != Reason::Interaction => {
                if matches!(self.prompter, Prompter::Unavailable) {
                    let why = why.reason.text();
                    let message = format!("A hook changed the call to one that needs a permission. {why}");
                    return Ok(CheckOutcome::deny(message, DeniedBy::Hook).with_changed_input(input));
                }
                let asked = PromptRequest { listed, id, input: &input, question: &why, hook: None, request_hooks: RequestHooks::AlreadyRun };
                let permit = self.prompt(&asked, mode, place, cancel).await?;
                Ok(permit.with_changed_input(input))
            }
            Decision::Allow(_) | Decision::Deny(_) | Decision::Ask(_) => Ok(CheckOutcome::allow(input, place)),
        }
    }

    /// What the model is told of a refusal by rules; hooks may add that another try is worth it.
    async fn deny(
        &self,
        listed: &ToolEntry,
        id: &str,
        input: &Value,
        reason: &Reason,
        cancel: &CancellationToken,
    ) -> Result<CheckOutcome, ToolError> {
        let tool = listed.tool().name();
        let message = match reason {
            Reason::InvalidInput(text) => {
                return Err(ToolError::Rejected(format!("InputValidationError: {text}")));
            }
            Reason::Mode(PermissionMode::DontAsk) => {
                format!("{tool} needs a permission, and this session never asks for one.")
            }
            reason => format!("{tool} is not permitted here. {}", reason.text()),
        };
        let message = self.run_denied_hooks(tool_call_ref(listed, id, input), message, cancel).await;
        Ok(CheckOutcome::deny(message, DeniedBy::Rules))
    }

    /// Tells the hooks that a call was refused without a person's say.
    async fn run_denied_hooks(&self, call: ToolCallRef<'_>, message: String, cancel: &CancellationToken) -> String {
        let told = |scene: &crate::hooks::HookInputBuilder| scene.permission_denied(call, message.clone());
        let said = self.hooks.dispatch(HookEvent::PermissionDenied, told, cancel).await;
        match said.event_specific.retry {
            true => format!("{message} A hook says that it may be tried again."),
            false => message,
        }
    }

    /// Turns the mode of the session.
    pub fn mode_switch(&self) -> ModeSwitch {
        ModeSwitch::new(self.permissions.clone(), self.frames.clone())
    }

    /// Makes the changes that came with an answer; what could not be done, or not be read in the first place, is told.
    async fn apply_updates(&self, updates: Vec<PermissionUpdate>, unread: &[String]) {
        for why in unread {
            self.frames.warn(format!("A change of permissions in an answer is left out. {why}.")).await;
        }
        if updates.is_empty() {
            return;
        }
        let (rights, mode) = (self.permissions.clone(), self.permissions.mode());
        let changed = files::run_blocking(move || rights.apply_updates(&updates)).await;
        if self.permissions.mode() != mode {
            self.mode_switch().notify_host().await;
        }
        for content in changed.unwrap_or_else(|error| vec![error.to_string()]) {
            self.frames.warn(content).await;
        }
    }
}

/// The most bytes of an input that whoever is asked sees as a whole; a longer one is cut to fit a line. What would be run
/// must not be longer than what is shown; what is written may be.
const MAX_SHOWN_INPUT_BYTES: usize = MAX_LINE_OUT / 10 * 9;

const INPUT_TOO_LONG: &str = "The input is too long to be shown to whoever decides about it. Put the data into a file and name the file.";

fn fits_prompt(input: &Value) -> bool {
    input.to_string().len() <= MAX_SHOWN_INPUT_BYTES
}

/// Why a hook lets a call not go on.
enum HookObjection {
    Deny(String),
    Defer,
}

/// A call that somebody has to be asked about.
struct PromptRequest<'a> {
    listed: &'a ToolEntry,
    id: &'a str,
    input: &'a Value,
    question: &'a PermissionQuestion,
    hook: Option<PreToolDecision>,
    request_hooks: RequestHooks,
}

/// Whether hooks are asked about a call, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestHooks {
    /// They are.
    Run,
    /// They have been heard.
    AlreadyRun,
}

fn tool_call_ref<'a>(listed: &'a ToolEntry, id: &'a str, input: &'a Value) -> ToolCallRef<'a> {
    ToolCallRef { name: listed.tool().name(), input, id, server: listed.provenance() }
}
