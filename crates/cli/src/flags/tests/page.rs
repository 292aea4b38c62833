//! Generates `docs/command-line.md` from the flag table, the help pages of the subcommands and the lists of official
//! flags and subcommands, and compares it with the checked-in page. `WHIMBREL_BLESS=1` rewrites the page.

use std::fmt::Write;
use std::path::Path;

use crate::flags::flag::{Flag, FlagGroup};
use crate::flags::table::FLAGS;
use crate::official::{OFFICIAL_FLAGS, OFFICIAL_SUBCOMMANDS, Support, find_official_flag};
use crate::subcommands::{SUBCOMMANDS, Subcommand};

/// First part of the page: what the flag table does not say.
const INTRODUCTION: &str = "\
# Command line

This page is generated from the flag table of the program. `whimbrel --help` prints the same flags.

```
whimbrel [\"PROMPT\"] [FLAGS]       talk at the terminal; see terminal.md
whimbrel -p \"PROMPT\" [FLAGS]      print the answer and exit; never ask
whimbrel SUBCOMMAND [ARGUMENTS]
```

Text on stdin is added after the prompt. A prompt is one argument: several words without quotes are an error that shows
the quoted form, so that a misspelt subcommand does not become a prompt. A first argument that is a subcommand of the
official program is never a prompt, and neither is such a word alone behind flags; `whimbrel -- update` makes it one.
Without `-p`, the program is interactive if stdin and stdout are terminals, see [terminal](terminal.md). If stdout is not a
terminal, it gets only the answer, or the error text of a failed run, and the exit code is 1 after a failure.

Programs that start Whimbrel use `--input-format stream-json`, see
[wire protocol](wire-protocol.md). Environment variables are listed in [environment](environment.md), the syntax of rules
in [permissions](permissions.md).

## How flags are parsed

- `--flag value` and `--flag=value` are the same. A value may be empty. An argument that is itself a known flag is never
  taken as a value.
- A flag with an optional value, shown as `[=VALUE]`, takes it after `=`. The next argument is taken only if it cannot be
  the prompt: topics for `--debug`, or the session for `--resume`.
- A list, shown as `VALUE..`, is comma separated, or the flag is repeated. Further arguments are taken only if they cannot
  be the prompt: for rules the names of tools and `Tool(..)`, for directories paths that begin with `/`, `./`, `../` or
  `~/`, for MCP configurations JSON and names that end in `.json`.
- `--` ends the flags. An argument that begins with a dash and has a blank in its name is text.
- A flag of the official program is supported, or has no effect and a warning says so, or is refused by name,
  also if an SDK starts the program; see [below](#compared-with-the-official-program).
- Any other unknown flag is an error. If an SDK starts the program (`CLAUDE_CODE_ENTRYPOINT` begins with `sdk-`), an
  unknown flag is skipped with a warning, unless its name suggests that it restricts something.

## Exit codes

| Code | Meaning |
|---|---|
| 0 | the last turn succeeded, or there was none |
| 1 | wrong arguments, the session could not start, the last turn ended in an error, the reader of stdout is gone, or a line was malformed with `--strict-input` |
| 128 + N | ended by signal N: 130 after SIGINT, 143 after SIGTERM |
";

fn render_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (group, heading) in FlagGroup::ALL {
        write!(page, "\n## {heading}\n\n| Flag | Meaning |\n|---|---|\n").unwrap();
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            writeln!(page, "| {} | {} |", render_flag(flag), render_help(flag)).unwrap();
        }
    }
    page.push_str("\n## Subcommands\n\n| Command | Meaning |\n|---|---|\n");
    for Subcommand { name, arguments, meaning, page: more, .. } in SUBCOMMANDS {
        let usage = format!("whimbrel {name} {arguments}");
        let more = more.map(|(text, file)| format!(", see [{text}]({file})")).unwrap_or_default();
        writeln!(page, "| `{}` | {meaning}{more} |", escape_bars(usage.trim_end())).unwrap();
    }
    for (name, help) in [
        ("sessions", crate::sessions::help_page()),
        #[cfg(feature = "serve")]
        ("serve", crate::serve::help_page()),
        ("mcp", crate::mcp::help_page()),
        ("plugin", crate::plugin::help_page()),
        ("config", crate::config::help_page()),
        ("agents", crate::agents::help_page()),
        ("doctor", crate::doctor::help_page()),
        ("auth", crate::auth::help_page()),
        ("sandbox", crate::sandbox::help_page()),
        ("completions", crate::completions::help_page()),
    ] {
        write!(page, "\n### whimbrel {name}\n\n```\n{}\n```\n", help.trim_end()).unwrap();
    }
    page + &render_comparison()
}

/// The comparison with the official program.
fn render_comparison() -> String {
    let mut page = String::from(COMPARISON_INTRODUCTION);
    page.push_str("\n| Flag | Here |\n|---|---|\n");
    for flag in OFFICIAL_FLAGS {
        writeln!(page, "| {} | {} |", join_names(flag.spellings), describe_support(flag.support)).unwrap();
    }
    page.push_str("\n| Subcommand | Here |\n|---|---|\n");
    for (names, support) in OFFICIAL_SUBCOMMANDS {
        writeln!(page, "| {} | {} |", join_names(names), describe_support(*support)).unwrap();
    }
    page
}

const COMPARISON_INTRODUCTION: &str = "
## Compared with the official program

The flags and subcommands of the official program in version 2.1.325, those that its help does not show included. Nothing
is ignored silently: a flag that has no effect is accepted with a warning on stderr, and a flag or subcommand that is
refused ends the program with exit code 1 and a text on stderr that says what to do instead. Tests hold this table
against the program.
";

fn join_names(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn describe_support(support: Support) -> String {
    escape_bars(&match support {
        Support::Supported => "supported".to_owned(),
        Support::Partly(except) => format!("supported, except: {except}"),
        Support::NoEffect(reason) => format!("accepted, no effect because {reason}"),
        Support::Refused(remedy) => format!("refused: {remedy}"),
    })
}

/// All spellings of a flag with its value, each in backticks.
fn render_flag(flag: &Flag) -> String {
    let value = flag.value_suffix();
    let short = flag.short.map(|short| format!("`-{short}`"));
    let long = flag.names().map(|name| format!("`--{name}{value}`"));
    let spellings: Vec<String> = short.into_iter().chain(long).collect();
    escape_bars(&spellings.join(", "))
}

fn render_help(flag: &Flag) -> String {
    let official = find_official_flag(&format!("--{}", flag.name));
    let note = match official.map(|official| official.support) {
        Some(Support::NoEffect(reason)) => format!(" (No effect: {reason}.)"),
        _ => String::new(),
    };
    escape_bars(&format!("{}{note}", flag.help)).replace('*', "\\*")
}

/// Escapes bars, which end a cell even in backticks.
fn escape_bars(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn checked_in_page_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    let current = render_page();
    if std::env::var_os("WHIMBREL_BLESS").is_some() {
        std::fs::write(&file, &current).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        stored == current,
        "the command line has changed; run the tests with WHIMBREL_BLESS=1 and look at the difference"
    );
}
