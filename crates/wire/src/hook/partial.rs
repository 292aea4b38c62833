//! Parses hook output that is partly invalid: invalid fields are dropped and reported, the others count.
//!
//! A hook that denies a call must be honored even if another field of its output is invalid. The caller decides which
//! of the valid fields count then.

use serde_json::{Map, Value};

use super::{HookEvent, HookSpecific, PermissionRequestOutput, SyncOutput};
use crate::lenient::from_fields;
use crate::permission::PermissionResult;

const SPECIFIC_FIELD: &str = "hookSpecificOutput";

impl SyncOutput {
    /// Parses the valid fields; [`invalid_fields`](Self::invalid_fields) lists the others.
    pub(super) fn parse_partial(fields: Map<String, Value>) -> Self {
        if let Ok(output) = from_fields::<Self>(fields.clone()) {
            return output;
        }
        let (mut valid, mut errors, mut specific) = (Map::new(), Vec::new(), None);
        for (name, value) in fields {
            if name == SPECIFIC_FIELD {
                specific = parse_specific(value, &mut errors);
                continue;
            }
            match from_fields::<Self>(Map::from_iter([(name.clone(), value.clone())])) {
                Ok(_) => drop(valid.insert(name, value)),
                Err(error) => errors.push(error),
            }
        }
        let output = from_fields::<Self>(valid).unwrap_or_else(|error| {
            errors.push(error);
            Self::default()
        });
        Self { specific, invalid_fields: errors, ..output }
    }
}

/// Parses the event-specific fields as far as they are valid. Without an event name they are kept unchanged.
fn parse_specific(value: Value, errors: &mut Vec<String>) -> Option<HookSpecific> {
    let fields = match value {
        Value::Null => return None,
        Value::Object(fields) => fields,
        _ => {
            errors.push(format!("{SPECIFIC_FIELD}: must be an object"));
            return None;
        }
    };
    let Some(Value::String(name)) = fields.get("hookEventName") else {
        errors.push(format!("{SPECIFIC_FIELD}: missing field `hookEventName`"));
        return Some(HookSpecific::Other(fields));
    };
    let (specific, found) = HookSpecific::parse_partial(name.parse().ok(), fields);
    errors.extend(found.into_iter().map(|error| format!("{SPECIFIC_FIELD}.{error}")));
    specific
}

impl HookSpecific {
    /// Parses the valid fields of the output for an event, and lists the errors of the others.
    pub fn parse_partial(
        event: Option<HookEvent>,
        fields: Map<String, Value>,
    ) -> (Option<Self>, Vec<String>) {
        let whole = match Self::parse(event, fields.clone()) {
            Ok(specific) => return (Some(specific), Vec::new()),
            Err(error) => error,
        };
        if event == Some(HookEvent::PermissionRequest) {
            return (parse_denial(&fields), vec![whole]);
        }
        let (mut valid, mut errors) = (Map::new(), Vec::new());
        for (name, value) in fields {
            match Self::parse(event, Map::from_iter([(name.clone(), value.clone())])) {
                Ok(_) => drop(valid.insert(name, value)),
                Err(error) => errors.push(error),
            }
        }
        match Self::parse(event, valid) {
            Ok(specific) if !errors.is_empty() => (Some(specific), errors),
            Ok(_) | Err(_) => (None, vec![whole]),
        }
    }
}

/// Reads a denial of a permission request, whatever else in it is invalid.
fn parse_denial(fields: &Map<String, Value>) -> Option<HookSpecific> {
    let decision = fields.get("decision")?;
    if decision.get("behavior")? != "deny" {
        return None;
    }
    let message = decision.get("message").and_then(Value::as_str).unwrap_or_default();
    let mut answer = PermissionResult::deny(message);
    if let PermissionResult::Deny { interrupt, .. } = &mut answer {
        *interrupt = decision.get("interrupt") == Some(&Value::Bool(true));
    }
    Some(HookSpecific::PermissionRequest(PermissionRequestOutput { decision: answer }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::HookOutput;
    use super::*;

    fn parse_output(json: Value) -> (Value, Vec<String>) {
        let HookOutput::Sync(output) = serde_json::from_value(json).unwrap() else { panic!() };
        (serde_json::to_value(&output).unwrap(), output.invalid_fields)
    }

    #[test]
    fn valid_fields_count_and_invalid_ones_are_reported() {
        let deny = |more: Value| {
            let mut fields = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny"});
            fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "hookSpecificOutput": fields })
        };
        let asked = |decision: Value| json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
        let nameless = json!({"hookSpecificOutput": {"permissionDecision": "deny"}});
        let rows = [
            ("all of it", deny(json!({})), deny(json!({})), vec![]),
            (
                "a block beside an invalid field",
                json!({"decision": "block", "reason": "x", "suppressOutput": "yes"}),
                json!({"decision": "block", "reason": "x"}),
                vec!["suppressOutput: "],
            ),
            (
                "a denial with a broken input",
                deny(json!({"updatedInput": "rm", "additionalContext": 5})),
                deny(json!({})),
                vec!["hookSpecificOutput.updatedInput: ", "hookSpecificOutput.additionalContext: "],
            ),
            (
                "a deny for the user",
                asked(json!({"behavior": "deny", "message": 5, "interrupt": true})),
                asked(json!({"behavior": "deny", "message": "", "interrupt": true})),
                vec!["hookSpecificOutput.decision.message: "],
            ),
            (
                "an allow for the user is parsed completely or not at all",
                asked(json!({"behavior": "allow", "updatedInput": 5})),
                json!({}),
                vec!["hookSpecificOutput.decision.updatedInput: "],
            ),
            ("no event name", nameless.clone(), nameless, vec!["hookSpecificOutput: "]),
            ("no object", json!({"hookSpecificOutput": 5}), json!({}), vec!["hookSpecificOutput: "]),
            (
                "a missing required field",
                json!({"hookSpecificOutput": {"hookEventName": "WorktreeCreate", "worktreePath": 5}}),
                json!({}),
                vec!["hookSpecificOutput.worktreePath: "],
            ),
        ];
        for (name, json, legible, errors) in rows {
            let (read, found) = parse_output(json);
            assert_eq!(read, legible, "{name}");
            assert_eq!(found.len(), errors.len(), "{name}: {found:?}");
            for (error, start) in found.iter().zip(errors) {
                assert!(error.starts_with(start), "{name}: {error}");
            }
        }
    }
}
