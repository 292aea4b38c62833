//! The task of a process: it owns the session of the engine, the running turn and every open request. Whatever can wake it
//! is a branch of [`Server::run`]; frames come first, so that the client has seen a call before it is asked about it.
//!
//! Modules: [`methods`] (requests of the client), [`engine_requests`] (callbacks of the engine and their answers),
//! [`hook_batches`], [`turns`].

mod engine_requests;
mod hook_batches;
mod methods;
mod turns;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use whimbrel::wire::control::SlashCommand;
use whimbrel::{Controls, Frame, Frames};

use crate::callbacks::{Callback, CallbackSender};
use crate::client_requests::ClientRequests;
use crate::command_line::Approval;
use crate::context_log::ContextLog;
use crate::external_tools::ExternalTools;
use crate::hooks::Subscriptions;
use crate::json_rpc::{self, Incoming, InvalidLine, Outgoing, RpcError};
use crate::model_layer::{ArgumentPiece, ArgumentSender};
use crate::open_session::{self, ClientFeatures, ClientSetup};
use crate::setup::Setup;
use crate::share_dir::StoredState;
use crate::translate::{Event, Translator};
use crate::versions::{WITHOUT_HANDSHAKE, WireVersion};
use crate::wire_log::WireLog;
use hook_batches::HookBatches;
use turns::Turn;

/// Work beside the loop that has ended.
enum Background {
    /// A hook of a client did not answer in time.
    HookTimeout { request: String },
    /// A turn was cancelled, and the engine knows.
    Cancelled,
}

/// The task of a process.
pub(crate) struct Server {
    setup: Setup,
    lines: mpsc::Receiver<String>,
    outbox: mpsc::Sender<Outgoing>,
    stop: CancellationToken,
    client: Client,
    engine: Option<EngineSession>,
    callbacks: (CallbackSender, mpsc::UnboundedReceiver<Callback>),
    arguments: (ArgumentSender, mpsc::UnboundedReceiver<ArgumentPiece>),
    requests: ClientRequests,
    hooks: HookBatches,
    background: FuturesUnordered<BoxFuture<'static, Background>>,
    translator: Translator,
    wire_log: WireLog,
    context_log: ContextLog,
    state: StoredState,
    turn: Option<Turn>,
    /// Calls need no approval.
    is_yolo: bool,
}

/// What is known of the client.
struct Client {
    version: WireVersion,
    /// Name and version, for the provider.
    name: String,
    features: ClientFeatures,
    subscriptions: Subscriptions,
    tools: ExternalTools,
}

/// The open session of the engine.
struct EngineSession {
    controls: Controls,
    frames: Frames,
    commands: Vec<SlashCommand>,
}

impl Server {
    pub(crate) fn new(
        setup: Setup,
        lines: mpsc::Receiver<String>,
        outbox: mpsc::Sender<Outgoing>,
        stop: CancellationToken,
    ) -> Self {
        let mut state = setup.session_dir.read_state();
        state.plan_mode |= setup.starts_in_plan_mode;
        let window = setup.model.as_ref().map_or(0, |model| model.window);
        Self {
            lines,
            outbox,
            stop,
            client: Client {
                version: WITHOUT_HANDSHAKE,
                name: "unknown client".into(),
                features: ClientFeatures::default(),
                subscriptions: Subscriptions::default(),
                tools: ExternalTools::default(),
            },
            engine: None,
            callbacks: mpsc::unbounded_channel(),
            arguments: mpsc::unbounded_channel(),
            requests: ClientRequests::default(),
            hooks: HookBatches::default(),
            background: FuturesUnordered::new(),
            translator: Translator::new(WITHOUT_HANDSHAKE, window),
            wire_log: WireLog::new(),
            context_log: ContextLog::new(),
            state,
            turn: None,
            is_yolo: setup.approval != Approval::Host,
            setup,
        }
    }

    /// Serves the client until it closes the input or the process is to stop.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                frame = next_frame(&mut self.engine) => match frame {
                    Some(frame) => self.handle_frame(frame).await,
                    None => self.handle_engine_end().await,
                },
                Some(piece) = self.arguments.1.recv() => self.handle_arguments(piece).await,
                Some(done) = self.background.next(), if !self.background.is_empty() => {
                    self.handle_background(done).await;
                }
                // Nothing is asked between turns: what comes then waits for the next one.
                Some(callback) = self.callbacks.1.recv(), if self.turn.is_some() => self.handle_callback(callback).await,
                line = self.lines.recv() => match line {
                    Some(line) => self.handle_line(&line).await,
                    None => break,
                },
            }
        }
        self.wire_log.flush();
        self.context_log.finish_reply();
    }

    async fn handle_line(&mut self, line: &str) {
        match json_rpc::parse(line) {
            Ok(Incoming::Request { id, method, params }) => self.handle_request(id, &method, params).await,
            Ok(Incoming::Notification) => {}
            Ok(Incoming::Response { id, result }) => self.handle_response(&id, result).await,
            Err(InvalidLine { id, error }) => self.send(Outgoing::Reply { id, result: Err(error) }).await,
        }
    }

    async fn handle_background(&mut self, done: Background) {
        match done {
            Background::HookTimeout { request } => self.handle_hook_timeout(&request).await,
            Background::Cancelled => self.handle_cancelled().await,
        }
    }

    /// Sends a line. A client that is gone needs none: its end closes the input, too.
    async fn send(&mut self, line: Outgoing) {
        let _ = self.outbox.send(line).await;
    }

    async fn reply(&mut self, id: String, result: Result<Value, RpcError>) {
        self.send(Outgoing::Reply { id: Some(id), result }).await;
    }

    /// Records an event, and sends it if the client knows it.
    async fn emit(&mut self, event: Event) {
        self.wire_log.record(&event);
        if self.client.version.knows(event.kind) {
            self.send(Outgoing::Event { kind: event.kind.to_owned(), payload: event.payload }).await;
        }
    }

    async fn emit_all(&mut self, events: Vec<Event>) {
        for event in events {
            self.emit(event).await;
        }
    }

    /// Opens the session of the engine, unless it is open.
    async fn open_engine(&mut self) -> Result<(), String> {
        let Ok(model) = &self.setup.model else { return Ok(()) };
        if self.engine.is_some() {
            return Ok(());
        }
        let client = ClientSetup {
            features: self.client.features,
            subscriptions: &self.client.subscriptions,
            tools: self.client.tools.as_slice(),
            name: &self.client.name,
        };
        let (callbacks, arguments) = (&self.callbacks.0, self.arguments.0.clone());
        let session =
            open_session::open(&self.setup, model, &client, &mut self.state, callbacks, arguments).await?;
        let (controls, frames) = session.split();
        let commands = controls.info().await.map_err(|error| error.to_string())?.commands.clone();
        self.engine = Some(EngineSession { controls, frames, commands });
        Ok(())
    }

    /// Ends the session of the engine, and waits until its transcript is free.
    async fn close_engine(&mut self) {
        let Some(EngineSession { controls, mut frames, .. }) = self.engine.take() else { return };
        controls.close();
        while frames.next().await.is_some() {}
    }

    /// The commands of the engine; none before the session is open.
    fn commands(&self) -> &[SlashCommand] {
        self.engine.as_ref().map_or(&[], |engine| &engine.commands)
    }
}

/// The next frame; waits for ever without a session.
async fn next_frame(engine: &mut Option<EngineSession>) -> Option<Result<Frame, whimbrel::Error>> {
    match engine {
        Some(engine) => engine.frames.next().await,
        None => std::future::pending().await,
    }
}
