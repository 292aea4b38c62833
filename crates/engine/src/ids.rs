//! Names for new things: the only place that draws random numbers.
#![expect(clippy::disallowed_methods, reason = "drawing them is what this file is for")]

use uuid::Uuid;

/// A fresh UUID, for messages, sessions and questions.
pub fn new_uuid() -> String {
    Uuid::new_v4().hyphenated().to_string()
}

/// A short name for a background task: a letter for its kind and eight random digits.
pub fn new_task_id(kind: char) -> String {
    let digits = Uuid::new_v4().simple().to_string();
    format!("{kind}{}", &digits[..8])
}

/// A word that nobody can guess, in 64 signs that need no escaping.
pub fn new_secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
