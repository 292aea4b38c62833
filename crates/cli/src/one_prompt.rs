//! One prompt, one answer: at a terminal, or for scripts and pipes.

use std::io::{self, IsTerminal};

use whimbrel_transport::link::pair;
use whimbrel_wire::options::PermissionPromptTool;
use whimbrel_wire::{Frame, encode};

use crate::in_process_host::{FrameDisplay, run_host};
use crate::serve_session::PreparedSession;
use crate::shutdown::{AbortReason, RunOutcome, Shutdown, watch_signals};
use crate::stdio;
use crate::terminal::{Terminal, columns};
use crate::terminal_ui::{FrameRenderer, PermissionPrompter, Spinner, Style, failure_text};

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
    mut session: PreparedSession,
    attended: bool,
    prompt: String,
    format: PrintFormat,
    terminal: Terminal,
) -> io::Result<RunOutcome> {
    let options = &mut session.request.options;
    let has_prompt_tool = options.permission_prompt_tool.is_some();
    let prompter = match terminal.stdin && terminal.stderr && attended && !has_prompt_tool {
        true => PermissionPrompter::Terminal,
        false => PermissionPrompter::Unattended,
    };
    if prompter.can_answer() {
        options.permission_prompt_tool = Some(PermissionPromptTool::Stdio);
    }
    let display = match format {
        PrintFormat::Live => {
            options.include_partial_messages = true;
            let style = if terminal.has_color && terminal.stderr { Style::Dimmed } else { Style::Plain };
            let spinner = (terminal.stderr && terminal.can_move_cursor).then(|| Spinner::new(style));
            FrameDisplay::Terminal(FrameRenderer::new(
                (io::stdout(), io::stderr()),
                || columns(io::stderr()),
                &std::env::current_dir()?,
                style,
                spinner,
            ))
        }
        PrintFormat::Answer | PrintFormat::Json => FrameDisplay::Silent,
    };
    let outcome = serve_prompt(session, prompt, display, prompter)?;
    print_result(&outcome, format)?;
    Ok(outcome)
}

/// Serves a session with one prompt and shows its frames.
pub(crate) fn serve_prompt<T: io::Write, M: io::Write>(
    session: PreparedSession,
    prompt: String,
    display: FrameDisplay<T, M>,
    prompter: PermissionPrompter,
) -> io::Result<RunOutcome> {
    let (link, host) = pair();
    let shutdown = Shutdown::new(host.stop.clone());
    watch_signals(shutdown.clone())?;
    // At a terminal SIGHUP reports that.
    if !io::stdout().is_terminal() {
        stdio::watch_stdout(shutdown.clone())?;
    }
    let (session_exit, result) =
        session.serve(link, |ended| run_host(host, prompt, display, prompter, ended))?;
    if result.is_err() {
        shutdown.trigger(AbortReason::HostDisconnected);
    }
    Ok(RunOutcome { session_exit, result: result.unwrap_or_default(), abort_reason: shutdown.reason() })
}

/// Prints the result at the end. Live output has shown it already.
fn print_result(outcome: &RunOutcome, format: PrintFormat) -> io::Result<()> {
    let Some(result) = &outcome.result else { return Ok(()) };
    match format {
        PrintFormat::Live => {}
        PrintFormat::Json => {
            let mut line = Vec::new();
            encode(&Frame::Result(result.clone()), &mut line);
            stdio::print(&String::from_utf8_lossy(&line))?;
        }
        // The reason why a session never started is printed later in any case.
        PrintFormat::Answer if outcome.session_exit.setup_error.is_some() => {}
        // Hosts of the official program read the reason of a failure on stdout.
        PrintFormat::Answer if result.is_error => stdio::print(&format!("{}\n", failure_text(result)))?,
        PrintFormat::Answer => stdio::print(&format!("{}\n", result.result.as_deref().unwrap_or_default()))?,
    }
    Ok(())
}
