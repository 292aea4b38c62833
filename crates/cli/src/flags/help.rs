//! Help, usage and version texts, made from the flag table.

use whimbrel_wire::PROTOCOL_VERSION;

use super::flag::{Flag, FlagGroup, FlagKind};
use super::table::FLAGS;

/// Width of the left column.
const NAME_COLUMN_WIDTH: usize = 34;

/// Version line. It begins with our own version number, as hosts expect.
pub(crate) fn version_line() -> String {
    format!("{} (Whimbrel; protocol {PROTOCOL_VERSION})\n", env!("CARGO_PKG_VERSION"))
}

/// Short page: the commands to try first.
pub(crate) fn usage_page() -> &'static str {
    "\
Whimbrel is an agent that works in the current directory.

  whimbrel demo                  watch a scripted run without a key
  whimbrel \"fix the tests\"       run a task; it asks before it acts
  whimbrel -p \"what is this?\"    answer and exit, for scripts and pipes
  whimbrel permissions explain 'Bash(git push)'
                                 show which rule decides on a call
  whimbrel sessions              stored sessions: read, search, export
  whimbrel mcp                   MCP servers: list, add, test, serve
  whimbrel --help                all flags
"
}

/// Full help page, wrapped to a width.
pub(crate) fn help_page(width: usize) -> String {
    let mut page = format!("{}\n", usage_page());
    for (group, heading) in FlagGroup::ALL {
        page += &format!("{heading}:\n");
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            page += &format_row(flag, width);
        }
        page += "\n";
    }
    page + "Lists are comma-separated, or the flag is repeated. -- ends the flags.\n"
}

fn format_row(flag: &Flag, width: usize) -> String {
    let left = format_flag(flag);
    let lines = wrap(flag.help, width.saturating_sub(NAME_COLUMN_WIDTH).max(24));
    let mut lines = lines.into_iter();
    let fits = left.chars().count() + 2 <= NAME_COLUMN_WIDTH;
    let mut row = match lines.next() {
        Some(first) if fits => format!("{left:<NAME_COLUMN_WIDTH$}{first}\n"),
        Some(first) => format!("{left}\n{:<NAME_COLUMN_WIDTH$}{first}\n", ""),
        None => format!("{left}\n"),
    };
    for line in lines {
        row += &format!("{:<NAME_COLUMN_WIDTH$}{line}\n", "");
    }
    row
}

fn format_flag(flag: &Flag) -> String {
    let short = flag.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
    let value = match flag.kind {
        FlagKind::Switch(_) => String::new(),
        FlagKind::Value(value, _) => format!(" {value}"),
        FlagKind::Optional(value, _) => format!("[={value}]"),
        FlagKind::List { value, .. } => format!(" {value}.."),
    };
    format!("  {short}--{}{value}", flag.name)
}

/// Wraps a text at blanks into lines of at most `width` characters.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_on_the_page() {
        let page = help_page(100);
        let missing: Vec<_> = FLAGS
            .iter()
            .filter(|flag| !page.contains(&format!("--{}", flag.name)))
            .map(|flag| flag.name)
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn no_line_exceeds_the_width() {
        for width in [72, 80, 100, 160] {
            let widest = help_page(width).lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{widest:?} in {width}");
        }
    }

    #[test]
    fn the_version_begins_with_a_digit() {
        assert!(version_line().starts_with(|first: char| first.is_ascii_digit()));
        assert!(version_line().contains(PROTOCOL_VERSION));
    }
}
