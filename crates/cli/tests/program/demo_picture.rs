//! `docs/demo.svg`, the picture in the README, shows what `whimbrel demo` prints. `WHIMBREL_BLESS=1` draws it again.

use std::fmt::Write as _;
use std::path::Path;

use crate::harness::TestDir;
use crate::pty::PtySession;

/// Width of the terminal in the picture, in characters.
const COLUMNS: u16 = 95;

/// Width of a character and height of a line in the picture, in pixels.
const CHAR_WIDTH: f64 = 8.43;
const LINE_HEIGHT: usize = 19;

/// Baseline of the first line of text.
const FIRST_LINE: usize = 64;

const HEADER: &str = r##"<title id="t">A run of whimbrel demo: the agent writes, reads and edits files, and asks before it runs a command</title>
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d6dae1}.d{fill:#848b98}</style>"##;

const TITLE_BAR: &str = r##"<path d="M.5 38V10.5a10 10 0 0 1 10-10h820a10 10 0 0 1 10 10V38z" fill="#1f232b"/>
<circle cx="22" cy="19" r="6" fill="#ec6a5e"/><circle cx="42" cy="19" r="6" fill="#f4bf4f"/><circle cx="62" cy="19" r="6" fill="#61c554"/>"##;

/// A line on the terminal.
struct Line {
    text: String,
    is_dimmed: bool,
}

/// Runs the demo on a terminal and returns what is left on the screen.
fn run_demo() -> Vec<Line> {
    let mut command = TestDir::new().command(&["demo"]);
    command.env("TERM", "xterm").current_dir("/");
    let mut pty = PtySession::start(command, COLUMNS);
    pty.wait_for_text("[y/N] ");
    pty.type_keys("y\n");
    assert_eq!(pty.wait_for_exit().code(), Some(0));
    let output = pty.output();
    output.trim_end_matches("<end>").trim_end().split("\r\n").map(parse_line).collect()
}

/// Parses a line; text that the spinner overwrote is left out.
fn parse_line(raw: &str) -> Line {
    let last = raw.rsplit("\u{1b}[2K").next().unwrap_or_default();
    let text = last.replace("\u{1b}[2m", "").replace("\u{1b}[0m", "").replace('\r', "");
    Line { text, is_dimmed: last.contains("\u{1b}[2m") }
}

/// Breaks a line between words; continuation lines have the same indent.
fn wrap(text: &str) -> Vec<String> {
    let indent = " ".repeat(text.len() - text.trim_start().len());
    let mut lines = Vec::new();
    let mut line = indent.clone();
    // Words are kept with the blanks after them, which some lines have two of.
    for word in text.trim_start().split_inclusive(' ') {
        let width = line.chars().count() + word.trim_end().chars().count();
        if width > usize::from(COLUMNS) {
            lines.push(std::mem::replace(&mut line, indent.clone()));
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

fn draw(screen: &[Line]) -> String {
    let command = Line { text: "$ whimbrel demo".into(), is_dimmed: false };
    let wrapped = std::iter::once(&command)
        .chain(screen)
        .flat_map(|line| wrap(&line.text).into_iter().map(|text| (text, line.is_dimmed)));
    let (mut texts, mut y) = (String::new(), FIRST_LINE);
    for (text, is_dimmed) in wrapped {
        let shown = text.trim();
        if !shown.is_empty() {
            let x = 20.0 + CHAR_WIDTH * count_as_float(text.len() - text.trim_start().len());
            let length = CHAR_WIDTH * count_as_float(shown.chars().count());
            let class = if is_dimmed { r#" class="d""# } else { "" };
            // SVG shows several blanks as one, so they become no-break spaces.
            let escaped = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let escaped = escaped.replace("  ", "\u{a0}\u{a0}");
            writeln!(texts, r#"<text x="{x:.1}" y="{y}" textLength="{length:.1}"{class}>{escaped}</text>"#)
                .unwrap();
        }
        y += LINE_HEIGHT;
    }
    let height = y - LINE_HEIGHT + 20;
    let svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="841" height="{height}" viewBox="0 0 841 {height}" role="img" aria-labelledby="t">"#
    );
    let window = format!(
        r##"<rect x=".5" y=".5" width="840" height="{}" rx="10" fill="#15181e" stroke="#30363f"/>"##,
        height - 1
    );
    format!("{svg}\n{HEADER}\n{window}\n{TITLE_BAR}\n{texts}</svg>\n")
}

fn count_as_float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// The texts of a picture, without the command line.
fn read_texts(picture: &str) -> Vec<String> {
    let texts = picture.lines().filter_map(|line| {
        let text = line.strip_prefix("<text ")?.split_once('>')?.1.strip_suffix("</text>")?;
        Some(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    });
    texts.skip(1).collect()
}

/// Replaces what differs between runs, the directory and the seconds, and joins words by one blank.
fn normalize(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let is_seconds = word.parse::<f64>().is_ok() && word.contains('.');
        match (word.contains("/whimbrel-demo-"), is_seconds) {
            (true, _) => "DIR",
            (_, true) => "SECONDS",
            _ => word,
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Lines that only one of picture and screen has. Tool calls that run in parallel may end in another order, so each line
/// is searched in the whole text of the other side.
fn find_differences(picture: &str, screen: &[Line]) -> Vec<String> {
    let drawn = read_texts(picture);
    let printed: Vec<&str> = screen.iter().map(|line| line.text.as_str()).collect();
    let (all_drawn, all_printed) = (normalize(&drawn.join(" ")), normalize(&printed.join(" ")));
    let stale = drawn.iter().map(|line| normalize(line)).filter(|line| !all_printed.contains(line));
    let missing = printed.iter().map(|line| normalize(line)).filter(|line| !all_drawn.contains(line));
    stale.chain(missing).collect()
}

#[test]
fn picture_shows_what_the_demo_prints() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.svg");
    let screen = run_demo();
    let mut differences = find_differences(&std::fs::read_to_string(&file).unwrap(), &screen);
    if !differences.is_empty() && std::env::var_os("WHIMBREL_BLESS").is_some() {
        let picture = draw(&screen);
        differences = find_differences(&picture, &screen);
        std::fs::write(&file, picture).unwrap();
    }
    assert!(
        differences.is_empty(),
        "docs/demo.svg differs from the demo; run this test with WHIMBREL_BLESS=1: {differences:#?}"
    );
}
