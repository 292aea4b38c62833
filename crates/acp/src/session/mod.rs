//! A session of the editor: one task that owns the session of the engine. Whatever can wake it is one enum,
//! [`SessionEvent`]; frames come first, so that the editor has seen a call before it is asked about it.
//!
//! Modules: [`SessionTask`] here, [`prompts`] (prompts without an answer), [`questions`] (requests to the editor),
//! [`options`] (mode, model, effort).

mod options;
mod prompts;
mod questions;

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, CompleteElicitationNotification,
    ContentBlock, LoadSessionResponse, PromptResponse, SessionInfoUpdate, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeResponse,
    UnstructuredCommandInput,
};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{mpsc, oneshot};
use whimbrel::store::SessionSummary;
use whimbrel::wire::control::{Elicitation, ElicitationReply, GetContextUsage, SlashCommand};
use whimbrel::wire::permission::PermissionUpdate;
use whimbrel::wire::system::SystemEvent;
use whimbrel::{Controls, Engine, Frame, Frames, PermissionRequest, PermissionResult, Sessions};

use crate::capabilities::ClientFeatures;
use crate::config_options::{ConfigChange, ConfigState};
use crate::outbox::Outbox;
use crate::prompt::{HIDDEN_COMMAND, shown_command_name};
use crate::replay::{Liveness, replay};
use crate::session_list;
use crate::steering::SteeringResponse;
use crate::stored_conversation::StoredConversation;
use crate::translate::Translator;
use options::ConfigAnswer;
use prompts::{OpenPrompts, SessionEnd};
use questions::OpenQuestions;

/// A session, and the engine that it shares with others as long as it is open.
pub(crate) struct OpenedSession {
    pub(crate) session: whimbrel::Session,
    pub(crate) engine: Arc<Engine>,
}

/// What can wake a session, besides the frames of its engine.
pub(crate) enum SessionEvent {
    /// The editor prompts.
    Prompt(Vec<ContentBlock>, Responder<PromptResponse>),
    /// The editor adds to the running turn.
    Steer(Vec<ContentBlock>, Responder<SteeringResponse>),
    /// The editor cancels everything.
    Cancel,
    /// The editor withdraws the request of one prompt.
    CancelPrompt(String),
    /// The engine was interrupted and has dropped these prompts.
    Interrupted(Vec<String>),
    /// The editor sets the mode.
    SetMode(String, Responder<SetSessionModeResponse>),
    /// The editor sets an option.
    SetOption(SetSessionConfigOptionRequest, Responder<SetSessionConfigOptionResponse>),
    /// The engine has answered a change of an option.
    ConfigChanged(ConfigChange, Result<(), whimbrel::Error>, ConfigAnswer),
    /// A call needs permission.
    Permission(Box<PermissionRequest>, oneshot::Sender<PermissionResult>),
    /// The editor has answered, with these changes of the rules; the call is named.
    PermissionAnswered(String, Vec<PermissionUpdate>),
    /// An MCP server has a question.
    Elicitation(Box<Elicitation>, oneshot::Sender<ElicitationReply>),
    /// The slash commands are known.
    Commands(Vec<SlashCommand>),
    /// The size of the model's context is known.
    Window(u64),
    /// What the session is listed with is known.
    Listed(Option<Box<SessionSummary>>),
    /// The editor loads the session once more.
    Replay(Responder<LoadSessionResponse>),
    /// The editor closes the session.
    Close,
    /// Work in the background has ended without news.
    Nothing,
}

/// The task of a session.
pub(crate) struct SessionTask {
    pub(crate) outbox: Outbox,
    controls: Controls,
    frames: Frames,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    /// Requests to the engine and the editor that have no answer yet.
    background: FuturesUnordered<BoxFuture<'static, SessionEvent>>,
    pub(crate) translator: Translator,
    features: ClientFeatures,
    pub(crate) config: ConfigState,
    prompts: OpenPrompts,
    questions: OpenQuestions,
    stored: Sessions,
    /// Whether the editor has the title.
    is_listed: bool,
    is_closing: bool,
    /// Shared with other sessions as long as this one is open.
    _engine: Arc<Engine>,
}

/// What a session task is made of.
pub(crate) struct SessionParts {
    pub(crate) outbox: Outbox,
    pub(crate) opened: OpenedSession,
    pub(crate) events: mpsc::UnboundedReceiver<SessionEvent>,
    pub(crate) config: ConfigState,
    pub(crate) features: ClientFeatures,
    pub(crate) cwd: PathBuf,
    pub(crate) stored: Sessions,
}

impl SessionTask {
    pub(crate) fn new(parts: SessionParts) -> Self {
        let SessionParts { outbox, opened, events, config, features, cwd, stored } = parts;
        let (controls, frames) = opened.session.split();
        Self {
            outbox,
            controls,
            frames,
            events,
            background: FuturesUnordered::new(),
            translator: Translator::new(cwd, features),
            features,
            config,
            prompts: OpenPrompts::default(),
            questions: OpenQuestions::default(),
            stored,
            is_listed: false,
            is_closing: false,
            _engine: opened.engine,
        }
    }

    /// Runs the session until it is closed or its engine ends. Then every prompt is answered.
    pub(crate) async fn run(mut self) {
        self.fetch_commands();
        self.subscribe_output();
        let mut end = SessionEnd::Unknown;
        loop {
            self.outbox.wait_for_room().await;
            let event = tokio::select! {
                biased;
                frame = self.frames.next() => match frame {
                    Some(Ok(frame)) => {
                        self.handle_frame(&frame);
                        continue;
                    }
                    Some(Err(error)) => {
                        end = SessionEnd::Failed(error);
                        continue;
                    }
                    None => break,
                },
                Some(event) = self.background.next(), if !self.background.is_empty() => event,
                Some(event) = self.events.recv() => event,
            };
            self.handle_event(event).await;
        }
        let closed = self.translator.calls.close_all();
        self.outbox.send_all(closed);
        self.prompts.end_all(if self.is_closing { &SessionEnd::Closed } else { &end });
    }

    /// Continues the plan of stored messages. The session has just been opened.
    pub(crate) fn restore(&mut self, stored: &StoredConversation) -> Vec<SessionUpdate> {
        let mut translator = self.translator.for_replay();
        let updates = replay(&mut translator, stored, Liveness::Opened);
        self.translator.take_over(translator);
        updates
    }

    /// Shows the stored messages of a session that has just been opened, and how full the context is.
    pub(crate) fn replay(&mut self, stored: &StoredConversation) {
        let updates = self.restore(stored);
        self.outbox.send_all(updates);
        self.outbox.send_all(self.translator.usage_update(None));
    }

    /// Shows the stored messages once more. What runs goes on.
    async fn replay_again(&mut self) -> Result<(), Error> {
        let stored = StoredConversation::read(&self.stored, &self.outbox.session().0).await?;
        let mut translator = self.translator.for_replay();
        self.outbox.send_all(replay(&mut translator, &stored, Liveness::Running(&self.translator)));
        self.outbox.send_all(self.translator.usage_update(None));
        Ok(())
    }

    /// Asks for the size of the model's context and waits for it.
    pub(crate) async fn read_window(&mut self) {
        // Without it there is no usage to show before the next turn.
        if let Ok(usage) = self.controls.call(GetContextUsage::default()).await {
            let _ = self.translator.set_window(usage.raw_max_tokens.max(usage.max_tokens));
        }
    }

    /// Lets calls go on that waited for an answer when the engine of a stored session ended: the editor is asked again.
    pub(crate) fn resume_calls(&self) {
        let controls = self.controls.clone();
        self.spawn(async move {
            // A prompt that came first has made them void.
            let _ = controls.resume_pending_calls().await;
            SessionEvent::Nothing
        });
    }

    fn handle_frame(&mut self, frame: &Frame) {
        let updates = self.translator.translate(frame);
        self.outbox.send_all(updates);
        match frame {
            Frame::Result(result) => {
                let failure = self.translator.take_failure();
                self.prompts.finish_turn(result, failure.as_ref());
                if !self.is_listed {
                    self.fetch_listing();
                }
            }
            Frame::System(system) => match &system.event {
                SystemEvent::Status(status) => {
                    if let Some(mode) = status.permission_mode {
                        self.take_over_mode(mode);
                    }
                }
                SystemEvent::Init(init) => {
                    self.take_over_mode(init.permission_mode);
                    self.take_over_model(&init.model);
                }
                SystemEvent::CommandsChanged(changed) => self.send_commands(&changed.commands),
                SystemEvent::ElicitationComplete(complete) => {
                    self.outbox.notify(CompleteElicitationNotification::new(complete.elicitation_id.clone()));
                }
                _ => {}
            },
            _ => {}
        }
    }

    async fn handle_event(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Prompt(blocks, responder) => self.send_prompt(blocks, responder).await,
            SessionEvent::Steer(blocks, responder) => self.steer(blocks, responder).await,
            SessionEvent::Cancel => self.cancel(),
            SessionEvent::CancelPrompt(uuid) => self.cancel_prompt(uuid),
            SessionEvent::Interrupted(dropped) => self.prompts.cancel_dropped(&dropped),
            SessionEvent::SetMode(mode, responder) => self.set_mode(&mode, responder),
            SessionEvent::SetOption(request, responder) => self.set_option(&request, responder),
            SessionEvent::ConfigChanged(change, outcome, answer) => {
                self.finish_change(change, outcome, answer);
            }
            SessionEvent::Permission(request, reply) => self.ask_permission(&request, reply),
            SessionEvent::PermissionAnswered(call, updates) => self.finish_permission(&call, &updates),
            SessionEvent::Elicitation(asked, reply) => self.ask_for_server(&asked, reply),
            SessionEvent::Commands(commands) => self.send_commands(&commands),
            SessionEvent::Window(window) => {
                let update = self.translator.set_window(window);
                self.outbox.send_all(update);
            }
            SessionEvent::Listed(listed) => self.send_listing(listed.as_deref()),
            SessionEvent::Replay(responder) => {
                let replayed = self.replay_again().await;
                let answer = || {
                    LoadSessionResponse::new()
                        .modes(self.config.mode_state())
                        .config_options(self.config.options())
                };
                respond(responder, replayed.map(|()| answer()));
            }
            SessionEvent::Close => {
                self.is_closing = true;
                self.controls.close();
            }
            SessionEvent::Nothing => {}
        }
    }

    /// Does work beside the session, which ends with an event.
    fn spawn(&self, work: impl Future<Output = SessionEvent> + Send + 'static) {
        self.background.push(Box::pin(work));
    }

    fn fetch_commands(&self) {
        let controls = self.controls.clone();
        self.spawn(async move {
            match controls.info().await {
                Ok(info) => SessionEvent::Commands(info.commands.clone()),
                Err(_) => SessionEvent::Nothing,
            }
        });
    }

    fn subscribe_output(&self) {
        let controls = self.controls.clone();
        self.spawn(async move {
            // Without it the editor sees output when a command has ended.
            let _ = controls.subscribe_tool_output(true).await;
            SessionEvent::Nothing
        });
    }

    /// Asks for the size of the model's context.
    fn fetch_window(&self) {
        let controls = self.controls.clone();
        self.spawn(async move {
            match controls.call(GetContextUsage::default()).await {
                Ok(usage) => SessionEvent::Window(usage.raw_max_tokens.max(usage.max_tokens)),
                Err(_) => SessionEvent::Nothing,
            }
        });
    }

    fn fetch_listing(&self) {
        let (stored, session) = (self.stored.clone(), self.outbox.session().0.to_string());
        self.spawn(async move {
            let found = stored.find(&session).await.ok().flatten();
            SessionEvent::Listed(found.map(Box::new))
        });
    }

    fn send_listing(&mut self, listed: Option<&SessionSummary>) {
        let Some(listed) = listed else { return };
        let Some(title) = session_list::title(listed) else { return };
        self.is_listed = true;
        let update = SessionInfoUpdate::new().title(title);
        let update = match session_list::updated_at(listed) {
            Some(time) => update.updated_at(time),
            None => update,
        };
        self.outbox.send(SessionUpdate::SessionInfoUpdate(update));
    }

    fn send_commands(&self, commands: &[SlashCommand]) {
        let shown = commands.iter().filter(|command| command.name != HIDDEN_COMMAND).map(|command| {
            let shown = AvailableCommand::new(shown_command_name(&command.name), command.description.clone());
            match command.argument_hint.trim() {
                "" => shown,
                hint => shown.input(AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint))),
            }
        });
        let update = AvailableCommandsUpdate::new(shown.collect());
        self.outbox.send(SessionUpdate::AvailableCommandsUpdate(update));
    }
}

/// The side of a session that requests of the editor reach. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    pub(crate) events: mpsc::UnboundedSender<SessionEvent>,
    pub(crate) ended: tokio_util::sync::CancellationToken,
}

impl SessionHandle {
    /// Whether the session's task has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Passes an event on. The error is that of a session that has just ended: its responder is dropped, which answers.
    pub(crate) fn post(&self, event: SessionEvent) {
        let _ = self.events.send(event);
    }

    /// Closes the session and waits until all of it has ended.
    pub(crate) async fn close(&self) {
        self.post(SessionEvent::Close);
        pin!(self.ended.cancelled()).await;
    }
}

impl std::fmt::Debug for SessionEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionEvent")
    }
}

/// Answers a request. An editor that is gone needs no answer.
fn respond<T: agent_client_protocol::JsonRpcResponse>(responder: Responder<T>, answer: Result<T, Error>) {
    let _ = responder.respond_with_result(answer);
}
