//! What the terminal can do: asked once in one write, and known from the environment.

use super::frame::Reflow;
use super::parser::Answer;

/// Asks for the keyboard protocol and the background, and for device attributes, which every terminal answers and which
/// end the probe.
pub(super) const PROBE: &str = "\x1b[?u\x1b]11;?\x1b\\\x1b[c";

/// How a notification reaches the desktop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notifications {
    /// `OSC 9`.
    Osc9,
    /// `OSC 777`.
    Osc777,
    Bell,
}

/// What is known of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) has_kitty_keyboard: bool,
    pub(crate) is_probed: bool,
    pub(crate) notifications: Notifications,
    /// Whether the terminal knows xterm's protocol for more keys.
    pub(crate) has_modified_keys: bool,
    pub(crate) reflow: Reflow,
    pub(crate) is_in_tmux: bool,
}

impl Features {
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| variable(name).unwrap_or_default();
        let term = value("TERM");
        let program = value("TERM_PROGRAM");
        let is_in_tmux = !value("TMUX").is_empty();
        let is_xterm = !value("XTERM_VERSION").is_empty();
        let is_fixed = !is_in_tmux
            && (is_xterm
                || term == "linux"
                || ["screen", "rxvt", "vt1"].iter().any(|name| term.starts_with(name)));
        let notifications = match program.as_str() {
            _ if is_in_tmux => Notifications::Bell,
            "iTerm.app" | "WezTerm" | "ghostty" | "WarpTerminal" => Notifications::Osc9,
            _ if term.contains("kitty") => Notifications::Osc9,
            _ if term.starts_with("foot") || term.starts_with("rxvt") || !value("VTE_VERSION").is_empty() => {
                Notifications::Osc777
            }
            _ => Notifications::Bell,
        };
        Self {
            has_kitty_keyboard: false,
            is_probed: false,
            notifications,
            has_modified_keys: is_in_tmux || is_xterm,
            reflow: if is_fixed { Reflow::No } else { Reflow::Yes },
            is_in_tmux,
        }
    }

    pub(super) fn learn(&mut self, answer: Answer) {
        match answer {
            Answer::KittyKeyboard => self.has_kitty_keyboard = true,
            Answer::DeviceAttributes => self.is_probed = true,
            Answer::Size(..) | Answer::Background(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(variables: &[(&str, &str)]) -> Features {
        Features::from_environment(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn reflow_is_expected_except_of_old_terminals() {
        let rows: [(&[(&str, &str)], Reflow); 4] = [
            (&[("TERM", "xterm-256color")], Reflow::Yes),
            (&[("TERM", "screen-256color"), ("TMUX", "/tmp/t")], Reflow::Yes),
            (&[("TERM", "screen")], Reflow::No),
            (&[("TERM", "xterm"), ("XTERM_VERSION", "XTerm(390)")], Reflow::No),
        ];
        for (variables, expected) in rows {
            assert_eq!(features(variables).reflow, expected, "{variables:?}");
        }
    }
}
