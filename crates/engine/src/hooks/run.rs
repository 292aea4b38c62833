//! Raises events: all hooks that an occasion is for are told at once, and what they say becomes one thing.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use tokio_util::sync::CancellationToken;
use whimbrel_models::log::Topic;
use whimbrel_wire::hook::{HookEvent, HookEventInput, HookInput};

use super::catalog::{self, Text};
use super::config::HookSet;
use super::events::Occasion;
use super::fold::{Folded, fold};
use super::handler::{Action, Failure, Handler};
use super::herald::Announce;
use super::late::{Late, LateAnswer};
use super::outcome::{Outcome, Said};
use super::{callback, command, long};
use crate::ask::Ask;
use crate::clock;
use crate::outbox::Outbox;
use crate::tasks::Tasks;
use crate::workspace::Workspace;

/// What hooks are run with.
#[derive(Clone)]
pub struct Desk {
    /// Asks the host.
    pub ask: Ask,
    /// Tells the host.
    pub outbox: Outbox,
    /// Runs commands.
    pub tasks: Tasks,
    /// Where they run, and in which environment.
    pub workspace: Arc<Workspace>,
    /// Of which events the host hears that hooks run.
    pub announce: Announce,
}

/// The hooks of a session. Cheap to clone; without hooks it is nothing at all.
#[derive(Clone, Default)]
pub struct Hooks(Option<Arc<Staff>>);

struct Staff {
    set: HookSet,
    desk: Desk,
    late: Arc<Late>,
}

impl Hooks {
    /// The hooks of a set.
    pub fn new(set: HookSet, desk: Desk) -> Self {
        Self((!set.is_empty()).then(|| Arc::new(Staff { set, desk, late: Arc::default() })))
    }

    /// The same hooks and some more; `desk` is what they are run with if there were none.
    #[must_use]
    pub fn with(&self, more: HookSet, desk: &Desk) -> Self {
        if more.is_empty() {
            return self.clone();
        }
        let Some(staff) = &self.0 else { return Self::new(more, desk.clone()) };
        let mut set = staff.set.clone();
        set.append(more);
        Self(Some(Arc::new(Staff { set, desk: staff.desk.clone(), late: Arc::clone(&staff.late) })))
    }

    /// Whether an event has hooks. Ask before you put together what they would be told.
    pub fn listens(&self, event: HookEvent) -> bool {
        self.0.as_ref().is_some_and(|staff| staff.set.listens(event))
    }

    /// Tells the hooks what happened and waits for what they say. If `cancel` fires they are stopped, and the answer
    /// says that it is not complete.
    pub async fn raise(&self, occasion: Occasion, cancel: &CancellationToken) -> Folded {
        let (Some(staff), Some(event)) = (&self.0, occasion.input.event.event()) else {
            return Folded::default();
        };
        if !staff.set.listens(event) {
            return Folded::default();
        }
        if cancel.is_cancelled() {
            return Folded { interrupted: true, ..Folded::default() };
        }
        let handlers = staff.set.handlers(&occasion.input, &staff.desk.workspace);
        let input = json_for(&handlers, &occasion.input);
        let runs = handlers.iter().map(|handler| staff.run(handler, event, &occasion, &input, cancel));
        let began = clock::monotonic();
        let outcomes = join_all(runs).await;
        for Outcome { hook, said } in &outcomes {
            staff.desk.outbox.log().tell(Topic::Hooks, || {
                let hook: String = hook.chars().take(100).collect();
                let time = (clock::monotonic() - began).as_millis();
                format!("{event}: {hook}: {}, all heard after {time} ms", said.told())
            });
        }
        let seen = match &occasion.input.event {
            HookEventInput::PreToolUse(call) => Some(&call.tool_input),
            _ => None,
        };
        fold(event, seen, outcomes)
    }

    /// What hooks have said meanwhile that nobody waited for: a subagent takes its own, the main agent all.
    pub fn take_late(&self, agent_id: Option<&str>) -> Vec<LateAnswer> {
        self.0.as_ref().map(|staff| staff.late.take(agent_id)).unwrap_or_default()
    }

    /// Where late answers arrive; none without hooks.
    pub fn late(&self) -> Option<&Late> {
        self.0.as_ref().map(|staff| &*staff.late)
    }
}

impl Staff {
    async fn run(
        &self,
        handler: &Handler,
        event: HookEvent,
        occasion: &Occasion,
        input: &Bytes,
        cancel: &CancellationToken,
    ) -> Outcome {
        let hook = handler.name();
        let job = |command| command::Job {
            desk: &self.desk,
            late: &self.late,
            hook: Arc::clone(&hook),
            event,
            occasion,
            input: input.clone(),
            command,
            limit: handler.limit,
            environment: &handler.environment,
        };
        let mut said = match &handler.action {
            Action::Callback(id) => {
                callback::run(&self.desk.ask, (event, id), occasion, handler.limit, cancel).await
            }
            // At the end of a session there is no later.
            Action::Background(command) if event != HookEvent::SessionEnd => {
                job(command).run_in_background().await
            }
            Action::Command(command) | Action::Background(command) => job(command).run(cancel).await,
            Action::Http(hook) => {
                hook.run(event, input.clone(), &self.desk.workspace, handler.limit, cancel).await
            }
            Action::Lost(why) => Said::Fault(why.to_string()),
        };
        said = judge(event, handler.failure, said);
        long::shorten(&mut said, self.desk.workspace.spill());
        Outcome { hook, said }
    }
}

/// What a command reads; nothing if no command does.
fn json_for(handlers: &[Handler], input: &HookInput) -> Bytes {
    if handlers.iter().all(|handler| matches!(handler.action, Action::Callback(_))) {
        return Bytes::new();
    }
    // It is made of JSON values, so it can be written.
    let mut json = serde_json::to_vec(input).unwrap_or_default();
    json.push(b'\n');
    json.into()
}

/// A failure that must not pass blocks. A change of model that nobody could judge in time does not happen either. Who must
/// agree and says something that means nothing at this event has not agreed.
fn judge(event: HookEvent, failure: Failure, said: Said) -> Said {
    let said = match said {
        Said::Text(_) if failure == Failure::Blocks && catalog::row(event).text == Text::Dropped => {
            Said::Fault("it printed text that is no answer".into())
        }
        other => other,
    };
    let closes = match &said {
        Said::TimedOut(_) => failure == Failure::Blocks || event == HookEvent::PreModelSwitch,
        _ => failure == Failure::Blocks,
    };
    let Some(fault) = said.fault().filter(|_| closes) else { return said };
    let besides = match said {
        Said::Flawed { legible, .. } => Some(legible),
        _ => None,
    };
    Said::Block { reason: format!("A hook that must agree has failed: {fault}"), besides }
}
