//! What an editor shows of the result of a call, from the tool's structured result. Pure.

use agent_client_protocol::v1::schema::{ContentBlock, ImageContent, ToolCallContent, ToolCallLocation};
use serde_json::Value;
use whimbrel::wire::content::{Block, ResultContent, Source};
use whimbrel::wire::message::CommandExit;

use super::diff;
use super::text::{fenced_content, text_content};

/// Largest structured result that is passed on as it is.
const MAX_RAW_OUTPUT_BYTES: usize = 64 * 1024;

/// The result of a call, as the engine reports it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawResult<'a> {
    /// The tool's structured result, or `Error: ..`.
    pub(crate) structured: Option<&'a Value>,
    /// What the model reads.
    pub(crate) for_model: Option<&'a ResultContent>,
    pub(crate) is_error: bool,
    /// How the command of a failed call ended.
    pub(crate) exit: Option<&'a CommandExit>,
}

/// What an editor shows of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ResultDescription {
    pub(crate) content: Vec<ToolCallContent>,
    /// Empty if those of the call stay.
    pub(crate) locations: Vec<ToolCallLocation>,
    pub(crate) raw_output: Option<Value>,
}

/// Describes a result.
pub(crate) fn describe_result(tool: &str, result: RawResult<'_>) -> ResultDescription {
    let raw_output = result.structured.filter(|value| is_small(value) && !has_picture(value)).cloned();
    if result.is_error {
        let content = match tool {
            "Bash" | "Monitor" => vec![fenced_content(&command_output(result), "console")],
            _ => vec![text_content(error_text(result))],
        };
        return ResultDescription { content, raw_output, ..ResultDescription::default() };
    }
    if let Some((content, locations)) = result.structured.and_then(diff::from_result) {
        return ResultDescription { content, locations, raw_output };
    }
    let content = success_content(tool, result);
    ResultDescription { content, locations: Vec::new(), raw_output }
}

fn success_content(tool: &str, result: RawResult<'_>) -> Vec<ToolCallContent> {
    let structured = result.structured.unwrap_or(&Value::Null);
    match tool {
        "Bash" | "Monitor" => match command_output(result) {
            text if text.is_empty() => Vec::new(),
            text => vec![fenced_content(&text, "console")],
        },
        "Read" => read_content(structured).unwrap_or_else(|| model_content(result, Markup::Plain)),
        "Glob" => vec![fenced_content(&joined_names(structured), "")],
        "Grep" => match structured["content"].as_str() {
            Some(text) => vec![fenced_content(text, "")],
            None => vec![fenced_content(&joined_names(structured), "")],
        },
        "WebFetch" => structured["result"].as_str().map(text_content).into_iter().collect(),
        "Agent" | "Task" => {
            agent_report(structured).unwrap_or_else(|| model_content(result, Markup::Markdown))
        }
        "AskUserQuestion" => answers(structured),
        "ExitPlanMode" => structured["plan"].as_str().map(text_content).into_iter().collect(),
        "Edit" | "Write" | "NotebookEdit" => Vec::new(),
        _ => model_content(result, Markup::Markdown),
    }
}

/// The output of a command: stdout, then stderr.
pub(crate) fn command_output(result: RawResult<'_>) -> String {
    let Some(structured) = result.structured.filter(|value| value.is_object()) else {
        return error_text(result);
    };
    let part = |name: &str| structured[name].as_str().unwrap_or_default().trim_end_matches('\n');
    let parts = [part("stdout"), part("stderr")].map(str::to_owned);
    let output = parts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    match structured["backgroundTaskId"].is_string() && output.is_empty() {
        // It says where the output is.
        true => model_text(result.for_model),
        false => output,
    }
}

/// How the command of a call ended; unknown if it did not run.
pub(crate) fn command_exit(result: RawResult<'_>) -> CommandExit {
    match result.exit {
        Some(exit) => exit.clone(),
        None if result.is_error => CommandExit::default(),
        None => CommandExit { exit_code: Some(0), signal: None },
    }
}

/// The reason of a failure.
pub(crate) fn error_text(result: RawResult<'_>) -> String {
    let text = match result.structured.and_then(Value::as_str) {
        Some(text) => text.strip_prefix("Error: ").unwrap_or(text).to_owned(),
        None => model_text(result.for_model),
    };
    if text.is_empty() { "The call failed.".into() } else { text }
}

fn read_content(structured: &Value) -> Option<Vec<ToolCallContent>> {
    let file = &structured["file"];
    match structured["type"].as_str()? {
        "text" => Some(vec![fenced_content(file["content"].as_str()?, "")]),
        "image" => Some(vec![image(file["base64"].as_str()?, file["type"].as_str()?)]),
        "pdf" => {
            Some(vec![text_content(format!("PDF, {} bytes", file["originalSize"].as_u64().unwrap_or(0)))])
        }
        _ => None,
    }
}

fn image(data: &str, mime_type: &str) -> ToolCallContent {
    ContentBlock::Image(ImageContent::new(data, mime_type)).into()
}

fn joined_names(structured: &Value) -> String {
    let names: Vec<&str> =
        structured["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() { "No files found".into() } else { names.join("\n") }
}

fn agent_report(structured: &Value) -> Option<Vec<ToolCallContent>> {
    let blocks = structured["content"].as_array()?;
    Some(blocks.iter().filter_map(|block| block["text"].as_str()).map(text_content).collect())
}

fn answers(structured: &Value) -> Vec<ToolCallContent> {
    let Some(answers) = structured["answers"].as_object() else { return Vec::new() };
    let line = |(question, answer): (&String, &Value)| {
        format!("**{question}** {}", answer.as_str().unwrap_or_default())
    };
    let lines: Vec<String> = answers.iter().map(line).collect();
    if lines.is_empty() { vec![text_content("No answer.")] } else { vec![text_content(lines.join("\n\n"))] }
}

/// Whether text is rendered or shown as it is.
#[derive(Clone, Copy, PartialEq)]
enum Markup {
    Markdown,
    Plain,
}

/// What the model reads, without what the engine tells it beside the result.
fn model_content(result: RawResult<'_>, markup: Markup) -> Vec<ToolCallContent> {
    let to_content = |text: &str| {
        let text = without_reminders(text);
        (!text.is_empty()).then(|| match markup {
            Markup::Markdown => text_content(text),
            Markup::Plain => fenced_content(&text, ""),
        })
    };
    match result.for_model {
        Some(ResultContent::Text(text)) => to_content(text).into_iter().collect(),
        Some(ResultContent::Blocks(blocks)) => blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text { text, .. } => to_content(text),
                Block::Image { source: Source::Base64 { media_type, data } } => Some(image(data, media_type)),
                _ => None,
            })
            .collect(),
        None => Vec::new(),
    }
}

fn model_text(content: Option<&ResultContent>) -> String {
    match content {
        Some(ResultContent::Text(text)) => without_reminders(text),
        Some(ResultContent::Blocks(blocks)) => {
            let texts = blocks.iter().filter_map(|block| match block {
                Block::Text { text, .. } => Some(without_reminders(text)),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        None => String::new(),
    }
}

/// Removes hidden texts of the engine, and the tags around an error.
pub(crate) fn without_reminders(text: &str) -> String {
    const START: &str = "<system-reminder>";
    const END: &str = "</system-reminder>";
    let (mut visible, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(START) {
        visible += &rest[..start];
        rest = match rest[start..].find(END) {
            Some(end) => &rest[start + end + END.len()..],
            None => "",
        };
    }
    visible += rest;
    let visible = visible.trim();
    let error =
        visible.strip_prefix("<tool_use_error>").and_then(|text| text.strip_suffix("</tool_use_error>"));
    error.unwrap_or(visible).to_owned()
}

fn is_small(value: &Value) -> bool {
    serde_json::to_vec(value).is_ok_and(|json| json.len() <= MAX_RAW_OUTPUT_BYTES)
}

/// Whether the picture is shown as content, so that it need not be sent twice.
fn has_picture(value: &Value) -> bool {
    value["file"]["base64"].is_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(tool: &str, structured: &Value, for_model: &str, is_error: bool) -> Vec<ToolCallContent> {
        let for_model = ResultContent::Text(for_model.into());
        let result =
            RawResult { structured: Some(structured), for_model: Some(&for_model), is_error, exit: None };
        describe_result(tool, result).content
    }

    #[test]
    fn results_are_shown_from_the_structured_result() {
        let rows: [(&str, &str, Value, bool, Vec<ToolCallContent>); 9] = [
            (
                "file",
                "Read",
                json!({"type": "text", "file": {"content": "# a\n"}}),
                false,
                vec![fenced_content("# a\n", "")],
            ),
            (
                "picture",
                "Read",
                json!({"type": "image", "file": {"base64": "eA==", "type": "image/png"}}),
                false,
                vec![image("eA==", "image/png")],
            ),
            (
                "command",
                "Bash",
                json!({"stdout": "out\n", "stderr": "err"}),
                false,
                vec![fenced_content("out\nerr", "console")],
            ),
            ("silent command", "Bash", json!({"stdout": "", "stderr": ""}), false, vec![]),
            (
                "failed command",
                "Bash",
                json!("Error: Exit code 2\nno"),
                true,
                vec![fenced_content("Exit code 2\nno", "console")],
            ),
            ("names", "Glob", json!({"filenames": ["/a", "/b"]}), false, vec![fenced_content("/a\n/b", "")]),
            (
                "agent",
                "Agent",
                json!({"content": [{"type": "text", "text": "report"}]}),
                false,
                vec![text_content("report")],
            ),
            ("error", "Read", json!("Error: no such file"), true, vec![text_content("no such file")]),
            ("other tool", "mcp__a__b", json!({}), false, vec![text_content("for the model")]),
        ];
        for (name, tool, structured, is_error, expected) in rows {
            let found =
                described(tool, &structured, "for the model <system-reminder>x</system-reminder>", is_error);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn end_of_a_command_is_that_of_its_process() {
        let killed = CommandExit { exit_code: None, signal: Some("SIGKILL".into()) };
        let rows = [
            (false, None, CommandExit { exit_code: Some(0), signal: None }),
            (true, Some(&killed), killed.clone()),
            (true, None, CommandExit::default()),
        ];
        for (is_error, exit, expected) in rows {
            let result = RawResult { structured: None, for_model: None, is_error, exit };
            assert_eq!(command_exit(result), expected);
        }
    }

    #[test]
    fn hidden_texts_are_removed() {
        let rows = [
            ("a <system-reminder>x</system-reminder> b", "a  b"),
            ("<tool_use_error>bad</tool_use_error>", "bad"),
            ("a <system-reminder>open", "a"),
        ];
        for (text, expected) in rows {
            assert_eq!(without_reminders(text), expected);
        }
    }
}
