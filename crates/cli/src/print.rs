//! One prompt, one answer: for people at a terminal, for scripts and pipes.

use std::io::{self, IsTerminal};

use whimbrel_engine::link::pair;
use whimbrel_wire::options::PermissionPromptTool;
use whimbrel_wire::{Frame, encode};

use crate::exit::{Cut, Why};
use crate::host::{Audience, attend};
use crate::human::{Judge, Paint, Spinner, Story, failure};
use crate::run::Ended;
use crate::session::Session;
use crate::terminal::{Terminal, columns};
use crate::{signals, stdio};

/// What of an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Everything, as it comes: a person watches.
    Story,
    /// The last answer's text.
    Answer,
    /// The last result, as one line of JSON.
    Json,
}

/// Asks the prompt and prints the answer. `attended` says that a person may be asked.
pub(crate) fn print(
    mut session: Session,
    attended: bool,
    prompt: String,
    shown: Shown,
    terminal: Terminal,
) -> io::Result<Ended> {
    let options = &mut session.start.options;
    let asked_elsewhere = options.permission_prompt_tool.is_some();
    let judge = match terminal.stdin && terminal.stderr && attended && !asked_elsewhere {
        true => Judge::Person,
        false => Judge::Nobody,
    };
    if judge.answers() {
        options.permission_prompt_tool = Some(PermissionPromptTool::Stdio);
    }
    let audience = match shown {
        Shown::Story => {
            options.include_partial_messages = true;
            let paint = if terminal.colour && terminal.stderr { Paint::Dimmed } else { Paint::Plain };
            let spinner = (terminal.stderr && terminal.cursor).then(|| Spinner::new(paint));
            Audience::Person(Story::new(
                (io::stdout(), io::stderr()),
                || columns(io::stderr()),
                &std::env::current_dir()?,
                paint,
                spinner,
            ))
        }
        Shown::Answer | Shown::Json => Audience::Nobody,
    };
    let ended = converse(session, prompt, audience, judge)?;
    show_end(&ended, shown)?;
    Ok(ended)
}

/// Serves a session with one prompt, told to an audience.
pub(crate) fn converse<T: io::Write, M: io::Write>(
    session: Session,
    prompt: String,
    audience: Audience<T, M>,
    judge: Judge,
) -> io::Result<Ended> {
    let (link, host) = pair();
    let cut = Cut::new(host.stop.clone());
    signals::watch(cut.clone())?;
    // At a terminal there is a signal for that.
    if !io::stdout().is_terminal() {
        stdio::watch_reader(cut.clone())?;
    }
    let (farewell, told) = session.serve(link, |over| attend(host, prompt, audience, judge, over))?;
    if told.is_err() {
        cut.fire(Why::HostGone);
    }
    Ok(Ended { farewell, result: told.unwrap_or_default(), why: cut.why() })
}

/// Prints what is printed at the end. A story has told it already.
fn show_end(ended: &Ended, shown: Shown) -> io::Result<()> {
    let Some(result) = &ended.result else { return Ok(()) };
    match shown {
        Shown::Story => {}
        Shown::Json => {
            let mut line = Vec::new();
            encode(&Frame::Result(result.clone()), &mut line);
            stdio::print(&String::from_utf8_lossy(&line))?;
        }
        // Why a session never began is said in any case, later.
        Shown::Answer if ended.farewell.not_started.is_some() => {}
        Shown::Answer if result.is_error => stdio::note(&failure(result)),
        Shown::Answer => stdio::print(&format!("{}\n", result.result.as_deref().unwrap_or_default()))?,
    }
    Ok(())
}
