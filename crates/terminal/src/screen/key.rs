//! Keys and their names.

use std::fmt;
use std::str::FromStr;

use tokio::time::Instant;

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) code: KeyCode,
    pub(crate) modifiers: Modifiers,
    /// When it was read.
    pub(crate) at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyCode {
    Char(char),
    Enter,
    Tab,
    Backspace,
    Delete,
    Insert,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    F(u8),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Modifiers {
    pub(crate) control: bool,
    pub(crate) alt: bool,
    pub(crate) shift: bool,
}

impl Modifiers {
    pub(crate) const NONE: Self = Self { control: false, alt: false, shift: false };
    pub(crate) const CONTROL: Self = Self { control: true, ..Self::NONE };
    pub(crate) const ALT: Self = Self { alt: true, ..Self::NONE };
    pub(crate) const SHIFT: Self = Self { shift: true, ..Self::NONE };
}

impl Key {
    pub(crate) fn new(code: KeyCode, modifiers: Modifiers) -> Self {
        Self { code, modifiers, at: Instant::now() }
    }

    pub(crate) fn plain(code: KeyCode) -> Self {
        Self::new(code, Modifiers::NONE)
    }

    pub(crate) fn ctrl(letter: char) -> Self {
        Self::new(KeyCode::Char(letter), Modifiers::CONTROL)
    }

    pub(crate) fn alt(letter: char) -> Self {
        Self::new(KeyCode::Char(letter), Modifiers::ALT)
    }
}

/// Names of the keys that are not characters.
const NAMES: [(KeyCode, &str); 15] = [
    (KeyCode::Enter, "Enter"),
    (KeyCode::Tab, "Tab"),
    (KeyCode::Backspace, "Backspace"),
    (KeyCode::Delete, "Delete"),
    (KeyCode::Insert, "Insert"),
    (KeyCode::Escape, "Esc"),
    (KeyCode::Up, "Up"),
    (KeyCode::Down, "Down"),
    (KeyCode::Left, "Left"),
    (KeyCode::Right, "Right"),
    (KeyCode::Home, "Home"),
    (KeyCode::End, "End"),
    (KeyCode::PageUp, "PageUp"),
    (KeyCode::PageDown, "PageDown"),
    (KeyCode::Char(' '), "Space"),
];

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Modifiers { control, alt, shift } = self.modifiers;
        for (is_held, name) in [(control, "Ctrl+"), (alt, "Alt+"), (shift, "Shift+")] {
            if is_held {
                out.write_str(name)?;
            }
        }
        if let Some((_, name)) = NAMES.iter().find(|(code, _)| *code == self.code) {
            return out.write_str(name);
        }
        match self.code {
            KeyCode::Char(character) if control || alt => write!(out, "{}", character.to_ascii_uppercase()),
            KeyCode::Char(character) => write!(out, "{character}"),
            KeyCode::F(number) => write!(out, "F{number}"),
            _ => Ok(()),
        }
    }
}

/// A name that is no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownKey(String);

impl fmt::Display for UnknownKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "unknown key '{}'; write it like Ctrl+A, Alt+Enter, Shift+Tab, F2 or PageUp", self.0)
    }
}

impl FromStr for Key {
    type Err = UnknownKey;

    fn from_str(name: &str) -> Result<Self, UnknownKey> {
        let mut modifiers = Modifiers::NONE;
        let mut rest = name.trim();
        while let Some((modifier, after)) = rest.split_once('+').filter(|(_, after)| !after.is_empty()) {
            match modifier.to_ascii_lowercase().as_str() {
                "ctrl" | "control" => modifiers.control = true,
                "alt" | "meta" | "option" => modifiers.alt = true,
                "shift" => modifiers.shift = true,
                _ => return Err(UnknownKey(name.into())),
            }
            rest = after;
        }
        let code = parse_code(rest).ok_or_else(|| UnknownKey(name.into()))?;
        let code = match code {
            KeyCode::Char(character) if modifiers.control || modifiers.alt => {
                KeyCode::Char(character.to_ascii_lowercase())
            }
            code => code,
        };
        Ok(Self::new(code, modifiers))
    }
}

fn parse_code(name: &str) -> Option<KeyCode> {
    let mut characters = name.chars();
    if let (Some(character), None) = (characters.next(), characters.next()) {
        return Some(KeyCode::Char(character));
    }
    let named = NAMES.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(code, _)| *code);
    let alias = || name.eq_ignore_ascii_case("Escape").then_some(KeyCode::Escape);
    let function =
        || name.strip_prefix(['F', 'f'])?.parse().ok().filter(|n| (1..=24).contains(n)).map(KeyCode::F);
    named.or_else(alias).or_else(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_names_can_be_read_and_written() {
        let names = [
            "a",
            "Ctrl+A",
            "Alt+B",
            "Shift+Tab",
            "Ctrl+Alt+Left",
            "F5",
            "Esc",
            "Space",
            "Ctrl+_",
            "Alt+Enter",
            "+",
        ];
        for name in names {
            assert_eq!(name.parse::<Key>().map(|key| key.to_string()), Ok(name.to_owned()));
        }
        assert!("Hyper+A".parse::<Key>().is_err());
        assert!("F99".parse::<Key>().is_err());
    }
}
