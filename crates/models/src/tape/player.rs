//! Playing a recording.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use whimbrel_wire::RawJson;

use super::drawn::Now;
use super::retell::retell;
use super::step::{Outline, Step, difference, outline};
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
        Some((step, retell(&step.events, now)))
    }

    /// Whether the same is asked once more in what has not been played yet.
    fn was_asked_again(&self, asked: &[Outline]) -> bool {
        let state = self.state();
        self.steps.iter().zip(&state.played).any(|(step, played)| !played && is_same(&step.asked, asked))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was recorded and has not been asked for, in words.
    pub(super) fn unplayed(&self) -> Option<String> {
        let state = self.state();
        let mut steps = self.steps.iter().zip(&state.played).filter(|(_, played)| !**played);
        let (first, _) = steps.next()?;
        let many = steps.count() + 1;
        Some(format!(
            "{many} of the {} recorded steps were not asked for: the session has ended before the recording, which goes on with step {} ({}).",
            self.steps.len(),
            first.step,
            first.model,
        ))
    }

    /// Where a session has left the recording, and in what: of the steps that are left, the one that agrees the longest was
    /// meant.
    fn left(&self, asked: &[Outline]) -> Fault {
        let state = self.state();
        let agreed =
            |step: &Step| step.asked.iter().zip(asked).take_while(|(then, now)| then.says(now)).count();
        let left = self.steps.iter().zip(&state.played).filter(|(_, played)| !**played);
        let how = match left.rev().map(|(step, _)| (agreed(step), step)).max_by_key(|(agreed, _)| *agreed) {
            None => format!("it has {} steps, and one more is asked for", self.steps.len()),
            Some((at, step)) => {
                let what = match (step.asked.get(at), asked.get(at)) {
                    (Some(then), Some(now)) => {
                        let (then, now) = self.told_apart(then, now);
                        format!("message {} was {then} and is {now}", at + 1)
                    }
                    (None, Some(now)) => format!("message {} was not there: {}", at + 1, now.begins),
                    (_, None) => format!("there were {} messages and are {}", step.asked.len(), asked.len()),
                };
                format!("at step {} ({}), {what}", step.step, step.model)
            }
        };
        Fault::new(FaultKind::Script, format!("The session has left the recording: {how}."))
    }

    /// Two messages from where they differ, if that is known; otherwise their beginnings.
    fn told_apart(&self, then: &Outline, now: &Outline) -> (String, String) {
        let known = |outline: &&Outline| outline.digest == then.digest && outline.text.is_some();
        let told = self.steps.iter().flat_map(|step| &step.asked).find(known);
        match (told.and_then(|outline| outline.text.as_deref()), now.text.as_deref()) {
            (Some(then), Some(now)) if then != now => difference(then, now),
            _ => (then.begins.clone(), now.begins.clone()),
        }
    }
}

/// Whether two requests are the same but for ids that were drawn.
fn is_same(then: &[Outline], now: &[Outline]) -> bool {
    then.len() == now.len() && then.iter().zip(now).all(|(then, now)| then.says(now))
}
