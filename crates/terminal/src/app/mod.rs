//! The application: a state, and one function that turns an event into changes of the state and effects. It is pure:
//! tests need no terminal, no engine and no clock.

pub(crate) mod effect;
pub(crate) mod event;
mod input_keys;
mod input_line;
mod lines;
pub(crate) mod live;
mod local_commands;
mod picker_choices;
mod queue;
mod replies;
mod session_events;
mod status_line;
mod submit;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;
use whimbrel::wire::control::{ModelInfo, SlashCommand};

use crate::commands::{self, ParsedCommand};
use crate::conversation::Conversation;
use crate::keys::KeyTable;
use crate::pager::Pager;
use crate::pickers::Picker;
use crate::preferences::Preferences;
use crate::prompts::{Prompt, PromptAnswer, PromptOutcome, RequestPlace};
use crate::screen::{Key, Size};
use crate::sessions::RecordedPrompt;
use crate::tool_card;
use crate::transcript::{Item, NoteLevel};
use effect::{ChosenSettings, Effect};
use event::AppEvent;
use input_line::InputLine;
use queue::PromptQueue;

/// How long a second press of a key counts as the second.
const SECOND_PRESS: Duration = Duration::from_secs(1);
/// How long a hint is shown.
const HINT_TIME: Duration = Duration::from_secs(4);

/// State of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionPhase {
    /// The user chooses one first.
    NotChosen,
    Opening,
    Open,
    /// It could not be opened, or has ended.
    Closed,
}

/// What the program knows from its start.
#[derive(Debug, Clone)]
pub(crate) struct StartInfo {
    pub(crate) version: String,
    pub(crate) cwd: PathBuf,
    pub(crate) home: Option<PathBuf>,
    /// The model that was asked for.
    pub(crate) model: Option<String>,
    /// Makes the ids of prompts.
    pub(crate) new_uuid: fn() -> String,
}

/// A key that does something when it is pressed twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArmedKey {
    Leave,
    Rewind,
    Steer,
}

/// A running command line.
#[derive(Debug, Clone)]
struct RunningShell {
    command: String,
    output: String,
    started: Instant,
}

/// The application.
pub(crate) struct App {
    pub(crate) start: StartInfo,
    pub(crate) size: Size,
    pub(crate) keys: KeyTable,
    pub(crate) preferences: Preferences,
    pub(crate) conversation: Conversation,
    pub(crate) input: InputLine,
    pub(crate) prompts: VecDeque<Prompt>,
    pub(crate) picker: Option<Picker>,
    pub(crate) pager: Option<Pager>,
    pub(crate) queue: PromptQueue,
    session: SessionPhase,
    chosen: ChosenSettings,
    slash_commands: Vec<SlashCommand>,
    models: Vec<ModelInfo>,
    /// Prompts of this session, to which one can go back.
    sent_prompts: Vec<RecordedPrompt>,
    shell: Option<RunningShell>,
    hint: Option<(String, Instant)>,
    armed: Option<(ArmedKey, Instant)>,
    are_tasks_folded: bool,
    last_key: Option<Instant>,
    has_focus: bool,
    /// Linear input has ended.
    has_input_ended: bool,
    branch: Option<String>,
    /// Text of the first prompt, for the title.
    title: Option<String>,
    /// The title that the window has.
    window_title: String,
    effects: Vec<Effect>,
    now: Instant,
}

impl App {
    pub(crate) fn new(
        start: StartInfo,
        preferences: Preferences,
        size: Size,
        now: Instant,
    ) -> (Self, Vec<String>) {
        let (keys, warnings) = KeyTable::new(&preferences.keys);
        let input = InputLine { vim: preferences.vim.then(Default::default), ..InputLine::default() };
        let conversation = Conversation::with_model(start.model.clone());
        let app = Self {
            start,
            size,
            keys,
            preferences,
            conversation,
            input,
            prompts: VecDeque::new(),
            picker: None,
            pager: None,
            queue: PromptQueue::default(),
            session: SessionPhase::Opening,
            chosen: ChosenSettings::default(),
            slash_commands: Vec::new(),
            models: Vec::new(),
            sent_prompts: Vec::new(),
            shell: None,
            hint: None,
            armed: None,
            are_tasks_folded: false,
            last_key: None,
            has_focus: true,
            has_input_ended: false,
            branch: None,
            title: None,
            window_title: String::new(),
            effects: Vec::new(),
            now,
        };
        (app, warnings)
    }

    /// Handles an event.
    pub(crate) fn update(&mut self, event: AppEvent, now: Instant) -> Vec<Effect> {
        self.now = now;
        match event {
            AppEvent::Key(key) => self.handle_key(key),
            AppEvent::Paste(text) => self.handle_paste(&text),
            AppEvent::FocusGained => self.has_focus = true,
            AppEvent::FocusLost => self.has_focus = false,
            AppEvent::Resized(size) => self.handle_resize(size),
            AppEvent::Line(line) => self.handle_line(&line),
            AppEvent::InputEnded => self.handle_input_end(),
            AppEvent::InterruptSignal => self.handle_interrupt_signal(),
            AppEvent::Terminate(reason) => self.effect(Effect::Leave(reason.exit_code())),
            AppEvent::SessionOpened => self.handle_session_opened(),
            AppEvent::SessionFailed(error) => self.handle_session_failed(error),
            AppEvent::Frame(frame) => self.handle_frame(&frame),
            AppEvent::Malformed(error) => self.note(NoteLevel::Warning, error),
            AppEvent::SessionEnded => self.handle_session_ended(),
            AppEvent::Permission { id, request } => self.handle_permission(id, *request),
            AppEvent::Withdrawn(id) => self.handle_withdrawn(id),
            AppEvent::Reply(reply) => self.handle_reply(reply),
        }
        self.refuse_after_input();
        self.present_prompt();
        self.update_window_title();
        self.leave_after_input();
        std::mem::take(&mut self.effects)
    }

    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Adds an entry to the transcript.
    fn show(&mut self, item: Item) {
        self.conversation.transcript.push(item.clone());
        self.effect(Effect::Show(item));
    }

    fn note(&mut self, level: NoteLevel, text: impl Into<String>) {
        self.show(Item::Note(level, text.into()));
    }

    /// The request of an open prompt must stay whole where the screen has become smaller.
    fn handle_resize(&mut self, size: Size) {
        self.size = size;
        if let Some(prompt) = self.prompts.front()
            && prompt.is_shown()
            && prompt.place == RequestPlace::LiveArea
        {
            let id = prompt.id;
            self.effect(Effect::ShowRequest(id));
        }
    }

    /// Shows a hint for a while.
    fn hint(&mut self, text: impl Into<String>) {
        self.hint = Some((text.into(), self.now + HINT_TIME));
    }

    /// Shows what a second press of a key does, for as long as it counts as the second.
    fn hint_second_press(&mut self, text: &str) {
        self.hint = Some((text.into(), self.now + SECOND_PRESS));
    }

    /// The hint in force.
    pub(crate) fn current_hint(&self, now: Instant) -> Option<&str> {
        self.hint.as_ref().filter(|(_, until)| now < *until).map(|(text, _)| text.as_str())
    }

    /// Returns whether a key was pressed the second time within a second; if not, this was the first.
    fn is_second_press(&mut self, key: ArmedKey) -> bool {
        let is_second = self.armed.is_some_and(|(armed, until)| armed == key && self.now < until);
        self.armed = (!is_second).then_some((key, self.now + SECOND_PRESS));
        is_second
    }

    /// When the screen changes next without an event.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        // While a request waits for the user, the turn waits as well.
        let is_turn_moving =
            self.prompts.is_empty() && (self.conversation.is_running() || self.has_running_agents());
        let spinner = (is_turn_moving || self.shell.is_some()).then(|| now + tool_card::SPINNER_INTERVAL);
        let hint = self.hint.as_ref().map(|(_, until)| *until).filter(|until| *until > now);
        spinner.into_iter().chain(hint).min()
    }

    fn has_running_agents(&self) -> bool {
        self.conversation.running_agents().next().is_some()
    }

    /// A key goes to what is on top: a page, a request, a picker, the input line.
    fn handle_key(&mut self, key: Key) {
        if self.pager.is_some() {
            self.handle_pager_key(&key);
        } else if self.prompts.front().is_some() {
            self.handle_prompt_key(key);
        } else if self.picker.is_some() {
            self.handle_picker_key(&key);
        } else {
            self.handle_input_key(key);
        }
        self.last_key = Some(key.at);
    }

    fn handle_pager_key(&mut self, key: &Key) {
        let Some(pager) = &mut self.pager else { return };
        if pager.handle_key(key, &self.keys, usize::from(self.size.rows)) {
            self.pager = None;
            self.effect(Effect::CloseOverlay);
        }
    }

    fn handle_prompt_key(&mut self, key: Key) {
        let Some(prompt) = self.prompts.front_mut() else { return };
        match prompt.handle_key(&key, &self.keys) {
            PromptOutcome::Open => {}
            PromptOutcome::TypeAhead => self.handle_type_ahead(key),
            PromptOutcome::Answered(answer) => self.answer_prompt(answer),
        }
    }

    /// Answers the request on top, and those that the answer settles, too.
    pub(crate) fn answer_prompt(&mut self, answer: PromptAnswer) {
        let Some(prompt) = self.prompts.pop_front() else { return };
        let (answer, interrupts) = match answer {
            PromptAnswer::Answer(answer) => (answer, false),
            PromptAnswer::RefuseAndInterrupt(answer) => (answer, true),
        };
        let settled: Vec<u64> =
            self.prompts.iter().filter(|other| other.is_settled_by(&answer)).map(|other| other.id).collect();
        self.prompts.retain(|other| !settled.contains(&other.id));
        self.effect(Effect::Answer { id: prompt.id, answer });
        for id in settled {
            self.effect(Effect::Answer { id, answer: whimbrel::PermissionResult::allow() });
        }
        if interrupts {
            self.interrupt();
        }
    }

    /// Puts the request on top on the screen, if it is new.
    fn present_prompt(&mut self) {
        if self.pager.is_some() {
            return;
        }
        let (now, last_key) = (self.now, self.last_key);
        let Some(prompt) = self.prompts.front_mut() else { return };
        if prompt.is_shown() {
            return;
        }
        prompt.show(now, last_key);
        let (id, plan) = (prompt.id, prompt.plan().map(str::to_owned));
        if let Some(plan) = plan {
            self.show(Item::Plan(plan));
        }
        self.effect(Effect::ShowRequest(id));
        self.notify("a question waits");
    }

    /// The title of the window names the session and says whether it waits for the user.
    fn update_window_title(&mut self) {
        let Some(title) = &self.title else { return };
        let mark = if self.prompts.is_empty() { "" } else { "(waits) " };
        let wanted = format!("{mark}whimbrel: {title}");
        if self.window_title != wanted {
            self.window_title.clone_from(&wanted);
            self.effect(Effect::SetTitle(wanted));
        }
    }

    /// Notifies the user if the terminal is not focused.
    fn notify(&mut self, text: &str) {
        if self.preferences.notifications && !self.has_focus {
            let title = self.title.clone().unwrap_or_else(|| "whimbrel".into());
            self.effect(Effect::Notify(format!("{title}: {text}")));
        }
    }

    fn handle_paste(&mut self, text: &str) {
        if self.pager.is_some() {
            return;
        }
        if let Some(prompt) = self.prompts.front_mut() {
            prompt.menu_mut().handle_paste(text);
        } else if let Some(picker) = &mut self.picker {
            picker.menu.handle_paste(text);
        } else {
            self.paste_into_input(text);
        }
    }

    /// Waits for the user to choose a session.
    pub(crate) fn wait_for_choice(&mut self) {
        self.session = SessionPhase::NotChosen;
    }

    /// Submits the prompt that the program was started with.
    pub(crate) fn submit_first_prompt(&mut self, text: &str) {
        match commands::parse(text.trim(), &self.slash_commands) {
            ParsedCommand::Local(command, argument) => self.run_local_command(command, &argument),
            // The commands of the engine are not known yet.
            ParsedCommand::Unknown(_) | ParsedCommand::Engine | ParsedCommand::None => {
                self.submit_prompt(queue::QueuedPrompt {
                    pieces: vec![crate::editor::Piece::Text(text.to_owned())],
                    text: text.to_owned(),
                });
            }
        }
    }

    /// The working directory as it is shown.
    pub(crate) fn folder(&self) -> String {
        status_line::shorten_home(&self.start.cwd, self.start.home.as_deref())
    }

    /// The last line: how to go on with this session.
    pub(crate) fn exit_notice(&self, theme: &crate::theme::Theme) -> Option<crate::text::Line> {
        let session = self.conversation.session_id.as_ref().filter(|_| !self.sent_prompts.is_empty())?;
        let line = crate::text::Line::styled("to go on: ", theme.dim);
        Some(line.with(&format!("whimbrel --resume {session}"), theme.strong))
    }

    /// Interrupts the turn.
    fn interrupt(&mut self) {
        if self.conversation.is_running() {
            self.conversation.request_interrupt();
            self.effect(Effect::Interrupt);
        } else if self.shell.is_some() {
            self.effect(Effect::StopShell);
        }
    }
}

#[cfg(test)]
mod tests;
