//! Unread live output. While a frame of a call is unread, later output of the call is joined to it, so that a slow
//! reader costs bounded memory and does not slow the engine down.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use whimbrel_wire::message::ToolOutputChunk;

/// Text that is kept for each call; older text is left out and counted.
const MAX_UNREAD_TEXT: usize = 64 * 1024;

/// A queued frame, empty once it was read.
type SharedChunk = Mutex<Option<Box<ToolOutputChunk>>>;

/// The unread frames, by call.
#[derive(Default)]
pub(crate) struct UnreadOutputs(HashMap<String, Weak<SharedChunk>>);

/// A queued frame, to which more output is joined until it is read.
pub(crate) struct UnreadOutput(Arc<SharedChunk>);

impl UnreadOutputs {
    /// Joins output to the unread frame of its call. Returns a frame for the queue if there is none.
    pub(crate) fn add(&mut self, chunk: Box<ToolOutputChunk>) -> Option<UnreadOutput> {
        let unread = self.0.get(&chunk.tool_use_id).and_then(Weak::upgrade);
        if let Some(unread) = unread
            && let Some(earlier) = unread.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            join(earlier, *chunk);
            return None;
        }
        self.0.retain(|_, unread| unread.strong_count() > 0);
        let call = chunk.tool_use_id.clone();
        let output = UnreadOutput(Arc::new(Mutex::new(Some(chunk))));
        self.0.insert(call, Arc::downgrade(&output.0));
        Some(output)
    }
}

impl UnreadOutput {
    /// Takes the frame; later output is queued anew.
    pub(crate) fn take(self) -> Option<Box<ToolOutputChunk>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Appends the text of a later frame. Text before a gap, or beyond the limit, counts as omitted.
fn join(earlier: &mut ToolOutputChunk, later: ToolOutputChunk) {
    if later.omitted_bytes > 0 {
        earlier.omitted_bytes += earlier.text.len() as u64 + later.omitted_bytes;
        earlier.text.clear();
    }
    earlier.task_id = later.task_id.or(earlier.task_id.take());
    earlier.text.push_str(&later.text);
    let excess = earlier.text.len().saturating_sub(MAX_UNREAD_TEXT);
    let excess = earlier.text.ceil_char_boundary(excess);
    earlier.text.drain(..excess);
    earlier.omitted_bytes += excess as u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(call: &str, omitted_bytes: u64, text: &str) -> Box<ToolOutputChunk> {
        let (tool_use_id, text) = (call.to_owned(), text.to_owned());
        Box::new(ToolOutputChunk { tool_use_id, omitted_bytes, text, ..ToolOutputChunk::default() })
    }

    #[test]
    fn output_is_joined_until_it_is_read() {
        let mut unread = UnreadOutputs::default();
        let a = unread.add(chunk("a", 0, "one ")).unwrap();
        let b = unread.add(chunk("b", 0, "other")).unwrap();
        let later = ToolOutputChunk { task_id: Some("task".into()), ..*chunk("a", 0, "two") };
        assert!(unread.add(Box::new(later.clone())).is_none());
        assert_eq!(a.take(), Some(Box::new(ToolOutputChunk { text: "one two".into(), ..later })));
        assert_eq!(b.take(), Some(chunk("b", 0, "other")));
        assert_eq!(unread.add(chunk("a", 0, "three")).unwrap().take(), Some(chunk("a", 0, "three")));
        assert_eq!(unread.0.len(), 1, "calls that were read are forgotten");
    }

    #[test]
    fn text_before_a_gap_and_beyond_the_limit_is_counted() {
        let long = "ü".repeat(MAX_UNREAD_TEXT / 2);
        let rows = [
            ("a gap", chunk("a", 0, "old"), chunk("a", 10, "new"), chunk("a", 13, "new")),
            ("an earlier gap", chunk("a", 10, "old "), chunk("a", 0, "new"), chunk("a", 10, "old new")),
            ("the limit", chunk("a", 1, "abc"), chunk("a", 0, &long), chunk("a", 4, &long)),
            (
                "a whole character",
                chunk("a", 0, &long),
                chunk("a", 0, "a"),
                chunk("a", 2, &format!("{}a", &long[2..])),
            ),
        ];
        for (name, mut earlier, later, expected) in rows {
            join(&mut earlier, *later);
            assert_eq!(earlier, expected, "{name}");
        }
    }
}
