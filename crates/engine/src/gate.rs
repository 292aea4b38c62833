//! The gate before every tool call: hooks have their say, the rules decide, and where they say so the host is asked. One
//! answer comes out.

mod answer;
mod permit;
mod prompt_tool;

use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_policy::{Decision, HookVerdict, Judged, Place, Question, Reason, ToolKind};
use whimbrel_wire::codec::MAX_LINE_OUT;
use whimbrel_wire::hook::{HookEvent, HookPermissionDecision};
use whimbrel_wire::permission::{PermissionMode, PermissionUpdate};

use crate::ask::Ask;
use crate::files;
use crate::hooks::{Called, Folded, Lookout, Ruling, joined};
use crate::mcp::Supply;
use crate::outbox::Outbox;
use crate::permission::{ModeSwitch, Rights};
use crate::state::StateSign;
use crate::toolbox::Offered;
use crate::tools::Trouble;
use answer::{Answer, Answerer};
pub use permit::{Halt, Permit, Refuser, Verdict};

/// Whoever can be asked for a permission.
#[derive(Debug, Clone)]
pub enum Asks {
    /// The host, by `can_use_tool`.
    Host(Ask),
    /// A tool of an MCP server.
    Tool(Supply, String),
    /// Nobody.
    Nobody,
}

/// The gate of an agent.
#[derive(Clone)]
pub struct Gate {
    /// What the session may do.
    pub rights: Rights,
    /// Whom to ask.
    pub asks: Asks,
    /// How long a question waits for its answer; none waits as long as it takes.
    pub patience: Option<Duration>,
    /// Tells hooks.
    pub lookout: Lookout,
    /// Shows the host that the session waits for it.
    pub state: StateSign,
    /// The way to the host.
    pub outbox: Outbox,
}

impl Gate {
    /// A gate without hooks and with nobody to ask.
    #[cfg(test)]
    pub(crate) fn unattended(
        rights: Rights,
        workspace: &std::sync::Arc<crate::workspace::Workspace>,
        outbox: Outbox,
    ) -> Self {
        let (hooks, base) = (crate::hooks::Hooks::default(), whimbrel_wire::hook::HookBase::default());
        let workspace = std::sync::Arc::clone(workspace);
        Self {
            lookout: Lookout::new(hooks, rights.clone(), workspace, outbox.clone(), base),
            state: StateSign::new(outbox.clone(), crate::state::Wanted::Never),
            asks: Asks::Nobody,
            patience: None,
            rights,
            outbox,
        }
    }

    /// Judges a call and asks if need be. Input that a hook changed is judged as if the model had written it; input that
    /// the host changed is judged again, but not asked about again.
    pub async fn pass(
        &self,
        listed: &Offered,
        id: &str,
        mut input: Value,
        cancel: &CancellationToken,
    ) -> Result<Permit, Trouble> {
        // Input that does not fit is an error of the model, not a matter of permission.
        listed.tool().touches(&input)?;
        if listed.facts().kind == ToolKind::Shell && !can_be_shown(&input) {
            return Err(Trouble::Refused(format!("InputValidationError: {TOO_LONG}")));
        }
        let mut said = self.before(listed, id, &input, cancel).await;
        let rewritten = said.updated_input.take().map(Value::Object);
        let rewrote_input = rewritten.is_some();
        if let Some(rewritten) = rewritten {
            listed.tool().touches(&rewritten)?;
            input = rewritten;
        }
        let rewritten = rewrote_input.then(|| input.clone());
        let mut permit = match self.ruled(listed, &said, rewrote_input) {
            Ok(hook) => self.judge(listed, id, input, hook, cancel).await?,
            Err(Refusal::No(message)) => Permit::no(message, Refuser::Hook),
            Err(Refusal::Later) => {
                let halt = Some(Halt::Deferred);
                Permit { verdict: Verdict::Defer(input), notes: Vec::new(), halt }
            }
        };
        permit.notes.append(&mut said.contexts);
        if let Verdict::No { changed: changed @ None, .. } = &mut permit.verdict {
            *changed = rewritten;
        }
        Ok(permit)
    }

    /// Goes on with a call that a hook wanted to put off, as if it had said nothing: only a call that stands alone can be.
    pub async fn go_on(
        &self,
        listed: &Offered,
        id: &str,
        input: Value,
        cancel: &CancellationToken,
    ) -> Result<Permit, Trouble> {
        let text = "A PreToolUse hook wants to put a call off. That is possible only if the reply has no other call: the rules decide.";
        self.outbox.warn(text).await;
        self.judge(listed, id, input, None, cancel).await
    }

    /// Tells the hooks that a call is about to be made.
    async fn before(&self, listed: &Offered, id: &str, input: &Value, cancel: &CancellationToken) -> Folded {
        let call = called(listed, id, input);
        self.lookout.raise(HookEvent::PreToolUse, |scene| scene.pre_tool_use(call), cancel).await
    }

    /// What the hooks say about the call, for the rules.
    fn ruled(
        &self,
        listed: &Offered,
        said: &Folded,
        rewrote_input: bool,
    ) -> Result<Option<HookVerdict>, Refusal> {
        if said.interrupted {
            return Err(Refusal::No("The turn was interrupted before the hooks had agreed.".into()));
        }
        let Some(Ruling { decision, reasons }) = &said.ruling else { return Ok(None) };
        let (text, source) = (joined(reasons), "PreToolUse".to_owned());
        match decision {
            HookPermissionDecision::Allow => Ok(Some(HookVerdict::Allow { source, text, rewrote_input })),
            HookPermissionDecision::Ask => Ok(Some(HookVerdict::Ask { source, text })),
            HookPermissionDecision::Defer => Err(Refusal::Later),
            HookPermissionDecision::Deny => {
                let text = if text.is_empty() { "it gave no reason".into() } else { text };
                Err(Refusal::No(format!("PreToolUse:{} hook error: {text}", listed.tool().name())))
            }
        }
    }

    /// Lets the rules decide, and asks where they say so.
    async fn judge(
        &self,
        listed: &Offered,
        id: &str,
        input: Value,
        hook: Option<HookVerdict>,
        cancel: &CancellationToken,
    ) -> Result<Permit, Trouble> {
        let name = listed.tool().name();
        let mode = self.rights.mode_for(listed.tool().server());
        let judged = self.rights.judge_in(mode, name, &listed.facts_of(&input), &input, hook.clone());
        let Judged { decision, place } = judged;
        match decision {
            Decision::Allow(_) => Ok(Permit::go(input, place)),
            Decision::Deny(reason) => self.refuse(listed, id, &input, &reason, cancel).await,
            Decision::Ask(why) => {
                let asked = Asked { listed, id, input: &input, why: &why, hook, hooks: Hooks::Asked };
                self.inquire(&asked, mode, place, cancel).await
            }
        }
    }

    /// Asks about a call, and does as the answer says.
    async fn inquire(
        &self,
        asked: &Asked<'_>,
        mode: PermissionMode,
        place: Option<Place>,
        cancel: &CancellationToken,
    ) -> Result<Permit, Trouble> {
        let Asked { listed, id, input, .. } = *asked;
        if listed.facts().kind == ToolKind::Mcp && !can_be_shown(input) {
            return Ok(Permit::no(format!("This needs a permission. {TOO_LONG}"), Refuser::NoAnswer));
        }
        match self.ask(asked, cancel).await {
            // Whoever allows it allows what was shown, wherever the path may lead by now.
            Answer::Allowed { input: allowed, .. } if allowed == *input => Ok(Permit::go(allowed, place)),
            Answer::Allowed { input: changed, by } => {
                Box::pin(self.judge_changed(listed, id, changed, (mode, by), cancel)).await
            }
            Answer::Refused(permit) => Ok(permit),
            Answer::Moot(Judged { decision: Decision::Deny(reason), .. }) => {
                self.refuse(listed, id, input, &reason, cancel).await
            }
            Answer::Moot(Judged { place, .. }) => Ok(Permit::go(input.clone(), place)),
        }
    }

    /// Judges input that whoever was asked has changed, in the mode that it was asked about. If it was the host, only what
    /// denies counts, all else has been answered. A hook cannot answer for what it wrote itself, except in a question that
    /// its input answers: the host is asked about that, if there is one.
    async fn judge_changed(
        &self,
        listed: &Offered,
        id: &str,
        input: Value,
        (mode, by): (PermissionMode, Answerer),
        cancel: &CancellationToken,
    ) -> Result<Permit, Trouble> {
        listed.tool().touches(&input)?;
        let name = listed.tool().name();
        let Judged { decision, place } =
            self.rights.judge_in(mode, name, &listed.facts_of(&input), &input, None);
        match decision {
            Decision::Deny(reason) if !matches!(reason, Reason::Mode(_)) => {
                Ok(self.refuse(listed, id, &input, &reason, cancel).await?.of(input))
            }
            Decision::Ask(why) if by == Answerer::Hook && why.reason != Reason::Interaction => {
                if matches!(self.asks, Asks::Nobody) {
                    let why = why.reason.text();
                    let message = format!("A hook changed the call to one that needs a permission. {why}");
                    return Ok(Permit::no(message, Refuser::Hook).of(input));
                }
                let asked = Asked { listed, id, input: &input, why: &why, hook: None, hooks: Hooks::Heard };
                let permit = self.inquire(&asked, mode, place, cancel).await?;
                Ok(permit.of(input))
            }
            Decision::Allow(_) | Decision::Deny(_) | Decision::Ask(_) => Ok(Permit::go(input, place)),
        }
    }

    /// What the model is told of a refusal by rules; hooks may add that another try is worth it.
    async fn refuse(
        &self,
        listed: &Offered,
        id: &str,
        input: &Value,
        reason: &Reason,
        cancel: &CancellationToken,
    ) -> Result<Permit, Trouble> {
        let tool = listed.tool().name();
        let message = match reason {
            Reason::InvalidInput(text) => {
                return Err(Trouble::Refused(format!("InputValidationError: {text}")));
            }
            Reason::Mode(PermissionMode::DontAsk) => {
                format!("{tool} needs a permission, and this session never asks for one.")
            }
            reason => format!("{tool} is not permitted here. {}", reason.text()),
        };
        let message = self.told_of_refusal(called(listed, id, input), message, cancel).await;
        Ok(Permit::no(message, Refuser::Rules))
    }

    /// Tells the hooks that a call was refused without a person's say.
    async fn told_of_refusal(&self, call: Called<'_>, message: String, cancel: &CancellationToken) -> String {
        let told = |scene: &crate::hooks::Scene| scene.permission_denied(call, message.clone());
        let said = self.lookout.raise(HookEvent::PermissionDenied, told, cancel).await;
        match said.special.retry {
            true => format!("{message} A hook says that it may be tried again."),
            false => message,
        }
    }

    /// Turns the mode of the session.
    pub fn mode_switch(&self) -> ModeSwitch {
        ModeSwitch::new(self.rights.clone(), self.outbox.clone())
    }

    /// Makes the changes that came with an answer; what could not be done, or not be read in the first place, is told.
    async fn change(&self, updates: Vec<PermissionUpdate>, unread: &[String]) {
        for why in unread {
            self.outbox.warn(format!("A change of permissions in an answer is left out. {why}.")).await;
        }
        if updates.is_empty() {
            return;
        }
        let (rights, mode) = (self.rights.clone(), self.rights.mode());
        let changed = files::aside(move || rights.change(&updates)).await;
        if self.rights.mode() != mode {
            self.mode_switch().tell().await;
        }
        for content in changed.unwrap_or_else(|error| vec![error.to_string()]) {
            self.outbox.warn(content).await;
        }
    }
}

/// The most bytes of an input that whoever is asked sees as a whole; a longer one is cut to fit a line. What would be run
/// must not be longer than what is shown; what is written may be.
const LONGEST_SHOWN: usize = MAX_LINE_OUT / 10 * 9;

const TOO_LONG: &str = "The input is too long to be shown to whoever decides about it. Put the data into a file and name the file.";

fn can_be_shown(input: &Value) -> bool {
    input.to_string().len() <= LONGEST_SHOWN
}

/// Why a hook lets a call not go on.
enum Refusal {
    No(String),
    Later,
}

/// A call that somebody has to be asked about.
struct Asked<'a> {
    listed: &'a Offered,
    id: &'a str,
    input: &'a Value,
    why: &'a Question,
    hook: Option<HookVerdict>,
    hooks: Hooks,
}

/// Whether hooks are asked about a call, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hooks {
    /// They are.
    Asked,
    /// They have been heard.
    Heard,
}

fn called<'a>(listed: &'a Offered, id: &'a str, input: &'a Value) -> Called<'a> {
    Called { name: listed.tool().name(), input, id, server: listed.provenance() }
}
