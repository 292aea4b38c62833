//! The host's side within this process: says the prompt, listens, and answers questions.

use std::io::{self, Write};

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use whimbrel_engine::link::HostEnd;
use whimbrel_wire::Frame;
use whimbrel_wire::control::{ControlRequest, ControlResponse, Request};
use whimbrel_wire::message::{TurnResult, User};
use whimbrel_wire::system::{InformationLevel, Informational, SystemEvent};

use crate::human::{BEAT, Judge, Story};
use crate::stdio::note;

/// Who listens.
pub(crate) enum Audience<T, M> {
    /// Nobody: only the end counts.
    Nobody,
    /// A person.
    Person(Story<T, M>),
}

impl<T: Write, M: Write> Audience<T, M> {
    fn hear(&mut self, frame: &Frame) -> io::Result<()> {
        match self {
            Self::Nobody => {
                warn(frame);
                Ok(())
            }
            Self::Person(story) => story.tell(frame),
        }
    }

    /// Something is going on.
    fn wait(&mut self) {
        if let Self::Person(story) = self {
            story.tick();
        }
    }

    /// The run is being stopped: nothing is shown that could be left half way.
    fn pause(&mut self) -> io::Result<()> {
        match self {
            Self::Nobody => Ok(()),
            Self::Person(story) => story.pause(),
        }
    }

    /// The run ended before a question was answered; its line is left as it stands.
    fn leave_question(&mut self) -> io::Result<()> {
        match self {
            Self::Nobody => Ok(()),
            Self::Person(story) => story.remark(""),
        }
    }
}

/// What a person should know although only the end counts goes to stderr.
fn warn(frame: &Frame) {
    let Frame::System(system) = frame else { return };
    if let SystemEvent::Informational(Informational { content, level: InformationLevel::Warning, .. }) =
        &system.event
    {
        note(content);
    }
}

/// Says one prompt, listens until everything is said, and gives the last result. An error means that the person no longer
/// reads: then everything stops.
pub(crate) async fn attend<T: Write, M: Write>(
    host: HostEnd,
    prompt: String,
    mut audience: Audience<T, M>,
    judge: Judge,
    over: CancellationToken,
) -> io::Result<Option<Box<TurnResult>>> {
    let HostEnd { sender, mut receiver, finished, stop } = host;
    // An engine that has refused the session does not listen.
    let _ = sender.send(Ok(User::prompt(prompt).into())).await;
    finished.cancel();
    let mut beat = interval(BEAT);
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
                audience.wait();
                continue;
            }
        };
        let Some(frame) = frame else { return audience.pause().map(|()| result) };
        audience.hear(&frame).inspect_err(|_| stop.cancel())?;
        let question = match frame {
            Frame::ControlRequest(question) => question,
            Frame::Result(last) => {
                result = Some(last);
                continue;
            }
            _ => continue,
        };
        let answer = tokio::select! {
            answer = answer(*question, judge, &mut audience) => Some(answer?),
            () = over.cancelled() => None,
        };
        match answer {
            // An engine that has ended meanwhile does not listen.
            Some(answer) => drop(sender.send(Ok(answer.into())).await),
            None => audience.leave_question()?,
        }
    }
}

async fn answer<T: Write, M: Write>(
    question: ControlRequest,
    judge: Judge,
    audience: &mut Audience<T, M>,
) -> io::Result<ControlResponse> {
    let ControlRequest { request_id, request } = question;
    let Request::CanUseTool(asked) = request else {
        return Ok(ControlResponse::unsupported(request_id, request.subtype()));
    };
    audience.pause()?;
    let (verdict, told) = judge.answer(&asked).await;
    if let (Audience::Person(story), Some(line)) = (audience, told) {
        story.remark(&line)?;
    }
    Ok(ControlResponse::success(request_id, &verdict))
}
