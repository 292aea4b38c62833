//! What wakes the application from the terminal's side: keys, pastes, resizes, signals.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::Instant;

use super::Size;
use super::burst::BurstFilter;
use super::key::Key;
use super::parser::{Answer, Input, Parser};

/// How long the rest of an escape sequence is waited for before the escape counts as the key.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(25);

/// Something that the terminal or its user did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Key(Key),
    Paste(String),
    Resize(Size),
    FocusGained,
    FocusLost,
    /// An answer to a query; only the screen needs it.
    Answer(Answer),
    /// The program runs again after it was stopped.
    Resumed,
    /// A signal asks the program to end.
    Terminate(Termination),
    /// The terminal is gone.
    Closed,
}

/// Why the program has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Termination {
    Interrupt,
    Terminate,
    /// The terminal is gone, or a signal says so.
    Hangup,
}

impl Termination {
    /// 128 and the number of the signal, as shells report it.
    pub(crate) fn exit_code(self) -> i32 {
        match self {
            Self::Hangup => 129,
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// The stream of events. Every terminal has one.
pub(crate) struct Events {
    input: AsyncFd<OwnedFd>,
    parser: Parser,
    ready: VecDeque<Event>,
    bursts: BurstFilter,
    has_bracketed_paste: bool,
    is_closed: bool,
    resizes: SignalStream,
    resumptions: SignalStream,
    interrupts: SignalStream,
    terminations: SignalStream,
    hangups: SignalStream,
}

impl Events {
    /// Reads the standard input. Must be called inside a runtime.
    pub(super) fn new() -> io::Result<Self> {
        let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe; `OwnedFd` is the only owner of its descriptor"
        )]
        let input = AsyncFd::with_interest(input, Interest::READABLE)?;
        Ok(Self {
            input,
            parser: Parser::default(),
            ready: VecDeque::new(),
            bursts: BurstFilter::default(),
            has_bracketed_paste: false,
            is_closed: false,
            resizes: signal(SignalKind::window_change())?,
            resumptions: signal(SignalKind::from_raw(Signal::CONT.as_raw()))?,
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
            hangups: signal(SignalKind::hangup())?,
        })
    }

    /// Forgets the interrupts that came while another program had the terminal: they were meant for it.
    pub(crate) fn forget_interrupts(&mut self) -> io::Result<()> {
        self.interrupts = signal(SignalKind::interrupt())?;
        Ok(())
    }

    /// Waits for the next event. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event;
            }
            if self.is_closed {
                return Event::Closed;
            }
            let pause = async {
                if self.parser.is_waiting() {
                    tokio::time::sleep(ESCAPE_TIMEOUT).await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            let burst = self.bursts.deadline();
            let burst_end = async {
                match burst {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let is_paused = tokio::select! {
                ready = self.input.readable() => {
                    match ready {
                        Ok(mut guard) => guard.clear_ready(),
                        Err(_) => self.is_closed = true,
                    }
                    false
                }
                () = pause => true,
                () = burst_end => {
                    let inputs = self.bursts.flush();
                    self.ready.extend(inputs.into_iter().map(Event::from));
                    continue;
                }
                _ = self.resizes.recv() => return Event::Resize(Size::of_terminal()),
                _ = self.resumptions.recv() => return Event::Resumed,
                _ = self.interrupts.recv() => return Event::Terminate(Termination::Interrupt),
                _ = self.terminations.recv() => return Event::Terminate(Termination::Terminate),
                _ = self.hangups.recv() => return Event::Terminate(Termination::Hangup),
            };
            if is_paused {
                let inputs = self.parser.flush();
                self.queue(inputs);
            } else {
                self.read_available();
            }
        }
    }

    /// Reads what is there. The descriptor may block, so each read is checked first.
    fn read_available(&mut self) {
        let mut inputs = Vec::new();
        let mut buffer = [0; 16 * 1024];
        while has_input(&self.input) {
            match rustix::io::read(&self.input, &mut buffer) {
                Ok(0) => {
                    self.is_closed = true;
                    break;
                }
                Ok(count) => inputs.extend(self.parser.feed(&buffer[..count])),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(_) => {
                    self.is_closed = true;
                    break;
                }
            }
        }
        self.queue(inputs);
    }

    fn queue(&mut self, inputs: Vec<Input>) {
        self.has_bracketed_paste |= inputs.iter().any(|input| matches!(input, Input::Paste(_)));
        let inputs = if self.has_bracketed_paste {
            let mut decided = self.bursts.flush();
            decided.extend(inputs);
            decided
        } else {
            self.bursts.feed(inputs, Instant::now())
        };
        self.ready.extend(inputs.into_iter().map(Event::from));
    }

    /// Reads an answer that is still on its way, so that it does not end up in the shell's input.
    pub(super) async fn drain(&mut self, is_last: impl Fn(Answer) -> bool, limit: Duration) {
        let answered = async {
            loop {
                match self.next().await {
                    Event::Answer(answer) if is_last(answer) => break,
                    Event::Closed => break,
                    _ => {}
                }
            }
        };
        // A terminal that does not answer has nothing on its way.
        let _ = tokio::time::timeout(limit, answered).await;
    }
}

impl From<Input> for Event {
    fn from(input: Input) -> Self {
        match input {
            Input::Key(key) => Self::Key(key),
            Input::Paste(text) => Self::Paste(text),
            Input::FocusGained => Self::FocusGained,
            Input::FocusLost => Self::FocusLost,
            Input::Answer(answer) => Self::Answer(answer),
        }
    }
}

fn has_input(input: &AsyncFd<OwnedFd>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut descriptors = [PollFd::new(input.get_ref(), PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut descriptors, Some(&now)).is_ok_and(|ready| ready > 0)
}
