//! Random identifiers and secrets. `models` (retry jitter, ids that a provider omits) and the SDK (ids of its requests)
//! draw random numbers themselves.
#![expect(clippy::disallowed_methods, reason = "other crates draw random ids through this file")]

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
