//! How a turn begins: the session's first one with its hooks, then what the host is told, then the prompts, which hooks
//! may add to or stop.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;
use whimbrel_wire::system::{InformationLevel, Informational, Init};

use crate::agent::Agent;
use crate::hooks::{Folded, Scene, joined};
use crate::ids;
use crate::outbox::Outbox;
use crate::queue::Due;
use crate::rewind;
use crate::turn::{self, Ending};
use crate::verdict::End;

/// What a turn begins with.
pub(crate) struct Opening {
    /// How the session begins, if this is its first turn: `startup`, `resume`, ...
    pub(crate) first: Option<&'static str>,
    /// The notice that begins every turn.
    pub(crate) init: Init,
    /// What the host should know, if anything.
    pub(crate) warning: Option<String>,
    /// What is due.
    pub(crate) dues: Vec<Due>,
    /// Whether user messages are echoed.
    pub(crate) replay: bool,
}

/// Opens a turn. An ending says that the model is not to be asked.
pub(crate) async fn open(agent: &mut Agent, opening: Opening, cancel: &CancellationToken) -> Option<Ending> {
    let Opening { first, init, warning, dues, replay } = opening;
    let began = match first {
        Some(source) => begin(agent, source, cancel).await,
        None => Folded::default(),
    };
    agent.outbox.notify(init).await;
    if let Some(content) = warning {
        let level = InformationLevel::Warning;
        agent.outbox.notify(Informational { content, level, ..Informational::default() }).await;
    }
    turn::brief(agent, &began.contexts);
    if let Some(text) = began.special.initial_user_message {
        record(agent, &User { uuid: Some(ids::uuid()), ..User::prompt(text) });
    }
    let mut refused = None;
    let mut heard = false;
    for due in dues {
        let asks = due.asks();
        let taken = match due {
            Due::News(text) => {
                agent.conversation.note(&text).await;
                Ok(())
            }
            Due::Prompt(user) => hear(agent, *user, replay, cancel).await,
        };
        match taken {
            Ok(()) => heard |= asks,
            Err(ending) => refused = Some(ending),
        }
    }
    if cancel.is_cancelled() {
        return Some(Ending::new(End::AbortedStreaming));
    }
    if began.stop.is_some() {
        return Some(Ending::new(End::HookStopped));
    }
    refused.filter(|_| !heard)
}

/// Tells the hooks that the session begins.
async fn begin(agent: &Agent, source: &str, cancel: &CancellationToken) -> Folded {
    let model = agent.knobs.borrow().model.clone();
    let told = |scene: &Scene| scene.session_start(source, Some(&model));
    agent.bench.gate.lookout.raise(HookEvent::SessionStart, told, cancel).await
}

/// Takes a prompt in, if the hooks agree; if not, says how the turn ends.
async fn hear(agent: &mut Agent, user: User, replay: bool, cancel: &CancellationToken) -> Result<(), Ending> {
    let user = echo(&agent.outbox, replay, user).await;
    rewind::begin(&agent.bench.call.workspace, user.uuid.as_deref()).await;
    agent.bench.gate.lookout.set_prompt(user.uuid.as_deref());
    let text = || user.message.content.joined_text();
    let told = |scene: &Scene| scene.user_prompt_submit(text(), Some("sdk"));
    let said = agent.bench.gate.lookout.raise(HookEvent::UserPromptSubmit, told, cancel).await;
    if !said.blocked.is_empty() {
        let text = format!("A hook has stopped the prompt: {}", joined(&said.blocked));
        let notice = Informational {
            content: text.clone(),
            level: InformationLevel::Warning,
            prevent_continuation: Some(true),
            ..Informational::default()
        };
        agent.outbox.notify(notice).await;
        return Err(Ending { text, ..Ending::new(End::Done) });
    }
    if !said.special.suppress_original_prompt || said.contexts.is_empty() {
        record(agent, &user);
    }
    turn::brief(agent, &said.contexts);
    match said.stop {
        Some(_) => Err(Ending::new(End::HookStopped)),
        None => Ok(()),
    }
}

/// Puts a prompt into the conversation.
pub(crate) fn record(agent: &mut Agent, user: &User) {
    let mode = agent.bench.gate.rights.mode().to_string();
    let content: &Content = &user.message.content;
    agent.conversation.prompt(user.uuid.as_deref().unwrap_or_default(), content, &mode);
}

/// Gives a prompt an id if it has none, and shows it to the host if the host wants that.
pub(crate) async fn echo(outbox: &Outbox, replay: bool, mut user: User) -> User {
    user.uuid.get_or_insert_with(ids::uuid);
    if replay {
        let session_id = outbox.session().to_owned();
        outbox.send(User { is_replay: Some(true), session_id, ..user.clone() }).await;
    }
    user
}
