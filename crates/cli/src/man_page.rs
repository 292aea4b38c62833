//! `whimbrel man`: the man page, made from the flag table, the list of subcommands and their help pages.

use std::fmt::Write as _;

use crate::flags::{FlagDescription, describe_flags};
use crate::stdio::{self, report_error};
use crate::subcommands::{SUBCOMMANDS, Subcommand};
use crate::{acp, agents, auth, completions, config, doctor, kimi, mcp, plugin, sandbox, sessions};

/// What comes before the flags, in roff.
const INTRODUCTION: &str = r#".SH NAME
whimbrel \- agent that works in the current directory
.SH SYNOPSIS
.B whimbrel
.RI [ FLAGS ]
.I PROMPT
.br
.B whimbrel \-p
.RI [ FLAGS ]
.I PROMPT
.br
.B whimbrel
.I SUBCOMMAND
.RI [ ARGUMENTS ]
.SH DESCRIPTION
.B whimbrel
calls a model, runs the model's tool calls on this machine under permission rules, and prints the answer.
Without
.B \-p
it asks at the terminal before it changes anything.
Text on standard input is added after the prompt.
.PP
Programs such as the Claude Agent SDKs start it with
.BR "\-\-input\-format stream\-json" .
.PP
A list, shown with two dots, is separated by commas, or the flag is repeated.
A value in brackets is optional and follows the equals sign.
.B \-\-
ends the flags.
"#;

/// What comes after the subcommands, in roff.
const CONCLUSION: &str = r#".SH EXIT STATUS
.TP
.B 0
The last turn succeeded, or there was none.
.TP
.B 1
Wrong arguments, the session could not start, or the last turn ended in an error.
.TP
.BI 128+ N
Ended by signal
.IR N .
.SH ENVIRONMENT
.TP
.BR ANTHROPIC_API_KEY ", " ANTHROPIC_AUTH_TOKEN
Key or token for the Messages API.
.TP
.B ANTHROPIC_BASE_URL
Address of the Messages API, or of a gateway.
.TP
.BR OPENAI_API_KEY ", " OPENAI_BASE_URL
Key and address of a Chat Completions server, for models with the prefix
.BR openai: .
.TP
.B CLAUDE_CONFIG_DIR
Directory of settings, sessions and plugins, instead of
.IR \(ti/.claude .
.SH FILES
.TP
.I \(ti/.claude/settings.json
Settings of the user.
.TP
.IR .claude/settings.json ", " .claude/settings.local.json
Settings of the project, and of the user in this project.
.TP
.I .mcp.json
MCP servers of the project.
.TP
.IR CLAUDE.md ", " AGENTS.md
Instructions for the model.
.SH EXAMPLES
.EX
whimbrel demo
whimbrel "why does the build fail?"
whimbrel \-p "summarize these notes" < notes.txt
whimbrel permissions explain \(aqBash(git push)\(aq
.EE
"#;

/// Makes a help page.
type HelpPage = fn() -> &'static str;

/// Subcommands with a help page of their own.
const HELP_PAGES: [(&str, HelpPage); 11] = [
    ("sessions", sessions::help_page),
    ("mcp", mcp::help_page),
    ("plugin", plugin::help_page),
    ("config", config::help_page),
    ("agents", agents::help_page),
    ("doctor", doctor::help_page),
    ("auth", auth::help_page),
    ("sandbox", sandbox::help_page),
    ("acp", acp::help_page),
    ("info", kimi::help_page),
    ("completions", completions::help_page),
];

/// Prints the page and returns the exit code.
pub(crate) fn main(argv: &[String]) -> i32 {
    if let Some(surplus) = argv.first() {
        return report_error(&format!("{surplus:?} is not expected here. Usage: whimbrel man."));
    }
    match stdio::print(&render()) {
        Ok(()) => 0,
        Err(error) => report_error(&format!("Cannot write the output: {error}.")),
    }
}

fn render() -> String {
    let mut page =
        format!(".TH WHIMBREL 1 \"\" \"Whimbrel {}\" \"User Commands\"\n", env!("CARGO_PKG_VERSION"));
    page += INTRODUCTION;
    page += ".SH OPTIONS\n";
    for (heading, flags) in describe_flags() {
        let _ = writeln!(page, ".SS {}", escape(heading));
        page.extend(flags.iter().map(render_flag));
    }
    page += ".SH SUBCOMMANDS\n";
    for Subcommand { name, arguments, meaning, .. } in SUBCOMMANDS {
        let usage = format!("{name} {arguments}");
        let meaning = escape(&meaning.replace('`', ""));
        let _ = write!(page, ".TP\n\\fB{}\\fR\n{meaning}\n", escape(usage.trim_end()));
    }
    page.extend(HELP_PAGES.iter().map(|(_, help_page)| render_help_page(help_page())));
    page + CONCLUSION
}

fn render_flag(flag: &FlagDescription) -> String {
    let spellings: Vec<String> =
        flag.spellings().iter().map(|spelling| format!("\\fB{}\\fR", escape(spelling))).collect();
    format!(".TP\n{}{}\n{}\n", spellings.join(", "), escape(&flag.value_suffix), escape(flag.help))
}

/// Renders a help page as it is, under its first line as the heading.
fn render_help_page(help_page: &str) -> String {
    let (heading, body) = help_page.split_once('\n').unwrap_or((help_page, ""));
    let body: String = body.trim_matches('\n').lines().map(|line| escape(line) + "\n").collect();
    format!(".SS {}\n.EX\n{body}.EE\n", escape(heading.trim_end_matches('.')))
}

/// Escapes a line of text for roff.
fn escape(line: &str) -> String {
    let mut escaped = String::new();
    if line.starts_with(['.', '\'']) {
        escaped += "\\&";
    }
    for character in line.chars() {
        match character {
            '\\' => escaped += "\\e",
            '-' => escaped += "\\-",
            '\'' => escaped += "\\(aq",
            '`' => escaped += "\\(ga",
            '~' => escaped += "\\(ti",
            '^' => escaped += "\\(ha",
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roff_characters_are_escaped() {
        for (text, expected) in [
            (".mcp.json", "\\&.mcp.json"),
            ("'a'", "\\&\\(aqa\\(aq"),
            ("--flag ~ \\ `x` ^", "\\-\\-flag \\(ti \\e \\(gax\\(ga \\(ha"),
        ] {
            assert_eq!(escape(text), expected);
        }
    }

    #[test]
    fn subcommand_list_and_help_pages_agree() {
        for (name, help_page) in HELP_PAGES {
            let page = help_page();
            let subcommand = SUBCOMMANDS.iter().find(|subcommand| subcommand.name == name).unwrap();
            for command in subcommand.commands.iter().filter(|_| name != "agents") {
                assert!(page.contains(&format!("whimbrel {name} {command}")), "whimbrel {name} {command}");
            }
            for spelling in subcommand.flags.iter().filter_map(|flag| flag.spellings.last()) {
                assert!(page.contains(spelling), "whimbrel {name} {spelling}");
            }
            let usage = format!("  whimbrel {name} ");
            for line in page.lines().filter_map(|line| line.strip_prefix(usage.as_str())) {
                let is_listed = subcommand.commands.iter().any(|command| line.starts_with(command));
                assert!(
                    is_listed || line.starts_with([' ', '[']),
                    "whimbrel {name} {line} is not in the list"
                );
            }
        }
    }

    #[test]
    fn every_flag_and_subcommand_is_on_the_page() {
        let page = render();
        for flag in describe_flags().iter().flat_map(|(_, flags)| flags) {
            assert!(page.contains(&render_flag(flag)), "{:?}", flag.names);
        }
        for Subcommand { name, .. } in SUBCOMMANDS {
            assert!(page.contains(&format!("\n\\fB{name}")), "{name}");
        }
    }
}
