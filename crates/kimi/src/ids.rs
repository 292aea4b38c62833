//! Random ids of requests, sessions and hooks.

use uuid::Uuid;

/// A new id in the usual form of a UUID.
#[expect(clippy::disallowed_methods, reason = "ids of this wire are made here; the engine makes its own")]
pub(crate) fn new_uuid() -> String {
    Uuid::new_v4().to_string()
}

/// A new id of twelve hexadecimal digits, as requests about hooks have.
pub(crate) fn new_short_id() -> String {
    new_uuid().chars().filter(char::is_ascii_hexdigit).take(12).collect()
}
