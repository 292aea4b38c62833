//! Linear output for terminals without a cursor, for pipes and for screen readers: each line says who speaks, nothing
//! moves, and tables become sentences.

mod markdown;

use std::io::{self, Write};

use crate::text::{Line, sanitize, sanitize_lines};

/// Who a line is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    You,
    Whimbrel,
    Tool,
    Permission,
    Note,
}

impl Speaker {
    fn label(self) -> &'static str {
        match self {
            Self::You => "you",
            Self::Whimbrel => "whimbrel",
            Self::Tool => "tool",
            Self::Permission => "permission",
            Self::Note => "note",
        }
    }
}

/// Writes lines from top to bottom.
#[derive(Debug)]
pub(crate) struct Plain<W> {
    out: W,
}

impl<W: Write> Plain<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes a text. Its first line begins with the speaker, all others with blanks.
    pub(crate) fn say(&mut self, speaker: Speaker, text: &str) -> io::Result<()> {
        let lines = sanitize_lines(text);
        for (at, line) in lines.iter().enumerate() {
            if at == 0 {
                writeln!(self.out, "{}: {line}", speaker.label())?;
            } else {
                writeln!(self.out, "  {line}")?;
            }
        }
        self.out.flush()
    }

    /// Writes lines that were made for the screen, without their styles and without the indent that all of them have.
    pub(crate) fn lines(&mut self, speaker: Speaker, lines: &[Line]) -> io::Result<()> {
        let texts: Vec<String> = lines.iter().map(|line| line.text().trim_end().to_owned()).collect();
        let indents = texts.iter().filter(|text| !text.is_empty());
        let indent = indents.map(|text| text.len() - text.trim_start_matches(' ').len()).min().unwrap_or(0);
        let texts: Vec<&str> = texts.iter().map(|text| text.get(indent..).unwrap_or_default()).collect();
        self.say(speaker, &texts.join("\n"))
    }

    /// Writes a text of the model.
    pub(crate) fn markdown(&mut self, text: &str) -> io::Result<()> {
        self.say(Speaker::Whimbrel, &markdown::render(text))
    }

    /// Writes choices with numbers.
    pub(crate) fn menu(&mut self, title: &str, choices: &[String]) -> io::Result<()> {
        if !title.is_empty() {
            writeln!(self.out, "{}", sanitize(title))?;
        }
        for (at, choice) in choices.iter().enumerate() {
            writeln!(self.out, "  {}. {}", at + 1, sanitize(choice))?;
        }
        self.out.flush()
    }

    /// Writes a request for an answer, without a line break after it.
    pub(crate) fn ask(&mut self, prompt: &str) -> io::Result<()> {
        write!(self.out, "{}", sanitize(prompt))?;
        if !prompt.ends_with(' ') {
            write!(self.out, " ")?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Plain<&mut Vec<u8>>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut Plain::new(&mut out)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_begin_with_the_speaker() {
        assert_eq!(
            written(|plain| plain.say(Speaker::Tool, "Bash ls\na\x1b[2Jb\n")),
            "tool: Bash ls\n  a\\x1b[2Jb\n"
        );
    }

    #[test]
    fn common_indent_is_left_out() {
        let lines = ["  Bash", "    ls", ""].map(Line::plain);
        assert_eq!(written(|plain| plain.lines(Speaker::Permission, &lines)), "permission: Bash\n    ls\n");
    }

    #[test]
    fn menus_are_numbered() {
        let choices = ["Allow".to_owned(), "Deny".to_owned()];
        assert_eq!(written(|plain| plain.menu("Run it?", &choices)), "Run it?\n  1. Allow\n  2. Deny\n");
    }

    #[test]
    fn markdown_has_no_boxes() {
        let text = "# Head\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
        assert_eq!(
            written(|plain| plain.markdown(text)),
            "whimbrel: Head\n\n  - one\n  - two\n\n  Row 1: a is 1; b is 2.\n".replace("\n\n", "\n  \n")
        );
    }
}
