//! Prompt cache breakpoints (`cache_control`): which blocks of a request carry one.

use whimbrel_wire::Role;

/// Cache breakpoint: asks the provider to cache everything up to and including its block.
pub(crate) const CACHE_CONTROL: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Copies the end of a conversation, whose last message is still open, with breakpoints at its end and at the end of
/// the previous request. An end that is not the user's gets none. The copy has room for the closing brackets.
pub(crate) fn mark_tail(tail: &[u8], last_request_end: Option<usize>, last_role: Option<Role>) -> Vec<u8> {
    let mut marked = Vec::with_capacity(tail.len() + 2 * CACHE_CONTROL.len() + 2);
    let mut from = 0;
    let end = tail.len();
    for breakpoint in last_request_end.into_iter().chain([end]).filter(|at| *at > 0) {
        // A request that is sent again ends where the previous one did.
        if breakpoint == end && last_role != Some(Role::User) || breakpoint <= from + 1 {
            continue;
        }
        // The breakpoint goes inside the block that ends here, before its closing brace.
        marked.extend_from_slice(&tail[from..breakpoint - 1]);
        marked.extend_from_slice(CACHE_CONTROL.as_bytes());
        from = breakpoint - 1;
    }
    marked.extend_from_slice(&tail[from..]);
    marked
}

/// Adds a breakpoint to the last block of the system prompt. Each block is a JSON object.
pub(crate) fn mark_last_system_block(blocks: &mut [String]) {
    if let Some(block) = blocks.last_mut() {
        block.insert_str(block.len() - 1, CACHE_CONTROL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_gets_one_breakpoint() {
        let tail = br#"{"role":"user","content":[{"a":1},{"b":2}"#;
        let first_end = tail.len() - r#",{"b":2}"#.len();
        for (last_request_end, last_role, count) in [
            (None, Role::User, 1),
            (Some(first_end), Role::User, 2),
            (Some(first_end), Role::Assistant, 1),
            (Some(tail.len()), Role::User, 1),
        ] {
            let marked = String::from_utf8(mark_tail(tail, last_request_end, Some(last_role))).unwrap();
            assert_eq!(marked.matches(CACHE_CONTROL).count(), count, "{last_request_end:?}: {marked}");
        }
    }
}
