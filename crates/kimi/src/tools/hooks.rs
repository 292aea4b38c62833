//! Calls and results in the requests of hooks.

use serde_json::Value;

use super::names::shown_name;
use super::to_kimi::to_kimi;

/// Characters of a result that hooks get.
const MAX_OUTPUT_CHARS: usize = 2000;

/// Name and input of a call: `tool_name` and `tool_input`.
pub(crate) fn hook_tool_input<'a>(engine_name: &'a str, input: &Value) -> (&'a str, Value) {
    (shown_name(engine_name), to_kimi(engine_name, input).1)
}

/// The beginning of a result as text: `tool_output`. `response` is the engine's `tool_response`.
pub(crate) fn tool_output_text(response: &Value) -> String {
    let mut text = whole_text(response).unwrap_or_else(|| response.to_string());
    if let Some((end, _)) = text.char_indices().nth(MAX_OUTPUT_CHARS) {
        text.truncate(end);
    }
    text
}

/// The text in a structured result: of a command, a file, a search, a page, an agent or an MCP tool.
fn whole_text(response: &Value) -> Option<String> {
    if let Some(text) = response.as_str() {
        return Some(text.strip_prefix("Error: ").unwrap_or(text).to_owned());
    }
    if let Some(stdout) = response["stdout"].as_str() {
        let streams = [stdout, response["stderr"].as_str().unwrap_or_default()];
        return Some(streams.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"));
    }
    let texts = [
        &response["file"]["content"],
        &response["content"],
        &response["result"],
        &response["task"]["output"],
    ];
    if let Some(text) = texts.into_iter().find_map(Value::as_str) {
        return Some(text.to_owned());
    }
    let items =
        [response, &response["content"], &response["filenames"]].into_iter().find_map(Value::as_array)?;
    let lines = items.iter().map(|item| item.as_str().or_else(|| item["text"].as_str()));
    Some(lines.collect::<Option<Vec<_>>>()?.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_in_kimis_words() {
        let found = hook_tool_input("Read", &json!({"file_path": "a"}));
        assert_eq!(found, ("ReadFile", json!({"path": "a"})));
        let found = hook_tool_input("mcp__demo__greet", &json!({"who": "you"}));
        assert_eq!(found, ("greet", json!({"who": "you"})));
    }

    #[test]
    fn results_are_text() {
        let texts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let picture = json!([{"type": "image"}]);
        let rows = [
            ("command", json!({"stdout": "spoken", "stderr": ""}), "spoken".to_owned()),
            ("error", json!("Error: no file"), "no file".to_owned()),
            ("file", json!({"type": "text", "file": {"content": "x"}}), "x".to_owned()),
            ("names", json!({"filenames": ["a", "b"]}), "a\nb".to_owned()),
            ("lines", json!({"mode": "content", "filenames": [], "content": "a:1"}), "a:1".to_owned()),
            ("page", json!({"result": "x"}), "x".to_owned()),
            ("agent", json!({"status": "completed", "content": texts}), "a\nb".to_owned()),
            ("MCP tool", texts, "a\nb".to_owned()),
            ("picture", picture.clone(), picture.to_string()),
            ("other", json!({"message": "m"}), r#"{"message":"m"}"#.to_owned()),
            ("long", json!("é".repeat(3000)), "é".repeat(2000)),
        ];
        for (name, response, expected) in rows {
            assert_eq!(tool_output_text(&response), expected, "{name}");
        }
    }
}
