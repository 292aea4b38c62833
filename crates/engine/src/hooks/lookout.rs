//! An agent's lookout: tells the hooks what happens around it, and the host what hooks say to the person.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use whimbrel_wire::hook::{HookBase, HookEvent};
use whimbrel_wire::system::Informational;

use super::brake::Brake;
use super::config::HookSet;
use super::events::{Occasion, Scene};
use super::fold::{Folded, Stop};
use super::run::{Desk, Hooks};
use crate::outbox::Outbox;
use crate::permission::Rights;
use crate::workspace::Workspace;

/// The lookout of one agent. Cheap to clone.
#[derive(Clone)]
pub struct Lookout(Arc<Post>);

/// What a lookout stands on.
#[derive(Clone)]
struct Post {
    hooks: Hooks,
    rights: Rights,
    workspace: Arc<Workspace>,
    outbox: Outbox,
    /// What stays the same; mode and working directory are looked up each time.
    base: HookBase,
    /// The prompt that is being answered, by whichever agent.
    prompt: Arc<Mutex<Option<String>>>,
    /// Pulled by a hook that ends the turn.
    brake: Brake,
}

impl Lookout {
    /// The lookout of the main agent. `base` says which session it is.
    pub fn new(
        hooks: Hooks,
        rights: Rights,
        workspace: Arc<Workspace>,
        outbox: Outbox,
        base: HookBase,
    ) -> Self {
        let (prompt, brake) = (Arc::default(), Brake::default());
        Self::on(Post { hooks, rights, workspace, outbox, base, prompt, brake })
    }

    fn on(post: Post) -> Self {
        Self(Arc::new(post))
    }

    /// The lookout of a subagent.
    #[must_use]
    pub fn of_subagent(&self, agent_id: &str, kind: &str) -> Self {
        let base = HookBase {
            agent_id: Some(agent_id.into()),
            agent_type: Some(kind.into()),
            ..self.0.base.clone()
        };
        Self::on(Post { base, brake: self.0.brake.below(), ..Post::clone(&self.0) })
    }

    /// The same with further hooks, which nobody else has.
    #[must_use]
    pub fn with_hooks(&self, more: HookSet, desk: &Desk) -> Self {
        Self::on(Post { hooks: self.0.hooks.with(more, desk), ..Post::clone(&self.0) })
    }

    /// The same for an agent that stands in this place, with these rights.
    #[must_use]
    pub fn standing_in(&self, workspace: &Arc<Workspace>, rights: Rights) -> Self {
        Self::on(Post { workspace: Arc::clone(workspace), rights, ..Post::clone(&self.0) })
    }

    /// A new turn begins: nobody has ended it yet.
    pub fn begin_turn(&self) {
        self.0.brake.release();
    }

    /// Whether a hook has ended the turn, at whichever event: what is under way ends, nothing else begins.
    pub fn is_stopped(&self) -> bool {
        self.0.brake.is_pulled()
    }

    /// A lookout that no hook hears of: for tests of tools.
    #[cfg(test)]
    pub(crate) fn deaf(workspace: &Arc<Workspace>) -> Self {
        let (rights, base) = (Rights::usual(workspace), HookBase::default());
        Self::new(Hooks::default(), rights, Arc::clone(workspace), Outbox::unheard(), base)
    }

    /// The subagent; none on the main line.
    pub fn agent_id(&self) -> Option<&str> {
        self.0.base.agent_id.as_deref()
    }

    /// The prompt that is being answered from now on.
    pub fn set_prompt(&self, id: Option<&str>) {
        *self.0.prompt.lock().unwrap_or_else(PoisonError::into_inner) = id.map(Into::into);
    }

    /// Whether an event has hooks.
    pub fn listens(&self, event: HookEvent) -> bool {
        self.0.hooks.listens(event)
    }

    /// Tells the person that what hooks of an event said is of no use.
    pub async fn warn(&self, event: HookEvent, text: &str) {
        self.0.outbox.warn(format!("{event} hook: {text}")).await;
    }

    /// Tells the hooks of an event, if it has any, and waits for what they say. What they say to the person is passed on.
    pub async fn raise(
        &self,
        event: HookEvent,
        occasion: impl FnOnce(&Scene) -> Occasion,
        cancel: &CancellationToken,
    ) -> Folded {
        if !self.0.hooks.listens(event) {
            return Folded::default();
        }
        // Few sessions have hooks: the others do not pay for what it takes to run them.
        let folded = Box::pin(self.0.hooks.raise(occasion(&self.scene()), cancel)).await;
        if folded.stop.is_some() {
            self.0.brake.pull();
        }
        self.pass_on(event, &folded).await;
        folded
    }

    /// Has the model told with its next call what hooks said between turns.
    pub fn keep_for_later(&self, event: HookEvent, contexts: Vec<String>) {
        if let Some(late) = self.0.hooks.late() {
            for context in contexts {
                late.keep(event, self.0.base.agent_id.clone(), context);
            }
        }
    }

    /// What the model is told of answers that nobody waited for.
    pub async fn late(&self) -> Vec<String> {
        let mut contexts = Vec::new();
        for answer in self.0.hooks.take_late(self.agent_id()) {
            if let Some(fault) = answer.fault {
                self.0.outbox.warn(format!("{} hook ({}): {fault}", answer.event, answer.hook)).await;
            }
            if let Some(message) = answer.system_message {
                self.0.outbox.inform(message).await;
            }
            contexts.extend(answer.context);
        }
        contexts
    }

    fn scene(&self) -> Scene {
        Scene(HookBase {
            cwd: self.0.workspace.cwd().display().to_string(),
            permission_mode: Some(self.0.rights.mode()),
            prompt_id: self.0.prompt.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..self.0.base.clone()
        })
    }

    async fn pass_on(&self, event: HookEvent, folded: &Folded) {
        for message in &folded.system_messages {
            self.0.outbox.inform(message.clone()).await;
        }
        for fault in &folded.faults {
            self.0.outbox.warn(format!("{event} hook ({}): {}", fault.hook, fault.text)).await;
        }
        if let Some(Stop { reason: Some(reason) }) = &folded.stop {
            let content = reason.clone();
            let prevent_continuation = Some(true);
            self.0
                .outbox
                .notify(Informational { content, prevent_continuation, ..Informational::default() })
                .await;
        }
    }
}
