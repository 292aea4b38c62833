//! Diff of two texts.
//!
//! Uses a single algorithm of the library: its general entry point would link all of them.

use std::hash::Hash;
use std::time::Instant;

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// Diffs two lists of lines. After the deadline the rest counts as changed.
pub fn diff_ops<T: Eq + Hash>(old: &[T], new: &[T], deadline: Instant) -> Vec<DiffOp> {
    let mut found = Compact::new(Replace::new(Capture::new()), old, new);
    match myers::diff_deadline(&mut found, old, 0..old.len(), new, 0..new.len(), Some(deadline)) {
        Ok(()) => found.into_inner().into_inner().into_ops(),
        Err(never) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whimbrel_os::clock;

    #[test]
    fn unchanged_lines_are_equal_ops() {
        let deadline = clock::monotonic() + std::time::Duration::from_secs(60);
        let changed = diff_ops(&["a", "b", "c"], &["a", "x", "c"], deadline);
        let tags: Vec<_> = changed.iter().map(DiffOp::as_tag_tuple).collect();
        use similar::DiffTag::{Equal, Replace};
        assert_eq!(tags, [(Equal, 0..1, 0..1), (Replace, 1..2, 1..2), (Equal, 2..3, 2..3)]);
    }
}
