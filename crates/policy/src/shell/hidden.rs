//! Characters that are not seen, or that make what is seen differ from what runs.

/// Whether the text has a control character, a blank that is not one to bash, or a mark without width.
pub(super) fn found(text: &str) -> bool {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\n' || byte == b'\t') {
        return false;
    }
    text.chars().any(is_hidden)
}

fn is_hidden(character: char) -> bool {
    match character {
        ' ' | '\n' | '\t' => false,
        _ if character.is_control() || character.is_whitespace() => true,
        _ => matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}'
                | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}'
                | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::found;

    #[test]
    fn what_is_hidden() {
        for text in ["ls\u{a0}-la", "ls\u{200b}", "a \u{202e} b", "a\rb", "a\u{1b}b", "a\u{2028}b", "a\u{0}"]
        {
            assert!(found(text), "{text:?}");
        }
        for text in ["ls -la", "a\tb\nc", "grüße", "日本", "✔"] {
            assert!(!found(text), "{text:?}");
        }
    }
}
