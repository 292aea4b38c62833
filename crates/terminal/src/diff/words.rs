//! Which words of a changed line changed. Pure.

use std::ops::Range;
use std::time::Duration;

use similar::{Algorithm, DiffTag, TextDiff};

const TIMEOUT: Duration = Duration::from_millis(20);
/// Lines beyond this length are not compared word by word.
const MAX_LINE_BYTES: usize = 1_000;

/// Byte ranges that changed in the old and the new line. Empty if the lines have too little in common for marks to help.
pub(super) fn changed_words(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let nothing = (Vec::new(), Vec::new());
    if old.len() > MAX_LINE_BYTES || new.len() > MAX_LINE_BYTES {
        return nothing;
    }
    let (old_words, new_words) = (split_words(old), split_words(new));
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(TIMEOUT)
        .diff_slices(&old_words, &new_words);
    let (mut old_ranges, mut new_ranges) = (Vec::new(), Vec::new());
    let mut common = 0;
    for change in diff.ops() {
        let (tag, old_range, new_range) = change.as_tag_tuple();
        if tag == DiffTag::Equal {
            common += old_words[old_range].iter().map(|word| word.trim().len()).sum::<usize>();
        } else {
            push_range(&mut old_ranges, bytes(&old_words, old_range));
            push_range(&mut new_ranges, bytes(&new_words, new_range));
        }
    }
    // Less than a third in common: the line was replaced.
    if common * 3 < old.trim().len().max(new.trim().len()) { nothing } else { (old_ranges, new_ranges) }
}

/// Splits a line into words, runs of blanks and single marks.
fn split_words(text: &str) -> Vec<&str> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            _ if is_word(first) => rest.find(|c| !is_word(c)),
            ' ' => rest.find(|c| c != ' '),
            _ => Some(first.len_utf8()),
        };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        words.push(word);
        rest = after;
    }
    words
}

fn bytes(words: &[&str], range: Range<usize>) -> Range<usize> {
    let length = |words: &[&str]| words.iter().map(|word| word.len()).sum::<usize>();
    let start = length(&words[..range.start]);
    start..start + length(&words[range])
}

fn push_range(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    if !range.is_empty() {
        ranges.push(range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_words_are_found() {
        let (old, new) = changed_words("let total = count(a, b);", "let total = count(a, c) + 1;");
        assert_eq!((old.len(), old[0].clone()), (1, 21..22));
        assert_eq!(new, [21..22, 23..27]);
    }

    #[test]
    fn replaced_lines_have_no_marks() {
        assert_eq!(changed_words("completely different", "something else here"), (vec![], vec![]));
    }
}
