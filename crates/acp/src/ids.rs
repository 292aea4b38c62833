//! Ids of sessions and prompts.

/// A random id.
#[expect(
    clippy::disallowed_methods,
    reason = "a front end on the SDK makes the ids of its sessions and prompts"
)]
pub(crate) fn new_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}
