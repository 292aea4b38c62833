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
            Self::Terminal(story) => story.render(frame),
        }
    }

    /// Shows that work is going on.
    fn tick(&mut self) {
        if let Self::Terminal(story) = self {
            story.tick();
        }
    }

    /// Ends the current line and clears the spinner, because the run is being stopped.
    fn pause(&mut self) -> io::Result<()> {
        match self {
            Self::Silent => Ok(()),
            Self::Terminal(story) => story.pause(),
        }
    }

    /// Ends the line of a prompt that was not answered before the run ended.
    fn abandon_prompt(&mut self) -> io::Result<()> {
        match self {
            Self::Silent => Ok(()),
            Self::Terminal(story) => story.write_note(""),
        }
    }
}

/// Prints warnings to stderr; all other frames are ignored.
fn print_warning(frame: &Frame) {
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
    mut audience: FrameDisplay<T, M>,
    judge: PermissionPrompter,
    over: CancellationToken,
) -> io::Result<Option<Box<TurnResult>>> {
    let HostEnd { sender, mut receiver, finished, stop } = host;
    // An engine that has rejected the session no longer receives.
    let _ = sender.send(Ok(User::prompt(prompt).into())).await;
    finished.cancel();
    let mut beat = interval(TICK_INTERVAL);
    beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut stopped, mut result) = (false, None);
    loop {
        let frame = tokio::select! {
            biased;
            frame = receiver.recv() => frame,
            () = over.cancelled() => None,
            () = stop.cancelled(), if !stopped => {
                stopped = true;
                audience.pause()?;
                continue;
            }
            _ = beat.tick(), if !stopped => {
                audience.tick();
                continue;
            }
        };
        let Some(frame) = frame else { return audience.pause().map(|()| result) };
        audience.show(&frame).inspect_err(|_| stop.cancel())?;
        let question = match frame {
            Frame::ControlRequest(question) => question,
            Frame::Result(last) => {
                result = Some(last);
                continue;
            }
            _ => continue,
        };
        let answer = tokio::select! {
            answer = answer_request(*question, judge, &mut audience) => Some(answer?),
            () = over.cancelled() => None,
        };
        match answer {
            // An engine that has ended meanwhile no longer receives.
            Some(answer) => drop(sender.send(Ok(answer.into())).await),
            None => audience.abandon_prompt()?,
        }
    }
}

async fn answer_request<T: Write, M: Write>(
    question: ControlRequest,
    judge: PermissionPrompter,
    audience: &mut FrameDisplay<T, M>,
) -> io::Result<ControlResponse> {
    let ControlRequest { request_id, request } = question;
    let Request::CanUseTool(asked) = request else {
        return Ok(ControlResponse::unsupported(request_id, request.subtype()));
    };
    audience.pause()?;
    let (verdict, told) = judge.answer(&asked).await;
    if let (FrameDisplay::Terminal(story), Some(line)) = (audience, told) {
        story.write_note(&line)?;
    }
    Ok(ControlResponse::success(request_id, &verdict))
}
