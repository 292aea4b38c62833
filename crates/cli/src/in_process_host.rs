//! Host side of a session within this process: sends the prompt, shows frames, answers permission requests.

use std::io::{self, Write};

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use whimbrel_transport::link::HostEnd;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{ControlRequest, ControlResponse, Request};
use whimbrel_wire::message::{TurnResult, User};
use whimbrel_wire::system::{InformationLevel, Informational, SystemEvent};

use crate::stdio::print_note;
use crate::terminal_ui::{FrameRenderer, PermissionPrompter, TICK_INTERVAL};

/// Display of the frames.
pub(crate) enum FrameDisplay<T, M> {
    /// Nothing but warnings; only the final result counts.
    Silent,
    /// A terminal.
    Terminal(FrameRenderer<T, M>),
}

impl<T: Write, M: Write> FrameDisplay<T, M> {
    fn show(&mut self, frame: &Frame) -> io::Result<()> {
        match self {
            Self::Silent => {
                print_warning(frame);
                Ok(())
            }
            Self::Terminal(renderer) => renderer.render(frame),
        }
    }

    /// Shows that work is going on.
    fn tick(&mut self) {
        if let Self::Terminal(renderer) = self {
            renderer.tick();
        }
    }

    /// Ends the current line and clears the spinner, because the run is being stopped.
    fn pause(&mut self) -> io::Result<()> {
        match self {
            Self::Silent => Ok(()),
            Self::Terminal(renderer) => renderer.pause(),
        }
    }

    /// Ends the line of a prompt that was not answered before the run ended.
    fn abandon_prompt(&mut self) -> io::Result<()> {
        match self {
            Self::Silent => Ok(()),
            Self::Terminal(renderer) => renderer.write_note(""),
        }
    }
}

/// Prints warnings to stderr; all other frames are ignored.
pub(crate) fn print_warning(frame: &Frame) {
    let Frame::System(system) = frame else { return };
    if let SystemEvent::Informational(Informational { content, level: InformationLevel::Warning, .. }) =
        &system.event
    {
        print_note(content);
    }
}

/// Sends one prompt, shows frames until the session ends, and returns the last result. An error means that the output
/// is no longer read: then everything stops.
pub(crate) async fn run_host<T: Write, M: Write>(
    host: HostEnd,
    prompt: String,
    mut display: FrameDisplay<T, M>,
    prompter: PermissionPrompter,
    ended: CancellationToken,
) -> io::Result<Option<Box<TurnResult>>> {
    let HostEnd { sender, mut receiver, finished, stop } = host;
    // An engine that has rejected the session no longer receives.
    let _ = sender.send(Ok(User::prompt(prompt).into())).await;
    finished.cancel();
    let mut tick = interval(TICK_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut stopped, mut result) = (false, None);
    loop {
        let frame = tokio::select! {
            biased;
            frame = receiver.recv() => frame,
            () = ended.cancelled() => None,
            () = stop.cancelled(), if !stopped => {
                stopped = true;
                display.pause()?;
                continue;
            }
            _ = tick.tick(), if !stopped => {
                display.tick();
                continue;
            }
        };
        let Some(frame) = frame else { return display.pause().map(|()| result) };
        display.show(&frame).inspect_err(|_| stop.cancel())?;
        let request = match frame {
            Frame::ControlRequest(request) => request,
            Frame::Result(last) => {
                result = Some(last);
                continue;
            }
            _ => continue,
        };
        let answer = tokio::select! {
            answer = answer_request(*request, prompter, &mut display) => Some(answer?),
            () = ended.cancelled() => None,
        };
        match answer {
            // An engine that has ended meanwhile no longer receives.
            Some(answer) => drop(sender.send(Ok(answer.into())).await),
            None => display.abandon_prompt()?,
        }
    }
}

async fn answer_request<T: Write, M: Write>(
    frame: ControlRequest,
    prompter: PermissionPrompter,
    display: &mut FrameDisplay<T, M>,
) -> io::Result<ControlResponse> {
    let ControlRequest { request_id, request } = frame;
    let Request::CanUseTool(asked) = request else {
        return Ok(ControlResponse::unsupported(request_id, request.subtype()));
    };
    display.pause()?;
    let (decision, note) = prompter.answer(&asked).await;
    if let (FrameDisplay::Terminal(renderer), Some(line)) = (display, note) {
        renderer.write_note(&line)?;
    }
    Ok(ControlResponse::success(request_id, &decision))
}
