//! Playing a recording.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use whimbrel_wire::RawJson;

use super::drawn::{self, Now};
use super::step::{Outline, Step, outline};
use crate::anthropic::read::{Raw, read};
use crate::fault::{Fault, FaultKind};
use crate::model::Delta;
use crate::plain_file;
use crate::request::Request;

/// The most bytes that a recording may have.
const LONGEST: u64 = 1 << 30;

/// A recording that is played.
pub(super) struct Player {
    steps: Vec<Step>,
    state: Mutex<State>,
}

/// How far a recording was played.
struct State {
    /// Which steps have been played.
    played: Vec<bool>,
    /// What ids of the recording mean now.
    now: Now,
}

impl Player {
    /// Reads a recording. One that broke off in the middle of a line is good up to there.
    pub(super) fn load(path: &Path) -> Result<Self, String> {
        let bytes = plain_file::read(path, LONGEST)?;
        let text = String::from_utf8(bytes).map_err(|_| "it is not text in UTF-8.".to_owned())?;
        let mut steps = Vec::new();
        for (number, line) in text.split_inclusive('\n').enumerate() {
            match serde_json::from_str::<Step>(line) {
                Ok(step) => steps.push(step),
                Err(_) if !line.ends_with('\n') => {}
                Err(error) => return Err(format!("line {} is no step: {error}.", number + 1)),
            }
        }
        let state = Mutex::new(State { played: vec![false; steps.len()], now: Now::default() });
        Ok(Self { steps, state })
    }

    /// The reply to a request.
    pub(super) fn answer(&self, request: &Request) -> Vec<Result<Delta, Fault>> {
        let asked = outline(request);
        let Some((step, events)) = self.next(&asked) else { return vec![Err(self.left(&asked))] };
        let raw = if request.raw_events { Raw::Keep } else { Raw::Drop };
        let events = events.iter().map(|event| read("", event.as_str(), raw));
        let failed = step.fault.as_ref().map(|failure| match failure.left && !self.was_asked_again(&asked) {
            // Nobody asked again, so the turn was interrupted there; it is again.
            true => {
                Fault::new(FaultKind::Interrupted, "The reply was interrupted here when it was recorded.")
            }
            false => failure.fault(),
        });
        events.chain(failed.map(Err)).collect()
    }

    /// The first step that answered the same and has not been played yet, and its events as they are told now.
    fn next(&self, asked: &[Outline]) -> Option<(&Step, Vec<RawJson>)> {
        let mut state = self.state();
        let State { played, now } = &mut *state;
        let fits = |at: &usize| !played[*at] && is_same(&self.steps[*at].asked, asked);
        let agrees = |at: &usize| {
            self.steps[*at].asked.iter().zip(asked).all(|(then, said)| now.agrees(&then.ids, &said.ids))
        };
        let all = 0..self.steps.len();
        let at = all.clone().find(|at| fits(at) && agrees(at)).or_else(|| all.clone().find(fits))?;
        played[at] = true;
        let step = self.steps.get(at)?;
        for (then, said) in step.asked.iter().zip(asked) {
            now.learn(&then.ids, &said.ids);
        }
        let events = if now.is_the_same() { step.events.clone() } else { retell(&step.events, now) };
        Some((step, events))
    }

    /// Whether the same is asked once more in what has not been played yet.
    fn was_asked_again(&self, asked: &[Outline]) -> bool {
        let state = self.state();
        self.steps.iter().zip(&state.played).any(|(step, played)| !played && is_same(&step.asked, asked))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a session has left the recording, and in what.
    fn left(&self, asked: &[Outline]) -> Fault {
        let state = self.state();
        let due = (0..self.steps.len()).find(|at| !state.played[*at]).and_then(|at| self.steps.get(at));
        let how = match due {
            None => format!("it has {} steps, and one more is asked for", self.steps.len()),
            Some(step) => {
                let differs = |at: &usize| step.asked.get(*at).is_none_or(|then| !then.says(&asked[*at]));
                let first = (0..asked.len()).find(differs);
                let what = match first.map(|at| (at + 1, step.asked.get(at), &asked[at])) {
                    Some((number, Some(then), now)) => {
                        format!("message {number} was {} and is {}", then.begins, now.begins)
                    }
                    Some((number, None, now)) => format!("message {number} was not there: {}", now.begins),
                    None => format!("there were {} messages and are {}", step.asked.len(), asked.len()),
                };
                format!("at step {} ({}), {what}", step.step, step.model)
            }
        };
        Fault::new(FaultKind::Script, format!("The session has left the recording: {how}."))
    }
}

/// Whether two requests are the same but for ids that were drawn.
fn is_same(then: &[Outline], now: &[Outline]) -> bool {
    then.len() == now.len() && then.iter().zip(now).all(|(then, now)| then.says(now))
}

/// The fields of an event in which a text comes piece by piece. Thinking is signed, so it is left alone.
const PIECES: [&str; 2] = ["/delta/text", "/delta/partial_json"];

/// Events with the ids of now in the place of those that were recorded. An id may be spread over several pieces of a text:
/// where one has to be replaced, the first piece says it all.
fn retell(events: &[RawJson], now: &Now) -> Vec<RawJson> {
    let mut told: Vec<Value> = events.iter().map(|event| event.read().unwrap_or_default()).collect();
    for field in PIECES {
        let mut blocks: Vec<Value> = Vec::new();
        for event in told.iter().filter(|event| event.pointer(field).is_some()) {
            if !blocks.contains(&event["index"]) {
                blocks.push(event["index"].clone());
            }
        }
        for block in blocks {
            let mut pieces: Vec<&mut String> = told
                .iter_mut()
                .filter(|event| event["index"] == block)
                .filter_map(|event| match event.pointer_mut(field) {
                    Some(Value::String(piece)) => Some(piece),
                    _ => None,
                })
                .collect();
            let whole: String = pieces.iter().map(|piece| piece.as_str()).collect();
            let again = now.told(&whole);
            if again != whole
                && let Some((first, rest)) = pieces.split_first_mut()
            {
                **first = again;
                rest.iter_mut().for_each(|piece| piece.clear());
            }
        }
    }
    let whole = |event: &&mut Value| event["type"] == "content_block_start";
    for event in told.iter_mut().filter(whole) {
        drawn::each_text(event, &mut |text| *text = now.told(text));
    }
    told.iter().zip(events).map(|(event, then)| RawJson::of(event).unwrap_or_else(|_| then.clone())).collect()
}
