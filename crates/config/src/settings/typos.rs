//! Detects misspelled keys. Pure. A misspelled key has no effect, which must be reported if it was meant to restrict
//! something.
//!
//! Only keys are checked where a restriction could be lost: top-level keys (`permisions`), keys under `permissions`
//! (`denny`, `Deny`) and under `sandbox`. Other unknown keys may belong to another program.

use serde_json::{Map, Value};

use crate::settings::document::pointer_token;
use crate::settings::hooks::ValidationError;
use crate::settings::schema;

/// Objects whose keys are checked.
const CHECKED_OBJECTS: &[&[&str]] =
    &[&[], &["permissions"], &["sandbox"], &["sandbox", "network"], &["sandbox", "filesystem"]];

/// Keys of `permissions` that are often written at the top level.
const MISPLACED: &[&str] = &["allow", "ask", "deny", "additionaldirectories", "defaultmode"];

/// Names used by other tools or options.
const SYNONYMS: &[(&str, &str)] = &[
    ("allowedtools", "permissions.allow"),
    ("block", "permissions.deny"),
    ("disallow", "permissions.deny"),
    ("disallowedtools", "permissions.deny"),
    ("forbid", "permissions.deny"),
];

/// Reports unknown keys that resemble a known one.
pub(super) fn find_typos(values: &Map<String, Value>) -> Vec<ValidationError> {
    let mut errors = Vec::new();
    for path in CHECKED_OBJECTS {
        let Some(object) = object_at(values, path) else { continue };
        let pointer: String = path.iter().map(|key| pointer_token(key)).collect();
        for key in object.keys().filter(|key| !schema::is_known_key(path, key)) {
            if let Some(suggestion) = suggest_key(path, key) {
                let cause = format!("is not a known key and has no effect; did you mean {suggestion}?");
                errors.push(ValidationError {
                    pointer: format!("{pointer}{}", pointer_token(key)),
                    cause,
                    is_critical: false,
                });
            }
        }
    }
    errors
}

fn object_at<'a>(values: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Map<String, Value>> {
    path.iter().try_fold(values, |object, key| object.get(*key)?.as_object())
}

/// The known key that is most similar, as a dotted path.
fn suggest_key(path: &[&str], key: &str) -> Option<String> {
    let normalized = normalize_key(key);
    if path.is_empty() && MISPLACED.contains(&normalized.as_str()) {
        let known =
            schema::critical_keys(&["permissions"]).find(|known| normalize_key(known) == normalized)?;
        return Some(format!("permissions.{known}"));
    }
    if matches!(path, [] | ["permissions"])
        && let Some((_, known)) = SYNONYMS.iter().find(|(word, _)| *word == normalized)
    {
        return Some((*known).to_owned());
    }
    let distance = |known: &str| strsim::osa_distance(&normalized, &normalize_key(known));
    let similar = schema::critical_keys(path).filter(|known| is_similar(&normalized, &normalize_key(known)));
    let nearest = similar.min_by_key(|known| distance(known))?;
    Some(path.iter().copied().chain([nearest]).collect::<Vec<_>>().join("."))
}

/// Whether a key differs by a typo or an inflection (`denied`, `denies`) from a known one.
fn is_similar(key: &str, known: &str) -> bool {
    let max_distance = if known.len() < 4 { 1 } else { 2 };
    let stem = known.len() >= 4 && key.starts_with(&known[..known.len() - 1]);
    strsim::osa_distance(key, known) <= max_distance || stem && key.len() <= known.len() + 3
}

/// Ignores case, spaces, dashes and underscores.
fn normalize_key(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn misspelled_restrictive_key_is_reported_with_suggestion() {
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
        for (name, value, pointer, suggestion) in rows {
            let errors = find_typos(value.as_object().unwrap());
            let [error] = &errors[..] else { panic!("{name}: {errors:?}") };
            assert_eq!((error.pointer.as_str(), error.is_critical), (pointer, false), "{name}");
            assert!(error.cause.ends_with(&format!("did you mean {suggestion}?")), "{name}: {}", error.cause);
        }
    }

    #[test]
    fn known_and_foreign_keys_are_not_reported() {
        let value = json!({
            "permissions": {"deny": [], "denyInsteadOfPrompting": true, "later": 1}, "hooks": {}, "env": {},
            "model": "m", "tips": {}, "theme": "x", "allowedMcpServers": [], "deniedMcpServers": [],
            "enabledPlugins": {}, "spinnerTipsEnabled": true, "sandbox": {"network": {"allowUnixSockets": []}},
        });
        assert_eq!(find_typos(value.as_object().unwrap()), []);
    }
}
