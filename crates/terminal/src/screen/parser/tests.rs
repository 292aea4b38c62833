use proptest::prelude::*;

use super::*;

/// Names of the keys, and the other inputs in short.
fn describe(inputs: &[Input]) -> Vec<String> {
    let describe = |input: &Input| match input {
        Input::Key(key) => key.to_string(),
        Input::Paste(text) => format!("paste:{text}"),
        Input::FocusGained => "focus".into(),
        Input::FocusLost => "blur".into(),
        Input::Answer(answer) => format!("{answer:?}"),
    };
    inputs.iter().map(describe).collect()
}

fn parse(bytes: &[u8]) -> Vec<String> {
    let mut parser = Parser::default();
    let mut inputs = parser.feed(bytes);
    inputs.extend(parser.flush());
    describe(&inputs)
}

#[test]
fn keys_are_recognized() {
    let rows: [(&[u8], &[&str]); 34] = [
        (b"ab", &["a", "b"]),
        ("é鷸👍".as_bytes(), &["é", "鷸", "👍"]),
        (b"\r", &["Enter"]),
        (b"\n", &["Ctrl+J"]),
        (b"\t\x7f", &["Tab", "Backspace"]),
        (b"\x01\x1a\x1f\x00", &["Ctrl+A", "Ctrl+Z", "Ctrl+_", "Ctrl+Space"]),
        (b"\x1b", &["Esc"]),
        (b"\x1b\x1b", &["Esc", "Esc"]),
        (b"\x1bb", &["Alt+B"]),
        (b"\x1b\r", &["Alt+Enter"]),
        (b"\x1b\x7f", &["Alt+Backspace"]),
        (b"\x1b[", &["Alt+["]),
        (b"\x1b]", &["Alt+]"]),
        (b"\x1bO", &["Alt+O"]),
        (b"\x1b[A\x1b[B\x1bOC\x1b[D", &["Up", "Down", "Right", "Left"]),
        (b"\x1b[1;5C", &["Ctrl+Right"]),
        (b"\x1b[1;3D", &["Alt+Left"]),
        (b"\x1b[H\x1b[4~", &["Home", "End"]),
        (b"\x1b[3~\x1b[5~", &["Delete", "PageUp"]),
        (b"\x1b[Z", &["Shift+Tab"]),
        (b"\x1bOP\x1b[15~\x1b[24~", &["F1", "F5", "F12"]),
        (b"\x1b[[B", &["F2"]),
        (b"\x1b[27u", &["Esc"]),
        (b"\x1b[13;2u", &["Shift+Enter"]),
        (b"\x1b[27;2;13~", &["Shift+Enter"]),
        (b"\x1b[97;5u", &["Ctrl+A"]),
        (b"\x1b[97;6u", &["Ctrl+A"]),
        (b"\x1b[45;6u", &["Ctrl+_"]),
        (b"\x1b[97;2u", &["A"]),
        (b"\x1b[97;1:3u", &[]),
        (b"\x1b[I\x1b[O", &["focus", "blur"]),
        (b"\x1b[<0;3;4M", &[]),
        (b"\xff\xfea", &["a"]),
        (b"\xe9", &[]),
    ];
    for (bytes, expected) in rows {
        assert_eq!(parse(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn answers_are_not_typed_text() {
    let rows: [(&[u8], &[&str]); 8] = [
        (b"\x1b[?62;22c", &["DeviceAttributes"]),
        (b"\x1b[?0u", &["KittyKeyboard"]),
        (b"\x1b[?2026;2$yx", &["x"]),
        (b"\x1b]10;rgb:1111/2222/ffff\x1b\\x", &["x"]),
        (b"\x1b]4;1;rgb:ff/00/80\x07x", &["x"]),
        (b"\x1bP>|tmux 3.3a\x1b\\x", &["x"]),
        (b"\x1b[12;40Rx", &["x"]),
        (b"\x1b[8;40;120t\x1b[4;800;600t", &["Size(40, 120)"]),
    ];
    for (bytes, expected) in rows {
        assert_eq!(parse(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn paste_arrives_whole_with_line_feeds() {
    assert_eq!(parse(b"\x1b[200~a\r\nb\rc\td\x1b[31m\x1b[201~x"), ["paste:a\nb\nc\td\x1b[31m", "x"]);
}

#[test]
fn paste_of_a_megabyte_is_searched_once() {
    let mut parser = Parser::default();
    let text = "0123456789abcde\r".repeat(65_536);
    assert_eq!(parser.feed(PASTE_START), []);
    for chunk in text.as_bytes().chunks(4096) {
        assert_eq!(parser.feed(chunk), []);
        assert!(!parser.is_waiting());
    }
    let inputs = parser.feed(PASTE_END);
    assert_eq!(inputs, [Input::Paste(text.replace('\r', "\n"))]);
}

proptest! {
    #[test]
    fn split_input_means_the_same(bytes in proptest::collection::vec(
        prop_oneof![Just(0x1b_u8), Just(b'['), Just(b'~'), Just(b';'), b'0'..=b'9', any::<u8>()], 0..40), at in 0..40_usize)
    {
        let at = at.min(bytes.len());
        let mut whole = Parser::default();
        let mut expected = whole.feed(&bytes);
        expected.extend(whole.flush());
        let mut split = Parser::default();
        let mut inputs = split.feed(&bytes[..at]);
        inputs.extend(split.feed(&bytes[at..]));
        inputs.extend(split.flush());
        prop_assert_eq!(describe(&inputs), describe(&expected));
    }
}

#[test]
fn background_is_dark_or_light() {
    let rows = [
        ("\x1b]11;rgb:0000/0000/0000\x1b\\", Some(Background::Dark)),
        ("\x1b]11;rgb:ff/ff/e0\x07", Some(Background::Light)),
        ("\x1b]11;rgb:1e1e/1e1e/2e2e\x07", Some(Background::Dark)),
        ("\x1b]11;rgb:ffff/ffff\x07", None),
        ("\x1b]11;rgb:fffffffff/0/0\x07", None),
        ("\x1b]10;rgb:0/0/0\x07", None),
    ];
    for (report, expected) in rows {
        let expected: Vec<Input> =
            expected.map(|background| Input::Answer(Answer::Background(background))).into_iter().collect();
        assert_eq!(Parser::default().feed(report.as_bytes()), expected, "{report:?}");
    }
}
