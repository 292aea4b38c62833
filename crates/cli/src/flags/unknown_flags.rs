//! Flags that are not in the table: a typo of a user, or a flag of a newer SDK. Pure.

use super::flag::Flag;
use super::table::FLAGS;
use crate::caller::Caller;
use crate::official::{OfficialFlag, OfficialValue, Support, find_official_flag};
use crate::suggest::most_similar;

/// Handling of an unknown flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnknownFlag {
    /// The program does not start, with this error.
    Reject(String),
    /// The flag is ignored, with this warning.
    Ignore(String),
    /// A flag of the official program that changes nothing here.
    WithoutEffect {
        /// It takes a value.
        takes_value: bool,
        /// Says why it has no effect.
        warning: String,
    },
}

/// Parts of the names of flags that may restrict something. Ignoring such a flag could allow what it denies.
const RESTRICTIVE_PARTS: &[&str] = &[
    "permission",
    "disallow",
    "deny",
    "denied",
    "managed",
    "sandbox",
    "restrict",
    "safe",
    "strict",
    "bare",
    "block",
    "forbid",
    "disable",
    "exclude",
    "prevent",
    "protect",
    "guard",
    "isolat",
    "confine",
    "readonly",
    "refuse",
    "reject",
    "prohibit",
    "secur",
    "trust",
    "approv",
    "confirm",
];

/// Whole words of such names; as parts of other words they mean nothing.
const RESTRICTIVE_WORDS: &[&str] =
    &["no", "not", "never", "dont", "without", "only", "off", "ask", "lock", "locked"];

/// Similarity from which a flag is suggested.
const MIN_SIMILARITY: f64 = 0.8;

/// Classifies a flag that is not in the flag table:
/// 1. a flag of the official program is handled as its row says: rejected, or without effect;
/// 2. from a user any other is a mistake: rejected, with the most similar known name;
/// 3. from an SDK, one that may restrict something is rejected;
/// 4. from an SDK, any other is ignored with a warning, so that a newer SDK works.
pub(super) fn classify(spelled: &str, caller: Caller) -> UnknownFlag {
    if let Some(warning) = no_effect_warning(spelled) {
        let official = find_official_flag(spelled);
        let takes_value = official.is_some_and(|flag| flag.value == OfficialValue::Required);
        return UnknownFlag::WithoutEffect { takes_value, warning };
    }
    if let Some(OfficialFlag { support: Support::Refused(remedy), .. }) = find_official_flag(spelled) {
        return UnknownFlag::Reject(format!("{spelled} is not supported by whimbrel. {remedy}"));
    }
    match caller {
        Caller::User => UnknownFlag::Reject(match suggest_flag(spelled) {
            Some(known) => format!("{spelled} is not a flag of whimbrel. Did you mean --{known}?"),
            None => format!("{spelled} is not a flag of whimbrel. See whimbrel --help."),
        }),
        Caller::Sdk if may_restrict(spelled) => UnknownFlag::Reject(format!(
            "{spelled} is unknown to this version of whimbrel. It may restrict something, so it cannot be ignored: \
                remove it, or use a newer whimbrel."
        )),
        Caller::Sdk => {
            UnknownFlag::Ignore(format!("{spelled} is unknown to this version of whimbrel and was ignored."))
        }
    }
}

/// Returns the warning about a flag of the official program that changes nothing here.
pub(super) fn no_effect_warning(spelled: &str) -> Option<String> {
    match find_official_flag(spelled)?.support {
        Support::NoEffect(reason) => Some(format!("{spelled} has no effect: {reason}.")),
        Support::Supported | Support::Partly(_) | Support::Refused(_) => None,
    }
}

/// Returns whether a flag of this name may restrict something.
fn may_restrict(spelled: &str) -> bool {
    let name = spelled.to_ascii_lowercase();
    RESTRICTIVE_PARTS.iter().any(|part| name.contains(part))
        || split_words(spelled).iter().any(|word| RESTRICTIVE_WORDS.contains(&word.as_str()))
}

/// Splits a name into lower-case words, at punctuation and at capitals.
fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in name.chars() {
        if !character.is_alphanumeric() || character.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
    }
    words
}

/// Finds the most similar known name, if there is one.
fn suggest_flag(spelled: &str) -> Option<&'static str> {
    most_similar(spelled.trim_start_matches('-'), FLAGS.iter().flat_map(Flag::names), MIN_SIMILARITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typo_gets_the_most_similar_name() {
        let rows = [
            ("--modle", "--model"),
            ("--allowd-tools", "--allowed-tools"),
            ("--output-fromat", "--output-format"),
            ("--permision-mode", "--permission-mode"),
            ("--xyzzy", "--help"),
        ];
        for (given, expected) in rows {
            let UnknownFlag::Reject(text) = classify(given, Caller::User) else {
                panic!("{given} was accepted")
            };
            assert!(text.contains(given) && text.contains(expected), "{text}");
        }
    }

    #[test]
    fn unknown_sdk_flag_is_ignored_unless_it_may_restrict() {
        let rows = [
            ("--fancy-new-thing", true),
            ("--telemetry-endpoint", true),
            ("--managed-policy", false),
            ("--cloud", false),
            ("--deny-network", false),
            ("--sandboxMode", false),
            ("--restricted", false),
            ("--safe-mode", false),
            ("--noPermissionUpdates", false),
            ("--readonly", false),
            ("--read-only", false),
            ("--no-tools", false),
            ("--noTools", false),
            ("--tools-only", false),
            ("--disable-shell", false),
            ("--without_network", false),
            ("--notify-host", true),
            ("--task-label", true),
        ];
        for (given, ignored) in rows {
            assert_eq!(matches!(classify(given, Caller::Sdk), UnknownFlag::Ignore(_)), ignored, "{given}");
        }
    }
}
