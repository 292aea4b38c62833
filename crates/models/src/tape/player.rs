//! Playing a recording.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

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
    /// Which of them have been played.
    played: Mutex<Vec<bool>>,
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
        let played = Mutex::new(vec![false; steps.len()]);
        Ok(Self { steps, played })
    }

    /// The reply to a request.
    pub(super) fn answer(&self, request: &Request) -> Vec<Result<Delta, Fault>> {
        let asked = outline(request);
        let Some(step) = self.next(&asked) else { return vec![Err(self.left(&asked))] };
        let raw = if request.raw_events { Raw::Keep } else { Raw::Drop };
        let events = step.events.iter().map(|event| read("", event.as_str(), raw));
        events.chain(step.fault.iter().map(|failure| Err(failure.fault()))).collect()
    }

    /// The first step that answered the same and has not been played yet.
    fn next(&self, asked: &[Outline]) -> Option<&Step> {
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (0..self.steps.len()).find(|at| !played[*at] && self.steps[*at].asked == asked)?;
        played[at] = true;
        self.steps.get(at)
    }

    /// Where a session has left the recording, and in what.
    fn left(&self, asked: &[Outline]) -> Fault {
        let played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let due = (0..self.steps.len()).find(|at| !played[*at]).and_then(|at| self.steps.get(at));
        let how = match due {
            None => format!("it has {} steps, and one more is asked for", self.steps.len()),
            Some(step) => {
                let first = (0..asked.len()).find(|at| step.asked.get(*at) != asked.get(*at));
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
