//! The pages for a person, made from the flag table.

use whimbrel_wire::PROTOCOL_VERSION;

use super::flag::{Flag, Group, Kind};
use super::table::FLAGS;

/// How wide the left column may get.
const LEFT: usize = 34;

/// The version, beginning with our own number as hosts expect.
pub(crate) fn version() -> String {
    format!("{} (Whimbrel; speaks {PROTOCOL_VERSION})\n", env!("CARGO_PKG_VERSION"))
}

/// The short page: what to type first.
pub(crate) fn usage() -> &'static str {
    "\
Whimbrel is an agent that works in this folder.

  whimbrel demo                  see it at work: no key, no network
  whimbrel \"fix the tests\"       give it a task; it asks before it acts
  whimbrel -p \"what is this?\"    answer and leave, for scripts and pipes
  whimbrel permissions explain 'Bash(git push)'
                                 which rule decides on a call, and why
  whimbrel sessions              earlier sessions: read, search, export
  whimbrel mcp                   MCP servers: list, add, test; or be one
  whimbrel --help                everything else
"
}

/// The whole page, wrapped to a width.
pub(crate) fn help(width: usize) -> String {
    let mut page = format!("{}\n", usage());
    for (group, heading) in Group::ALL {
        page += &format!("{heading}:\n");
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            page += &row(flag, width);
        }
        page += "\n";
    }
    page + "A list is comma separated, or the flag is repeated. -- ends the flags.\n"
}

fn row(flag: &Flag, width: usize) -> String {
    let left = spelling(flag);
    let lines = wrapped(flag.help, width.saturating_sub(LEFT).max(24));
    let mut lines = lines.into_iter();
    let fits = left.chars().count() + 2 <= LEFT;
    let mut row = match lines.next() {
        Some(first) if fits => format!("{left:<LEFT$}{first}\n"),
        Some(first) => format!("{left}\n{:<LEFT$}{first}\n", ""),
        None => format!("{left}\n"),
    };
    for line in lines {
        row += &format!("{:<LEFT$}{line}\n", "");
    }
    row
}

fn spelling(flag: &Flag) -> String {
    let short = flag.short.map_or("    ".to_owned(), |short| format!("-{short}, "));
    let value = match flag.kind {
        Kind::Switch(_) => String::new(),
        Kind::Value(value, _) => format!(" {value}"),
        Kind::Optional(value, _) => format!("[={value}]"),
        Kind::List { value, .. } => format!(" {value}.."),
    };
    format!("  {short}--{}{value}", flag.name)
}

/// Breaks a text into lines of at most `width` characters, at blanks.
fn wrapped(text: &str, width: usize) -> Vec<String> {
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
        let page = help(100);
        let missing: Vec<_> = FLAGS
            .iter()
            .filter(|flag| !page.contains(&format!("--{}", flag.name)))
            .map(|flag| flag.name)
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [72, 80, 100, 160] {
            let widest = help(width).lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{widest:?} in {width}");
        }
    }

    #[test]
    fn the_version_begins_with_a_digit() {
        assert!(version().starts_with(|first: char| first.is_ascii_digit()));
        assert!(version().contains(PROTOCOL_VERSION));
    }
}
