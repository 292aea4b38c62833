//! Boundaries of graphemes and words in a text, by byte offset.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// The boundary before an offset.
pub(super) fn previous_grapheme(text: &str, offset: usize) -> usize {
    let mut cursor = GraphemeCursor::new(offset, text.len(), true);
    cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

/// The boundary after an offset.
pub(super) fn next_grapheme(text: &str, offset: usize) -> usize {
    let mut cursor = GraphemeCursor::new(offset, text.len(), true);
    cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len())
}

/// The last boundary that is not after an offset.
pub(super) fn floor_grapheme(text: &str, offset: usize) -> usize {
    if is_boundary(text, offset) { offset } else { previous_grapheme(text, text.floor_char_boundary(offset)) }
}

/// The first boundary that is not before an offset.
pub(super) fn ceil_grapheme(text: &str, offset: usize) -> usize {
    if is_boundary(text, offset) { offset } else { next_grapheme(text, text.ceil_char_boundary(offset)) }
}

fn is_boundary(text: &str, offset: usize) -> bool {
    text.is_char_boundary(offset)
        && GraphemeCursor::new(offset, text.len(), true).is_boundary(text, 0).unwrap_or(true)
}

/// The start of the word before an offset. Words consist of letters, digits and underscores.
pub(super) fn word_left(text: &str, offset: usize) -> usize {
    let mut start = offset;
    let mut in_word = false;
    for (at, grapheme) in text[..offset].grapheme_indices(true).rev() {
        match (is_word(grapheme), in_word) {
            (false, true) => break,
            (is_word, _) => in_word |= is_word,
        }
        start = at;
    }
    start
}

/// The end of the word after an offset.
pub(super) fn word_right(text: &str, offset: usize) -> usize {
    let mut in_word = false;
    for (at, grapheme) in text[offset..].grapheme_indices(true) {
        match (is_word(grapheme), in_word) {
            (false, true) => return offset + at,
            (is_word, _) => in_word |= is_word,
        }
    }
    text.len()
}

/// The start of what stands between blanks before an offset.
pub(super) fn blank_left(text: &str, offset: usize) -> usize {
    let before = text[..offset].trim_end();
    before
        .char_indices()
        .rev()
        .find(|(_, character)| character.is_whitespace())
        .map_or(0, |(at, blank)| at + blank.len_utf8())
}

/// Returns whether a grapheme belongs to a word.
pub(super) fn is_word(grapheme: &str) -> bool {
    grapheme.chars().next().is_some_and(|character| character.is_alphanumeric() || character == '_')
}
