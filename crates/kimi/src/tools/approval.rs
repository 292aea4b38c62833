//! What the host is asked before a call.

use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::diff;
use super::display::DisplayBlock;
use super::names::{kimi_name, shown_name, split_mcp_name};

/// A question about a call. An approval for the session holds for the action.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Approval {
    /// The tool.
    pub(crate) sender: String,
    pub(crate) action: String,
    pub(crate) description: String,
    pub(crate) display: Vec<DisplayBlock>,
}

/// Describes a call of the engine. `read_text` reads the text of a file that a call would overwrite.
pub(crate) fn approval(
    engine_name: &str,
    input: &Value,
    cwd: &Path,
    read_text: impl FnOnce(&str) -> Option<String>,
) -> Approval {
    let (action, description) = match split_mcp_name(engine_name) {
        Some((_, tool)) => (format!("mcp:{tool}"), format!("Call the MCP tool `{tool}`")),
        None => action(engine_name, input, cwd),
    };
    let display = match engine_name {
        "Bash" => input["command"].as_str().map(DisplayBlock::shell).into_iter().collect(),
        _ => diff::from_input(engine_name, input, read_text),
    };
    Approval { sender: shown_name(engine_name).to_owned(), action, description, display }
}

fn action(engine_name: &str, input: &Value, cwd: &Path) -> (String, String) {
    let field = |name: &str| input[name].as_str().unwrap_or_default();
    let (action, description) = match engine_name {
        "Bash" if is_set(&input["run_in_background"]) => {
            ("run background command", format!("Run the background command `{}`", field("command")))
        }
        "Bash" => ("run command", format!("Run the command `{}`", field("command"))),
        "Edit" | "Write" | "NotebookEdit" => {
            let path =
                if engine_name == "NotebookEdit" { field("notebook_path") } else { field("file_path") };
            let action = match is_inside(path, cwd) {
                true => "edit file",
                false => "edit file outside of working directory",
            };
            (action, format!("Edit the file `{path}`"))
        }
        "TaskStop" => ("stop background task", format!("Stop the background task `{}`", field("task_id"))),
        "Read" => ("read file", format!("Read the file `{}`", field("file_path"))),
        "Glob" | "Grep" => {
            let path = Some(field("path")).filter(|path| !path.is_empty()).unwrap_or(".");
            ("search files", format!("Search `{path}` for `{}`", field("pattern")))
        }
        "WebFetch" => ("fetch URL", format!("Fetch `{}`", field("url"))),
        "WebSearch" => ("search web", format!("Search the web for `{}`", field("query"))),
        _ => {
            let name = kimi_name(engine_name);
            return (format!("use {name}"), format!("Use {name} with {input}"));
        }
    };
    (action.to_owned(), description)
}

/// As the engine reads it: models also send `"true"`.
fn is_set(flag: &Value) -> bool {
    match flag {
        Value::String(text) => text.eq_ignore_ascii_case("true"),
        other => *other == true,
    }
}

/// Compares names: symbolic links are not followed, and a path below the home directory counts as outside.
fn is_inside(path: &str, cwd: &Path) -> bool {
    !path.starts_with('~') && normalize(&cwd.join(path)).starts_with(normalize(cwd))
}

fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normalized.pop()),
            Component::CurDir => {}
            other => normalized.push(other),
        }
    }
    normalized
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn approve(engine_name: &str, input: &Value) -> Approval {
        approval(engine_name, input, Path::new("/w/dir"), |_| Some("old".into()))
    }

    #[test]
    fn actions_are_those_of_kimi() {
        let file = |path: &str| json!({"file_path": path});
        let rows = [
            ("Bash", json!({"command": "ls"}), "Shell", "run command", "Run the command `ls`"),
            (
                "Bash",
                json!({"command": "ls", "run_in_background": "true"}),
                "Shell",
                "run background command",
                "Run the background command `ls`",
            ),
            ("Write", file("/w/dir/a"), "WriteFile", "edit file", "Edit the file `/w/dir/a`"),
            ("Edit", file("sub/../a"), "StrReplaceFile", "edit file", "Edit the file `sub/../a`"),
            (
                "Edit",
                file("../a"),
                "StrReplaceFile",
                "edit file outside of working directory",
                "Edit the file `../a`",
            ),
            (
                "Write",
                file("/w/dir2/a"),
                "WriteFile",
                "edit file outside of working directory",
                "Edit the file `/w/dir2/a`",
            ),
            (
                "Write",
                file("~/a"),
                "WriteFile",
                "edit file outside of working directory",
                "Edit the file `~/a`",
            ),
            (
                "TaskStop",
                json!({"task_id": "b1"}),
                "TaskStop",
                "stop background task",
                "Stop the background task `b1`",
            ),
            ("mcp__demo__greet", json!({"who": "you"}), "greet", "mcp:greet", "Call the MCP tool `greet`"),
            ("Read", file("/etc/x"), "ReadFile", "read file", "Read the file `/etc/x`"),
            ("Grep", json!({"pattern": "a"}), "Grep", "search files", "Search `.` for `a`"),
            ("WebFetch", json!({"url": "u"}), "FetchURL", "fetch URL", "Fetch `u`"),
            ("Skill", json!({"skill": "pdf"}), "Skill", "use Skill", r#"Use Skill with {"skill":"pdf"}"#),
        ];
        for (tool, input, sender, action, description) in rows {
            let found = approve(tool, &input);
            let expected = (sender, action, description);
            assert_eq!((found.sender.as_str(), found.action.as_str(), found.description.as_str()), expected);
        }
    }

    #[test]
    fn the_host_shows_the_command_or_the_change() {
        let display = |tool: &str, input: Value| serde_json::to_value(approve(tool, &input).display).unwrap();
        let rows = [
            (
                "command",
                display("Bash", json!({"command": "ls"})),
                json!([{"type": "shell", "language": "bash", "command": "ls"}]),
            ),
            (
                "edit",
                display("Edit", json!({"file_path": "a", "old_string": "x", "new_string": "y"})),
                json!([{"type": "diff", "path": "a", "old_text": "x", "new_text": "y"}]),
            ),
            (
                "overwritten file",
                display("Write", json!({"file_path": "a", "content": "new"})),
                json!([{"type": "diff", "path": "a", "old_text": "old", "new_text": "new", "old_start": 1, "new_start": 1}]),
            ),
            ("MCP tool", display("mcp__demo__greet", json!({"command": "x"})), json!([])),
        ];
        for (name, found, expected) in rows {
            assert_eq!(found, expected, "{name}");
        }
    }
}
