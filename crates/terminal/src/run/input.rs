//! What the user types: events of the screen, or lines.

use std::io::BufRead;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::app::event::AppEvent;
use crate::screen::{Event, Events, Termination};

/// Source of what the user types.
pub(super) enum Input {
    Screen(Box<Events>),
    Lines(Box<Lines>),
}

/// Lines of the standard input, and signals.
pub(super) struct Lines {
    lines: mpsc::UnboundedReceiver<String>,
    interrupts: Signal,
    terminations: Signal,
    hangups: Signal,
    is_closed: bool,
}

impl Lines {
    /// Reads lines in a thread of its own: a read of the terminal cannot be cancelled.
    pub(super) fn start() -> std::io::Result<Self> {
        let (sender, lines) = mpsc::unbounded_channel();
        let read = move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("lines".into()).spawn(read)?;
        Ok(Self {
            lines,
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
            hangups: signal(SignalKind::hangup())?,
            is_closed: false,
        })
    }

    async fn next(&mut self) -> AppEvent {
        tokio::select! {
            line = self.lines.recv(), if !self.is_closed => match line {
                Some(line) => AppEvent::Line(line),
                None => {
                    self.is_closed = true;
                    AppEvent::InputEnded
                }
            },
            _ = self.interrupts.recv() => AppEvent::InterruptSignal,
            _ = self.terminations.recv() => AppEvent::Terminate(Termination::Terminate),
            _ = self.hangups.recv() => AppEvent::Terminate(Termination::Hangup),
        }
    }
}

impl Input {
    /// Forgets the interrupts that came while another program had the terminal: they were meant for it.
    pub(super) fn forget_interrupts(&mut self) -> std::io::Result<()> {
        match self {
            Self::Screen(events) => events.forget_interrupts(),
            Self::Lines(lines) => {
                lines.interrupts = signal(SignalKind::interrupt())?;
                Ok(())
            }
        }
    }

    /// Waits for the next event, and the event of the screen that it was made of.
    pub(super) async fn next(&mut self) -> (Option<AppEvent>, Option<Event>) {
        match self {
            Self::Screen(events) => {
                let event = events.next().await;
                (from_screen(&event), Some(event))
            }
            Self::Lines(lines) => (Some(lines.next().await), None),
        }
    }
}

/// Translates an event of the screen; `None` if only the screen needs it.
fn from_screen(event: &Event) -> Option<AppEvent> {
    Some(match event {
        Event::Key(key) => AppEvent::Key(*key),
        Event::Paste(text) => AppEvent::Paste(text.clone()),
        Event::Resize(size) => AppEvent::Resized(*size),
        Event::FocusGained => AppEvent::FocusGained,
        Event::FocusLost => AppEvent::FocusLost,
        Event::Resumed | Event::Answer(_) => return None,
        Event::Terminate(reason) => AppEvent::Terminate(*reason),
        Event::Closed => AppEvent::Terminate(Termination::Hangup),
    })
}
