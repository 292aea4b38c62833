//! Answers permission requests when there is no host.

use std::io::{self, BufRead, Write};

use rustix::termios::{QueueSelector, tcflush};
use serde_json::{Map, Value};
use whimbrel_wire::control::CanUseTool;
use whimbrel_wire::permission::PermissionResult;

use super::format::{LineBreaks, call_label, sanitize};
use super::question_tool;

/// Source of the answers to permission requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionPrompter {
    /// No user is present: every request is denied.
    Unattended,
    /// The user at the terminal.
    Terminal,
    /// The demo without a terminal: every request is allowed.
    AutoAllow,
}

impl PermissionPrompter {
    /// Returns whether the engine should send permission requests at all.
    pub(crate) fn can_answer(self) -> bool {
        !matches!(self, Self::Unattended)
    }

    /// Answers a request; returns a note if the user did not see the request.
    pub(crate) async fn answer(self, request: &CanUseTool) -> (PermissionResult, Option<String>) {
        let call = call_label(&request.tool_name, &Value::Object(request.input.clone()));
        match self {
            Self::Unattended => (PermissionResult::deny("This run has no user who could be asked."), None),
            Self::AutoAllow => (
                PermissionResult::allow(),
                Some(format!("  ? {call}  → allowed by the demo, because there is no terminal to ask on")),
            ),
            Self::Terminal if request.tool_name == question_tool::TOOL_NAME => {
                let input = request.input.clone();
                let answered =
                    tokio::task::spawn_blocking(move || question_tool::ask_questions(input, read_answer))
                        .await;
                (answered.unwrap_or_else(|_| PermissionResult::deny(NO_ANSWER)), None)
            }
            Self::Terminal => {
                let line =
                    render_prompt(&request.tool_name, &request.input, request.decision_reason.as_deref());
                // A failed read counts as no answer, which denies the call.
                let answer = tokio::task::spawn_blocking(move || read_answer(&line)).await.ok().flatten();
                match answer.as_deref().map(is_yes) {
                    Some(true) => (PermissionResult::allow(), None),
                    Some(false) => (PermissionResult::deny("The user denied the call."), None),
                    None => (PermissionResult::deny(NO_ANSWER), None),
                }
            }
        }
    }
}

/// Message for the model if the user did not answer.
pub(super) const NO_ANSWER: &str = "The user did not answer.";

/// Number of lines shown per field. A command or a plan is always shown completely: its last line does as much as its
/// first.
const MAX_SHOWN_LINES: usize = 200;

/// Renders the whole call, every field of its input line by line, so that nothing is approved unseen.
fn render_prompt(tool: &str, input: &Map<String, Value>, reason: Option<&str>) -> String {
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let mut text = sanitize(&format!("  ? {tool}{reason}"), LineBreaks::Replace) + "\n";
    for (name, value) in input {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text += &format!("    {}:", sanitize(name, LineBreaks::Replace));
        if value.contains('\n') {
            let limit =
                if matches!(name.as_str(), "command" | "plan") { usize::MAX } else { MAX_SHOWN_LINES };
            for line in value.lines().take(limit) {
                text += &format!("\n      | {}", sanitize(line, LineBreaks::Replace));
            }
            let more = value.lines().count().saturating_sub(limit);
            if more > 0 {
                text += &format!("\n      ({more} more lines are not shown)");
            }
            text.push('\n');
        } else {
            text += &format!(" {}\n", sanitize(&value, LineBreaks::Replace));
        }
    }
    text + "    allow? [y/N] "
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Shows a prompt at the terminal and waits for a line, without a timeout.
fn read_answer(prompt: &str) -> Option<String> {
    // Discard what was typed before the prompt appeared: it is not an answer to it.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    write_stderr(prompt)?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).ok()?;
    if read == 0 {
        write_stderr("\n")?;
    }
    (read > 0).then_some(line)
}

/// Writes to stderr and releases its lock, so that others can write while the answer is awaited.
fn write_stderr(text: &str) -> Option<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_clear_yes_allows() {
        let rows = [
            ("y\n", true),
            ("Yes\r\n", true),
            (" y ", true),
            ("\n", false),
            ("n\n", false),
            ("yeah no", false),
        ];
        for (answer, expected) in rows {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn prompt_shows_the_whole_sanitized_call() {
        let input = json!({"command": "echo ok\n\n\u{1b}[2Arm -rf ~\u{202e}", "timeout": 5});
        let text = render_prompt("Bash", input.as_object().unwrap(), Some("b\nc"));
        let expected = "  ? Bash (b c)\n    command:\n      | echo ok\n      | \n      | \u{fffd}[2Arm -rf ~\u{fffd}\n    timeout: 5\n    allow? [y/N] ";
        assert_eq!(text, expected);
    }

    #[test]
    fn long_command_is_shown_completely_and_long_file_truncated() {
        let long = "x\n".repeat(600) + "the end";
        for (field, whole) in [("command", true), ("plan", true), ("content", false)] {
            let input = json!({field: long});
            let text = render_prompt("Tool", input.as_object().unwrap(), None);
            assert_eq!(
                (text.contains("the end"), text.contains("401 more lines")),
                (whole, !whole),
                "{field}"
            );
        }
    }
}
