//! Replay of a recording.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use whimbrel_os::files;
use whimbrel_wire::RawJson;

use super::normalize::{IdMap, for_each_string};
use super::step::{MessageOutline, RecordedStep, excerpt_difference, outline_request};
use crate::anthropic::decode::decode_event;
use crate::error::{ModelError, ModelErrorKind};
use crate::model::{RawEvents, ReplyItem};
use crate::request::Request;

/// Maximum size of a recording.
const MAX_RECORDING_BYTES: u64 = 1 << 30;

/// Event fields that stream a text in fragments. Thinking is signed, so it is left unchanged.
const STREAMED_FIELDS: [&str; 2] = ["/delta/text", "/delta/partial_json"];

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
        let bytes = files::read_user_file(path, MAX_RECORDING_BYTES).map_err(|error| format!("{error}."))?;
        let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text.".to_owned())?;
        let mut steps = Vec::new();
        for (number, line) in text.split_inclusive('\n').enumerate() {
            match serde_json::from_str::<RecordedStep>(line) {
                Ok(step) => steps.push(step),
                Err(_) if !line.ends_with('\n') => {}
                Err(error) => return Err(format!("line {} is not a valid step: {error}.", number + 1)),
            }
        }
        let state = Mutex::new(ReplayState { played: vec![false; steps.len()], ids: IdMap::default() });
        Ok(Self { steps, state })
    }

    /// Returns the items of the reply to a request.
    pub(super) fn reply_items(&self, request: &Request) -> Vec<Result<ReplyItem, ModelError>> {
        let request_outline = outline_request(request);
        let Some((step, events)) = self.take_step(&request_outline) else {
            return vec![Err(self.divergence_error(&request_outline))];
        };
        let raw = RawEvents::for_request(request);
        let events = events.iter().map(|event| decode_event("", event.as_str(), raw));
        let failed = step.error.as_ref().map(|recorded_error| {
            match recorded_error.abandoned && !self.is_requested_again(&request_outline) {
                // The reply was abandoned and not requested again, so the turn was interrupted there.
                true => ModelError::new(
                    ModelErrorKind::Interrupted,
                    "The reply was interrupted here when it was recorded.",
                ),
                false => recorded_error.to_error(),
            }
        });
        events.chain(failed.map(Err)).collect()
    }

    /// Takes the first unplayed step with the same request and returns its events with current ids.
    fn take_step(&self, request_outline: &[MessageOutline]) -> Option<(&RecordedStep, Vec<RawJson>)> {
        let mut state = self.state();
        let ReplayState { played, ids: current } = &mut *state;
        let fits = |at: &usize| !played[*at] && is_same_request(&self.steps[*at].messages, request_outline);
        let agrees = |at: &usize| {
            self.steps[*at]
                .messages
                .iter()
                .zip(request_outline)
                .all(|(recorded, message)| current.is_consistent(&recorded.ids, &message.ids))
        };
        let all = 0..self.steps.len();
        let at = all.clone().find(|at| fits(at) && agrees(at)).or_else(|| all.clone().find(fits))?;
        played[at] = true;
        let step = self.steps.get(at)?;
        for (recorded, message) in step.messages.iter().zip(request_outline) {
            current.insert_pairs(&recorded.ids, &message.ids);
        }
        Some((step, substitute_ids(&step.events, current)))
    }

    /// Returns true if an unplayed step has the same request.
    fn is_requested_again(&self, request_outline: &[MessageOutline]) -> bool {
        let state = self.state();
        self.steps
            .iter()
            .zip(&state.played)
            .any(|(step, played)| !played && is_same_request(&step.messages, request_outline))
    }

    fn state(&self) -> MutexGuard<'_, ReplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Describes the steps that were never requested.
    pub(super) fn describe_unplayed(&self) -> Option<String> {
        let state = self.state();
        let mut steps = self.steps.iter().zip(&state.played).filter(|(_, played)| !**played);
        let (first, _) = steps.next()?;
        let count = steps.count() + 1;
        Some(format!(
            "{count} of the {} recorded steps were not requested: the session ended before the recording, which \
             continues with step {} ({}).",
            self.steps.len(),
            first.step,
            first.model,
        ))
    }

    /// Describes where the session diverged from the recording: compares with the unplayed step that has the longest
    /// common prefix.
    fn divergence_error(&self, request_outline: &[MessageOutline]) -> ModelError {
        let state = self.state();
        let agreed = |step: &RecordedStep| {
            step.messages
                .iter()
                .zip(request_outline)
                .take_while(|(recorded, current)| recorded.is_same_message(current))
                .count()
        };
        let unplayed = self.steps.iter().zip(&state.played).filter(|(_, played)| !**played);
        let difference =
            match unplayed.rev().map(|(step, _)| (agreed(step), step)).max_by_key(|(agreed, _)| *agreed) {
                None => format!("it has {} steps, and another one was requested", self.steps.len()),
                Some((at, step)) => {
                    let change = match (step.messages.get(at), request_outline.get(at)) {
                        (Some(recorded), Some(current)) => {
                            let (recorded, current) = self.describe_difference(recorded, current);
                            format!("message {} was {recorded} and is {current}", at + 1)
                        }
                        (None, Some(current)) => format!("message {} is new: {}", at + 1, current.excerpt),
                        (_, None) => format!(
                            "there were {} messages and now there are {}",
                            step.messages.len(),
                            request_outline.len()
                        ),
                    };
                    format!("at step {} ({}), {change}", step.step, step.model)
                }
            };
        ModelError::new(
            ModelErrorKind::Script,
            format!("The session differs from the recording: {difference}."),
        )
    }

    /// Returns excerpts of two messages from where they differ, if the recorded text is known; else their beginnings.
    fn describe_difference(&self, recorded: &MessageOutline, current: &MessageOutline) -> (String, String) {
        let known = |outline: &&MessageOutline| outline.digest == recorded.digest && outline.text.is_some();
        let with_text = self.steps.iter().flat_map(|step| &step.messages).find(known);
        match (with_text.and_then(|outline| outline.text.as_deref()), current.text.as_deref()) {
            (Some(recorded), Some(current)) if recorded != current => excerpt_difference(recorded, current),
            _ => (recorded.excerpt.clone(), current.excerpt.clone()),
        }
    }
}

/// Returns true if two requests are the same apart from random ids.
fn is_same_request(recorded: &[MessageOutline], current: &[MessageOutline]) -> bool {
    recorded.len() == current.len()
        && recorded.iter().zip(current).all(|(recorded, current)| recorded.is_same_message(current))
}

/// Returns the events with current ids. An id may span several fragments of a text, so if one is replaced, the first
/// fragment holds the whole text.
fn substitute_ids(events: &[RawJson], current: &IdMap) -> Vec<RawJson> {
    if current.is_identity() {
        return events.to_vec();
    }
    let mut events_json: Vec<Value> = events.iter().map(|event| event.decode().unwrap_or_default()).collect();
    for field in STREAMED_FIELDS {
        for block in blocks_with_field(&events_json, field) {
            substitute_block(&mut events_json, field, &block, current);
        }
    }
    for event in events_json.iter_mut().filter(|event| event["type"] == "content_block_start") {
        for_each_string(event, &mut |text| *text = current.substitute(text));
    }
    events_json
        .iter()
        .zip(events)
        .map(|(event, recorded)| RawJson::from_value(event).unwrap_or_else(|_| recorded.clone()))
        .collect()
}

/// Indexes of the blocks that stream this field.
fn blocks_with_field(events: &[Value], field: &str) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for event in events.iter().filter(|event| event.pointer(field).is_some()) {
        if !blocks.contains(&event["index"]) {
            blocks.push(event["index"].clone());
        }
    }
    blocks
}

fn substitute_block(events: &mut [Value], field: &str, block: &Value, current: &IdMap) {
    let mut fragments: Vec<&mut String> = events
        .iter_mut()
        .filter(|event| event["index"] == *block)
        .filter_map(|event| match event.pointer_mut(field) {
            Some(Value::String(fragment)) => Some(fragment),
            _ => None,
        })
        .collect();
    let whole: String = fragments.iter().map(|fragment| fragment.as_str()).collect();
    let substituted = current.substitute(&whole);
    if substituted != whole
        && let Some((first, rest)) = fragments.split_first_mut()
    {
        **first = substituted;
        rest.iter_mut().for_each(|fragment| fragment.clear());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn id_split_over_fragments_is_replaced_and_thinking_kept() {
        let fragment = |index: u32, field: &str, text: &str| json!({"type": "content_block_delta", "index": index, "delta": {field: text}});
        let start = |index: u32, text: &str| json!({"type": "content_block_start", "index": index, "content_block": {"text": text}});
        let recorded = [
            start(0, ""),
            fragment(0, "thinking", "I wait for a11111111."),
            start(1, "a11111111"),
            fragment(1, "text", "Ask a111"),
            fragment(1, "text", "11111 or b22222222."),
            fragment(2, "partial_json", "{\"to\": \"a1111"),
            fragment(2, "partial_json", "1111\"}"),
            fragment(3, "text", "Nothing."),
        ];
        let events = recorded.clone().map(|event| RawJson::from_value(&event).unwrap());
        let mut current = IdMap::default();
        assert_eq!(substitute_ids(&events, &current), events);
        current.insert_pairs(&["a11111111".to_owned()], &["a33333333".to_owned()]);
        let events_json: Vec<Value> =
            substitute_ids(&events, &current).iter().map(|event| event.decode().unwrap()).collect();
        let expected = [
            start(0, ""),
            fragment(0, "thinking", "I wait for a11111111."),
            start(1, "a33333333"),
            fragment(1, "text", "Ask a33333333 or b22222222."),
            fragment(1, "text", ""),
            fragment(2, "partial_json", "{\"to\": \"a33333333\"}"),
            fragment(2, "partial_json", ""),
            fragment(3, "text", "Nothing."),
        ];
        assert_eq!(events_json, expected);
    }
}
