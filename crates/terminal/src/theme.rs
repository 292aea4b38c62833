//! Styles by meaning, and how many colors the terminal has.
//!
//! The default themes use the 16 colors that the terminal's own palette defines, so they fit light and dark ones alike.

use crate::text::{Color, Style};

/// Styles by what they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) text: Style,
    /// What is less important: hints, summaries, line numbers.
    pub(crate) dim: Style,
    /// The program itself: the prompt mark, the spinner, what is selected.
    pub(crate) accent: Style,
    /// What the user wrote.
    pub(crate) user: Style,
    pub(crate) heading: Style,
    pub(crate) strong: Style,
    pub(crate) emphasis: Style,
    pub(crate) code: Style,
    pub(crate) link: Style,
    pub(crate) quote: Style,
    pub(crate) success: Style,
    pub(crate) error: Style,
    pub(crate) warning: Style,
    pub(crate) added: Style,
    pub(crate) removed: Style,
    /// Changed words within a changed line.
    pub(crate) added_word: Style,
    pub(crate) removed_word: Style,
    pub(crate) keyword: Style,
    pub(crate) string: Style,
    pub(crate) comment: Style,
    pub(crate) number: Style,
    pub(crate) function: Style,
    /// The chosen row of a menu.
    pub(crate) selected: Style,
    pub(crate) border: Style,
    /// The mode in which everything is allowed.
    pub(crate) danger: Style,
    pub(crate) plan: Style,
}

const fn ansi(index: u8) -> Style {
    Style::PLAIN.fg(Color::Ansi(index))
}

const fn rgb(red: u8, green: u8, blue: u8) -> Style {
    Style::PLAIN.fg(Color::Rgb(red, green, blue))
}

impl Theme {
    /// Names for `/theme`.
    pub(crate) const NAMES: [&str; 4] = ["auto", "dark", "light", "plain"];

    /// A theme by its name; the terminal's own colors for a name that is not known.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "dark" => Self::DARK,
            "light" => Self::LIGHT,
            "plain" => Self::PLAIN,
            _ => Self::TERMINAL,
        }
    }

    /// The terminal's own 16 colors.
    pub(crate) const TERMINAL: Self = Self {
        text: Style::PLAIN,
        dim: Style::PLAIN.dim(),
        accent: ansi(6),
        user: Style::PLAIN.bold(),
        heading: Style::PLAIN.bold(),
        strong: Style::PLAIN.bold(),
        emphasis: Style::PLAIN.italic(),
        code: ansi(6),
        link: Style::PLAIN.underlined(),
        quote: Style::PLAIN.italic(),
        success: ansi(2),
        error: ansi(1),
        warning: ansi(3),
        added: ansi(2),
        removed: ansi(1),
        added_word: ansi(2).bold().reversed(),
        removed_word: ansi(1).bold().reversed(),
        keyword: ansi(5),
        string: ansi(2),
        comment: Style::PLAIN.dim().italic(),
        number: ansi(3),
        function: ansi(4),
        selected: ansi(6).bold(),
        border: Style::PLAIN.dim(),
        danger: ansi(1).bold(),
        plan: ansi(4),
    };

    /// Fixed colors for a dark background.
    pub(crate) const DARK: Self = Self {
        dim: rgb(128, 136, 150),
        accent: rgb(110, 190, 220),
        code: rgb(140, 200, 215),
        success: rgb(125, 190, 120),
        error: rgb(230, 110, 110),
        warning: rgb(220, 180, 95),
        added: rgb(135, 205, 130),
        removed: rgb(235, 125, 125),
        added_word: rgb(215, 245, 210).bg(Color::Rgb(45, 95, 50)),
        removed_word: rgb(250, 215, 215).bg(Color::Rgb(115, 45, 50)),
        keyword: rgb(195, 150, 220),
        string: rgb(150, 200, 130),
        comment: rgb(128, 136, 150).italic(),
        number: rgb(225, 170, 115),
        function: rgb(125, 175, 235),
        selected: rgb(110, 190, 220).bold(),
        border: rgb(95, 102, 115),
        danger: rgb(235, 110, 110).bold(),
        plan: rgb(125, 175, 235),
        ..Self::TERMINAL
    };

    /// Fixed colors for a light background.
    pub(crate) const LIGHT: Self = Self {
        dim: rgb(115, 120, 130),
        accent: rgb(0, 110, 145),
        code: rgb(0, 105, 130),
        success: rgb(35, 125, 45),
        error: rgb(185, 40, 45),
        warning: rgb(150, 100, 0),
        added: rgb(30, 115, 40),
        removed: rgb(175, 40, 45),
        added_word: rgb(15, 70, 25).bg(Color::Rgb(190, 235, 190)),
        removed_word: rgb(110, 15, 20).bg(Color::Rgb(255, 205, 205)),
        keyword: rgb(125, 55, 160),
        string: rgb(40, 115, 40),
        comment: rgb(115, 120, 130).italic(),
        number: rgb(165, 85, 15),
        function: rgb(30, 85, 180),
        selected: rgb(0, 110, 145).bold(),
        border: rgb(165, 170, 180),
        danger: rgb(185, 40, 45).bold(),
        plan: rgb(30, 85, 180),
        ..Self::TERMINAL
    };

    /// No colors at all.
    pub(crate) const PLAIN: Self = Self {
        text: Style::PLAIN,
        dim: Style::PLAIN,
        accent: Style::PLAIN,
        user: Style::PLAIN.bold(),
        heading: Style::PLAIN.bold(),
        strong: Style::PLAIN.bold(),
        emphasis: Style::PLAIN.italic(),
        code: Style::PLAIN,
        link: Style::PLAIN.underlined(),
        quote: Style::PLAIN,
        success: Style::PLAIN,
        error: Style::PLAIN.bold(),
        warning: Style::PLAIN.bold(),
        added: Style::PLAIN,
        removed: Style::PLAIN,
        added_word: Style::PLAIN.underlined(),
        removed_word: Style::PLAIN.underlined(),
        keyword: Style::PLAIN,
        string: Style::PLAIN,
        comment: Style::PLAIN,
        number: Style::PLAIN,
        function: Style::PLAIN,
        selected: Style::PLAIN.bold(),
        border: Style::PLAIN,
        danger: Style::PLAIN.bold(),
        plan: Style::PLAIN.bold(),
    };
}

/// How many colors the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColorLevel {
    None,
    Ansi16,
    Indexed256,
    True,
}

impl ColorLevel {
    /// Decides by the variables that terminals and users set. `NO_COLOR` wins, except over `CLICOLOR_FORCE`.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| variable(name).filter(|value| !value.is_empty());
        let is_forced = value("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let term = value("TERM").unwrap_or_else(|| "dumb".into());
        if value("NO_COLOR").is_some() && !is_forced {
            return Self::None;
        }
        let has_true_color = value("COLORTERM").is_some_and(|value| value == "truecolor" || value == "24bit");
        let program = value("TERM_PROGRAM").unwrap_or_default();
        if has_true_color || term.ends_with("-direct") || program == "iTerm.app" || term.contains("kitty") {
            Self::True
        } else if term.contains("256color") {
            Self::Indexed256
        } else if term != "dumb" || is_forced {
            Self::Ansi16
        } else {
            Self::None
        }
    }

    /// The nearest color that the terminal has.
    pub(crate) fn reduce(self, color: Color) -> Color {
        match (self, color) {
            (Self::None, _) => Color::Default,
            (Self::Indexed256, Color::Rgb(red, green, blue)) => {
                Color::Indexed(nearest_indexed((red, green, blue)))
            }
            (Self::Ansi16, Color::Rgb(red, green, blue)) => Color::Ansi(nearest_ansi((red, green, blue))),
            (Self::Ansi16, Color::Indexed(index @ 0..=15)) => Color::Ansi(index),
            (Self::Ansi16, Color::Indexed(index)) => Color::Ansi(nearest_ansi(indexed_rgb(index))),
            (_, color) => color,
        }
    }
}

/// Values of a part in the color cube of the 256 colors.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Usual values of the 16 colors.
const ANSI: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

fn distance(left: (u8, u8, u8), right: (u8, u8, u8)) -> u32 {
    let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
    square(left.0, right.0) + square(left.1, right.1) + square(left.2, right.2)
}

pub(crate) fn indexed_rgb(index: u8) -> (u8, u8, u8) {
    match index {
        0..=15 => ANSI[usize::from(index)],
        16..=231 => {
            let part = |divisor: u8| CUBE[usize::from((index - 16) / divisor % 6)];
            (part(36), part(6), part(1))
        }
        232..=255 => {
            let gray = 8 + (index - 232) * 10;
            (gray, gray, gray)
        }
    }
}

fn nearest_indexed(color: (u8, u8, u8)) -> u8 {
    (16..=255).min_by_key(|index| distance(indexed_rgb(*index), color)).unwrap_or(15)
}

fn nearest_ansi(color: (u8, u8, u8)) -> u8 {
    (0..16).min_by_key(|index| distance(ANSI[usize::from(*index)], color)).unwrap_or(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_level_follows_the_environment() {
        let rows: [(&[(&str, &str)], ColorLevel); 8] = [
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], ColorLevel::True),
            (&[("TERM", "xterm-256color")], ColorLevel::Indexed256),
            (&[("TERM", "xterm")], ColorLevel::Ansi16),
            (&[("TERM", "dumb")], ColorLevel::None),
            (&[], ColorLevel::None),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "1")], ColorLevel::None),
            (
                &[("TERM", "xterm-256color"), ("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")],
                ColorLevel::Indexed256,
            ),
            (&[("TERM", "dumb"), ("CLICOLOR_FORCE", "1")], ColorLevel::Ansi16),
        ];
        for (variables, expected) in rows {
            let get = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(ColorLevel::from_environment(get), expected, "{variables:?}");
        }
    }

    #[test]
    fn colors_are_reduced_to_the_nearest() {
        let orange = Color::Rgb(255, 135, 0);
        assert_eq!(ColorLevel::True.reduce(orange), orange);
        assert_eq!(ColorLevel::Indexed256.reduce(orange), Color::Indexed(208));
        assert_eq!(ColorLevel::Ansi16.reduce(Color::Rgb(250, 10, 10)), Color::Ansi(9));
        assert_eq!(ColorLevel::Ansi16.reduce(Color::Indexed(208)), Color::Ansi(3));
        assert_eq!(ColorLevel::None.reduce(orange), Color::Default);
    }
}
