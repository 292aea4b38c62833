//! Pictures of the screen of an emulator, for the documentation.

use std::fmt::Write as _;

use super::emulator::Emulator;

/// Width of a character and height of a line, in pixels.
const CHAR_WIDTH: f64 = 8.43;
const LINE_HEIGHT: f64 = 19.0;
const MARGIN: f64 = 18.0;
const FOREGROUND: &str = "#d6dae1";
const BACKGROUND: &str = "#15181e";

/// The 16 colors of the terminal in the pictures.
const PALETTE: [&str; 16] = [
    "#1f232b", "#e06c75", "#8cc570", "#d9b56c", "#6aa8e8", "#c08bdc", "#5bbcc9", "#d6dae1", "#6b7280",
    "#f08a92", "#a6d98b", "#ecc983", "#8fc1f5", "#d3a9ea", "#84d4de", "#ffffff",
];

/// Text in one style.
#[derive(Debug, Clone, PartialEq)]
struct Run {
    column: usize,
    columns: usize,
    text: String,
    pen: avt::Pen,
}

/// Draws the rows of an emulator's scrollback and screen, down to the last one that is not blank.
pub(crate) fn draw(emulator: &Emulator, columns: usize, title: &str) -> String {
    let Emulator::Avt(emulator) = emulator else { return String::new() };
    let rows: Vec<Vec<Run>> = emulator.screen().all_lines().map(|line| runs(line.cells())).collect();
    let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    let cursor = emulator.cursor();
    let above = rows.len() - emulator.size().1;
    let mut shapes = String::new();
    let (left, top) = position(above + cursor.row, cursor.col);
    if cursor.visible {
        let _ = writeln!(
            shapes,
            r##"<rect x="{left:.1}" y="{top:.1}" width="8.4" height="18" fill="#8a93a3"/>"##
        );
    }
    for (row, runs) in rows[..used].iter().enumerate() {
        runs.iter().for_each(|run| draw_run(row, run, &mut shapes));
    }
    #[expect(clippy::cast_precision_loss, reason = "pixels")]
    let (width, height) =
        (columns as f64 * CHAR_WIDTH + 2.0 * MARGIN, used as f64 * LINE_HEIGHT + 2.0 * MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-labelledby=\"t\">\n\
         <title id=\"t\">{title}</title>\n\
         <style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;fill:{FOREGROUND};white-space:pre}}</style>\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"10\" fill=\"{BACKGROUND}\"/>\n{shapes}</svg>\n"
    )
}

#[expect(clippy::cast_precision_loss, reason = "pixels")]
fn position(row: usize, column: usize) -> (f64, f64) {
    (MARGIN + column as f64 * CHAR_WIDTH, MARGIN + row as f64 * LINE_HEIGHT)
}

/// Runs of equal style; blanks without a background are left out.
fn runs(cells: &[avt::Cell]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut is_open = false;
    for (column, cell) in cells.iter().enumerate() {
        let width = usize::from(cell.width());
        if width == 0 {
            continue;
        }
        let is_blank = cell.char() == ' ' && cell.pen().background().is_none() && !cell.pen().is_inverse();
        match runs.last_mut() {
            Some(run) if is_open && !is_blank && run.pen == *cell.pen() => {
                run.text.push(cell.char());
                run.columns += width;
            }
            _ if is_blank => {}
            _ => runs.push(Run { column, columns: width, text: cell.char().to_string(), pen: *cell.pen() }),
        }
        is_open = !is_blank;
    }
    runs
}

fn draw_run(row: usize, run: &Run, shapes: &mut String) {
    let (left, top) = position(row, run.column);
    #[expect(clippy::cast_precision_loss, reason = "pixels")]
    let width = run.columns as f64 * CHAR_WIDTH;
    let (mut fill, mut back) = (color(run.pen.foreground()), color(run.pen.background()));
    if run.pen.is_inverse() {
        (fill, back) = (
            Some(back.unwrap_or_else(|| BACKGROUND.into())),
            Some(fill.unwrap_or_else(|| FOREGROUND.into())),
        );
    }
    if let Some(back) = back {
        let _ = writeln!(
            shapes,
            r#"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{LINE_HEIGHT}" fill="{back}"/>"#
        );
    }
    let mut attributes = fill.map_or_else(String::new, |fill| format!(r#" style="fill:{fill}""#));
    if run.pen.is_faint() {
        attributes += r#" opacity=".6""#;
    }
    if run.pen.is_bold() {
        attributes += r#" font-weight="700""#;
    }
    if run.pen.is_italic() {
        attributes += r#" font-style="italic""#;
    }
    if run.pen.is_underline() {
        attributes += r#" text-decoration="underline""#;
    }
    let text = run.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let base = top + 14.0;
    let _ = writeln!(
        shapes,
        r#"<text x="{left:.1}" y="{base:.1}" textLength="{width:.1}"{attributes}>{text}</text>"#
    );
}

fn color(color: Option<avt::Color>) -> Option<String> {
    match color? {
        avt::Color::Indexed(index @ 0..=15) => Some(PALETTE[usize::from(index)].into()),
        avt::Color::Indexed(index) => {
            let (red, green, blue) = crate::theme::indexed_rgb(index);
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        avt::Color::RGB(color) => Some(format!("#{:02x}{:02x}{:02x}", color.r, color.g, color.b)),
    }
}
