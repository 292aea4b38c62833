//! The table of keys as a page of the documentation, and as the page of `?`.

#[cfg(test)]
use std::fmt::Write;

#[cfg(test)]
use super::ACTIONS;
use super::{KeyGroup, KeyTable};

/// Title of a group.
fn title(group: KeyGroup) -> &'static str {
    match group {
        KeyGroup::Input => "Input line",
        KeyGroup::Menu => "Menus and questions",
        KeyGroup::Pager => "Transcript and other pages",
    }
}

const GROUPS: [KeyGroup; 3] = [KeyGroup::Input, KeyGroup::Menu, KeyGroup::Pager];

/// The default keys as Markdown tables, for `docs/terminal.md`.
#[cfg(test)]
pub(crate) fn render_markdown() -> String {
    let mut page = String::new();
    for group in GROUPS {
        let _ = write!(page, "### {}\n\n| action | keys | what it does |\n|---|---|---|\n", title(group));
        for row in ACTIONS.iter().filter(|row| row.group == group) {
            let keys: Vec<String> = row.default_keys.iter().map(|key| format!("`{key}`")).collect();
            let _ = writeln!(page, "| `{}` | {} | {} |", row.name, keys.join(", "), row.description);
        }
        page.push('\n');
    }
    page.trim_end().to_owned() + "\n"
}

/// The keys in force as aligned lines.
pub(crate) fn render_help(table: &KeyTable) -> Vec<String> {
    let mut lines = Vec::new();
    for group in GROUPS {
        lines.push(format!("{}:", title(group)));
        for (row, keys) in table.rows.iter().filter(|(row, keys)| row.group == group && !keys.is_empty()) {
            let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
            lines.push(format!("  {:<32} {}", names.join(", "), row.description));
        }
        lines.push(String::new());
    }
    lines.pop();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page is checked by its own text: it stands between two marks in the documentation.
    #[test]
    fn documentation_has_the_table_of_keys() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/terminal.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (start, end) = ("<!-- keys: made by a test, do not edit -->\n", "<!-- end of keys -->");
        let from = page.find(start).expect("the mark before the table") + start.len();
        let to = page.find(end).expect("the mark behind the table");
        if std::env::var_os("WHIMBREL_BLESS").is_some() {
            let blessed = format!("{}\n{}\n{}", &page[..from], render_markdown(), &page[to..]);
            std::fs::write(path, blessed).unwrap();
            return;
        }
        assert_eq!(
            page[from..to].trim(),
            render_markdown().trim(),
            "run this test with WHIMBREL_BLESS=1 to write the table anew"
        );
    }
}
