//! Text of the lines that a user reads. Pure.

use serde_json::{Map, Value};
use whimbrel_wire::content::{Block, ResultContent};
use whimbrel_wire::invisible::is_invisible;
use whimbrel_wire::message::TurnResult;
use whimbrel_wire::system::ApiRetry;

/// Maximum length of a label, in characters.
const MAX_LABEL_CHARS: usize = 72;

/// Treatment of line breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineBreaks {
    /// They become blanks: a line of our own.
    Replace,
    /// They stay: the agent's text.
    Keep,
}

/// Replaces control and invisible characters: the text comes from a model or a file and must not control the terminal.
pub(crate) fn sanitize(text: &str, rendering: LineBreaks) -> String {
    let replace = |character: char| match character {
        '\n' if rendering == LineBreaks::Replace => ' ',
        '\n' | '\t' => character,
        character if character.is_control() || is_invisible(character) => '\u{fffd}',
        character => character,
    };
    text.chars().map(replace).collect()
}

/// Returns the tool and the most telling field of its input.
pub(crate) fn call_label(name: &str, input: &Value) -> String {
    let none = Map::new();
    let input = input.as_object().unwrap_or(&none);
    let fields = match name {
        "Bash" | "Monitor" => &["command"][..],
        "Read" | "Write" | "Edit" | "NotebookEdit" => &["file_path", "notebook_path"],
        "Glob" | "Grep" => &["pattern"],
        "WebFetch" => &["url"],
        "WebSearch" | "ToolSearch" => &["query"],
        "Task" | "Agent" => &["description", "prompt"],
        "Skill" => &["skill"],
        _ => &[],
    };
    let text = fields.iter().find_map(|field| input.get(*field)?.as_str());
    let text = text.or_else(|| input.values().find_map(Value::as_str));
    match text {
        Some(text) => format!("{name}  {}", shorten(text)),
        None => name.to_owned(),
    }
}

/// Outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallOutcome {
    Succeeded,
    Failed,
}

impl CallOutcome {
    pub(super) fn from_is_error(is_error: Option<bool>) -> Self {
        if is_error == Some(true) { Self::Failed } else { Self::Succeeded }
    }

    /// Symbol at the start of its line.
    pub(super) fn symbol(self) -> char {
        match self {
            Self::Succeeded => '✓',
            Self::Failed => '✗',
        }
    }
}

/// Summarizes a result in one line: why a call failed, or the first line that a command printed.
pub(super) fn summarize_result(
    tool: &str,
    content: Option<&ResultContent>,
    mark: CallOutcome,
) -> Option<String> {
    if mark == CallOutcome::Succeeded && tool != "Bash" {
        return None;
    }
    let text = match content? {
        ResultContent::Text(text) => text.as_str(),
        ResultContent::Blocks(blocks) => blocks.iter().find_map(|block| match block {
            Block::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })?,
    };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(shorten(line))
}

/// Returns the first line of a text, truncated.
fn shorten(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next().unwrap_or_default();
    let more = lines.next().is_some() || line.chars().count() > MAX_LABEL_CHARS;
    let line: String = line.chars().take(MAX_LABEL_CHARS).collect();
    if more { format!("{line} …") } else { line }
}

/// Truncates a line to a number of columns, the last of which stays free; non-ASCII characters count as two columns.
pub(super) fn fit_to_columns(line: &str, columns: usize) -> String {
    let wide = |character: char| if character.is_ascii() { 1 } else { 2 };
    let room = columns.saturating_sub(1);
    if line.chars().map(wide).sum::<usize>() <= room {
        return line.to_owned();
    }
    let mut left = room.saturating_sub(wide('…'));
    let fits = |character: &char| {
        let fits = wide(*character) <= left;
        left = left.saturating_sub(wide(*character));
        fits
    };
    let beginning: String = line.chars().take_while(fits).collect();
    beginning + "…"
}

/// Error text of a failed run.
pub(crate) fn failure_text(result: &TurnResult) -> String {
    let errors = result.errors.as_ref().filter(|errors| !errors.is_empty()).map(|errors| errors.join("\n"));
    let text = errors.or_else(|| result.result.clone()).filter(|text| !text.trim().is_empty());
    text.unwrap_or_else(|| "The run failed without an error text.".into())
}

/// Last line of a run: model calls, time, cost.
pub(super) fn summary_line(result: &TurnResult) -> String {
    #[expect(clippy::cast_precision_loss, reason = "the user reads one digit")]
    let seconds = result.duration_ms as f64 / 1000.0;
    let turns = if result.num_turns == 1 { "turn" } else { "turns" };
    let cost = match result.total_cost_usd {
        0.0 => "no cost".into(),
        cents if cents < 0.01 => format!("${cents:.4}"),
        dollars => format!("${dollars:.2}"),
    };
    let mut models = result.model_usage.iter().filter(|(name, _)| !name.starts_with("scripted:"));
    let unknown = models.any(|(_, model)| model.cost_basis.as_deref() == Some("unknown"));
    let cost = if unknown { "cost unknown".into() } else { cost };
    format!("{} {turns}, {seconds:.1} s, {cost}", result.num_turns)
}

/// Line that announces the retry of a model request.
pub(super) fn retry_line(retry: &ApiRetry) -> String {
    format!("  the model is unavailable; attempt {} follows", retry.attempt)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn call_label_shows_the_most_telling_input() {
        let long = "x".repeat(100);
        let rows = [
            ("Bash", json!({"description": "d", "command": "git status"}), "Bash  git status".to_owned()),
            ("Bash", json!({"command": "one\ntwo"}), "Bash  one …".into()),
            ("Bash", json!({"command": long}), format!("Bash  {} …", &long[..MAX_LABEL_CHARS])),
            ("Read", json!({"file_path": "/a/b.rs", "limit": 3}), "Read  /a/b.rs".into()),
            ("Grep", json!({"path": "src", "pattern": "fn main"}), "Grep  fn main".into()),
            ("Agent", json!({"prompt": "p", "description": "look around"}), "Agent  look around".into()),
            ("mcp__s__t", json!({"n": 1, "name": "first text"}), "mcp__s__t  first text".into()),
            ("TaskList", json!({}), "TaskList".into()),
            ("Odd", json!([1]), "Odd".into()),
        ];
        for (name, input, expected) in rows {
            assert_eq!(call_label(name, &input), expected, "{name} {input}");
        }
    }

    #[test]
    fn sanitized_text_cannot_control_the_terminal() {
        assert_eq!(
            sanitize("a\u{1b}[2Jb\u{7}\r\n\tc\u{9b}", LineBreaks::Keep),
            "a\u{fffd}[2Jb\u{fffd}\u{fffd}\n\tc\u{fffd}"
        );
        assert_eq!(sanitize("one\ntwo", LineBreaks::Replace), "one two");
    }

    #[test]
    fn line_fits_into_its_columns() {
        let rows = [
            ("Bash  ls", 80, "Bash  ls"),
            ("Bash  ls", 9, "Bash  ls"),
            ("Bash  ls", 8, "Bash …"),
            ("鷸鷸鷸鷸鷸", 11, "鷸鷸鷸鷸鷸"),
            ("鷸鷸鷸鷸鷸", 10, "鷸鷸鷸…"),
            ("Bash", 0, "…"),
        ];
        for (line, columns, expected) in rows {
            assert_eq!(fit_to_columns(line, columns), expected, "{line} in {columns} columns");
        }
    }

    #[test]
    fn only_failures_and_commands_are_summarized() {
        let text = |text: &str| Some(ResultContent::from(text.to_owned()));
        let rows = [
            ("Read", text("content"), CallOutcome::Succeeded, None),
            ("Read", text("no such file\nhint"), CallOutcome::Failed, Some("no such file".to_owned())),
            ("Bash", text("\n  3 birds\nmore"), CallOutcome::Succeeded, Some("3 birds".into())),
            ("Bash", text(""), CallOutcome::Succeeded, None),
            ("Bash", None, CallOutcome::Failed, None),
            (
                "Bash",
                Some(ResultContent::Blocks(vec![Block::text("from a block")])),
                CallOutcome::Succeeded,
                Some("from a block".into()),
            ),
        ];
        for (tool, content, mark, expected) in rows {
            assert_eq!(summarize_result(tool, content.as_ref(), mark), expected, "{tool} {content:?}");
        }
    }

    fn turn_result(more: &Value) -> TurnResult {
        let mut result = json!({"subtype": "success", "is_error": false, "duration_ms": 1540, "duration_api_ms": 1, "num_turns": 2});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(result).unwrap()
    }

    #[test]
    fn summary_line_shows_turns_time_and_cost() {
        let rows = [
            (json!({}), "2 turns, 1.5 s, no cost"),
            (json!({"num_turns": 1, "total_cost_usd": 0.00123}), "1 turn, 1.5 s, $0.0012"),
            (json!({"total_cost_usd": 1.2345}), "2 turns, 1.5 s, $1.23"),
        ];
        for (more, expected) in rows {
            assert_eq!(summary_line(&turn_result(&more)), expected, "{more}");
        }
    }

    #[test]
    fn failure_always_has_a_text() {
        let rows = [
            (json!({"errors": ["one", "two"]}), "one\ntwo"),
            (json!({"errors": [], "result": "API error"}), "API error"),
            (json!({"result": " "}), "The run failed without an error text."),
        ];
        for (more, expected) in rows {
            assert_eq!(failure_text(&turn_result(&more)), expected, "{more}");
        }
    }
}
