//! Help, usage and version texts, made from the flag table.

use whimbrel_wire::PROTOCOL_VERSION;

use super::flag::{Flag, FlagGroup};
use super::table::FLAGS;

/// Width of the left column.
const NAME_COLUMN_WIDTH: usize = 34;

/// Version line. It begins with the version of the official program that this one stands in for, because hosts compare
/// it with the oldest version they accept.
pub(crate) fn version_line() -> String {
    format!("{PROTOCOL_VERSION} (Whimbrel {})\n", env!("CARGO_PKG_VERSION"))
}

/// Short page: the commands to try first.
pub(crate) fn usage_page() -> &'static str {
    "\
Whimbrel is an agent that works in the current directory.

  whimbrel                       talk at the terminal; asks first
  whimbrel \"fix the tests\"       the same, starting with this prompt
  whimbrel demo                  watch a scripted run without a key
  whimbrel -p \"what is this?\"    answer and exit, for scripts and pipes
  whimbrel permissions explain 'Bash(git push)'
                                 show which rule decides on a call
  whimbrel sessions              stored sessions: read, search, export
  whimbrel serve                 sessions in the browser
  whimbrel acp                   an agent for editors
  whimbrel mcp                   MCP servers: list, add, test, serve
  whimbrel plugin                plugins: marketplaces, install, list
  whimbrel config                settings: list, get, set, remove
  whimbrel agents                agent definitions
  whimbrel sandbox               what this machine can confine
  whimbrel doctor                check the setup
  whimbrel auth status           the source of the key
  whimbrel completions           completions for bash, zsh and fish
  whimbrel man                   the man page
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
    format!("  {short}--{}{}", flag.name, flag.value_suffix())
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
    fn version_begins_with_that_of_the_official_program() {
        assert_eq!(version_line(), format!("{PROTOCOL_VERSION} (Whimbrel {})\n", env!("CARGO_PKG_VERSION")));
    }
}
