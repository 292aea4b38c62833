//! Where entries are shown: the screen, or linear output.

use std::io::{self, Stdout};

use tokio::time::Instant;

use crate::app::App;
use crate::app::live::request_lines;
use crate::plain::{Plain, Speaker};
use crate::present::Presenter;
use crate::prompts::{Prompt, RequestPlace};
use crate::screen::{Events, Screen};
use crate::text::Line;
use crate::theme::{ColorLevel, Theme};
use crate::transcript::{Item, NoteLevel, ShellExit};

/// Columns of linear output, which has no lines of its own.
const PLAIN_COLUMNS: usize = 10_000;

/// Where entries are shown.
pub(super) enum Surface {
    Screen(Box<Screen>),
    Plain(PlainSurface),
}

/// Linear output, and what it asked last.
pub(super) struct PlainSurface {
    out: Plain<Stdout>,
    /// What was asked last, to ask it only once.
    asked: Option<String>,
    text: String,
}

impl PlainSurface {
    pub(super) fn new() -> Self {
        Self { out: Plain::new(io::stdout()), asked: None, text: String::new() }
    }
}

impl Surface {
    pub(super) fn request_frame(&mut self) {
        if let Self::Screen(screen) = self {
            screen.request_frame();
        }
    }

    pub(super) async fn frame_due(&self) {
        match self {
            Self::Screen(screen) => screen.frame_due().await,
            Self::Plain(_) => std::future::pending().await,
        }
    }

    /// Writes lines that belong to no entry.
    pub(super) fn commit(&mut self, presenter: &mut Presenter, lines: Vec<Line>) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.commit(presenter.loose(lines)),
            Self::Plain(plain) => plain.out.lines(Speaker::Note, &lines)?,
        }
        Ok(())
    }

    /// Writes an entry.
    pub(super) fn show(&mut self, presenter: &mut Presenter, item: &Item) -> io::Result<()> {
        match self {
            Self::Screen(screen) => {
                let lines = presenter.item(item, usize::from(screen.size().columns));
                screen.commit(lines);
            }
            Self::Plain(plain) => plain.show(presenter, item)?,
        }
        Ok(())
    }

    /// Writes the last lines of several entries.
    pub(super) fn show_end(&mut self, presenter: &mut Presenter, items: &[Item]) -> io::Result<()> {
        match self {
            Self::Screen(screen) => {
                let lines = presenter.end_of(items, usize::from(screen.size().columns));
                screen.commit(lines);
            }
            Self::Plain(plain) => {
                for item in items {
                    if let Item::User { text, .. } = item {
                        plain.out.say(Speaker::You, text)?;
                    }
                    plain.show(presenter, item)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a piece of the model's text.
    pub(super) fn push_text(&mut self, presenter: &mut Presenter, text: &str) {
        match self {
            Self::Screen(screen) => {
                let lines = presenter.push_text(text, usize::from(screen.size().columns));
                screen.commit(lines);
            }
            Self::Plain(plain) => plain.text.push_str(text),
        }
    }

    /// Ends the model's text.
    pub(super) fn end_text(&mut self, presenter: &mut Presenter) -> io::Result<()> {
        match self {
            Self::Screen(screen) => {
                let lines = presenter.end_text(usize::from(screen.size().columns));
                screen.commit(lines);
            }
            Self::Plain(plain) => {
                let text = std::mem::take(&mut plain.text);
                if !text.trim().is_empty() {
                    plain.out.markdown(&text)?;
                }
            }
        }
        Ok(())
    }

    /// Draws a frame.
    pub(super) fn draw(&mut self, presenter: &Presenter, app: &mut App) -> io::Result<()> {
        match self {
            Self::Screen(screen) => {
                let live = app.live(presenter, Instant::now());
                screen.draw(&live)
            }
            Self::Plain(_) => Ok(()),
        }
    }

    /// Shows the request of a prompt, if the live area has no room for it, and returns where it is shown.
    pub(super) fn show_request(
        &mut self,
        presenter: &mut Presenter,
        app: &App,
        prompt: &Prompt,
    ) -> io::Result<RequestPlace> {
        let lines = request_lines(prompt, presenter);
        match self {
            Self::Screen(_) if app.has_room_for(prompt, presenter) => return Ok(RequestPlace::LiveArea),
            Self::Screen(_) => self.commit(presenter, lines)?,
            Self::Plain(plain) => plain.out.lines(Speaker::Permission, &lines)?,
        }
        Ok(RequestPlace::Scrollback)
    }

    /// Takes note of an event of the screen.
    pub(super) fn observe(&mut self, event: &crate::screen::Event) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.observe(event),
            Self::Plain(_) => Ok(()),
        }
    }

    pub(super) fn redraw(&mut self) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.redraw(),
            Self::Plain(_) => Ok(()),
        }
    }

    pub(super) fn suspend(&mut self) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.suspend(),
            Self::Plain(_) => Ok(()),
        }
    }

    /// Opens the pages of the pager; linear output prints them.
    pub(super) fn open_overlay(&mut self, presenter: &Presenter, app: &mut App) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.enter_overlay(),
            Self::Plain(plain) => {
                app.pager = None;
                let lines = presenter.pages(app.conversation.transcript.items(), PLAIN_COLUMNS);
                plain.out.lines(Speaker::Note, &lines)
            }
        }
    }

    pub(super) fn close_overlay(&mut self) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.leave_overlay(),
            Self::Plain(_) => Ok(()),
        }
    }

    pub(super) fn set_title(&mut self, title: &str) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.set_title(title),
            Self::Plain(_) => Ok(()),
        }
    }

    pub(super) fn notify(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.notify(text),
            Self::Plain(_) => Ok(()),
        }
    }

    /// Puts a text into the clipboard; linear output prints it.
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Screen(screen) => screen.copy(text),
            Self::Plain(plain) => plain.out.say(Speaker::Note, text),
        }
    }

    /// Gives the terminal to another program.
    pub(super) async fn hand_over<T>(&mut self, work: impl Future<Output = T>) -> io::Result<T> {
        match self {
            Self::Screen(screen) => screen.hand_over(work).await,
            Self::Plain(_) => Ok(work.await),
        }
    }

    /// Asks what linear output has to ask: an open menu, or the next message.
    pub(super) fn ask(&mut self, app: &App) -> io::Result<()> {
        match self {
            Self::Screen(_) => Ok(()),
            Self::Plain(plain) => plain.ask(app),
        }
    }

    /// Asks again, because a line was typed.
    pub(super) fn forget_question(&mut self) {
        if let Self::Plain(plain) = self {
            plain.asked = None;
        }
    }

    /// Leaves the terminal as it is.
    pub(super) fn abandon(self) {
        if let Self::Screen(screen) = self {
            screen.abandon();
        }
    }

    /// Restores the terminal.
    pub(super) async fn finish(self, events: Option<&mut Events>) -> io::Result<()> {
        match (self, events) {
            (Self::Screen(screen), Some(events)) => screen.finish(events).await,
            _ => Ok(()),
        }
    }
}

impl PlainSurface {
    fn show(&mut self, presenter: &Presenter, item: &Item) -> io::Result<()> {
        match item {
            // The user has just typed it.
            Item::User { .. } | Item::Thinking(_) => Ok(()),
            Item::Answer(text) | Item::Page(text) | Item::Plan(text) => self.out.markdown(text),
            Item::Call(call) => {
                let title = presenter.call_title(&call.name, &call.input).text();
                let state = if call.is_error { "failed" } else { "done" };
                let text = call.text.trim_end();
                self.out.say(Speaker::Tool, &format!("{title} ({state})\n{}", limit_lines(text)))
            }
            Item::Shell { command, output, exit } => {
                let end = match exit {
                    ShellExit::Code(code) => format!("exit {code}"),
                    ShellExit::Signal(signal) => format!("signal {signal}"),
                    ShellExit::Stopped => "stopped".into(),
                };
                self.out.say(Speaker::Tool, &format!("{command} ({end})\n{}", output.trim_end()))
            }
            Item::Note(NoteLevel::Info, text) | Item::Mark(text) => self.out.say(Speaker::Note, text),
            Item::Note(NoteLevel::Warning, text) => self.out.say(Speaker::Note, &format!("warning: {text}")),
            Item::Note(NoteLevel::Error, text) => self.out.say(Speaker::Note, &format!("error: {text}")),
        }
    }

    fn ask(&mut self, app: &App) -> io::Result<()> {
        let Some(menu) = app.open_menu() else {
            let wanted = (!app.is_busy()).then(String::new);
            if self.asked != wanted && wanted.is_some() {
                self.out.ask("you: ")?;
            }
            self.asked = wanted;
            return Ok(());
        };
        let choices: Vec<String> = menu
            .choices
            .iter()
            .map(|choice| match choice.detail.is_empty() {
                true => choice.label.clone(),
                false => format!("{} ({})", choice.label, choice.detail),
            })
            .collect();
        let wanted = Some(format!("{}\n{}", menu.title, choices.join("\n")));
        if self.asked != wanted {
            for note in &menu.notes {
                self.out.say(Speaker::Note, note)?;
            }
            self.out.menu(&menu.title, &choices)?;
            self.out.ask("number: ")?;
            self.asked = wanted;
        }
        Ok(())
    }
}

/// The first lines of a text.
fn limit_lines(text: &str) -> String {
    let count = text.lines().count();
    let mut shown: Vec<String> = text.lines().take(10).map(str::to_owned).collect();
    if count > shown.len() {
        shown.push(format!("({} more lines)", count - shown.len()));
    }
    shown.join("\n")
}

/// The theme of a surface: linear output has none.
pub(super) fn theme(surface: &Surface, name: &str) -> Theme {
    match surface {
        // A theme with colors leaves out marks that only colors replace.
        Surface::Screen(screen) if screen.color_level() == ColorLevel::None => Theme::named("plain"),
        // The 16 colors of a terminal are often chosen for a dark background.
        Surface::Screen(screen)
            if name == "auto"
                && screen.has_light_background()
                && matches!(screen.color_level(), ColorLevel::Indexed256 | ColorLevel::True) =>
        {
            Theme::named("light")
        }
        Surface::Screen(_) => Theme::named(name),
        Surface::Plain(_) => Theme::named("plain"),
    }
}
