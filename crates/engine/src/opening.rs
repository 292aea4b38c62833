//! How a turn begins: the session's first one with its hooks, then what the host is told, then the prompts, which hooks
//! may add to or stop.

use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;
use whimbrel_wire::system::{InformationLevel, Informational, Init};

use crate::agent::Agent;
use crate::context::attach;
use crate::context::vet::vet;
use crate::hooks::{Folded, Scene, joined};
use crate::ids;
use crate::inbox::News;
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
    /// Whether the host sees its prompts again.
    pub(crate) echo: Echo,
}

/// Whether a host sees its prompts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    /// It wants to.
    Wanted,
    /// It does not.
    Unwanted,
}

/// What the host is told before the words of a command: in the order of a turn.
pub(crate) struct Notices {
    /// The notice that begins every turn.
    pub(crate) init: Init,
    /// What the host should know.
    pub(crate) warnings: Vec<String>,
    /// The prompt that calls the command, if the host wants to see it again.
    pub(crate) replay: Option<User>,
}

impl Notices {
    /// Tells the host.
    pub(crate) async fn tell(self, outbox: &Outbox) {
        outbox.notify(self.init).await;
        for warning in self.warnings {
            outbox.warn(warning).await;
        }
        if let Some(user) = self.replay {
            replay(outbox, user).await;
        }
    }
}

/// Opens a turn. An ending says that the model is not to be asked.
pub(crate) async fn open(agent: &mut Agent, opening: Opening, cancel: &CancellationToken) -> Option<Ending> {
    let Opening { first, init, warning, dues, echo } = opening;
    let stopped = begin(agent, first, cancel).await;
    agent.outbox.notify(init).await;
    if let Some(warning) = warning {
        agent.outbox.warn(warning).await;
    }
    let mut refused = None;
    let mut heard = false;
    for due in dues {
        let asks = due.asks();
        let taken = match due {
            Due::News(news) => hear_news(agent, &news, cancel).await,
            Due::Prompt(user) => hear(agent, *user, echo, cancel).await,
        };
        match taken {
            Ok(()) => heard |= asks,
            Err(ending) => refused = Some(ending),
        }
    }
    if cancel.is_cancelled() {
        agent.conversation.note(turn::INTERRUPTED).await;
        return Some(Ending::new(End::AbortedStreaming));
    }
    if stopped {
        return Some(Ending::new(End::HookStopped));
    }
    refused.filter(|_| !heard)
}

/// Tells the hooks that the session begins, if it does, and the model what they say; true if a hook wants to stop there.
pub(crate) async fn begin(agent: &mut Agent, first: Option<&str>, cancel: &CancellationToken) -> bool {
    let Some(source) = first else { return false };
    let model = agent.knobs.now().model;
    let title = agent.conversation.journal().title();
    let told = |scene: &Scene| scene.session_start(source, Some(&model), title);
    let said = agent.bench.gate.lookout.raise(HookEvent::SessionStart, told, cancel).await;
    turn::brief(agent, &said.contexts);
    if let Some(title) = &said.special.session_title {
        agent.conversation.journal().call_it(title);
    }
    if let Some(text) = said.special.initial_user_message {
        record(agent, &User { uuid: Some(ids::uuid()), ..User::prompt(text) });
    }
    said.stop.is_some()
}

/// Takes news in. What is worth a turn of its own is a prompt to hooks; what merely comes along with one is none.
async fn hear_news(agent: &mut Agent, news: &News, cancel: &CancellationToken) -> Result<(), Ending> {
    if !news.wakes {
        agent.conversation.note(&news.text).await;
        return Ok(());
    }
    let said = put_to_hooks(agent, Sender::Engine, &news.text, cancel).await?;
    if !said.special.suppress_original_prompt || said.contexts.is_empty() {
        agent.conversation.note(&news.text).await;
    }
    taken_in(agent, &said).map_or(Ok(()), Err)
}

/// Takes a prompt in, if the hooks agree; if not, says how the turn ends.
async fn hear(
    agent: &mut Agent,
    mut user: User,
    echo: Echo,
    cancel: &CancellationToken,
) -> Result<(), Ending> {
    user.uuid.get_or_insert_with(ids::uuid);
    let taken = take(agent, &user, cancel).await;
    // First the transcript: what the host has seen can be resumed.
    agent.conversation.record().await;
    if echo == Echo::Wanted {
        replay(&agent.outbox, user).await;
    }
    taken
}

/// Puts a prompt into the conversation, with what it mentions, if the hooks agree.
pub(crate) async fn take(agent: &mut Agent, user: &User, cancel: &CancellationToken) -> Result<(), Ending> {
    rewind::begin(&agent.bench.call.workspace, user.uuid.as_deref()).await;
    agent.conversation.open();
    let text = user.message.content.joined_text();
    let said = submit(agent, user.uuid.as_deref(), &text, cancel).await?;
    if user.client_composed != Some(true) {
        attach::mentioned(agent, &text).await;
    }
    if !said.special.suppress_original_prompt || said.contexts.is_empty() {
        let (content, warnings) = vet(&user.message.content);
        for warning in warnings {
            agent.outbox.warn(warning).await;
        }
        record_as(agent, user, &content);
    }
    taken_in(agent, &said).map_or(Ok(()), Err)
}

/// Does what the hooks want that have heard of a prompt; an ending if they want to stop there.
fn taken_in(agent: &mut Agent, said: &Folded) -> Option<Ending> {
    if let Some(title) = &said.special.session_title {
        agent.conversation.journal().call_it(title);
    }
    turn::brief(agent, &said.contexts);
    said.stop.as_ref().map(|_| Ending::new(End::HookStopped))
}

/// Who says something that the model is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    /// The host.
    Host,
    /// The engine: background work has ended, somebody has written, it is time for something.
    Engine,
}

impl Sender {
    /// The `source` that hooks are told.
    fn source(self) -> &'static str {
        match self {
            Self::Host => "sdk",
            Self::Engine => "system",
        }
    }

    /// What the person reads if a hook objects.
    fn stopped(self, why: &str) -> String {
        match self {
            Self::Host => format!("A hook has stopped the prompt: {why}"),
            Self::Engine => format!("A hook has kept news from the model: {why}"),
        }
    }
}

/// Tells the hooks of a prompt of the host; an ending if they stop it.
pub(crate) async fn submit(
    agent: &mut Agent,
    uuid: Option<&str>,
    text: &str,
    cancel: &CancellationToken,
) -> Result<Folded, Ending> {
    agent.bench.gate.lookout.set_prompt(uuid);
    put_to_hooks(agent, Sender::Host, text, cancel).await
}

async fn put_to_hooks(
    agent: &mut Agent,
    sender: Sender,
    text: &str,
    cancel: &CancellationToken,
) -> Result<Folded, Ending> {
    let told = |scene: &Scene| scene.user_prompt_submit(text, Some(sender.source()));
    let said = agent.bench.gate.lookout.raise(HookEvent::UserPromptSubmit, told, cancel).await;
    // Nobody has agreed to a prompt whose hooks were stopped half way.
    if said.interrupted {
        return Err(Ending::new(End::AbortedStreaming));
    }
    if said.blocked.is_empty() {
        return Ok(said);
    }
    let text = sender.stopped(&joined(&said.blocked));
    let notice = Informational {
        content: text.clone(),
        level: InformationLevel::Warning,
        prevent_continuation: Some(true),
        ..Informational::default()
    };
    agent.outbox.notify(notice).await;
    Err(Ending { text, ..Ending::new(End::Done) })
}

/// Puts a prompt into the conversation.
pub(crate) fn record(agent: &mut Agent, user: &User) {
    record_as(agent, user, &user.message.content);
}

fn record_as(agent: &mut Agent, user: &User, content: &Content) {
    let mode = agent.bench.gate.rights.mode().to_string();
    agent.conversation.prompt(user.uuid.as_deref().unwrap_or_default(), content, &mode);
}

/// Shows a prompt to the host that sent it.
pub(crate) async fn replay(outbox: &Outbox, user: User) {
    let session_id = outbox.session().to_owned();
    outbox.send(User { is_replay: Some(true), session_id, ..user }).await;
}
