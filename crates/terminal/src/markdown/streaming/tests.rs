use proptest::prelude::*;

use super::*;

const COLUMNS: usize = 60;

const SOURCES: [&str; 8] = [
    "# Title\n\nOne paragraph with *emphasis* and `code`\nover two lines.\n\nAnother one.",
    "- one\n- two\n  - nested\n  - again\n- three\n\nAfter the list.",
    "1. first\n\n   more of it\n2. second\n3. third",
    "Text\n```rust\nfn main() {\n    let x = 1;\n\n}\n```\nafter",
    "```\nnever closed\n# no heading\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\ndone",
    "> quote\n> goes on\n\n---\n\n<b>html</b>\n",
    "~~~python\ndef f():\n    '''text\n    more'''\n~~~\n\n    indented code\n\nend",
];

fn texts(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
}

fn streamed(pieces: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    let mut markdown = StreamingMarkdown::new(Theme::DARK);
    let mut lines = Vec::new();
    for piece in pieces {
        lines.extend(markdown.push(piece.as_ref(), COLUMNS));
        markdown.tail(COLUMNS);
    }
    lines.extend(markdown.finish(COLUMNS));
    texts(&lines)
}

#[test]
fn text_in_pieces_is_the_whole_text() {
    for source in SOURCES {
        let whole = texts(&render(source, COLUMNS, &Theme::DARK));
        let letters: Vec<String> = source.chars().map(String::from).collect();
        assert_eq!(streamed(&letters), whole, "{source}");
        assert_eq!(streamed(source.split_inclusive('\n')), whole, "{source}");
        assert_eq!(streamed([source]), whole, "{source}");
    }
}

#[test]
fn finished_blocks_are_handed_out_early() {
    let mut markdown = StreamingMarkdown::new(Theme::DARK);
    assert_eq!(texts(&markdown.push("# Title\n", COLUMNS)), ["Title"]);
    assert_eq!(texts(&markdown.push("one", COLUMNS)), [""; 0]);
    assert_eq!(texts(&markdown.tail(COLUMNS)), ["", "one"]);
    assert_eq!(texts(&markdown.push(" two\n\n", COLUMNS)), ["", "one two"]);
    assert_eq!(texts(&markdown.push("- a\n", COLUMNS)), [""; 0]);
    assert_eq!(texts(&markdown.push("- b\n", COLUMNS)), ["", "• a"]);
    assert_eq!(texts(&markdown.tail(COLUMNS)), ["• b"]);
    assert_eq!(texts(&markdown.push("\n```c\nint x;\nint", COLUMNS)), ["• b", "", "  int x;"]);
    assert_eq!(texts(&markdown.tail(COLUMNS)), ["  int"]);
    assert_eq!(texts(&markdown.finish(COLUMNS)), ["  int"]);
}

#[test]
fn open_marks_are_not_shown() {
    let rows = [("a **", "a "), ("a `", "a "), ("##", ""), ("a\n```", "a\n"), ("a b", "a b")];
    for (source, expected) in rows {
        assert_eq!(without_open_marks(source), expected, "{source}");
    }
}

proptest! {
    #[test]
    fn random_pieces_lose_no_letter(
        // No lone backticks: three of them would begin a fence, and the word behind it, its language, is not shown.
        words in proptest::collection::vec("(a|b c|\n|\n\n|# |- |1[.] |```\n|`c`|[*]{1,2}|> |[|]|\t|x{5})", 0..60)
    ) {
        let source = words.concat();
        let letters = |text: &str| text.chars().filter(char::is_ascii_alphabetic).collect::<String>();
        let joined = streamed(&words).concat();
        prop_assert_eq!(letters(&joined), letters(&source));
    }
}
