//! Tests of the input line.

use super::*;

/// Makes an editor from a text whose caret is marked by `|`.
fn editor(marked: &str) -> Editor {
    let caret = marked.find('|').unwrap();
    let mut editor = Editor::default();
    editor.set_inline_text(&marked.replacen('|', "", 1), caret);
    editor
}

fn marked(editor: &Editor) -> String {
    let mut text = editor.text().to_owned();
    text.insert(editor.caret(), '|');
    text
}

#[test]
fn edits_change_text_and_caret() {
    use Edit::*;
    let rows: [(&str, &str, Edit, &str); 22] = [
        ("left", "ab|c", DeleteLeft, "a|c"),
        ("left at start", "|abc", DeleteLeft, "|abc"),
        ("right", "a|bc", DeleteRight, "a|c"),
        ("family emoji", "a👨‍👩‍👧|b", DeleteLeft, "a|b"),
        ("flag", "🇩🇪🇫🇷|", DeleteLeft, "🇩🇪|"),
        ("combining mark", "e\u{301}|x", DeleteLeft, "|x"),
        ("Hangul jamo", "\u{1112}\u{1161}\u{11ab}|", DeleteLeft, "|"),
        ("word left", "one two-three|", KillWordLeft, "one two-|"),
        ("word left over punctuation", "one two... |", KillWordLeft, "one |"),
        ("word right", "|one two", KillWordRight, "| two"),
        ("to blank", "one two-three|", KillToBlankLeft, "one |"),
        ("to blank over blanks", "one two  |", KillToBlankLeft, "one |"),
        ("to line start", "a\nbcd|e", KillToLineStart, "a\n|e"),
        ("to line start at one", "a\n|e", KillToLineStart, "a|e"),
        ("to line end", "a|bc\nd", KillToLineEnd, "a|\nd"),
        ("to line end at one", "a|\nd", KillToLineEnd, "a|d"),
        ("transpose", "ab|cd", Transpose, "acb|d"),
        ("transpose at end", "abc|", Transpose, "acb|"),
        ("transpose at start", "|ab", Transpose, "|ab"),
        ("transpose across lines", "a\n|b", Transpose, "a\n|b"),
        ("yank nothing", "a|b", Yank, "a|b"),
        ("undo nothing", "a|b", Redo, "a|b"),
    ];
    for (name, before, edit, after) in rows {
        let mut editor = editor(before);
        editor.edit(edit);
        assert_eq!(marked(&editor), after, "{name}");
    }
}

#[test]
fn movements_step_over_graphemes_words_and_lines() {
    use Movement::*;
    let rows: [(&str, &str, Movement, &str); 9] = [
        ("left over a flag", "a🇩🇪|", Left, "a|🇩🇪"),
        ("right over a mark", "|e\u{301}x", Right, "e\u{301}|x"),
        ("word left", "foo bar|", WordLeft, "foo |bar"),
        ("word right", "|foo bar", WordRight, "foo| bar"),
        ("word right from a blank", "foo| bar baz", WordRight, "foo bar| baz"),
        ("line start", "a\nbc|", LineStart, "a\n|bc"),
        ("line end", "|ab\nc", LineEnd, "ab|\nc"),
        ("start", "a\nb|", Start, "|a\nb"),
        ("end", "|a\nb", End, "a\nb|"),
    ];
    for (name, before, movement, after) in rows {
        let mut editor = editor(before);
        editor.move_caret(movement);
        assert_eq!(marked(&editor), after, "{name}");
    }
}

#[test]
fn yank_restores_a_chain_of_kills_exactly() {
    let mut editor = editor("one  two\tthree|");
    editor.edit(Edit::KillToBlankLeft);
    editor.edit(Edit::KillToBlankLeft);
    assert_eq!(marked(&editor), "one  |");
    editor.edit(Edit::Yank);
    assert_eq!(marked(&editor), "one  two\tthree|");
}

#[test]
fn yank_previous_replaces_what_was_yanked() {
    let mut editor = editor("one two|");
    editor.edit(Edit::KillWordLeft);
    editor.move_caret(Movement::Start);
    editor.edit(Edit::KillToLineEnd);
    editor.edit(Edit::Yank);
    editor.edit(Edit::YankPrevious);
    assert_eq!(marked(&editor), "two|");
    editor.edit(Edit::YankPrevious);
    assert_eq!(marked(&editor), "one |");
}

#[test]
fn undo_takes_back_words_and_redo_brings_them_again() {
    let mut editor = Editor::default();
    for character in ["o", "n", "e", " ", "t", "w", "o"] {
        editor.insert(character);
    }
    editor.edit(Edit::Undo);
    assert_eq!(editor.text(), "one ");
    editor.edit(Edit::Undo);
    assert_eq!(editor.text(), "");
    editor.edit(Edit::Redo);
    editor.edit(Edit::Redo);
    assert_eq!(editor.text(), "one two");
    editor.edit(Edit::Undo);
    editor.insert("!");
    editor.edit(Edit::Redo);
    assert_eq!(editor.text(), "one !");
}

#[test]
fn long_paste_is_one_unit_and_its_bytes_are_unchanged() {
    let pasted = "\tcolumn\n".repeat(240) + "last, without a newline";
    let mut editor = editor("before |after");
    editor.paste(&pasted.replace('\n', "\r\n"));
    let layout = Layout::new(&editor, 80);
    assert_eq!(layout.rows[0].text(), "before [pasted 241 lines]after");
    assert_eq!(editor.expanded_text(), format!("before {pasted}after"));
    editor.edit(Edit::DeleteLeft);
    assert_eq!(editor.text(), "before after");
    editor.edit(Edit::Undo);
    assert_eq!(editor.expanded_text(), format!("before {pasted}after"));
}

#[test]
fn short_paste_is_inserted_as_text() {
    let mut editor = Editor::default();
    editor.paste("a\r\nb\tc");
    assert_eq!(editor.text(), "a\nb\tc");
    let line = "x".repeat(1001);
    editor.clear();
    editor.paste(&line);
    assert_eq!(Layout::new(&editor, 80).rows[0].text(), "[pasted 1001 characters]");
}

#[test]
fn text_cannot_imitate_an_attachment() {
    let mut editor = Editor::default();
    editor.paste("long\n".repeat(20).as_str());
    editor.insert("\u{100000}");
    assert_eq!(editor.expanded_text(), format!("{}\u{fffd}", "long\n".repeat(20)));
}

#[test]
fn pictures_are_numbered_and_split_the_text() {
    let picture = |data: &str| Picture { media_type: "image/png".into(), data: data.into() };
    let mut editor = editor("see |");
    editor.attach(Attachment::Picture(picture("A")));
    editor.insert(" and ");
    editor.attach(Attachment::Picture(picture("B")));
    assert_eq!(editor.expanded_text(), "see [picture 1] and [picture 2]");
    let text = |text: &str| Piece::Text(text.into());
    assert_eq!(
        editor.pieces(),
        [text("see "), Piece::Picture(1, picture("A")), text(" and "), Piece::Picture(2, picture("B"))]
    );
}

#[test]
fn backslash_continues_the_line() {
    let mut editor = editor("one\\|");
    assert!(editor.continue_line());
    assert_eq!(marked(&editor), "one\n|");
    assert!(!editor.continue_line());
}

#[test]
fn moving_by_rows_keeps_the_column() {
    let mut editor = editor("long line here\nab\nanother line|");
    assert!(editor.move_up(80) && editor.move_up(80));
    assert_eq!(marked(&editor), "long line her|e\nab\nanother line".replace("her|e", "he|re"));
    assert!(!editor.move_up(80));
    assert!(editor.move_down(80) && editor.move_down(80));
    assert_eq!(marked(&editor), "long line here\nab\nanother line|");
    assert!(!editor.move_down(80));
}

#[test]
fn moving_down_never_gets_stuck_at_a_wrapped_row() {
    let text = "word ".repeat(40);
    for width in 2..30 {
        let mut editor = editor(&format!("|{text}日本語の長い行がここにあります"));
        let rows = Layout::new(&editor, width).rows.len();
        editor.move_caret(Movement::LineEnd);
        let mut moved = 0;
        while editor.move_up(width) {
            moved += 1;
            assert!(moved <= rows, "width {width}");
        }
        let mut down = 0;
        while editor.move_down(width) {
            down += 1;
            assert!(down <= rows, "width {width}");
        }
        assert!(down + 1 >= Layout::new(&editor, width).rows.len() - 1, "width {width}: {down} of {rows}");
    }
}
