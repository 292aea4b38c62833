//! Generates `docs/command-line.md` from the flag table and the help pages of the subcommands, and compares it with the
//! checked-in page. `WHIMBREL_BLESS=1` rewrites the page.

use std::fmt::Write;
use std::path::Path;

use crate::flags::flag::{Flag, FlagGroup, FlagKind};
use crate::flags::table::FLAGS;

/// First part of the page: what the flag table does not say.
const INTRODUCTION: &str = "\
# Command line

This page is generated from the flag table of the program. `whimbrel --help` prints the same flags.

```
whimbrel \"PROMPT\" [FLAGS]         run a task; ask at the terminal before acting
whimbrel -p \"PROMPT\" [FLAGS]      print the answer and exit; never ask
whimbrel SUBCOMMAND [ARGUMENTS]
```

Text on stdin is added to the prompt. Programs that start Whimbrel use `--input-format stream-json`, see
[wire protocol](wire-protocol.md). Environment variables are listed in [environment](environment.md), the syntax of rules
in [permissions](permissions.md).

## How flags are parsed

- `--flag value` and `--flag=value` are the same. A value may be empty. An argument that is itself a known flag is never
  taken as a value.
- A flag with an optional value, shown as `[=VALUE]`, takes it only after `=`.
- A list, shown as `VALUE..`, is comma separated, or the flag is repeated. Further arguments are taken only if they cannot
  be the prompt: for rules the names of tools and `Tool(..)`, for directories paths that begin with `/`, `./`, `../` or
  `~/`, for MCP configurations JSON and names that end in `.json`.
- `--` ends the flags. An argument that begins with a dash and has a blank in its name is text.
- An unknown flag is an error. If an SDK starts the program (`CLAUDE_CODE_ENTRYPOINT` begins with `sdk-`), an unknown flag
  is skipped with a warning, unless its name suggests that it restricts something.

## Exit codes

| Code | Meaning |
|---|---|
| 0 | the last turn succeeded, or there was none |
| 1 | wrong arguments, the session could not start, the last turn ended in an error, the reader of stdout is gone, or a line was malformed with `--strict-input` |
| 128 + N | ended by signal N: 130 after SIGINT, 143 after SIGTERM |
";

/// The subcommands, in the order of the page.
const SUBCOMMANDS: [(&str, &str); 7] = [
    ("whimbrel demo", "run a scripted session that needs no key and no network"),
    (
        "whimbrel permissions explain 'TOOL(..)' [--mode MODE] [--json]",
        "show the decision for a tool call and the rule behind it, see [permissions](permissions.md)",
    ),
    (
        "whimbrel sessions ..",
        "list, read, search, export and edit stored sessions, see [sessions](sessions.md)",
    ),
    ("whimbrel mcp ..", "manage MCP servers, or serve the built-in tools as one, see [MCP servers](mcp.md)"),
    (
        "whimbrel plugin ..",
        "add marketplaces and install plugins from them, see [plugins](extending.md#plugins)",
    ),
    ("whimbrel help", "the same as `--help`"),
    ("whimbrel version", "the same as `--version`"),
];

/// Flags that are accepted for compatibility and change nothing yet.
const WITHOUT_EFFECT: [&str; 4] = [
    "prompt-suggestions",
    "exclude-dynamic-system-prompt-sections",
    "system-prompt-snapshot",
    "await-initialize",
];

fn render_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (group, heading) in FlagGroup::ALL {
        write!(page, "\n## {heading}\n\n| Flag | Meaning |\n|---|---|\n").unwrap();
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            writeln!(page, "| {} | {} |", render_flag(flag), render_help(flag)).unwrap();
        }
    }
    page.push_str("\n## Subcommands\n\n| Command | Meaning |\n|---|---|\n");
    for (usage, meaning) in SUBCOMMANDS {
        writeln!(page, "| `{usage}` | {meaning} |").unwrap();
    }
    for (name, help) in [
        ("sessions", crate::sessions::help_page()),
        ("mcp", crate::mcp::help_page()),
        ("plugin", crate::plugin::help_page()),
    ] {
        write!(page, "\n### whimbrel {name}\n\n```\n{}\n```\n", help.trim_end()).unwrap();
    }
    page
}

/// All spellings of a flag with its value, each in backticks.
fn render_flag(flag: &Flag) -> String {
    let value = match flag.kind {
        FlagKind::Switch(_) => String::new(),
        FlagKind::Value(value, _) => format!(" {value}"),
        FlagKind::Optional(value, _) => format!("[={value}]"),
        FlagKind::List { value, .. } => format!(" {value}.."),
    };
    let short = flag.short.map(|short| format!("`-{short}`"));
    let long = flag.names().map(|name| format!("`--{name}{value}`"));
    let spellings: Vec<String> = short.into_iter().chain(long).collect();
    escape_bars(&spellings.join(", "))
}

fn render_help(flag: &Flag) -> String {
    let note =
        if WITHOUT_EFFECT.contains(&flag.name) { " (Accepted, without effect in this version.)" } else { "" };
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

#[test]
fn flags_without_effect_exist() {
    for name in WITHOUT_EFFECT {
        assert!(FLAGS.iter().any(|flag| flag.name == name), "{name}");
    }
}
