//! Keys that are almost known ones, pure. What stands under a misspelt key does nothing; where it was meant to forbid
//! something, that must not go without a word.
//!
//! Only where a guard could get lost: at the top (`permisions`), under `permissions` (`denny`, `Deny`) and under
//! `sandbox`. Unknown keys that look like nothing of ours are somebody else's, and none of our business.

use serde_json::{Map, Value};

use super::hooks::ValidationError;
use super::read::pointer_token;
use super::schema;

/// The objects whose keys are looked at.
const CHECKED_OBJECTS: &[&[&str]] =
    &[&[], &["permissions"], &["sandbox"], &["sandbox", "network"], &["sandbox", "filesystem"]];

/// What people write at the top although it belongs under `permissions`.
const MISPLACED: &[&str] = &["allow", "ask", "deny", "additionaldirectories", "defaultmode"];

/// Words of other tools, or of other places, for what we call otherwise.
const SYNONYMS: &[(&str, &str)] = &[
    ("allowedtools", "permissions.allow"),
    ("block", "permissions.deny"),
    ("disallow", "permissions.deny"),
    ("disallowedtools", "permissions.deny"),
    ("forbid", "permissions.deny"),
];

/// What is said about keys that are almost known ones.
pub(super) fn find_typos(values: &Map<String, Value>) -> Vec<ValidationError> {
    let mut flaws = Vec::new();
    for place in CHECKED_OBJECTS {
        let Some(object) = object_at(values, place) else { continue };
        let pointer: String = place.iter().map(|key| pointer_token(key)).collect();
        for key in object.keys().filter(|key| !schema::is_known_key(place, key)) {
            if let Some(meant) = suggest_key(place, key) {
                let cause = format!("is not a known key, so that it does nothing; perhaps {meant} is meant");
                flaws.push(ValidationError { pointer: format!("{pointer}{}", pointer_token(key)), cause, is_critical: false });
            }
        }
    }
    flaws
}

fn object_at<'a>(values: &'a Map<String, Value>, place: &[&str]) -> Option<&'a Map<String, Value>> {
    place.iter().try_fold(values, |object, key| object.get(*key)?.as_object())
}

/// The key that is most like this one, with dots between its parts, if one is like it at all.
fn suggest_key(place: &[&str], key: &str) -> Option<String> {
    let plain = normalize_key(key);
    if place.is_empty() && MISPLACED.contains(&plain.as_str()) {
        let known = schema::critical_keys(&["permissions"]).find(|known| self::normalize_key(known) == plain)?;
        return Some(format!("permissions.{known}"));
    }
    if matches!(place, [] | ["permissions"])
        && let Some((_, known)) = SYNONYMS.iter().find(|(word, _)| *word == plain)
    {
        return Some((*known).to_owned());
    }
    let distance = |known: &str| strsim::osa_distance(&plain, &self::normalize_key(known));
    let alike = schema::critical_keys(place).filter(|known| is_similar(&plain, &self::normalize_key(known)));
    let nearest = alike.min_by_key(|known| distance(known))?;
    Some(place.iter().copied().chain([nearest]).collect::<Vec<_>>().join("."))
}

/// Whether a key is a slip away from a known one, or another form of the word: `denied`, `denies`.
fn is_similar(key: &str, known: &str) -> bool {
    let slips = if known.len() < 4 { 1 } else { 2 };
    let stem = known.len() >= 4 && key.starts_with(&known[..known.len() - 1]);
    strsim::osa_distance(key, known) <= slips || stem && key.len() <= known.len() + 3
}

/// A key as it sounds: without case, blanks, dashes and underscores.
fn normalize_key(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_that_is_almost_a_guard_is_told_with_the_one_that_is_meant() {
        let rows = [
            ("a letter less", json!({"permisions": {}}), "/permisions", "permissions"),
            (
                "a letter more",
                json!({"permissions": {"denny": []}}),
                "/permissions/denny",
                "permissions.deny",
            ),
            ("another case", json!({"permissions": {"Deny": []}}), "/permissions/Deny", "permissions.deny"),
            ("a plural", json!({"permissions": {"denies": []}}), "/permissions/denies", "permissions.deny"),
            ("swapped letters", json!({"permissions": {"aks": []}}), "/permissions/aks", "permissions.ask"),
            (
                "a participle",
                json!({"permissions": {"allowed": []}}),
                "/permissions/allowed",
                "permissions.allow",
            ),
            ("a singular", json!({"hook": {}}), "/hook", "hooks"),
            ("at the wrong place", json!({"deny": ["Bash"]}), "/deny", "permissions.deny"),
            (
                "an option's name",
                json!({"disallowedTools": ["Bash"]}),
                "/disallowedTools",
                "permissions.deny",
            ),
            ("another word", json!({"permissions": {"block": []}}), "/permissions/block", "permissions.deny"),
            ("in another style", json!({"default_mode": "plan"}), "/default_mode", "permissions.defaultMode"),
            (
                "deep in the sandbox",
                json!({"sandbox": {"filesystem": {"denyreads": []}}}),
                "/sandbox/filesystem/denyreads",
                "sandbox.filesystem.denyRead",
            ),
        ];
        for (name, value, pointer, meant) in rows {
            let flaws = find_typos(value.as_object().unwrap());
            let [flaw] = &flaws[..] else { panic!("{name}: {flaws:?}") };
            assert_eq!((flaw.pointer.as_str(), flaw.is_critical), (pointer, false), "{name}");
            assert!(flaw.cause.ends_with(&format!("perhaps {meant} is meant")), "{name}: {}", flaw.cause);
        }
    }

    #[test]
    fn known_keys_and_those_of_somebody_else_are_left_alone() {
        let value = json!({
            "permissions": {"deny": [], "denyInsteadOfPrompting": true, "later": 1}, "hooks": {}, "env": {},
            "model": "m", "tips": {}, "theme": "x", "allowedMcpServers": [], "deniedMcpServers": [],
            "enabledPlugins": {}, "spinnerTipsEnabled": true, "sandbox": {"network": {"allowUnixSockets": []}},
        });
        assert_eq!(find_typos(value.as_object().unwrap()), []);
    }
}
