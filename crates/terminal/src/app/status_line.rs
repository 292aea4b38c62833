//! The status line below the input: model, mode, folder, context, cost. A narrow terminal drops parts from the right.

use std::path::Path;

use tokio::time::Instant;

use super::{App, SessionPhase};
use crate::editor::vim::VimMode;
use crate::text::Line;
use crate::theme::Theme;
use whimbrel::PermissionMode;

/// Width of the bar of the context.
const BAR_WIDTH: usize = 8;

impl App {
    /// The status line.
    pub(super) fn status_line(&self, columns: usize, now: Instant, theme: &Theme) -> Line {
        if let Some(hint) = self.current_hint(now) {
            return Line::styled(hint, theme.warning).truncated(columns);
        }
        let mut parts: Vec<Line> = Vec::new();
        if let Some(mode) = self.vim_mode() {
            parts.push(Line::styled(mode, theme.strong));
        }
        parts.push(self.mode_part(theme));
        parts.extend(self.default_parts(theme));
        join_parts(parts, columns, theme)
    }

    fn vim_mode(&self) -> Option<&'static str> {
        self.input.vim.as_ref().map(|vim| match vim.mode() {
            VimMode::Insert => "INSERT",
            VimMode::Normal => "NORMAL",
        })
    }

    /// The mode in words.
    fn mode_part(&self, theme: &Theme) -> Line {
        match self.conversation.mode {
            PermissionMode::AcceptEdits => Line::styled("accepts edits", theme.accent),
            PermissionMode::Plan => Line::styled("plan mode", theme.plan),
            PermissionMode::BypassPermissions => Line::styled("allows everything", theme.danger),
            PermissionMode::DontAsk => Line::styled("never asks", theme.accent),
            _ => Line::styled("asks first", theme.dim),
        }
    }

    fn default_parts(&self, theme: &Theme) -> Vec<Line> {
        let mut parts = Vec::new();
        let model = match (&self.conversation.model, &self.session) {
            (Some(model), _) => model.clone(),
            (None, SessionPhase::NotChosen | SessionPhase::Opening) => "starting".into(),
            (None, _) => "no model".into(),
        };
        parts.push(Line::styled(&model, theme.dim));
        let folder = shorten_home(&self.start.cwd, self.start.home.as_deref());
        let place = match &self.branch {
            Some(branch) => format!("{folder} ({branch})"),
            None => folder,
        };
        parts.push(Line::styled(&place, theme.dim));
        if let Some(context) = self.conversation.context.filter(|context| context.window > 0) {
            let percent = context.percent();
            let style = if percent >= 80 { theme.warning } else { theme.dim };
            parts.push(Line::styled(&format!("context {} {percent} %", bar(percent)), style));
        }
        if self.conversation.cost_usd > 0.0 {
            parts.push(Line::styled(&format!("${:.2}", self.conversation.cost_usd), theme.dim));
        }
        parts.push(Line::styled("? for keys", theme.dim));
        parts
    }
}

/// A bar of blocks.
fn bar(percent: u64) -> String {
    let filled = (usize::try_from(percent).unwrap_or(100) * BAR_WIDTH).div_ceil(100).min(BAR_WIDTH);
    format!("{}{}", "█".repeat(filled), "░".repeat(BAR_WIDTH - filled))
}

/// Joins as many parts as fit.
fn join_parts(parts: Vec<Line>, columns: usize, theme: &Theme) -> Line {
    let mut line = Line::empty();
    for part in parts {
        let gap = if line.is_empty() { 0 } else { 3 };
        if line.width() + gap + part.width() > columns {
            if line.is_empty() {
                return part.truncated(columns);
            }
            break;
        }
        if gap > 0 {
            line.push(" · ", theme.dim);
        }
        line.append(part);
    }
    line
}

/// A folder with `~` for the home directory.
pub(crate) fn shorten_home(folder: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| folder.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".into(),
        Some(rest) => format!("~/{}", rest.display()),
        None => folder.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_line_drops_parts_from_the_right() {
        let theme = Theme::named("plain");
        let parts = || ["one", "two", "three"].map(Line::plain).to_vec();
        for (columns, expected) in [(80, "one · two · three"), (16, "one · two"), (5, "one"), (2, "o…")]
        {
            assert_eq!(join_parts(parts(), columns, &theme).text(), expected, "{columns}");
        }
    }

    #[test]
    fn home_directory_is_a_tilde() {
        let home = Some(Path::new("/home/ann"));
        for (folder, expected) in [("/home/ann", "~"), ("/home/ann/x", "~/x"), ("/srv", "/srv")] {
            assert_eq!(shorten_home(Path::new(folder), home), expected);
        }
    }
}
