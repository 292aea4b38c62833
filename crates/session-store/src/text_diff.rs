//! Diff of two texts and search for the most similar text.
//!
//! Uses single algorithms of the libraries: their general entry points would link all of them.

use std::hash::Hash;
use std::time::Instant;

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// Minimum similarity (Jaro, 0 to 1) of a match.
const MIN_SIMILARITY: f64 = 0.8;

/// Diffs two lists of lines. After the deadline the rest counts as changed.
pub fn diff_ops<T: Eq + Hash>(old: &[T], new: &[T], deadline: Instant) -> Vec<DiffOp> {
    let mut found = Compact::new(Replace::new(Capture::new()), old, new);
    match myers::diff_deadline(&mut found, old, 0..old.len(), new, 0..new.len(), Some(deadline)) {
        Ok(()) => found.into_inner().into_inner().into_ops(),
        Err(never) => match never {},
    }
}

/// Returns the most similar text, if it is similar enough.
pub fn closest_match<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = candidates.into_iter().map(|text| (strsim::jaro(wanted, text), text));
    let similar = scored.filter(|(score, _)| *score >= MIN_SIMILARITY);
    similar.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whimbrel_os::clock;

    #[test]
    fn the_closest_name_is_found_but_not_a_distant_one() {
        let names = ["lib.rs", "main.rs", "Cargo.toml"];
        assert_eq!(closest_match("mian.rs", names), Some("main.rs"));
        assert_eq!(closest_match("whimbrel", names), None);
    }

    #[test]
    fn unchanged_lines_are_equal_ops() {
        let deadline = clock::monotonic() + std::time::Duration::from_secs(60);
        let changed = diff_ops(&["a", "b", "c"], &["a", "x", "c"], deadline);
        let tags: Vec<_> = changed.iter().map(DiffOp::as_tag_tuple).collect();
        use similar::DiffTag::{Equal, Replace};
        assert_eq!(tags, [(Equal, 0..1, 0..1), (Replace, 1..2, 1..2), (Equal, 2..3, 2..3)]);
    }
}
