//! One prompt, one answer: at a terminal, or for scripts and pipes.

use std::io::{self, IsTerminal};

use whimbrel_transport::link::pair;
use whimbrel_wire::options::PermissionPromptTool;
use whimbrel_wire::{Frame, encode};

use crate::exit::{AbortReason, Shutdown};
use crate::local_host::{FrameDisplay, run_host};
use crate::run::RunOutcome;
use crate::session::Session;
use crate::terminal::{Terminal, columns};
use crate::terminal_ui::{FrameRenderer, PermissionPrompter, Spinner, Style, failure_text};
use crate::{signals, stdio};

/// Part of the answer that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrintFormat {
    /// Everything while it streams, for a user.
    Live,
    /// Text of the last result.
    Answer,
    /// The last result as one line of JSON.
    Json,
}

/// Runs the prompt and prints the answer. `attended` means that the user may be asked.
pub(crate) fn run_prompt(
    mut session: Session,
    attended: bool,
    prompt: String,
    shown: PrintFormat,
    terminal: Terminal,
) -> io::Result<RunOutcome> {
    let options = &mut session.start.options;
    let asked_elsewhere = options.permission_prompt_tool.is_some();
    let judge = match terminal.stdin && terminal.stderr && attended && !asked_elsewhere {
        true => PermissionPrompter::Terminal,
        false => PermissionPrompter::Unattended,
    };
    if judge.can_answer() {
        options.permission_prompt_tool = Some(PermissionPromptTool::Stdio);
    }
    let audience = match shown {
        PrintFormat::Live => {
            options.include_partial_messages = true;
            let paint = if terminal.has_colour && terminal.stderr { Style::Dimmed } else { Style::Plain };
            let spinner = (terminal.stderr && terminal.can_move_cursor).then(|| Spinner::new(paint));
            FrameDisplay::Terminal(FrameRenderer::new(
                (io::stdout(), io::stderr()),
                || columns(io::stderr()),
                &std::env::current_dir()?,
                paint,
                spinner,
            ))
        }
        PrintFormat::Answer | PrintFormat::Json => FrameDisplay::Silent,
    };
    let ended = serve_prompt(session, prompt, audience, judge)?;
    print_result(&ended, shown)?;
    Ok(ended)
}

/// Serves a session with one prompt and shows its frames.
pub(crate) fn serve_prompt<T: io::Write, M: io::Write>(
    session: Session,
    prompt: String,
    audience: FrameDisplay<T, M>,
    judge: PermissionPrompter,
) -> io::Result<RunOutcome> {
    let (link, host) = pair();
    let cut = Shutdown::new(host.stop.clone());
    signals::watch(cut.clone())?;
    // At a terminal SIGHUP reports that.
    if !io::stdout().is_terminal() {
        stdio::watch_stdout(cut.clone())?;
    }
    let (farewell, told) = session.serve(link, |over| run_host(host, prompt, audience, judge, over))?;
    if told.is_err() {
        cut.trigger(AbortReason::HostDisconnected);
    }
    Ok(RunOutcome { session_exit: farewell, result: told.unwrap_or_default(), abort_reason: cut.reason() })
}

/// Prints the result at the end. Live output has shown it already.
fn print_result(ended: &RunOutcome, shown: PrintFormat) -> io::Result<()> {
    let Some(result) = &ended.result else { return Ok(()) };
    match shown {
        PrintFormat::Live => {}
        PrintFormat::Json => {
            let mut line = Vec::new();
            encode(&Frame::Result(result.clone()), &mut line);
            stdio::print(&String::from_utf8_lossy(&line))?;
        }
        // The reason why a session never started is printed later in any case.
        PrintFormat::Answer if ended.session_exit.setup_error.is_some() => {}
        PrintFormat::Answer if result.is_error => stdio::print_note(&failure_text(result)),
        PrintFormat::Answer => stdio::print(&format!("{}\n", result.result.as_deref().unwrap_or_default()))?,
    }
    Ok(())
}
