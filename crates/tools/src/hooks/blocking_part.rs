//! The part of an invalid hook output that still blocks. Pure.
//!
//! - Partly invalid outputs: only fields that block are honored. Fields that allow or change something are not,
//!   because the invalid part may have restricted them.
//! - Duplicate keys: parsers take the last one, and a hook that builds its JSON from the model's text may have been
//!   tricked into printing the second. [`keep_first_duplicates`] reads the first one.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};
use whimbrel_wire::control::ElicitationAction;
use whimbrel_wire::hook::{
    HookDecision, HookEvent, HookPermissionDecision, HookSpecific, PermissionRequestOutput, PreToolUseOutput,
    SyncOutput,
};
use whimbrel_wire::permission::PermissionResult;

/// Blocking part of an output; `None` if nothing in it blocks.
pub(super) fn blocking_part(output: SyncOutput) -> Option<SyncOutput> {
    let should_continue = output.should_continue.filter(|continues| !continues);
    let decision = output.decision.filter(|decision| *decision == HookDecision::Block);
    let specific = output.specific.and_then(blocking_specific);
    let blocks = should_continue.is_some() || decision.is_some() || specific.is_some();
    blocks.then_some(SyncOutput {
        should_continue,
        decision,
        specific,
        stop_reason: output.stop_reason,
        reason: output.reason,
        system_message: output.system_message,
        ..SyncOutput::default()
    })
}

fn blocking_specific(specific: HookSpecific) -> Option<HookSpecific> {
    let blocks = match &specific {
        HookSpecific::PreToolUse(answer) => answer.permission_decision.is_some_and(is_blocking),
        HookSpecific::PreModelSwitch(answer) => answer.permission_decision.is_some_and(is_blocking),
        HookSpecific::PermissionRequest(answer) => matches!(answer.decision, PermissionResult::Deny { .. }),
        HookSpecific::Elicitation(answer) | HookSpecific::ElicitationResult(answer) => {
            matches!(answer.action, Some(ElicitationAction::Decline | ElicitationAction::Cancel))
        }
        _ => false,
    };
    blocks.then(|| match specific {
        HookSpecific::PreToolUse(answer) => {
            HookSpecific::PreToolUse(PreToolUseOutput { updated_input: None, ..answer })
        }
        other => other,
    })
}

fn is_blocking(decision: HookPermissionDecision) -> bool {
    match decision {
        HookPermissionDecision::Allow => false,
        HookPermissionDecision::Ask | HookPermissionDecision::Defer | HookPermissionDecision::Deny => true,
    }
}

/// Checks the event name of the event-specific part. A part for another event is dropped, and the returned text says
/// so. A part without a known name is read as one for this event; a deny of the call counts for PreToolUse and
/// PermissionRequest alike.
pub(super) fn check_event_name(event: HookEvent, output: &mut SyncOutput) -> Option<String> {
    let specific = output.specific.take()?;
    let named_event = specific.event();
    if named_event == Some(event) {
        output.specific = Some(specific);
        return None;
    }
    let mut has_name = true;
    match specific {
        HookSpecific::Other(fields) if named_event.is_none() => {
            has_name = fields.get("hookEventName").is_some_and(Value::is_string);
            output.specific = HookSpecific::parse_partial(Some(event), fields).0;
        }
        HookSpecific::PreToolUse(answer)
            if event == HookEvent::PermissionRequest
                && answer.permission_decision == Some(HookPermissionDecision::Deny) =>
        {
            set_block(output, answer.permission_decision_reason);
        }
        HookSpecific::PermissionRequest(PermissionRequestOutput {
            decision: PermissionResult::Deny { message, .. },
        }) if event == HookEvent::PreToolUse => {
            set_block(output, Some(message).filter(|message| !message.is_empty()));
        }
        _ => {}
    }
    let named_event = named_event.map_or("an unknown event", HookEvent::as_str);
    // A missing name has been reported already.
    has_name.then(|| format!("its output is for {named_event}, but the event is {event}"))
}

fn set_block(output: &mut SyncOutput, reason: Option<String>) {
    output.decision = Some(HookDecision::Block);
    output.reason = reason.or(output.reason.take());
}

/// Parses JSON so that the first of duplicate keys wins; `None` if there are no duplicates.
pub(super) fn keep_first_duplicates(json: &str) -> Option<Value> {
    let has_duplicates = Cell::new(false);
    let value =
        FirstKeyWins(&has_duplicates).deserialize(&mut serde_json::Deserializer::from_str(json)).ok()?;
    has_duplicates.get().then_some(value)
}

/// Deserializes a value, keeps the first of duplicate keys and records whether there were any.
#[derive(Clone, Copy)]
struct FirstKeyWins<'a>(&'a Cell<bool>);

impl<'de> DeserializeSeed<'de> for FirstKeyWins<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FirstKeyWins<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let value = object.next_value_seed(self)?;
            match values.entry(key) {
                Entry::Vacant(slot) => drop(slot.insert(value)),
                Entry::Occupied(_) => self.0.set(true),
            }
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_of_duplicate_keys_wins() {
        let rows = [
            (r#"{"a":1,"b":[true,null,-1,0.5,"x"]}"#, None),
            (r#"{"a":1,"a":2}"#, Some(json!({"a": 1}))),
            (r#"{"a":{"b":[{"c":1,"\u0063":2}]},"d":0}"#, Some(json!({"a": {"b": [{"c": 1}]}, "d": 0}))),
            (r#"{"a":1,"a""#, None),
        ];
        for (text, expected) in rows {
            assert_eq!(keep_first_duplicates(text), expected, "{text}");
        }
    }
}
