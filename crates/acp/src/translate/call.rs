//! How a tool call looks before it has a result: title, kind, locations, and what its input shows. Pure.

use std::path::Path;

use agent_client_protocol::v1::schema::{Diff, ToolCallContent, ToolCallLocation, ToolKind};
use serde_json::Value;

use super::text::{first_line, text_content};

/// What an editor shows of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallDescription {
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) locations: Vec<ToolCallLocation>,
    pub(crate) content: Vec<ToolCallContent>,
}

/// Describes a call whose input is complete.
pub(crate) fn describe_call(tool: &str, input: &Value, cwd: &Path) -> CallDescription {
    CallDescription {
        title: title(tool, input, cwd),
        kind: kind(tool),
        locations: locations(tool, input),
        content: content(tool, input),
    }
}

/// The kind of a tool.
pub(crate) fn kind(tool: &str) -> ToolKind {
    match tool {
        "Read" => ToolKind::Read,
        "Edit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Glob" | "Grep" => ToolKind::Search,
        "Bash" | "Monitor" => ToolKind::Execute,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "Agent" | "Task" => ToolKind::Think,
        "EnterPlanMode" | "ExitPlanMode" => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

/// Whether a tool only keeps the list of tasks, which the editor sees as the plan.
pub(crate) fn is_plan_tool(tool: &str) -> bool {
    matches!(tool, "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet")
}

/// A title for a call whose input is still streaming.
pub(crate) fn provisional_title(tool: &str) -> String {
    match split_mcp_name(tool) {
        Some((server, name)) => format!("{server}: {name}"),
        None => tool.to_owned(),
    }
}

fn title(tool: &str, input: &Value, cwd: &Path) -> String {
    let field = |name: &str| input[name].as_str().filter(|text| !text.is_empty());
    let path = |name: &str| field(name).map(|path| relative_path(path, cwd));
    let described = match tool {
        "Bash" | "Monitor" => field("command").map(str::to_owned),
        "Read" => path("file_path").map(|path| format!("Read {path}{}", read_range(input))),
        "Edit" => path("file_path").map(|path| format!("Edit {path}")),
        "Write" => path("file_path").map(|path| format!("Write {path}")),
        "NotebookEdit" => path("notebook_path").map(|path| format!("Edit {path}")),
        "Glob" => field("pattern").map(|pattern| {
            format!("Find {pattern}{}", path("path").map(|path| format!(" in {path}")).unwrap_or_default())
        }),
        "Grep" => field("pattern").map(|_| grep_line(input, cwd)),
        "WebFetch" => field("url").map(|url| format!("Fetch {url}")),
        "WebSearch" => field("query").map(|query| format!("Search the web: {query}")),
        "Agent" | "Task" => field("description").map(str::to_owned),
        "AskUserQuestion" => input["questions"][0]["question"].as_str().map(str::to_owned),
        "EnterPlanMode" => Some("Enter plan mode".into()),
        "ExitPlanMode" => Some("Ready to code?".into()),
        "Skill" => field("skill").map(|skill| format!("Skill {skill}")),
        _ => None,
    };
    described.unwrap_or_else(|| provisional_title(tool))
}

/// The lines that a Read is about.
fn read_range(input: &Value) -> String {
    match (input["offset"].as_u64(), input["limit"].as_u64()) {
        (Some(offset), Some(limit)) => {
            let first = offset.max(1);
            format!(" (lines {first}-{})", first.saturating_add(limit).saturating_sub(1).max(first))
        }
        (Some(offset), None) => format!(" (from line {})", offset.max(1)),
        (None, Some(limit)) => format!(" (lines 1-{limit})"),
        (None, None) => String::new(),
    }
}

/// A Grep as the command line that would do the same.
fn grep_line(input: &Value, cwd: &Path) -> String {
    let mut line = String::from("grep");
    for flag in ["-i", "-n", "-o"] {
        if input[flag] == true {
            line += &format!(" {flag}");
        }
    }
    for flag in ["-A", "-B", "-C"] {
        if let Some(count) = input[flag].as_u64() {
            line += &format!(" {flag} {count}");
        }
    }
    if input["output_mode"].as_str().unwrap_or("files_with_matches") == "files_with_matches" {
        line += " -l";
    }
    if let Some(glob) = input["glob"].as_str() {
        line += &format!(" --include=\"{glob}\"");
    }
    if let Some(kind) = input["type"].as_str() {
        line += &format!(" --type={kind}");
    }
    line += &format!(" \"{}\"", input["pattern"].as_str().unwrap_or_default());
    if let Some(path) = input["path"].as_str() {
        line += &format!(" {}", relative_path(path, cwd));
    }
    line
}

fn locations(tool: &str, input: &Value) -> Vec<ToolCallLocation> {
    let field = match tool {
        "Read" | "Edit" | "Write" => "file_path",
        "NotebookEdit" => "notebook_path",
        "Glob" | "Grep" => "path",
        _ => return Vec::new(),
    };
    let Some(path) = input[field].as_str().filter(|path| Path::new(path).is_absolute()) else {
        return Vec::new();
    };
    let line = input["offset"].as_u64().filter(|_| tool == "Read").and_then(|line| u32::try_from(line).ok());
    vec![ToolCallLocation::new(path).line(line.map(|line| line.max(1)))]
}

fn content(tool: &str, input: &Value) -> Vec<ToolCallContent> {
    let field = |name: &str| input[name].as_str();
    match tool {
        "Edit" => match input["edits"].as_array().filter(|edits| !edits.is_empty()) {
            Some(edits) => edits.iter().filter_map(|edit| edit_diff(&input["file_path"], edit)).collect(),
            None => edit_diff(&input["file_path"], input).into_iter().collect(),
        },
        "ExitPlanMode" => field("plan").map(text_content).into_iter().collect(),
        "Agent" | "Task" => field("prompt").map(text_content).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The diff of one replacement in a file.
fn edit_diff(path: &Value, edit: &Value) -> Option<ToolCallContent> {
    let (old, new) = (edit["old_string"].as_str()?, edit["new_string"].as_str()?);
    let old = (!old.is_empty()).then(|| old.to_owned());
    Some(Diff::new(path.as_str()?, new).old_text(old).into())
}

/// The diff of a call that changes a file, with what is known of the file: its text, or `None` if there is no file.
pub(crate) fn change_diff(tool: &str, input: &Value, existing: Option<String>) -> Option<ToolCallContent> {
    match tool {
        "Write" => write_diff(input, existing),
        "NotebookEdit" => notebook_diff(input, &existing?),
        _ => None,
    }
}

/// The diff of a cell. The old text of a new cell is empty.
fn notebook_diff(input: &Value, notebook: &str) -> Option<ToolCallContent> {
    let path = input["notebook_path"].as_str()?;
    let notebook: Value = serde_json::from_str(notebook).ok()?;
    let old = match input["edit_mode"].as_str() {
        Some("insert") => String::new(),
        _ => cell_source(notebook["cells"].as_array()?, input["cell_id"].as_str()?)?,
    };
    let new = match input["edit_mode"].as_str() {
        Some("delete") => "",
        _ => input["new_source"].as_str()?,
    };
    Some(Diff::new(path, new).old_text(old).into())
}

/// The text of a cell, which is named by its id or, as `cell-N`, by its index.
fn cell_source(cells: &[Value], id: &str) -> Option<String> {
    let by_index = || cells.get(id.strip_prefix("cell-")?.parse::<usize>().ok()?);
    let cell = cells.iter().find(|cell| cell["id"] == id).or_else(by_index)?;
    match &cell["source"] {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => Some(lines.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

/// The diff of a Write: `existing` is the file's text, or `None` if there is no file.
fn write_diff(input: &Value, existing: Option<String>) -> Option<ToolCallContent> {
    let (path, content) = (input["file_path"].as_str()?, input["content"].as_str()?);
    let kept = existing.as_deref().filter(|_| input["mode"] == "append").unwrap_or_default();
    Some(Diff::new(path, format!("{kept}{content}")).old_text(existing).into())
}

/// A path below the working directory as relative, others as they are.
pub(crate) fn relative_path(path: &str, cwd: &Path) -> String {
    match Path::new(path).strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".into(),
        Ok(rest) => rest.display().to_string(),
        Err(_) => first_line(path),
    }
}

/// Server and tool of the name of an MCP tool.
fn split_mcp_name(tool: &str) -> Option<(&str, &str)> {
    tool.strip_prefix("mcp__")?.split_once("__")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn titles_and_kinds_say_what_a_call_does() {
        let rows = [
            ("Bash", json!({"command": "cargo test", "description": "x"}), "cargo test", ToolKind::Execute),
            ("Read", json!({"file_path": "/w/src/a.rs"}), "Read src/a.rs", ToolKind::Read),
            (
                "Read",
                json!({"file_path": "/w/a", "offset": 5, "limit": 10}),
                "Read a (lines 5-14)",
                ToolKind::Read,
            ),
            (
                "Read",
                json!({"file_path": "/etc/hosts", "offset": 5}),
                "Read /etc/hosts (from line 5)",
                ToolKind::Read,
            ),
            ("Read", json!({"file_path": "/w/a", "limit": 3}), "Read a (lines 1-3)", ToolKind::Read),
            ("Edit", json!({"file_path": "/w/a"}), "Edit a", ToolKind::Edit),
            ("Write", json!({"file_path": "/w/a"}), "Write a", ToolKind::Edit),
            ("Glob", json!({"pattern": "*.rs", "path": "/w"}), "Find *.rs in .", ToolKind::Search),
            (
                "Grep",
                json!({"pattern": "fn x", "path": "/w/src", "-i": true, "-C": 2, "output_mode": "content", "glob": "*.rs"}),
                "grep -i -C 2 --include=\"*.rs\" \"fn x\" src",
                ToolKind::Search,
            ),
            ("Grep", json!({"pattern": "x"}), "grep -l \"x\"", ToolKind::Search),
            ("WebFetch", json!({"url": "https://a.b"}), "Fetch https://a.b", ToolKind::Fetch),
            ("Agent", json!({"description": "look around", "prompt": "p"}), "look around", ToolKind::Think),
            ("ExitPlanMode", json!({"plan": "p"}), "Ready to code?", ToolKind::SwitchMode),
            ("mcp__github__list_issues", json!({}), "github: list_issues", ToolKind::Other),
            ("Bash", json!({}), "Bash", ToolKind::Execute),
        ];
        for (tool, input, expected, kind) in rows {
            let described = describe_call(tool, &input, Path::new("/w"));
            assert_eq!((described.title.as_str(), described.kind), (expected, kind), "{tool} {input}");
        }
    }

    #[test]
    fn locations_are_absolute_paths_with_the_first_line() {
        let location = |tool: &str, input: Value| describe_call(tool, &input, Path::new("/w")).locations;
        assert_eq!(
            location("Read", json!({"file_path": "/w/a", "offset": 7})),
            [ToolCallLocation::new("/w/a").line(7)]
        );
        assert_eq!(location("Edit", json!({"file_path": "/w/a"})), [ToolCallLocation::new("/w/a")]);
        assert_eq!(location("Read", json!({"file_path": "a"})), []);
        assert_eq!(location("Bash", json!({"command": "ls"})), []);
    }

    #[test]
    fn notebook_edit_shows_a_diff_of_its_cell() {
        let notebook = json!({"cells": [{"source": ["a\n", "b"]}, {"id": "c1", "source": "x"}]}).to_string();
        let edit = |cell: &str, mode: &str| json!({"notebook_path": "/w/n", "cell_id": cell, "new_source": "new", "edit_mode": mode});
        let diff = |old: &str, new: &str| Some(Diff::new("/w/n", new).old_text(old.to_owned()).into());
        let rows = [
            (edit("c1", "replace"), diff("x", "new")),
            (edit("cell-0", "replace"), diff("a\nb", "new")),
            (edit("c1", "delete"), diff("x", "")),
            (edit("c1", "insert"), diff("", "new")),
            (edit("unknown", "replace"), None),
        ];
        for (input, expected) in rows {
            let found = change_diff("NotebookEdit", &input, Some(notebook.clone()));
            assert_eq!(found, expected, "{input}");
        }
        assert_eq!(change_diff("NotebookEdit", &edit("c1", "replace"), Some("no JSON".into())), None);
    }

    #[test]
    fn edit_shows_a_diff_and_a_new_file_has_no_old_text() {
        let edit = json!({"file_path": "/w/a", "old_string": "x", "new_string": "y"});
        let content = describe_call("Edit", &edit, Path::new("/w")).content;
        assert_eq!(content, [Diff::new("/w/a", "y").old_text("x".to_owned()).into()]);
        let half = json!({"file_path": "/w/a", "old_string": "x"});
        assert_eq!(describe_call("Edit", &half, Path::new("/w")).content, []);
        let several = json!({"file_path": "/w/a", "edits": [{"old_string": "x", "new_string": "y"}]});
        assert_eq!(describe_call("Edit", &several, Path::new("/w")).content, content);
        let append = json!({"file_path": "/w/a", "content": "new", "mode": "append"});
        assert_eq!(
            write_diff(&append, Some("old".into())),
            Some(Diff::new("/w/a", "oldnew").old_text("old".to_owned()).into())
        );
        let write = json!({"file_path": "/w/a", "content": "new"});
        assert_eq!(write_diff(&write, None), Some(Diff::new("/w/a", "new").into()));
        assert_eq!(
            write_diff(&write, Some("old".into())),
            Some(Diff::new("/w/a", "new").old_text("old".to_owned()).into())
        );
    }
}
