//! Results of calls as the host gets them.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use whimbrel::wire::content::{Block, ResultContent, Source};

use super::diff;
use super::display::{DisplayBlock, TodoItem};
use super::to_kimi::to_kimi;

/// The result of a call, of the engine's tools and of the host's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolReturnValue {
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) is_error: bool,
    /// What the tool has to say.
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) output: ToolOutput,
    /// A line of explanation, and the reason of an error.
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) message: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub(crate) display: Vec<DisplayBlock>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ToolOutput {
    Text(String),
    Parts(Vec<OutputPart>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum OutputPart {
    Text {
        text: String,
    },
    ImageUrl {
        image_url: MediaUrl,
    },
    /// Any other kind, kept as it came from the host.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MediaUrl {
    /// An address or a data URI.
    pub(crate) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
}

impl Default for ToolOutput {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// Null and absent mean the same on this wire.
fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Characters of the short text of an error.
const MAX_BRIEF_CHARS: usize = 100;

/// Translates a result. `input` is the engine's, `content` what the model reads, `tool_use_result` the tool's
/// structured result or `Error: ..`.
pub(crate) fn return_value(
    engine_name: &str,
    input: &Value,
    content: &ResultContent,
    is_error: bool,
    tool_use_result: Option<&Value>,
) -> ToolReturnValue {
    if is_error {
        return error_value(engine_name, content, tool_use_result);
    }
    let structured = tool_use_result.unwrap_or(&Value::Null);
    let display = success_display(engine_name, input, structured);
    let (output, message) = match answers(engine_name, structured) {
        Some(answers) => (ToolOutput::Text(answers), String::new()),
        None => success_output(content),
    };
    ToolReturnValue { is_error: false, output, message, display }
}

fn error_value(
    engine_name: &str,
    content: &ResultContent,
    tool_use_result: Option<&Value>,
) -> ToolReturnValue {
    let reason = match tool_use_result.and_then(Value::as_str) {
        Some(text) => text.strip_prefix("Error: ").unwrap_or(text).to_owned(),
        None => without_error_tag(&joined_text(content)).to_owned(),
    };
    let (message, output) = match reason.split_once('\n') {
        // The first line of a failed command says how it ended, the rest is its output.
        Some((end, output)) if engine_name == "Bash" && end.starts_with("Exit code ") => (end, output),
        _ => (reason.as_str(), ""),
    };
    let message = if message.trim().is_empty() { "The call failed." } else { message };
    let output = match to_output(content) {
        parts @ ToolOutput::Parts(_) => parts,
        ToolOutput::Text(_) => ToolOutput::Text(output.to_owned()),
    };
    let display = vec![DisplayBlock::brief(brief(message))];
    ToolReturnValue { is_error: true, output, message: message.to_owned(), display }
}

/// The output, and a message if the engine has only a hint for the model.
fn success_output(content: &ResultContent) -> (ToolOutput, String) {
    let output = to_output(content);
    let hint = match &output {
        ToolOutput::Text(text) => text
            .strip_prefix("<system-reminder>")
            .and_then(|text| text.trim_end().strip_suffix("</system-reminder>"))
            .map(|text| text.trim().to_owned()),
        ToolOutput::Parts(_) => None,
    };
    match hint {
        Some(hint) => (ToolOutput::default(), hint),
        None => (output, String::new()),
    }
}

/// The user's answers as JSON text.
fn answers(engine_name: &str, structured: &Value) -> Option<String> {
    let answers = structured.get("answers").filter(|_| engine_name == "AskUserQuestion")?;
    Some(json!({"answers": answers}).to_string())
}

fn success_display(engine_name: &str, input: &Value, structured: &Value) -> Vec<DisplayBlock> {
    match engine_name {
        "Edit" | "Write" => diff::from_result(structured),
        "TodoWrite" => {
            let (_, input) = to_kimi(engine_name, input);
            let items = Vec::<TodoItem>::deserialize(&input["todos"]).ok();
            items.map(|items| DisplayBlock::Todo { items }).into_iter().collect()
        }
        "Bash" | "Agent" | "TaskOutput" | "TaskStop" => {
            background_task(engine_name, input, structured).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The task that a call has started, stopped or asked about.
fn background_task(engine_name: &str, input: &Value, structured: &Value) -> Option<DisplayBlock> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let task = &structured["task"];
    let (task_id, kind, status, description) = match engine_name {
        "Bash" => {
            let description = text(&input["description"]).or_else(|| text(&input["command"]));
            (text(&structured["backgroundTaskId"])?, "bash", "running".into(), description)
        }
        "Agent" if structured["status"] == "async_launched" => {
            (text(&structured["agentId"])?, "agent", "running".into(), text(&structured["description"]))
        }
        "TaskOutput" => {
            (text(&task["task_id"])?, task_kind(task), text(&task["status"])?, text(&task["description"]))
        }
        "TaskStop" => {
            let description = text(&structured["command"]).or_else(|| text(&structured["message"]));
            (text(&structured["task_id"])?, task_kind(structured), "stopped".into(), description)
        }
        _ => return None,
    };
    let (kind, description) = (kind.to_owned(), description.unwrap_or_default());
    Some(DisplayBlock::BackgroundTask { task_id, kind, status, description })
}

fn task_kind(task: &Value) -> &'static str {
    if task["task_type"] == "local_bash" { "bash" } else { "agent" }
}

/// Text stays text unless there is something else beside it.
fn to_output(content: &ResultContent) -> ToolOutput {
    match content {
        ResultContent::Blocks(blocks) if !blocks.iter().all(|block| matches!(block, Block::Text { .. })) => {
            ToolOutput::Parts(blocks.iter().filter_map(to_part).collect())
        }
        ResultContent::Text(_) | ResultContent::Blocks(_) => ToolOutput::Text(joined_text(content)),
    }
}

fn to_part(block: &Block) -> Option<OutputPart> {
    let text = |text: &str| OutputPart::Text { text: text.to_owned() };
    let url = |source: &Source| match source {
        Source::Base64 { media_type, data } => Some(format!("data:{media_type};base64,{data}")),
        Source::Url { url } => Some(url.clone()),
        Source::Text { .. } | Source::File { .. } => None,
    };
    match block {
        Block::Text { text: shown, .. } => Some(text(shown)),
        Block::Image { source } => {
            Some(OutputPart::ImageUrl { image_url: MediaUrl { url: url(source)?, id: None } })
        }
        Block::Document { source: Source::Text { data, .. }, .. } => Some(text(data)),
        Block::Document { title, .. } => Some(text(&format!("({})", title.as_deref().unwrap_or("document")))),
        _ => None,
    }
}

fn joined_text(content: &ResultContent) -> String {
    match content {
        ResultContent::Text(text) => text.clone(),
        ResultContent::Blocks(blocks) => {
            let texts = blocks.iter().filter_map(|block| match block {
                Block::Text { text, .. } => Some(text.as_str()),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Removes the tags that tell the model that a call had no effect.
fn without_error_tag(text: &str) -> &str {
    let inner = text.trim().strip_prefix("<tool_use_error>");
    inner.and_then(|text| text.strip_suffix("</tool_use_error>")).unwrap_or(text)
}

fn brief(message: &str) -> String {
    let line = message.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_BRIEF_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::display::TodoStatus;

    fn text(text: &str) -> ResultContent {
        ResultContent::Text(text.into())
    }

    fn value(is_error: bool, output: &str, message: &str, display: Vec<DisplayBlock>) -> ToolReturnValue {
        ToolReturnValue {
            is_error,
            output: ToolOutput::Text(output.into()),
            message: message.into(),
            display,
        }
    }

    fn task(task_id: &str, kind: &str, status: &str, description: &str) -> Vec<DisplayBlock> {
        let [task_id, kind, status, description] = [task_id, kind, status, description].map(str::to_owned);
        vec![DisplayBlock::BackgroundTask { task_id, kind, status, description }]
    }

    #[test]
    fn success_is_output_with_what_the_host_shows() {
        let todos = json!({"todos": [
            {"content": "a", "status": "completed", "activeForm": "a"},
            {"content": "b", "status": "in_progress", "activeForm": "b"},
        ]});
        let items = [("a", TodoStatus::Done), ("b", TodoStatus::InProgress)];
        let items = items.map(|(title, status)| TodoItem { title: title.into(), status }).to_vec();
        let patch = json!({"filePath": "/a", "structuredPatch": [{"oldStart": 2, "newStart": 3, "lines": ["-x", "+y"]}]});
        let diff = DisplayBlock::Diff {
            path: "/a".into(),
            old_text: "x".into(),
            new_text: "y".into(),
            old_start: Some(2),
            new_start: Some(3),
            is_summary: None,
        };
        let background = json!({"command": "sleep 9", "run_in_background": true});
        let rows = [
            ("command", "Bash", json!({"command": "ls"}), json!({"stdout": "a"}), vec![]),
            ("edit", "Edit", json!({"file_path": "/a"}), patch, vec![diff]),
            ("to-do list", "TodoWrite", todos, Value::Null, vec![DisplayBlock::Todo { items }]),
            (
                "background command",
                "Bash",
                background,
                json!({"stdout": "", "backgroundTaskId": "b1"}),
                task("b1", "bash", "running", "sleep 9"),
            ),
            (
                "background agent",
                "Agent",
                json!({}),
                json!({"status": "async_launched", "agentId": "a1", "description": "look"}),
                task("a1", "agent", "running", "look"),
            ),
            (
                "finished agent",
                "Agent",
                json!({}),
                json!({"status": "completed", "agentId": "a1", "description": "look"}),
                vec![],
            ),
            (
                "state of a task",
                "TaskOutput",
                json!({"task_id": "b1"}),
                json!({"task": {"task_id": "b1", "task_type": "local_bash", "status": "failed", "description": "d"}}),
                task("b1", "bash", "failed", "d"),
            ),
            (
                "stopped task",
                "TaskStop",
                json!({"task_id": "a1"}),
                json!({"task_id": "a1", "task_type": "local_agent", "message": "Stopped a1.", "command": null}),
                task("a1", "agent", "stopped", "Stopped a1."),
            ),
        ];
        for (name, tool, input, structured, display) in rows {
            let found = return_value(tool, &input, &text("words"), false, Some(&structured));
            assert_eq!(found, value(false, "words", "", display), "{name}");
        }
    }

    #[test]
    fn output_is_text_or_parts() {
        let png = Source::Base64 { media_type: "image/png".into(), data: "eA==".into() };
        let picture = ResultContent::Blocks(vec![Block::Image { source: png }, Block::text("Resized.")]);
        let parts = json!([
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}, {"type": "text", "text": "Resized."},
        ]);
        let blocks = ResultContent::Blocks(vec![Block::text("report"), Block::text("agentId: a1")]);
        let empty_file = text("<system-reminder>\n/a exists but is empty.\n</system-reminder>");
        let rows = [
            ("picture", "Read", picture, parts, ""),
            ("blocks of text", "Agent", blocks, json!("report\nagentId: a1"), ""),
            ("empty file", "Read", empty_file, json!(""), "/a exists but is empty."),
            (
                "quoted hint",
                "Read",
                text("1\t<system-reminder>x</system-reminder>"),
                json!("1\t<system-reminder>x</system-reminder>"),
                "",
            ),
        ];
        for (name, tool, content, output, message) in rows {
            let found = return_value(tool, &json!({}), &content, false, None);
            let expected = json!({"is_error": false, "output": output, "message": message, "display": []});
            assert_eq!(serde_json::to_value(&found).unwrap(), expected, "{name}");
            assert_eq!(serde_json::from_value::<ToolReturnValue>(expected).unwrap(), found, "{name}");
        }
    }

    #[test]
    fn answers_are_json_text() {
        let rows = [
            (
                "answered",
                json!({"questions": [], "answers": {"Which?": "B"}}),
                r#"{"answers":{"Which?":"B"}}"#,
            ),
            ("dismissed", json!({"questions": [], "answers": {}}), r#"{"answers":{}}"#),
        ];
        for (name, structured, expected) in rows {
            let found =
                return_value("AskUserQuestion", &json!({}), &text("for the model"), false, Some(&structured));
            assert_eq!(found, value(false, expected, "", vec![]), "{name}");
        }
    }

    #[test]
    fn errors_have_a_message() {
        let long = "x".repeat(300);
        let rows = [
            ("command", "Bash", "", Some("Error: Exit code 3\nbefore\nend"), "before\nend", "Exit code 3"),
            ("silent command", "Bash", "", Some("Error: Exit code 1"), "", "Exit code 1"),
            ("refused", "Bash", "", Some("Error: The user denied Bash."), "", "The user denied Bash."),
            ("lines", "Edit", "", Some("Error: Edit 1: no\nEdit 2: no"), "", "Edit 1: no\nEdit 2: no"),
            ("text only", "Read", "<tool_use_error>no file</tool_use_error>", None, "", "no file"),
            ("nothing", "mcp__a__b", "", None, "", "The call failed."),
            ("blank", "Read", "", Some("Error: "), "", "The call failed."),
            ("long", "Read", long.as_str(), None, "", long.as_str()),
        ];
        for (name, tool, content, structured, output, message) in rows {
            let structured = structured.map(Value::from);
            let found = return_value(tool, &json!({}), &text(content), true, structured.as_ref());
            let first_line = message.lines().next().unwrap_or_default();
            let brief =
                if first_line.len() > 100 { format!("{}...", &long[..100]) } else { first_line.to_owned() };
            assert_eq!(found, value(true, output, message, vec![DisplayBlock::brief(brief)]), "{name}");
        }
    }

    #[test]
    fn what_a_host_leaves_out_is_empty() {
        let short: ToolReturnValue =
            serde_json::from_value(json!({"is_error": false, "output": "x", "message": null})).unwrap();
        assert_eq!(short, value(false, "x", "", vec![]));
        let video = json!({"type": "video_url", "video_url": {"url": "u"}});
        let parts: ToolOutput = serde_json::from_value(json!([video])).unwrap();
        assert_eq!(serde_json::to_value(parts).unwrap(), json!([video]));
    }
}
