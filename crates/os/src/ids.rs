//! Identifiers and secrets: the only module that draws random numbers.
#![expect(clippy::disallowed_methods, reason = "the only file that draws random numbers")]

use uuid::Uuid;

/// A random UUID for messages, sessions and requests.
pub fn new_uuid() -> String {
    Uuid::new_v4().hyphenated().to_string()
}

/// Id of a background task: a letter for its kind and eight random hex digits.
pub fn new_task_id(kind: char) -> String {
    let digits = Uuid::new_v4().simple().to_string();
    format!("{kind}{}", &digits[..8])
}

/// A secret of 64 hex digits.
pub fn new_secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
