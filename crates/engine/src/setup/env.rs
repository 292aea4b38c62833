//! Reads environment variables of a session: flags and numbers.

use std::collections::BTreeMap;

use super::SetupError;

pub(super) type Env = BTreeMap<String, String>;

/// Interprets an environment variable as a boolean.
pub(super) fn is_env_set(env: &Env, name: &str) -> bool {
    env.get(name).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// Parses a number; `None` if the variable is unset or blank.
pub(super) fn parse_number(env: &Env, name: &str) -> Result<Option<u64>, SetupError> {
    let text = env.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
    let invalid = |_| SetupError::Invalid(format!("{name} must be a whole number."));
    text.map(|text| text.parse().map_err(invalid)).transpose()
}

/// Parses a number; `None` if the variable is unset. A blank value is an error.
pub(super) fn parse_non_blank_number(env: &Env, name: &str) -> Result<Option<u64>, SetupError> {
    env.get(name)
        .map(|text| text.trim().parse())
        .transpose()
        .map_err(|_| SetupError::Invalid(format!("{name} must be a whole number.")))
}
