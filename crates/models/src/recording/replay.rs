//! Replay of a recording.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use whimbrel_wire::RawJson;

use super::ids::IdMap;
use super::step::{MessageOutline, RecordedStep, excerpt_difference, outline_request};
use super::substitute::substitute_ids;
use crate::anthropic::decode::{RawEvents, decode_event};
use crate::error::{ModelError, ModelErrorKind};
use crate::model::ReplyItem;
use crate::regular_file;
use crate::request::Request;

/// Maximum size of a recording.
const MAX_RECORDING_BYTES: u64 = 1 << 30;

/// A model that replays a recording.
pub(super) struct ReplayModel {
    steps: Vec<RecordedStep>,
    state: Mutex<ReplayState>,
}

/// Progress of a replay.
struct ReplayState {
    /// Flag per step: already played.
    played: Vec<bool>,
    /// Recorded ids and their current counterparts.
    ids: IdMap,
}

impl ReplayModel {
    /// Reads a recording. An incomplete last line is ignored.
    pub(super) fn load(path: &Path) -> Result<Self, String> {
        let bytes = regular_file::read(path, MAX_RECORDING_BYTES)?;
        let text = String::from_utf8(bytes).map_err(|_| "it is not text in UTF-8.".to_owned())?;
        let mut steps = Vec::new();
        for (number, line) in text.split_inclusive('\n').enumerate() {
            match serde_json::from_str::<RecordedStep>(line) {
                Ok(step) => steps.push(step),
                Err(_) if !line.ends_with('\n') => {}
                Err(error) => return Err(format!("line {} is no step: {error}.", number + 1)),
            }
        }
        let state = Mutex::new(ReplayState { played: vec![false; steps.len()], ids: IdMap::default() });
        Ok(Self { steps, state })
    }

    /// Returns the items of the reply to a request.
    pub(super) fn reply_items(&self, request: &Request) -> Vec<Result<ReplyItem, ModelError>> {
        let asked = outline_request(request);
        let Some((step, events)) = self.take_step(&asked) else {
            return vec![Err(self.divergence_error(&asked))];
        };
        let raw = if request.raw_events { RawEvents::Keep } else { RawEvents::Drop };
        let events = events.iter().map(|event| decode_event("", event.as_str(), raw));
        let failed =
            step.fault.as_ref().map(|failure| match failure.left && !self.is_requested_again(&asked) {
                // The reply was abandoned and not requested again, so the turn was interrupted there.
                true => ModelError::new(
                    ModelErrorKind::Interrupted,
                    "The reply was interrupted here when it was recorded.",
                ),
                false => failure.to_error(),
            });
        events.chain(failed.map(Err)).collect()
    }

    /// Takes the first unplayed step with the same request and returns its events with current ids.
    fn take_step(&self, asked: &[MessageOutline]) -> Option<(&RecordedStep, Vec<RawJson>)> {
        let mut state = self.state();
        let ReplayState { played, ids: now } = &mut *state;
        let fits = |at: &usize| !played[*at] && is_same_request(&self.steps[*at].asked, asked);
        let agrees = |at: &usize| {
            self.steps[*at]
                .asked
                .iter()
                .zip(asked)
                .all(|(then, said)| now.is_consistent(&then.ids, &said.ids))
        };
        let all = 0..self.steps.len();
        let at = all.clone().find(|at| fits(at) && agrees(at)).or_else(|| all.clone().find(fits))?;
        played[at] = true;
        let step = self.steps.get(at)?;
        for (then, said) in step.asked.iter().zip(asked) {
            now.insert_pairs(&then.ids, &said.ids);
        }
        Some((step, substitute_ids(&step.events, now)))
    }

    /// Returns true if an unplayed step has the same request.
    fn is_requested_again(&self, asked: &[MessageOutline]) -> bool {
        let state = self.state();
        self.steps
            .iter()
            .zip(&state.played)
            .any(|(step, played)| !played && is_same_request(&step.asked, asked))
    }

    fn state(&self) -> MutexGuard<'_, ReplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Describes the steps that were never requested.
    pub(super) fn describe_unplayed(&self) -> Option<String> {
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

    /// Describes where the session diverged from the recording: compares with the unplayed step that has the longest
    /// common prefix.
    fn divergence_error(&self, asked: &[MessageOutline]) -> ModelError {
        let state = self.state();
        let agreed = |step: &RecordedStep| {
            step.asked.iter().zip(asked).take_while(|(then, now)| then.is_same_message(now)).count()
        };
        let left = self.steps.iter().zip(&state.played).filter(|(_, played)| !**played);
        let how = match left.rev().map(|(step, _)| (agreed(step), step)).max_by_key(|(agreed, _)| *agreed) {
            None => format!("it has {} steps, and one more is asked for", self.steps.len()),
            Some((at, step)) => {
                let what = match (step.asked.get(at), asked.get(at)) {
                    (Some(then), Some(now)) => {
                        let (then, now) = self.describe_difference(then, now);
                        format!("message {} was {then} and is {now}", at + 1)
                    }
                    (None, Some(now)) => format!("message {} was not there: {}", at + 1, now.begins),
                    (_, None) => format!("there were {} messages and are {}", step.asked.len(), asked.len()),
                };
                format!("at step {} ({}), {what}", step.step, step.model)
            }
        };
        ModelError::new(ModelErrorKind::Script, format!("The session has left the recording: {how}."))
    }

    /// Returns excerpts of two messages from where they differ, if the recorded text is known; else their beginnings.
    fn describe_difference(&self, then: &MessageOutline, now: &MessageOutline) -> (String, String) {
        let known = |outline: &&MessageOutline| outline.digest == then.digest && outline.text.is_some();
        let told = self.steps.iter().flat_map(|step| &step.asked).find(known);
        match (told.and_then(|outline| outline.text.as_deref()), now.text.as_deref()) {
            (Some(then), Some(now)) if then != now => excerpt_difference(then, now),
            _ => (then.begins.clone(), now.begins.clone()),
        }
    }
}

/// Returns true if two requests are the same apart from random ids.
fn is_same_request(then: &[MessageOutline], now: &[MessageOutline]) -> bool {
    then.len() == now.len() && then.iter().zip(now).all(|(then, now)| then.is_same_message(now))
}
