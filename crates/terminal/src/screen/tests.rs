use proptest::prelude::*;

use super::emulator::Emulator;
use super::*;
use crate::text::{Flow, Line};

const SIZE: Size = Size { columns: 40, rows: 10 };

fn writer(size: Size) -> FrameWriter {
    FrameWriter::new(size, ColorLevel::True, Reflow::Yes)
}

fn lines(texts: &[&str]) -> Vec<Line> {
    texts.iter().map(|text| Line::plain(text)).collect()
}

fn live(texts: &[&str]) -> Live {
    let last = texts.len().saturating_sub(1);
    Live { lines: lines(texts), cursor: (!texts.is_empty()).then_some((last, 2)) }
}

/// Rows up to the last one that is not blank.
fn without_blank_end(mut rows: Vec<String>) -> Vec<String> {
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

#[test]
fn finished_lines_stand_above_the_live_area_once() {
    for mut emulator in Emulator::both(SIZE) {
        let mut writer = writer(SIZE);
        emulator.write(b"$ whimbrel\r\n");
        let mut expected = vec!["$ whimbrel".to_owned()];
        for number in 0..500 {
            let text = format!("line {number}");
            emulator.write(&writer.frame(&lines(&[&text]), &live(&["status", "> input"])));
            expected.push(text);
        }
        expected.extend(["status".to_owned(), "> input".to_owned()]);
        assert_eq!(without_blank_end(emulator.rows()), expected);
    }
}

#[test]
fn live_area_grows_and_shrinks_in_place() {
    for mut emulator in Emulator::both(SIZE) {
        let mut writer = writer(SIZE);
        let frames: [&[&str]; 5] = [
            &["> a"],
            &["one", "two", "three", "> ab"],
            &["one", "> abc"],
            &["1", "2", "3", "4", "5", "> x"],
            &["> y"],
        ];
        for texts in frames {
            emulator.write(&writer.frame(&[], &live(texts)));
            assert_eq!(without_blank_end(emulator.rows()), texts);
            assert_eq!(emulator.cursor(), (texts.len() - 1, 2));
        }
    }
}

#[test]
fn live_area_taller_than_the_screen_loses_its_top() {
    for mut emulator in Emulator::both(SIZE) {
        let mut writer = writer(SIZE);
        let texts: Vec<String> = (0..15).map(|number| format!("row {number}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        emulator.write(&writer.frame(&[], &live(&texts)));
        assert_eq!(without_blank_end(emulator.rows()), texts[5..]);
        assert_eq!(emulator.cursor(), (9, 2));
    }
}

#[test]
fn unchanged_live_area_writes_nothing() {
    let mut writer = writer(SIZE);
    writer.frame(&[], &live(&["status", "> input"]));
    assert_eq!(writer.frame(&[], &live(&["status", "> input"])), b"");
}

#[test]
fn a_typed_letter_writes_little() {
    let mut writer = writer(SIZE);
    let input = |text: &str| Live { lines: lines(&[text, "status"]), cursor: Some((0, text.len())) };
    writer.frame(&[], &input("> abc"));
    let bytes = String::from_utf8(writer.frame(&[], &input("> abcd"))).unwrap();
    assert_eq!(bytes, "\x1b[?2026h\x1b[?7l\x1b[6Gd\x1b[?7h\x1b[7G\x1b[?2026l");
}

/// tmux counts cells that are erased behind a text as part of the row, and breaks such rows at a resize.
#[test]
fn rows_are_erased_before_they_become_shorter() {
    let mut writer = writer(SIZE);
    writer.frame(&[], &live(&["a long row", "> "]));
    let bytes = String::from_utf8(writer.frame(&[], &live(&["short", "> "]))).unwrap();
    assert!(bytes.contains("\r\x1b[Kshort"), "{bytes:?}");
    let bytes = String::from_utf8(writer.frame(&lines(&["done"]), &live(&["x", "> "]))).unwrap();
    assert!(bytes.contains("done\r\n") && !bytes.contains("done\x1b[K"), "{bytes:?}");
}

#[test]
fn finished_text_is_one_logical_line() {
    let [_, mut emulator] = Emulator::both(SIZE);
    let mut writer = writer(SIZE);
    let text = "The quick brown fox jumps over the lazy dog and then it rests for a very long while.";
    emulator.write(&writer.frame(&lines(&[text]), &live(&["> "])));
    assert_eq!(
        without_blank_end(emulator.rows()),
        ["The quick brown fox jumps over the lazy", "dog and then it rests for a very long wh", "ile.", ">"]
    );
    emulator.resize(Size { columns: 120, rows: 10 });
    let rows = without_blank_end(emulator.rows());
    assert_eq!(rows[0], text);
}

#[test]
fn no_frame_clears_the_screen_or_the_scrollback() {
    let mut writer = writer(SIZE);
    let mut bytes = writer.frame(&lines(&["a", "b"]), &live(&["> "]));
    bytes.extend(writer.resize(Size { columns: 30, rows: 8 }));
    bytes.extend(writer.frame(&[], &live(&["x", "> "])));
    bytes.extend(writer.erase());
    let text = String::from_utf8(bytes).unwrap();
    for sequence in ["\x1b[2J", "\x1b[3J", "\x1b[J", "\x1b[H", "\x1b[r", "\x1bc"] {
        assert!(!text.contains(sequence), "{sequence:?}");
    }
}

#[test]
fn narrower_terminal_keeps_no_copies_of_the_live_area() {
    let wide = "a status row that takes nearly all of it";
    for (reflow, at) in [(Reflow::No, 0), (Reflow::Yes, 1)] {
        let mut emulator = Emulator::both(SIZE).into_iter().nth(at).unwrap();
        let mut writer = FrameWriter::new(SIZE, ColorLevel::True, reflow);
        let mut expected: Vec<String> = (0..20).map(|number| format!("line {number}")).collect();
        let finished: Vec<Line> = expected.iter().map(|text| Line::plain(text)).collect();
        emulator.write(&writer.frame(&finished, &live(&[wide, "> input"])));
        for columns in [30, 25, 38, 21, 40] {
            let size = Size { columns, rows: 10 };
            emulator.resize(size);
            emulator.write(&writer.resize(size));
            emulator.write(&writer.frame(&[], &live(&[wide, "> input"])));
            let cut: String = wide.chars().take(columns.into()).collect();
            expected.truncate(20);
            expected.extend([cut.trim_end().to_owned(), "> input".to_owned()]);
            assert_eq!(without_blank_end(emulator.rows()), expected, "{reflow:?} {columns}");
        }
    }
}

#[test]
fn frame_for_a_size_that_is_gone_is_repaired() {
    let wide = "a status row that takes nearly all of it";
    let narrow = Size { columns: 25, rows: 10 };
    for finished in [&[][..], &["late line, longer than the narrow one"][..]] {
        let [_, mut emulator] = Emulator::both(SIZE);
        let mut writer = writer(SIZE);
        let mut expected: Vec<String> = (0..20).map(|number| format!("line {number}")).collect();
        let start: Vec<Line> = expected.iter().map(|text| Line::plain(text)).collect();
        emulator.write(&writer.frame(&start, &live(&[wide, wide, "> input"])));
        // The terminal has the new width before we know.
        emulator.resize(narrow);
        emulator.write(&writer.frame(&lines(finished), &live(&[wide, "> input!"])));
        emulator.write(&writer.drawn_at(narrow));
        emulator.write(&writer.frame(&[], &live(&["status", "> input!"])));
        expected.extend(finished.iter().map(|text| (*text).to_owned()));
        expected.extend(["status".to_owned(), "> input!".to_owned()]);
        let rows = without_blank_end(emulator.rows());
        assert_eq!(letters(rows), letters(&expected), "{finished:?}");
    }
}

#[test]
fn erased_live_area_leaves_a_fresh_line() {
    for mut emulator in Emulator::both(SIZE) {
        let mut writer = writer(SIZE);
        emulator.write(&writer.frame(&lines(&["kept"]), &live(&["a", "b", "c"])));
        emulator.write(&writer.erase());
        emulator.write(b"$ ");
        assert_eq!(without_blank_end(emulator.rows()), ["kept", "$"]);
    }
}

#[test]
fn program_starts_on_a_fresh_line() {
    for (before, expected) in [("", vec!["x"]), ("no newline", vec!["no newline", "x"])] {
        for mut emulator in Emulator::both(SIZE) {
            emulator.write(before.as_bytes());
            emulator.write(fresh_line(SIZE).as_bytes());
            emulator.write(b"x");
            assert_eq!(without_blank_end(emulator.rows()), expected);
        }
    }
}

/// One step of a random session.
#[derive(Debug, Clone)]
enum Step {
    Frame { finished: Vec<String>, live: Vec<String>, row: usize, column: usize },
    Resize(u16, u16),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z ]{0,60}",
        1 => "[鷸鳥한글 a]{0,30}",
        1 => "(a|é|❤️|👍🏽|🇨🇭|👨‍👩‍👧| ){0,12}",
        1 => "[\\x00-\\x1f\u{9b}\u{202e}a]{0,12}",
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let frame = (
        proptest::collection::vec(text(), 0..4),
        proptest::collection::vec(text(), 1..14),
        0..14_usize,
        0..60_usize,
    );
    prop_oneof![
        6 => frame.prop_map(|(finished, live, row, column)| Step::Frame { finished, live, row, column }),
        1 => (20..60_u16, 5..16_u16).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
    ]
}

/// Text in the order of its letters, wherever rows broke it.
fn letters<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    texts
        .into_iter()
        .flat_map(|text| text.as_ref().chars().filter(|c| *c != ' ').collect::<Vec<_>>())
        .collect()
}

proptest! {
    /// Every finished line stands in the history once and in order, and the live area below it, whatever happens.
    #[test]
    fn random_frames_lose_and_repeat_nothing(steps in proptest::collection::vec(step(), 1..40)) {
        for mut emulator in Emulator::both(SIZE).into_iter().skip(1) {
            let mut size = SIZE;
            let mut writer = writer(size);
            // A full screen: how emulators resize one that is not differs.
            let mut history: Vec<String> = (0..20).map(|_| "start".to_owned()).collect();
            let start: Vec<Line> = history.iter().map(|text| Line::plain(text)).collect();
            emulator.write(&writer.frame(&start, &live(&["> "])));
            for step in &steps {
                match step {
                    Step::Resize(columns, rows) => {
                        // A live area that is taller than the new screen is in the scrollback already.
                        emulator.write(&writer.frame(&[], &live(&["> "])));
                        size = Size { columns: *columns, rows: *rows };
                        emulator.resize(size);
                        emulator.write(&writer.resize(size));
                    }
                    Step::Frame { finished, live, row, column } => {
                        // Emulators that know no joined emoji show them in other cells.
                        let plain = |text: &String| !text.contains(['\u{fe0f}', '\u{200d}', '🇨', '👍']);
                        let finished: Vec<Line> =
                            finished.iter().filter(|text| plain(text)).map(|text| Line::plain(text)).collect();
                        let live: Vec<Line> = live.iter().filter(|text| plain(text)).map(|text| Line::plain(text)).collect();
                        let cursor = (*row < live.len()).then_some((*row, *column));
                        history.extend(finished.iter().map(Line::text));
                        let live = Live { lines: live, cursor };
                        emulator.write(&writer.frame(&finished, &live));
                        let height = usize::from(size.rows);
                        let shown: Vec<String> = live.lines[live.lines.len().saturating_sub(height)..]
                            .iter().map(|line| line.cut(size.columns.into()).text()).collect();
                        let all = letters(history.iter().chain(&shown));
                        prop_assert_eq!(letters(emulator.rows()), all);
                    }
                }
            }
        }
    }

    #[test]
    fn random_text_puts_no_column_off(texts in proptest::collection::vec(text(), 1..8)) {
        for mut emulator in Emulator::both(SIZE) {
            let mut writer = writer(SIZE);
            let marked: Vec<Line> = texts
                .iter()
                .map(|text| Line::plain(text).cut(30).padded(35, crate::text::Style::PLAIN).with("|", crate::text::Style::PLAIN).flow(Flow::Cut))
                .collect();
            emulator.write(&writer.frame(&[], &Live { lines: marked, cursor: None }));
            for row in emulator.view().iter().take(texts.len()) {
                prop_assert!(row.ends_with('|'), "{row:?}");
            }
        }
    }
}
