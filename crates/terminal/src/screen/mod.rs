//! The screen: modes of the terminal, its events, and what is drawn.
//!
//! - `modes`: raw mode and what is restored on every way out
//! - [`features`](Features): what the terminal can do
//! - `parser`, `burst`, [`events`](Events), [`key`](Key): input
//! - `encode`, [`frame`](FrameWriter), `schedule`: output

mod burst;
mod encode;
mod events;
mod features;
mod frame;
mod key;
mod modes;
mod modes_record;
mod overlay;
mod parser;
mod schedule;
mod size_check;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use tokio::time::Instant;

pub(crate) use events::{Event, Events, Termination};
pub(crate) use features::Features;
use features::{Notifications, PROBE};
#[cfg(test)]
pub(crate) use frame::Reflow;
pub(crate) use frame::{FrameWriter, Live};
#[cfg(test)]
pub(crate) use key::Modifiers;
pub(crate) use key::{Key, KeyCode};
pub(crate) use modes::panicked;
use overlay::Overlay;
use parser::{Answer, Background};
use size_check::{Order, SizeCheck};

use crate::text::{Line, sanitize};
use crate::theme::ColorLevel;

/// How long answers of the terminal are waited for at the end.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

/// Columns and rows of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

impl Size {
    /// The size of the terminal at the standard output; 80 x 24 if it has none.
    pub(crate) fn of_terminal() -> Self {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok();
        let known = |value: u16, default| if value == 0 { default } else { value };
        size.map_or(Self { columns: 80, rows: 24 }, |size| Self {
            columns: known(size.ws_col, 80),
            rows: known(size.ws_row, 24),
        })
    }
}

/// What the screen is started with.
#[derive(Debug, Clone)]
pub(crate) struct ScreenOptions {
    pub(crate) color: ColorLevel,
    pub(crate) features: Features,
    /// Where the standard error stream goes while we draw; nowhere if there is no file.
    pub(crate) log: Option<PathBuf>,
    /// Where the modes that are on are recorded, for a start after a kill.
    pub(crate) records: Option<PathBuf>,
}

/// The terminal while we draw on it. Dropping it restores the terminal.
pub(crate) struct Screen {
    options: ScreenOptions,
    features: Features,
    writer: FrameWriter,
    overlay: Option<Overlay>,
    schedule: Schedule,
    size: Size,
    size_check: SizeCheck,
    size_order: Order,
    finished: Vec<Line>,
    title: String,
    /// Known once the terminal has answered.
    background: Option<Background>,
    is_active: bool,
    /// The signal that ends a stop of our own is on its way.
    is_resuming: bool,
}

use schedule::Schedule;

impl Screen {
    /// Takes the terminal over and asks it what it can do. Nothing is waited for: the answers come as events.
    pub(crate) fn start(options: ScreenOptions) -> io::Result<(Self, Events)> {
        let size = Size::of_terminal();
        modes::enter(options.log.as_deref(), options.records.as_deref())?;
        let events = Events::new().inspect_err(|_| modes::leave())?;
        let features = options.features;
        let mut screen = Self {
            writer: FrameWriter::new(size, options.color, features.reflow),
            options,
            features,
            overlay: None,
            schedule: Schedule::default(),
            size,
            size_check: if features.is_in_tmux { SizeCheck::Ready(None) } else { SizeCheck::Off },
            size_order: Order::default(),
            finished: Vec::new(),
            title: String::new(),
            background: None,
            is_active: true,
            is_resuming: false,
        };
        screen.schedule.request();
        let begin = format!("{}{PROBE}", fresh_line(size));
        modes::write(begin.as_bytes())?;
        if features.has_modified_keys {
            modes::modify_other_keys();
        }
        Ok((screen, events))
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    pub(crate) fn has_light_background(&self) -> bool {
        self.background == Some(Background::Light)
    }

    pub(crate) fn color_level(&self) -> ColorLevel {
        self.options.color
    }

    /// Takes note of an event. Every event goes through here before the application handles it.
    pub(crate) fn observe(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Key(_) | Event::Paste(_) => self.schedule.hurry(),
            Event::Resize(size) => {
                self.size = *size;
                self.schedule.resized(Instant::now());
            }
            Event::Answer(Answer::Size(first, second)) => {
                let known = Size::of_terminal();
                self.size = self.size_check.answer(&mut self.size_order, (*first, *second), known);
                let repair = self.writer.drawn_at(self.size);
                if !repair.is_empty() {
                    self.schedule.request();
                    modes::write(&repair)?;
                }
            }
            Event::Answer(Answer::Background(background)) => self.background = Some(*background),
            Event::Answer(answer) => {
                self.features.learn(*answer);
                if self.features.has_kitty_keyboard {
                    modes::push_kitty_keyboard();
                }
            }
            Event::Resumed if std::mem::take(&mut self.is_resuming) => {}
            Event::Resumed => self.take_back_modes()?,
            Event::FocusGained | Event::FocusLost | Event::Terminate(_) | Event::Closed => {}
        }
        Ok(())
    }

    /// Adds finished lines above the live area; they are written with the next frame, and then belong to the terminal.
    pub(crate) fn commit(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.finished.extend(lines);
        self.schedule.request();
    }

    /// Asks for a frame. Requests within the time of one frame become one.
    pub(crate) fn request_frame(&mut self) {
        self.schedule.request();
    }

    /// Waits until a frame is due; forever if none was requested.
    pub(crate) async fn frame_due(&self) {
        let now = Instant::now();
        match (self.schedule.due(now), self.size_check.deadline()) {
            (Some(due), deadline) => {
                tokio::time::sleep_until(deadline.map_or(due, |deadline| due.max(deadline))).await;
            }
            (None, _) => std::future::pending().await,
        }
    }

    /// Draws a frame with one write: finished lines, then what changed in the live area. While the overlay is open,
    /// `live` is the whole screen.
    pub(crate) fn draw(&mut self, live: &Live) -> io::Result<()> {
        let now = Instant::now();
        if self.size_check.must_wait(now) {
            self.schedule.request();
            return Ok(());
        }
        let size = self.size_check.size(self.size_order, Size::of_terminal());
        self.schedule.drawn(now);
        if std::mem::replace(&mut self.size, size) != size {
            // `live` was made for another size.
            self.schedule.request();
        }
        let bytes = if let Some(overlay) = &mut self.overlay {
            overlay.frame(size, self.options.color, live)
        } else {
            let mut bytes = Vec::new();
            if size != self.writer.size() {
                bytes = self.writer.resize(size);
            }
            bytes.extend(self.writer.frame(&self.finished, live));
            self.finished.clear();
            self.size_check.ask(&mut bytes, now);
            bytes
        };
        if bytes.is_empty() {
            return Ok(());
        }
        modes::set_rows_above_cursor(self.writer.rows_above_cursor());
        modes::write(&bytes)
    }

    /// Draws the live area anew with the next frame. The scrollback stays as it is.
    pub(crate) fn redraw(&mut self) -> io::Result<()> {
        modes::write(&self.writer.erase())?;
        self.overlay.iter_mut().for_each(Overlay::forget);
        self.schedule.request();
        Ok(())
    }

    /// Stops the program as Ctrl+Z does, and returns when it runs again.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        self.give_up()?;
        self.is_resuming = true;
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        self.take_back()
    }

    /// Gives the terminal to another program, such as an editor, while `work` runs.
    pub(crate) async fn hand_over<T>(&mut self, work: impl Future<Output = T>) -> io::Result<T> {
        self.give_up()?;
        let done = work.await;
        self.take_back()?;
        Ok(done)
    }

    fn give_up(&mut self) -> io::Result<()> {
        self.leave_overlay()?;
        modes::write(&self.writer.erase())?;
        modes::leave();
        Ok(())
    }

    fn take_back(&mut self) -> io::Result<()> {
        modes::enter(self.options.log.as_deref(), self.options.records.as_deref())?;
        self.writer.forget();
        modes::write(fresh_line(Size::of_terminal()).as_bytes())?;
        self.restore_keyboard();
        self.schedule.request();
        Ok(())
    }

    /// After a stop that we did not ask for, the shell has changed the modes and written below the live area: a new one is
    /// drawn on a fresh line.
    fn take_back_modes(&mut self) -> io::Result<()> {
        self.leave_overlay()?;
        modes::enter_again()?;
        self.writer.forget();
        modes::write(fresh_line(Size::of_terminal()).as_bytes())?;
        self.restore_keyboard();
        self.schedule.request();
        Ok(())
    }

    /// Leaves the terminal as it is: a panic has restored it and printed its message.
    pub(crate) fn abandon(mut self) {
        self.is_active = false;
    }

    fn restore_keyboard(&self) {
        if self.features.has_kitty_keyboard {
            modes::push_kitty_keyboard();
        } else if self.features.has_modified_keys {
            modes::modify_other_keys();
        }
    }

    /// Opens the alternate screen. Finished lines wait until it is closed.
    pub(crate) fn enter_overlay(&mut self) -> io::Result<()> {
        if self.overlay.is_none() {
            modes::set_overlay_open(true);
            self.overlay = Some(Overlay::new(Size::of_terminal()));
            modes::write(Overlay::OPEN.as_bytes())?;
        }
        self.schedule.request();
        Ok(())
    }

    /// Closes the alternate screen; what was there before is there again.
    pub(crate) fn leave_overlay(&mut self) -> io::Result<()> {
        if self.overlay.take().is_some() {
            modes::set_overlay_open(false);
            modes::write(Overlay::CLOSE.as_bytes())?;
            self.schedule.request();
        }
        Ok(())
    }

    /// Sets the title of the window.
    pub(crate) fn set_title(&mut self, title: &str) -> io::Result<()> {
        if title == self.title {
            return Ok(());
        }
        title.clone_into(&mut self.title);
        modes::write(format!("\x1b]2;{}\x1b\\", sanitize(title)).as_bytes())
    }

    /// Notifies the user on the desktop, or by the bell where the terminal knows no other way.
    pub(crate) fn notify(&self, text: &str) -> io::Result<()> {
        let text = sanitize(text);
        let sequence = match self.features.notifications {
            Notifications::Osc9 => format!("\x1b]9;{text}\x1b\\"),
            Notifications::Osc777 => format!("\x1b]777;notify;whimbrel;{}\x1b\\", text.replace(';', ",")),
            Notifications::Bell => "\x07".into(),
        };
        modes::write(sequence.as_bytes())
    }

    /// Puts a text into the clipboard of the terminal, which works through SSH as well.
    pub(crate) fn copy(&self, text: &str) -> io::Result<()> {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        modes::write(format!("\x1b]52;c;{encoded}\x1b\\").as_bytes())
    }

    /// Writes what is finished, erases the live area, and restores the terminal.
    pub(crate) async fn finish(mut self, events: &mut Events) -> io::Result<()> {
        self.leave_overlay()?;
        let mut bytes = self.writer.frame(&std::mem::take(&mut self.finished), &Live::default());
        bytes.extend(self.writer.erase());
        let written = modes::write(&bytes);
        if !self.features.is_probed {
            events.drain(|answer| answer == Answer::DeviceAttributes, ANSWER_TIMEOUT).await;
        }
        if self.size_check.deadline().is_some() {
            events.drain(|answer| matches!(answer, Answer::Size(..)), ANSWER_TIMEOUT).await;
        }
        if !self.title.is_empty() {
            modes::write(b"\x1b]2;\x1b\\")?;
        }
        modes::leave();
        self.is_active = false;
        written
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_active {
            // An error means that the terminal is gone.
            let _ = modes::write(&self.writer.erase());
            modes::leave();
        }
    }
}

/// Moves to the start of a row: if the cursor stands behind text, blanks up to the last column wrap to the next row.
fn fresh_line(size: Size) -> String {
    format!("{}\r\x1b[K", " ".repeat(usize::from(size.columns).saturating_sub(1)))
}

#[cfg(test)]
pub(crate) mod emulator;
#[cfg(test)]
pub(crate) mod svg;
#[cfg(test)]
mod tests;
