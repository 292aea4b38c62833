//! Settings that the host changes during the session, as an overlay over those it passed at the start. Pure.
//!
//! A key in the overlay replaces the whole value of the host's settings; null removes it, so that weaker sources apply
//! again. Restrictive permission keys from the start always remain: a host that changes one permission does not intend
//! to lift the others.

use serde_json::{Map, Value};

/// Adds changes to the overlay.
pub(crate) fn apply_changes(overlay: &mut Map<String, Value>, changes: Map<String, Value>) {
    overlay.extend(changes);
}

/// Restrictive keys under `permissions`.
const RESTRICTIVE_KEYS: &[&str] = &["deny", "ask", "disableBypassPermissionsMode", "disableAutoMode"];

/// The part of the start settings that remains in force under the overlay.
pub(crate) fn remaining_start_settings(
    mut start: Map<String, Value>,
    overlay: &Map<String, Value>,
) -> Map<String, Value> {
    start.retain(|key, value| match value {
        _ if !overlay.contains_key(key) => true,
        Value::Object(permissions) if key == "permissions" => {
            permissions.retain(|key, _| RESTRICTIVE_KEYS.contains(&key.as_str()));
            !permissions.is_empty()
        }
        _ => false,
    });
    start
}

/// The settings in the overlay, without removed keys.
pub(crate) fn overlay_settings(overlay: &Map<String, Value>) -> Map<String, Value> {
    overlay
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is not an object"),
        }
    }

    #[test]
    fn change_replaces_whole_keys_and_null_removes_them() {
        let rows = [
            ("nothing", json!({}), json!({"model": "m", "env": {"A": "1"}}), json!({})),
            ("another value", json!({"model": "n"}), json!({"env": {"A": "1"}}), json!({"model": "n"})),
            ("another object", json!({"env": {"B": "2"}}), json!({"model": "m"}), json!({"env": {"B": "2"}})),
            ("null", json!({"model": null}), json!({"env": {"A": "1"}}), json!({})),
            ("a new key", json!({"x": 1}), json!({"model": "m", "env": {"A": "1"}}), json!({"x": 1})),
        ];
        for (name, changes, under, over) in rows {
            let mut overlay = Map::new();
            apply_changes(&mut overlay, map(changes));
            let start = map(json!({"model": "m", "env": {"A": "1"}}));
            assert_eq!(
                (remaining_start_settings(start, &overlay), overlay_settings(&overlay)),
                (map(under), map(over)),
                "{name}"
            );
        }
    }

    #[test]
    fn restrictions_from_the_start_remain() {
        let start = map(json!({"permissions": {"allow": ["A"], "deny": ["D"], "ask": ["Q"]}}));
        let forbids = map(json!({"permissions": {"deny": ["D"], "ask": ["Q"]}}));
        for changes in [json!({"permissions": {"allow": ["B"]}}), json!({"permissions": null})] {
            assert_eq!(remaining_start_settings(start.clone(), &map(changes)), forbids);
        }
        let only_allows = map(json!({"permissions": {"allow": ["A"]}}));
        assert_eq!(remaining_start_settings(only_allows, &map(json!({"permissions": {}}))), Map::new());
    }

    #[test]
    fn later_changes_replace_earlier_ones() {
        let mut overlay = Map::new();
        apply_changes(&mut overlay, map(json!({"model": "a", "x": 1})));
        apply_changes(&mut overlay, map(json!({"model": null})));
        assert_eq!(overlay_settings(&overlay), map(json!({"x": 1})));
        apply_changes(&mut overlay, map(json!({"model": "b"})));
        assert_eq!(overlay_settings(&overlay), map(json!({"x": 1, "model": "b"})));
    }
}
