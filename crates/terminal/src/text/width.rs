//! Columns of text, by grapheme. Characters of ambiguous width take one column.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Number of columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { graphemes(text).map(UnicodeWidthStr::width).sum() }
}

/// What a person sees as one character, with everything that belongs to it.
pub(crate) fn graphemes(text: &str) -> impl Iterator<Item = &str> {
    text.graphemes(true)
}

/// True if terminals disagree on the width of a grapheme: joined emoji, flags, variation selectors, some scripts.
pub(crate) fn is_disputed(grapheme: &str) -> bool {
    grapheme.len() > 1
        && (width_by_characters(grapheme) != grapheme.width()
            || grapheme.contains(['\u{200d}', '\u{fe0f}'])
            || grapheme.starts_with(|first| ('\u{1f1e6}'..='\u{1f1ff}').contains(&first)))
}

/// The most columns that a terminal may give to a grapheme.
pub(crate) fn widest(grapheme: &str) -> usize {
    if grapheme.len() == 1 { 1 } else { grapheme.width().max(width_by_characters(grapheme)) }
}

fn width_by_characters(grapheme: &str) -> usize {
    grapheme.chars().filter_map(UnicodeWidthChar::width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_counts_columns_of_graphemes() {
        let rows = [("abc", 3), ("鷸鳥", 4), ("e\u{301}", 1), ("👨‍👩‍👧", 2), ("🇨🇭", 2), ("한글", 4), ("§±", 2)];
        for (text, expected) in rows {
            assert_eq!(width(text), expected, "{text}");
        }
    }

    #[test]
    fn joined_emoji_and_flags_are_disputed() {
        let rows =
            [("a", false), ("鷸", false), ("é", false), ("👨‍👩‍👧", true), ("🇨🇭", true), ("❤\u{fe0f}", true)];
        for (grapheme, expected) in rows {
            assert_eq!(is_disputed(grapheme), expected, "{grapheme}");
        }
    }
}
