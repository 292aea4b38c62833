//! Small texts: fenced blocks, cut lines, and text as content. Pure.

use agent_client_protocol::v1::schema::{ContentBlock, TextContent, ToolCallContent};

/// Text as content of a tool call, rendered as Markdown by the editor.
pub(crate) fn text_content(text: impl Into<String>) -> ToolCallContent {
    ContentBlock::Text(TextContent::new(text)).into()
}

/// Text that is no Markdown as content of a tool call.
pub(crate) fn fenced_content(text: &str, language: &str) -> ToolCallContent {
    text_content(fence(text, language))
}

/// Puts text into a fenced block, whose fence is longer than any in the text.
pub(crate) fn fence(text: &str, language: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(3.max(longest + 1));
    let line_end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("{fence}{language}\n{text}{line_end}{fence}")
}

/// The first line of a text that is not blank.
pub(crate) fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// The end of a text, at most this many bytes.
pub(crate) fn tail(text: &str, max_bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max_bytes))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_is_longer_than_any_in_the_text() {
        assert_eq!(fence("a", "console"), "```console\na\n```");
        assert_eq!(fence("a\n", ""), "```\na\n```");
        assert_eq!(fence("x ````y", ""), "`````\nx ````y\n`````");
    }

    #[test]
    fn tail_starts_at_a_character() {
        assert_eq!((tail("aüb", 2), tail("abc", 9)), ("b", "abc"));
    }
}
