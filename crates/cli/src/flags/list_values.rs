//! Lists and optional values on the command line: splitting them, and recognizing them without their flag. Pure.

use crate::debug_log::parse_topic;

/// Splits at commas and blanks, but not inside parentheses: `Bash(a, b),Read` are two items.
pub(super) fn split_list(list: &str) -> Vec<String> {
    let mut items = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (index, character) in list.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ' ' if depth == 0 => {
                items.push(&list[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    items.push(&list[start..]);
    items.into_iter().map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Tool names that are recognized as further items without parentheses.
pub(super) const TOOL_NAMES: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "KillShell",
    "ListMcpResourcesTool",
    "LS",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Read",
    "ReadMcpResourceTool",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// Returns whether an argument can only be a list of permission rules.
pub(super) fn is_rule_list(argument: &str) -> bool {
    let items = split_list(argument);
    !items.is_empty() && items.iter().all(|item| is_rule(item))
}

fn is_rule(item: &str) -> bool {
    match item.split_once('(') {
        Some((tool, rest)) => {
            rest.ends_with(')')
                && !tool.is_empty()
                && tool.chars().all(|character| character.is_alphanumeric() || character == '_')
        }
        None => TOOL_NAMES.contains(&item) || item.starts_with("mcp__"),
    }
}

/// Returns whether an argument can only be a directory.
pub(super) fn is_directory_path(argument: &str) -> bool {
    let rooted = ["/", "./", "../", "~/"].iter().any(|start| argument.starts_with(start));
    (rooted || matches!(argument, "." | "..")) && !argument.contains(char::is_whitespace)
}

/// Returns whether an argument can only be an MCP configuration.
pub(super) fn is_mcp_config(argument: &str) -> bool {
    argument.trim_start().starts_with('{') || argument.ends_with(".json")
}

/// Topics of the official program that this one has no log for.
const OTHER_TOPICS: [&str; 4] = ["mcp", "file", "statsig", "1p"];

/// Returns whether an argument can only be the topics of a debug log: known names, or names that begin with `!`.
pub(super) fn is_topic_list(argument: &str) -> bool {
    let is_known = |name: &str| parse_topic(name).is_some() || OTHER_TOPICS.contains(&name);
    argument.split(',').all(|name| is_known(name) || name.strip_prefix('!').is_some_and(is_word))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|character| character.is_alphanumeric() || character == '-')
}

/// Returns whether an argument is taken as the name of a worktree: one word.
pub(super) fn is_worktree_name(argument: &str) -> bool {
    argument.starts_with(|first: char| first.is_ascii_alphanumeric())
        && argument.chars().all(|each| each.is_ascii_alphanumeric() || matches!(each, '.' | '_' | '-'))
}

/// Returns whether an argument can only be the value of a switch.
pub(super) fn is_switch_value(argument: &str) -> bool {
    matches!(argument, "on" | "off" | "true" | "false" | "yes" | "no" | "0" | "1")
}

/// For list flags that take a single argument.
pub(super) fn accepts_no_more(_argument: &str) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comma_inside_parentheses_does_not_split() {
        let rows: [(&str, &[&str]); 8] = [
            ("", &[]),
            ("Read", &["Read"]),
            ("Read,Edit", &["Read", "Edit"]),
            ("Read Edit", &["Read", "Edit"]),
            ("Bash(a,b),Read", &["Bash(a,b)", "Read"]),
            ("Bash(git log:*), Read", &["Bash(git log:*)", "Read"]),
            ("Bash(f(x, y)),,mcp__s__t", &["Bash(f(x, y))", "mcp__s__t"]),
            ("Bash(never closed, so one", &["Bash(never closed, so one"]),
        ];
        for (list, expected) in rows {
            assert_eq!(split_list(list), expected, "{list:?}");
        }
    }

    #[test]
    fn further_argument_is_a_rule_only_if_unambiguous() {
        let rules = ["Read", "Bash(git *)", "mcp__github__list", "Read,Edit", "Bash(a) Edit"];
        let prompts = ["Hello", "Read the file", "what is (this)", "fix Bash", "", "read"];
        assert!(rules.iter().all(|rule| is_rule_list(rule)));
        assert!(!prompts.iter().any(|prompt| is_rule_list(prompt)));
    }

    #[test]
    fn further_argument_is_a_topic_list_only_if_unambiguous() {
        assert!(
            ["api", "api,hooks", "!frames", "!statsig,!file", "Tool"].iter().all(|list| is_topic_list(list))
        );
        assert!(
            !["hi", "api please", "api,", "", "!", "fix,this"].iter().any(|prompt| is_topic_list(prompt))
        );
    }

    #[test]
    fn one_word_is_the_name_of_a_worktree() {
        assert!(["fix-1", "v1.2_x", "7"].iter().all(|name| is_worktree_name(name)));
        assert!(!["fix this", "", "-x", "why?", "a/b"].iter().any(|prompt| is_worktree_name(prompt)));
    }

    #[test]
    fn further_argument_is_a_directory_only_if_unambiguous() {
        assert!(["/a", "./b", "../c", "~/d", ".", ".."].iter().all(|dir| is_directory_path(dir)));
        assert!(
            !["src", "look into /tmp", "/tmp is full", ""].iter().any(|prompt| is_directory_path(prompt))
        );
    }
}
