//! The clock and random ids: the only file that reads them.

use std::time::{Instant, SystemTime};

use sha2::{Digest, Sha256};

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the host stamps what it stores")]
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "the host measures how long it takes")]
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

/// A random id, for what the engine names too.
#[expect(clippy::disallowed_methods, reason = "the host names sessions and messages")]
pub(crate) fn new_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// An id that sorts by time.
pub(crate) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// A secret of 256 random bits, as 64 digits.
#[expect(clippy::disallowed_methods, reason = "the ids are random numbers of the operating system")]
pub(crate) fn new_secret() -> String {
    // Two ids have 244 random bits; a third one makes it more than 256, and the hash spreads them.
    let mut hash = Sha256::new();
    for _ in 0..3 {
        hash.update(uuid::Uuid::new_v4().as_bytes());
    }
    to_hex(&hash.finalize())
}

/// SHA-256 of a text, as digits.
pub(crate) fn digest(text: &str) -> String {
    to_hex(&Sha256::digest(text.as_bytes()))
}

fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
