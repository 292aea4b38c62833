//! One turn, from a prompt to its end: ask, record, judge, act, and round again.

mod act;
mod hooked;
mod listen;
mod wind_up;

pub(crate) use hooked::brief;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use whimbrel_models::Fault;
use whimbrel_wire::StopReason;

use crate::agent::Agent;
use crate::context::planning::{self, Moment};
use crate::context::room;
use crate::gate::Halt;
use crate::verdict::{self, End, Happened, Next, Nudge, Situation};
use crate::workshop::Workshop;
use crate::{clock, shape, understudy};
use act::act;
pub(crate) use listen::retry_notice;
use listen::{Heard, listen};
use wind_up::wind_up;

/// What the model is told of a turn that was interrupted while it spoke.
pub(crate) const INTERRUPTED: &str = "[Request interrupted by user]";

/// How a turn went.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// How it ended.
    pub end: End,
    /// The model's last text.
    pub text: String,
    /// Why the model stopped last.
    pub stop_reason: Option<StopReason>,
    /// What failed, if the model did.
    pub fault: Option<Fault>,
    /// One, plus one for each tool result.
    pub num_turns: u32,
    /// From the start of the turn to the first event of the first reply.
    pub first_token: Option<Duration>,
    /// The answer in the shape that the host asked for.
    pub structured: Option<Value>,
    /// The call that was put off, if one was.
    pub deferred: Option<Box<Value>>,
}

/// Runs a turn. The prompt is already in the conversation.
pub async fn run(agent: &mut Agent, cancel: &CancellationToken) -> Ending {
    let mut ending = Ending::new(End::Done);
    agent.owed.begin_turn();
    agent.understudies.begin_turn();
    let mut now = Situation {
        event: Happened::Failed,
        aborted: false,
        model_calls: 0,
        max_turns: agent.limits.max_turns,
        recoveries: 0,
        answer: agent.owed.answer(),
        broke: false,
        understudy: false,
        room: false,
    };
    let (mut next, mut objections) = (Next::Ask, 0);
    let mut workshop = Workshop::new(Arc::clone(&agent.bench));
    let started = clock::monotonic();
    hooked::after_reading(agent, cancel).await;
    loop {
        match next {
            Next::Ask | Next::Nudge(_) if hooked::ended_before_call(agent, cancel).await => {
                now.event = Happened::Acted { halt: Some(Halt::Hook) };
            }
            Next::Ask | Next::Nudge(_) => {
                if let Next::Nudge(nudge) = next {
                    match nudge {
                        Nudge::Answer => agent.owed.demanded(),
                        Nudge::OutputLimit | Nudge::Cut | Nudge::Paused => now.recoveries += 1,
                    }
                    if let Some(text) = nudge_text(nudge) {
                        agent.conversation.note(text).await;
                    }
                }
                hooked::brief_late(agent).await;
                if next != Next::Nudge(Nudge::Paused) {
                    planning::remind(agent, Moment::before_call(now.model_calls));
                }
                agent.refit();
                workshop = Workshop::new(Arc::clone(&agent.bench));
                now.model_calls += 1;
                let heard = listen(agent, &mut workshop, cancel).await;
                ending.first_token = ending.first_token.or_else(|| heard.first_event.map(|at| at - started));
                now.event = heard.happened(workshop.calls());
                match now.event {
                    Happened::Replied { .. } => agent.room.replied(),
                    // A call that was refused and is made again does not count.
                    Happened::Unavailable | Happened::TooLong => now.model_calls -= 1,
                    _ => {}
                }
                ending.absorb(heard);
            }
            Next::StepIn => {
                understudy::step_in(agent, ending.fault.as_ref()).await;
                next = Next::Ask;
                continue;
            }
            Next::MakeRoom => {
                now.event = Happened::RoomMade { made: room::make_after_refusal(agent, cancel).await };
            }
            Next::Act => {
                let halt = Box::pin(act(agent, &mut workshop, &mut ending, cancel)).await;
                now.event = Happened::Acted { halt };
                agent.recall();
                agent.tell_progress().await;
                hooked::after_reading(agent, cancel).await;
                now.recoveries = 0;
            }
            Next::End(End::Done)
                if let Some(objection) = hooked::objection(agent, &ending, objections, cancel).await =>
            {
                objections += 1;
                agent.conversation.note(&objection).await;
                now.event = Happened::SentBack;
            }
            Next::End(end) => {
                ending.end = end;
                Box::pin(wind_up(agent, workshop, &mut ending)).await;
                return ending;
            }
        }
        now.aborted = cancel.is_cancelled();
        now.answer = agent.owed.answer();
        now.broke = agent.ledger.is_used_up();
        now.understudy = agent.understudies.are_left(&agent.knobs.now().model);
        now.room = room::may_be_made(agent);
        next = verdict::next(&now);
    }
}

impl Ending {
    /// An ending without anything said.
    pub fn new(end: End) -> Self {
        let (text, stop_reason, fault) = (String::new(), None, None);
        let (first_token, structured, deferred) = (None, None, None);
        Self { end, text, stop_reason, fault, num_turns: 1, first_token, structured, deferred }
    }

    fn absorb(&mut self, heard: Heard) {
        if let Some(text) = heard.text {
            self.text = text;
        }
        self.stop_reason = heard.stop;
        self.fault = heard.fault;
    }
}

/// What the model is told, if anything.
fn nudge_text(nudge: Nudge) -> Option<&'static str> {
    Some(match nudge {
        Nudge::Paused => return None,
        Nudge::Answer => shape::DEMAND,
        Nudge::OutputLimit => {
            "Your reply was cut off by the output limit. Go on exactly where it stopped, without repeating anything; do the rest in smaller pieces."
        }
        Nudge::Cut => {
            "The connection broke in the middle of your reply. Go on exactly where it stopped, without repeating anything."
        }
    })
}
