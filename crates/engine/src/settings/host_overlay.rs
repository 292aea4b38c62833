//! Settings that the host changes while the session runs, pure. They lie over those it gave at the start.
//!
//! A key that the host names replaces the whole value that it had in the host's settings; null takes the key away there,
//! so that the weaker sources count again. One thing stays whatever the host names later: what it forbade at the start.
//! Whoever changes one permission does not mean to lift the others, and would not notice.

use serde_json::{Map, Value};

/// Adds changes to earlier ones.
pub fn apply_changes(overlay: &mut Map<String, Value>, changes: Map<String, Value>) {
    overlay.extend(changes);
}

/// What forbids something, under `permissions`.
const RESTRICTIVE_KEYS: &[&str] = &["deny", "ask", "disableBypassPermissionsMode", "disableAutoMode"];

/// What still counts of the settings given at the start.
pub fn remaining_start_settings(mut start: Map<String, Value>, overlay: &Map<String, Value>) -> Map<String, Value> {
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

/// What the changes themselves say.
pub fn overlay_settings(overlay: &Map<String, Value>) -> Map<String, Value> {
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
    fn a_change_replaces_whole_keys_and_null_takes_them_away() {
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
            assert_eq!((remaining_start_settings(start, &overlay), overlay_settings(&overlay)), (map(under), map(over)), "{name}");
        }
    }

    #[test]
    fn what_was_forbidden_at_the_start_stays_forbidden() {
        let start = map(json!({"permissions": {"allow": ["A"], "deny": ["D"], "ask": ["Q"]}}));
        let forbids = map(json!({"permissions": {"deny": ["D"], "ask": ["Q"]}}));
        for changes in [json!({"permissions": {"allow": ["B"]}}), json!({"permissions": null})] {
            assert_eq!(remaining_start_settings(start.clone(), &map(changes)), forbids);
        }
        let only_allows = map(json!({"permissions": {"allow": ["A"]}}));
        assert_eq!(remaining_start_settings(only_allows, &map(json!({"permissions": {}}))), Map::new());
    }

    #[test]
    fn later_changes_win_over_earlier_ones() {
        let mut overlay = Map::new();
        apply_changes(&mut overlay, map(json!({"model": "a", "x": 1})));
        apply_changes(&mut overlay, map(json!({"model": null})));
        assert_eq!(overlay_settings(&overlay), map(json!({"x": 1})));
        apply_changes(&mut overlay, map(json!({"model": "b"})));
        assert_eq!(overlay_settings(&overlay), map(json!({"x": 1, "model": "b"})));
    }
}
