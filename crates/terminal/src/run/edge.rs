//! Carries out effects: the screen, the session, and tasks whose results come back as replies.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use whimbrel::{Agent, Controls, PermissionResult};

use super::surface::{self, Surface};
use super::{TerminalRequest, clipboard, commands, files, requests, shell};
use crate::app::App;
use crate::app::effect::{ChosenSettings, Effect, SessionChoice};
use crate::app::event::{AppEvent, Reply};
use crate::engine_thread::{EngineEvent, EngineEventKind, EngineThread, SessionNumber};
use crate::preferences;
use crate::present::Presenter;
use crate::prompts::RequestId;
use crate::screen::{Event, Events};
use crate::text::Line;
use crate::transcript::Item;

/// Sender of replies.
pub(super) type ReplySender = mpsc::UnboundedSender<Reply>;

/// The outside of the application.
pub(super) struct Edge {
    pub(super) surface: Surface,
    presenter: Presenter,
    engine: EngineThread,
    replies: ReplySender,
    agent: Agent,
    config_dir: Option<PathBuf>,
    cwd: PathBuf,
    environment: whimbrel::Environment,
    program_environment: whimbrel::Environment,
    session: SessionNumber,
    /// Whether the session was stored before, so that calls of it may wait for an answer.
    is_resumed: bool,
    controls: Option<Controls>,
    answers: HashMap<RequestId, oneshot::Sender<PermissionResult>>,
    /// Text of the model that was not rendered yet: a frame renders all of it at once.
    pending_text: String,
    shell: Option<CancellationToken>,
    has_handed_over: bool,
    exit_code: Option<i32>,
}

impl Edge {
    pub(super) fn new(
        surface: Surface,
        presenter: Presenter,
        engine: EngineThread,
        replies: ReplySender,
        request: &TerminalRequest,
    ) -> Self {
        Self {
            surface,
            presenter,
            engine,
            replies,
            agent: request.agent.clone(),
            config_dir: request.config_dir.clone(),
            cwd: request.cwd.clone(),
            environment: request.environment.clone(),
            program_environment: request.program_environment.clone(),
            session: 0,
            is_resumed: false,
            controls: None,
            answers: HashMap::new(),
            pending_text: String::new(),
            shell: None,
            has_handed_over: false,
            exit_code: None,
        }
    }

    pub(super) fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// Takes note of an event of the screen. The answer with the background decides on the theme `auto`.
    pub(super) fn observe(&mut self, event: &Event, theme: &str) -> io::Result<()> {
        self.surface.observe(event)?;
        if matches!(event, Event::Answer(_)) {
            self.presenter.set_theme(surface::theme(&self.surface, theme));
        }
        Ok(())
    }

    /// Returns whether another program had the terminal since the last call.
    pub(super) fn take_handed_over(&mut self) -> bool {
        std::mem::take(&mut self.has_handed_over)
    }

    /// Writes lines to the scrollback.
    pub(super) fn commit(&mut self, lines: Vec<Line>) -> io::Result<()> {
        self.surface.commit(&mut self.presenter, lines)
    }

    /// Writes an entry to the scrollback.
    pub(super) fn show(&mut self, item: &Item) -> io::Result<()> {
        self.surface.show(&mut self.presenter, item)
    }

    /// Draws a frame.
    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        self.flush_text();
        self.surface.draw(&self.presenter, app)
    }

    fn flush_text(&mut self) {
        if !self.pending_text.is_empty() {
            let text = std::mem::take(&mut self.pending_text);
            self.surface.push_text(&mut self.presenter, &text);
        }
    }

    /// Hands an event to the application and carries out what it wants.
    pub(super) async fn update(&mut self, event: AppEvent, app: &mut App) -> io::Result<()> {
        if matches!(event, AppEvent::Line(_)) {
            self.surface.forget_question();
        }
        let effects = app.update(event, Instant::now());
        self.surface.request_frame();
        for effect in effects {
            self.perform(effect, app).await?;
        }
        self.surface.ask(app)
    }

    /// Handles an event of the engine; those of a session that was left are dropped.
    pub(super) async fn receive(&mut self, event: EngineEvent, app: &mut App) -> io::Result<()> {
        if event.session != self.session {
            return Ok(());
        }
        let event = match event.kind {
            EngineEventKind::Opened(controls) => {
                requests::read_info(controls.clone(), self.replies.clone());
                self.controls = Some(controls.clone());
                self.update(AppEvent::SessionOpened, app).await?;
                // A prompt that waited comes first; it makes the calls void.
                if self.is_resumed && !app.conversation.is_running() {
                    requests::resume_calls(controls, self.replies.clone());
                }
                return Ok(());
            }
            EngineEventKind::OpenFailed(error) => AppEvent::SessionFailed(error),
            EngineEventKind::Frame(frame) => AppEvent::Frame(Box::new(frame)),
            EngineEventKind::Malformed(error) => AppEvent::Malformed(error),
            EngineEventKind::Permission { id, request, answer } => {
                self.answers.insert(id, answer);
                AppEvent::Permission { id, request }
            }
            EngineEventKind::Withdrawn(id) => {
                self.answers.remove(&id);
                AppEvent::Withdrawn(id)
            }
            EngineEventKind::Ended => {
                self.controls = None;
                AppEvent::SessionEnded
            }
        };
        self.update(event, app).await
    }

    /// Carries out an effect.
    pub(super) async fn perform(&mut self, effect: Effect, app: &mut App) -> io::Result<()> {
        match effect {
            Effect::Text(text) => {
                self.pending_text.push_str(&text);
                return Ok(());
            }
            Effect::TextEnd => {
                self.flush_text();
                self.surface.end_text(&mut self.presenter)?;
            }
            Effect::Show(item) => {
                self.flush_text();
                self.show(&item)?;
            }
            Effect::ShowEnd(items) => self.surface.show_end(&mut self.presenter, &items)?,
            Effect::ShowRequest(id) => self.show_request(id, app)?,
            Effect::Answer { id, answer } => {
                if let Some(sender) = self.answers.remove(&id) {
                    // A request that was withdrawn meanwhile needs no answer.
                    let _ = sender.send(answer);
                }
            }
            Effect::OpenSession(choice, chosen) => self.open_session(choice, *chosen),
            Effect::SetTheme(name) => {
                self.presenter.set_theme(surface::theme(&self.surface, &name));
                self.surface.redraw()?;
            }
            Effect::Redraw => self.surface.redraw()?,
            Effect::Suspend => self.surface.suspend()?,
            Effect::OpenOverlay => self.surface.open_overlay(&self.presenter, app)?,
            Effect::CloseOverlay => self.surface.close_overlay()?,
            Effect::SetTitle(title) => self.surface.set_title(&title)?,
            Effect::Notify(text) => self.surface.notify(&text)?,
            Effect::Copy(text) => {
                self.surface.copy(&text)?;
                if matches!(self.surface, Surface::Screen(_)) {
                    clipboard::copy(text, &self.environment, self.replies.clone());
                }
            }
            Effect::EditExternally(text) => {
                let edited = self
                    .surface
                    .hand_over(commands::edit_externally(&text, &self.program_environment, &self.cwd))
                    .await?;
                self.has_handed_over = true;
                self.reply(Reply::Edited(edited));
            }
            Effect::RunShell(command) => {
                let stop = CancellationToken::new();
                self.shell = Some(stop.clone());
                tokio::spawn(shell::run(
                    command,
                    self.cwd.clone(),
                    self.program_environment.clone(),
                    stop,
                    self.replies.clone(),
                ));
            }
            Effect::StopShell => {
                if let Some(stop) = self.shell.take() {
                    stop.cancel();
                }
            }
            Effect::Leave(code) => self.exit_code = Some(code),
            Effect::SavePreferences(preferences) => self.save_preferences(&preferences),
            effect => self.perform_in_background(effect),
        }
        self.surface.request_frame();
        Ok(())
    }

    /// Carries out effects that wait for files or for the engine.
    fn perform_in_background(&self, effect: Effect) {
        let replies = self.replies.clone();
        let history = || self.config_dir.as_deref().map(|dir| crate::history::file::path(dir, &self.cwd));
        match effect {
            Effect::LoadHistory => files::load_history(history(), replies),
            Effect::AppendHistory(text) => files::append_history(history(), text, replies),
            Effect::FindBranch => files::find_branch(self.cwd.clone(), replies),
            Effect::ReadPicture { path, pasted } => {
                files::read_picture(self.resolve(&path), pasted, replies);
            }
            Effect::WriteFile { path, text } => files::write_file(path, text, replies),
            Effect::AppendNote { target, note } => {
                files::append_note(target, note, &self.cwd, self.config_dir.as_deref(), replies);
            }
            Effect::ReadClipboardPicture => commands::read_clipboard(&self.program_environment, replies),
            Effect::ShowDiff => commands::show_diff(self.cwd.clone(), &self.program_environment, replies),
            Effect::ListSessions(scope) => {
                requests::list_sessions(&self.agent, scope, self.cwd.clone(), replies);
            }
            effect => match self.controls.clone() {
                Some(controls) => requests::perform(effect, controls, replies),
                None => self.reply(Reply::Failed("the session is not open yet".into())),
            },
        }
    }

    fn reply(&self, reply: Reply) {
        // The receiver lives as long as the loop.
        let _ = self.replies.send(reply);
    }

    /// A path as the shell reads it.
    fn resolve(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.environment.get("HOME")) {
            (Ok(rest), Some(home)) => Path::new(home).join(rest),
            _ => self.cwd.join(path),
        }
    }

    fn show_request(&mut self, id: RequestId, app: &mut App) -> io::Result<()> {
        let Some(at) = app.prompts.iter().position(|prompt| prompt.id == id) else { return Ok(()) };
        let prompt = &app.prompts[at];
        let path = prompt.request.input.get("file_path").and_then(serde_json::Value::as_str);
        // Without the file the prompt shows the texts of the call.
        let current = path.and_then(|path| std::fs::read_to_string(self.resolve(Path::new(path))).ok());
        self.presenter.set_current_file(current);
        self.flush_text();
        app.prompts[at].place = self.surface.show_request(&mut self.presenter, app, prompt)?;
        Ok(())
    }

    fn open_session(&mut self, choice: SessionChoice, chosen: ChosenSettings) {
        self.session += 1;
        self.controls = None;
        self.answers.clear();
        let agent = self.agent.clone();
        self.is_resumed = match &choice {
            SessionChoice::AsConfigured => {
                agent.options().resume.is_some() || agent.options().continue_conversation
            }
            SessionChoice::New => false,
            SessionChoice::Resume(_) => true,
        };
        let agent = match choice {
            SessionChoice::AsConfigured => {
                requests::read_configured(&agent, self.cwd.clone(), self.replies.clone());
                agent
            }
            SessionChoice::New => agent.with(forget_session),
            SessionChoice::Resume(id) => {
                requests::read_resumed(&self.agent, id.clone(), self.replies.clone());
                agent.with(forget_session).resume(id)
            }
        };
        self.engine.open(self.session, agent.with(|options| apply_chosen(options, chosen)));
    }

    fn save_preferences(&self, preferences: &preferences::Preferences) {
        let Some(dir) = &self.config_dir else { return };
        let path = preferences::path(dir);
        if let Err(error) = preferences::write(&path, preferences) {
            self.reply(Reply::Failed(format!("cannot write {}: {error}", path.display())));
        }
    }

    /// Goes on with linear output, because the screen has become too small to draw on.
    pub(super) async fn switch_to_plain(&mut self, app: &mut App, events: &mut Events) -> io::Result<()> {
        self.flush_text();
        self.surface.end_text(&mut self.presenter)?;
        let screen = std::mem::replace(&mut self.surface, Surface::Plain(surface::PlainSurface::new()));
        screen.finish(Some(events)).await?;
        self.presenter.set_theme(surface::theme(&self.surface, ""));
        let effects = app.switch_to_lines();
        for effect in effects {
            self.perform(effect, app).await?;
        }
        self.surface.ask(app)
    }

    /// Ends the session after a panic, which has restored the terminal.
    pub(super) async fn abandon(self) {
        self.surface.abandon();
        self.engine.close().await;
    }

    /// Restores the terminal and ends the session.
    pub(super) async fn finish(mut self, app: &App, events: Option<&mut Events>) -> io::Result<()> {
        self.flush_text();
        self.surface.end_text(&mut self.presenter)?;
        if let Some(line) = app.exit_notice(self.presenter.theme()) {
            self.commit(vec![line])?;
        }
        if let Some(stop) = self.shell.take() {
            stop.cancel();
        }
        self.controls = None;
        self.surface.finish(events).await?;
        self.engine.close().await;
        Ok(())
    }
}

/// Puts what the user chose over what the program was started with.
fn apply_chosen(options: &mut whimbrel::Options, chosen: ChosenSettings) {
    let ChosenSettings { model, effort, mode } = chosen;
    options.model = model.or(options.model.take());
    options.effort = effort.or(options.effort.take());
    options.permission_mode = mode.or(options.permission_mode);
}

/// Removes what names a session, for another one with the same options.
fn forget_session(options: &mut whimbrel::Options) {
    options.resume = None;
    options.continue_conversation = false;
    options.session_id = None;
    options.fork_session = false;
}
