//! What a session is about, told by its lines; pure. The same rules as the official SDKs' lists.

use serde_json::{Map, Value};
use whimbrel_wire::RawJson;

/// How much of a prompt is shown.
const SHOWN: usize = 200;

/// What a session is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// The title that a person gave.
    pub custom_title: Option<String>,
    /// The title that a model gave.
    pub ai_title: Option<String>,
    /// The first prompt, cut.
    pub first_prompt: Option<String>,
    /// The last prompt, where it is on record.
    pub last_prompt: Option<String>,
    /// A summary, where one is on record.
    pub hint: Option<String>,
    /// Where it works.
    pub cwd: Option<String>,
    /// The branch that it is on.
    pub git_branch: Option<String>,
    /// The tag that a person gave.
    pub tag: Option<String>,
    /// When it began, as its first line says.
    pub created_at: Option<String>,
    /// Whether it is a subagent's, which is not for lists.
    pub is_sidechain: bool,
    begun: bool,
}

impl Summary {
    /// Takes lines in.
    pub fn take<'a>(&mut self, lines: impl IntoIterator<Item = &'a RawJson>) {
        for line in lines {
            if let Ok(line) = line.read::<Map<String, Value>>() {
                self.take_line(&line);
            }
        }
    }

    /// What a list shows; none if the session is not for lists.
    pub fn text(&self) -> Option<&str> {
        let named = [&self.custom_title, &self.ai_title, &self.last_prompt, &self.hint, &self.first_prompt];
        named
            .into_iter()
            .flatten()
            .map(String::as_str)
            .find(|text| !text.is_empty())
            .filter(|_| !self.is_sidechain)
    }

    fn take_line(&mut self, line: &Map<String, Value>) {
        let text = |name: &str| line.get(name).and_then(Value::as_str).map(str::to_owned);
        let is = |name: &str| line.get(name) == Some(&Value::Bool(true));
        if !std::mem::replace(&mut self.begun, true) {
            self.is_sidechain = is("isSidechain");
        }
        for (field, name) in [
            (&mut self.custom_title, "customTitle"),
            (&mut self.ai_title, "aiTitle"),
            (&mut self.last_prompt, "lastPrompt"),
            (&mut self.hint, "summary"),
            (&mut self.git_branch, "gitBranch"),
        ] {
            *field = text(name).or_else(|| field.take());
        }
        self.cwd = self.cwd.take().or_else(|| text("cwd"));
        self.created_at = self.created_at.take().or_else(|| text("timestamp"));
        match text("type").as_deref() {
            Some("tag") => self.tag = text("tag").filter(|tag| !tag.is_empty()),
            Some("user") if self.first_prompt.is_none() && !is("isMeta") && !is("isCompactSummary") => {
                self.first_prompt = line.get("message").and_then(prompt);
            }
            _ => {}
        }
    }
}

/// The prompt in a message, if it is one: not a result, not what the engine said in the person's place.
fn prompt(message: &Value) -> Option<String> {
    let text = match message.get("content")? {
        Value::String(text) => text.clone(),
        Value::Array(blocks) if blocks.iter().any(|block| block["type"] == "tool_result") => return None,
        Value::Array(blocks) => blocks.iter().find_map(|block| block["text"].as_str())?.to_owned(),
        _ => return None,
    };
    let text = text.replace('\n', " ").trim().to_owned();
    if text.is_empty() || text.starts_with('<') || text.starts_with("[Request interrupted by user") {
        return None;
    }
    Some(match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", text[..cut].trim_end()),
        None => text,
    })
}
