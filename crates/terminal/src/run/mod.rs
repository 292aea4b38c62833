//! The loop of the interactive terminal: events in, effects out. What is decided is in the application; here it is
//! carried out.

mod clipboard;
mod commands;
mod edge;
mod files;
mod input;
mod requests;
mod shell;
mod surface;

use std::io;
use std::path::PathBuf;

use tokio::sync::mpsc;
use tokio::time::Instant;
use whimbrel::{Agent, Environment};

use crate::app::effect::{Effect, SessionChoice};
use crate::app::event::{AppEvent, Reply};
use crate::app::{App, StartInfo};
use crate::engine_thread::{EngineEvent, EngineThread};
use crate::pickers::SessionScope;
use crate::preferences::{self, Preferences};
use crate::present::Presenter;
use crate::screen::{self, Features, Screen, ScreenOptions, Size};
use crate::text::Line;
use crate::theme::{ColorLevel, Theme};
use crate::transcript::{Item, NoteLevel};
use edge::Edge;
use input::{Input, Lines};
use surface::{PlainSurface, Surface};

/// Which session the program starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartSession {
    /// What the options of the agent say: a new session, or one to resume.
    AsConfigured,
    /// The user chooses from a list.
    Choose,
}

/// What the interactive terminal is started with.
pub struct TerminalRequest {
    /// Configuration of the sessions.
    pub agent: Agent,
    /// Environment of the program.
    pub environment: Environment,
    /// Environment of the programs that it starts for the user: without the keys of models.
    pub program_environment: Environment,
    /// Directory of the preferences and the history; nothing is kept without one.
    pub config_dir: Option<PathBuf>,
    /// Working directory.
    pub cwd: PathBuf,
    /// Version of the program.
    pub version: String,
    /// The model that the session will use.
    pub model: String,
    /// First prompt.
    pub prompt: Option<String>,
    /// Which session to start with.
    pub session: StartSession,
    /// No model is configured: the user is led through setting one up.
    pub lacks_model: bool,
    /// How the terminal can be used.
    pub output: TerminalOutput,
    /// Lines that are shown at the start.
    pub introduction: Vec<String>,
}

/// How the terminal can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalOutput {
    /// The screen is drawn on.
    Screen,
    /// Linear text without cursor movement.
    Plain,
}

/// Frames of the engine that are handled before the screen has its turn.
const MAX_EVENTS_AT_ONCE: usize = 256;

/// What a Rust program exits with after a panic.
const PANIC_EXIT_CODE: i32 = 101;

/// Runs the interactive terminal until the user leaves, and returns the exit code.
pub fn run(mut request: TerminalRequest) -> io::Result<i32> {
    let (preferences, warning) = read_preferences(request.config_dir.as_deref());
    request.agent = request.agent.with(|options| {
        options.include_partial_messages = true;
        options.replay_user_messages = true;
        options.enable_file_checkpointing = true;
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(run_loop(request, preferences, warning));
    // What still waits for a file must not delay the end.
    runtime.shutdown_background();
    code
}

/// Takes the terminal over; linear output where the screen is too small to draw on.
fn open_surface(request: &TerminalRequest, is_plain: bool) -> io::Result<(Surface, Input)> {
    if is_plain || is_too_small(Size::of_terminal()) {
        return Ok((Surface::Plain(PlainSurface::new()), Input::Lines(Box::new(Lines::start()?))));
    }
    let get = |name: &str| request.environment.get(name).map(str::to_owned);
    let options = ScreenOptions {
        color: ColorLevel::from_environment(get),
        features: Features::from_environment(get),
        log: request.config_dir.as_deref().map(|dir| dir.join("terminal.log")),
        records: request.config_dir.as_deref().map(|dir| dir.join("terminal-modes")),
    };
    let (screen, events) = Screen::start(options)?;
    Ok((Surface::Screen(Box::new(screen)), Input::Screen(Box::new(events))))
}

async fn run_loop(
    request: TerminalRequest,
    preferences: Preferences,
    warning: Option<String>,
) -> io::Result<i32> {
    let is_plain = request.output == TerminalOutput::Plain || preferences.plain;
    let (surface, mut input) = open_surface(&request, is_plain)?;
    let (engine, mut engine_events) = EngineThread::start()?;
    let (replies, mut reply_receiver) = mpsc::unbounded_channel();
    let start = StartInfo {
        version: request.version.clone(),
        cwd: request.cwd.clone(),
        home: request.environment.get("HOME").map(PathBuf::from),
        model: Some(request.model.clone()),
        new_uuid: requests::new_uuid,
    };
    let theme = surface::theme(&surface, &preferences.theme);
    let presenter = Presenter::new(theme, request.cwd.clone());
    let (mut app, mut warnings) = App::new(start, preferences, Size::of_terminal(), Instant::now());
    warnings.extend(warning);
    let mut edge = Edge::new(surface, presenter, engine, replies, &request);
    introduce(&request, warnings, &theme, &mut edge, &mut app).await?;
    edge.surface.ask(&app)?;
    let code = loop {
        let wake = app.next_change(Instant::now());
        tokio::select! {
            biased;
            () = screen::panicked() => {
                edge.abandon().await;
                return Ok(PANIC_EXIT_CODE);
            }
            (event, screen_event) = input.next() => {
                if let Some(event) = screen_event {
                    edge.observe(&event, &app.preferences.theme)?;
                }
                if let Some(event) = event {
                    edge.update(event, &mut app).await?;
                }
            }
            () = edge.surface.frame_due() => match &mut input {
                Input::Screen(events) if is_too_small(Size::of_terminal()) => {
                    edge.switch_to_plain(&mut app, events).await?;
                    input = Input::Lines(Box::new(Lines::start()?));
                }
                _ => edge.draw(&mut app)?,
            },
            Some(reply) = reply_receiver.recv() => edge.update(AppEvent::Reply(reply), &mut app).await?,
            Some(event) = engine_events.recv() => {
                edge.receive(event, &mut app).await?;
                drain(&mut engine_events, &mut edge, &mut app).await?;
            }
            () = sleep_until(wake) => edge.surface.request_frame(),
        }
        if edge.take_handed_over() {
            input.forget_interrupts()?;
        }
        if let Some(code) = edge.exit_code() {
            break code;
        }
    };
    let events = match &mut input {
        Input::Screen(events) => Some(&mut **events),
        Input::Lines(_) => None,
    };
    edge.finish(&app, events).await?;
    Ok(code)
}

/// Shows the first lines, opens the session and sends the first prompt.
async fn introduce(
    request: &TerminalRequest,
    warnings: Vec<String>,
    theme: &Theme,
    edge: &mut Edge,
    app: &mut App,
) -> io::Result<()> {
    edge.commit(vec![render_banner(app, theme)])?;
    for text in request.introduction.clone() {
        edge.show(&Item::Note(NoteLevel::Info, text))?;
    }
    for text in warnings {
        edge.show(&Item::Note(NoteLevel::Warning, text))?;
    }
    if request.lacks_model {
        edge.show(&Item::Note(NoteLevel::Warning, "no model is configured yet".into()))?;
        edge.show(&Item::Page(crate::pickers::SETUP_PAGE.into()))?;
    }
    if request.session == StartSession::Choose {
        app.wait_for_choice();
    }
    for effect in start_effects(request) {
        edge.perform(effect, app).await?;
    }
    if let Some(prompt) = &request.prompt {
        app.submit_first_prompt(prompt);
    }
    Ok(())
}

/// Handles what the engine has sent meanwhile, up to a limit.
async fn drain(events: &mut mpsc::Receiver<EngineEvent>, edge: &mut Edge, app: &mut App) -> io::Result<()> {
    for _ in 0..MAX_EVENTS_AT_ONCE {
        match events.try_recv() {
            Ok(event) => edge.receive(event, app).await?,
            Err(_) => break,
        }
    }
    Ok(())
}

/// What is done at the start, beside drawing.
fn start_effects(request: &TerminalRequest) -> Vec<Effect> {
    let open = match request.session {
        StartSession::AsConfigured => Effect::OpenSession(SessionChoice::AsConfigured, Box::default()),
        StartSession::Choose => Effect::ListSessions(SessionScope::ThisFolder),
    };
    vec![open, Effect::LoadHistory, Effect::FindBranch]
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

/// The first line.
fn render_banner(app: &App, theme: &Theme) -> Line {
    Line::styled("whimbrel ", theme.strong)
        .with(&app.start.version, theme.dim)
        .with(&format!(" · {}", app.folder()), theme.dim)
}

/// Reads the preferences, with a warning if the file is invalid.
pub(crate) fn read_preferences(config_dir: Option<&std::path::Path>) -> (Preferences, Option<String>) {
    config_dir.map_or_else(Default::default, |dir| preferences::read(&preferences::path(dir)))
}

/// A reply for a result of a request.
fn reply_or_failed<T>(result: Result<T, whimbrel::Error>, reply: impl FnOnce(T) -> Reply) -> Reply {
    match result {
        Ok(value) => reply(value),
        Err(error) => Reply::Failed(error.to_string()),
    }
}

/// Size below which only linear output makes sense.
pub(crate) fn is_too_small(size: Size) -> bool {
    size.columns < 20 || size.rows < 5
}
