//! Hidden characters: invisible ones, and ones that make the displayed text differ from what runs.

use whimbrel_wire::invisible::is_invisible;

/// Returns true if the text has a control character, a blank that bash does not treat as one, or an invisible
/// character.
pub(crate) fn has_hidden_character(text: &str) -> bool {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\n' || byte == b'\t') {
        return false;
    }
    text.chars().any(is_hidden)
}

fn is_hidden(character: char) -> bool {
    match character {
        ' ' | '\n' | '\t' => false,
        _ if character.is_control() || character.is_whitespace() => true,
        _ => is_invisible(character),
    }
}

#[cfg(test)]
mod tests {
    use super::has_hidden_character;

    #[test]
    fn hidden_characters_are_detected() {
        for text in ["ls\u{a0}-la", "ls\u{200b}", "a \u{202e} b", "a\rb", "a\u{1b}b", "a\u{2028}b", "a\u{0}"]
        {
            assert!(has_hidden_character(text), "{text:?}");
        }
        for text in ["ls -la", "a\tb\nc", "grüße", "日本", "✔"] {
            assert!(!has_hidden_character(text), "{text:?}");
        }
    }
}
