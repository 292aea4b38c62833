//! What a session is about, told by its lines as they come; pure. Fields, names and rules are those of the official SDKs'
//! fold, so a summary that one side has kept the other goes on with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use whimbrel_wire::RawJson;

use crate::session::entry::replace_lone_surrogates;
use crate::session::summary::{command_name, is_synthetic_prompt, truncate_prompt, content_texts};

/// What a session is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Whether it is a subagent's, which is not for lists; none as long as it has no line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_sidechain: Option<bool>,
    /// When it began, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<u64>,
    /// Where it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The first prompt, cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<String>,
    /// Whether that is found.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub first_prompt_locked: bool,
    /// The first command, for a session without a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_fallback: Option<String>,
    /// The title that a person gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_title: Option<String>,
    /// The title that a model gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_title: Option<String>,
    /// The last prompt, where it is on record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_prompt: Option<String>,
    /// A summary, where one is on record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_hint: Option<String>,
    /// The branch that it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
    /// The tag that a person gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

impl Summary {
    /// Takes lines in.
    pub fn take<'a>(&mut self, lines: impl IntoIterator<Item = &'a RawJson>) {
        for line in lines {
            if let Ok(line) = serde_json::from_slice::<Map<String, Value>>(&replace_lone_surrogates(line.as_str().as_bytes())) {
                self.add_line(&line);
            }
        }
    }

    /// The title that somebody, or else a model, gave.
    pub fn title(&self) -> Option<&str> {
        non_empty(&self.custom_title).or(non_empty(&self.ai_title))
    }

    /// The first prompt, or else the first command.
    pub fn prompt(&self) -> Option<&str> {
        non_empty(&self.first_prompt).or(non_empty(&self.command_fallback))
    }

    /// What a list shows; none if the session is not for lists.
    pub fn text(&self) -> Option<&str> {
        let text =
            self.title().or(non_empty(&self.last_prompt)).or(non_empty(&self.summary_hint)).or(self.prompt());
        text.filter(|_| self.is_sidechain != Some(true))
    }

    fn add_line(&mut self, line: &Map<String, Value>) {
        let text = |name: &str| line.get(name).and_then(Value::as_str).map(str::to_owned);
        let is = |name: &str| line.get(name) == Some(&Value::Bool(true));
        self.is_sidechain.get_or_insert_with(|| is("isSidechain"));
        for (field, name) in [
            (&mut self.custom_title, "customTitle"),
            (&mut self.ai_title, "aiTitle"),
            (&mut self.last_prompt, "lastPrompt"),
            (&mut self.summary_hint, "summary"),
            (&mut self.git_branch, "gitBranch"),
        ] {
            *field = text(name).or_else(|| field.take());
        }
        self.cwd = self.cwd.take().or_else(|| text("cwd").filter(|cwd| !cwd.is_empty()));
        self.created_at = self.created_at.or_else(|| text("timestamp").and_then(|time| parse_millis(&time)));
        match text("type").as_deref() {
            Some("tag") => self.tag = text("tag").filter(|tag| !tag.is_empty()),
            Some("user") if !self.first_prompt_locked && !is("isMeta") && !is("isCompactSummary") => {
                self.add_prompt(line.get("message").map_or(&Value::Null, |message| &message["content"]));
            }
            _ => {}
        }
    }

    /// Takes the prompt in a message, if it is one: not a result, not what a program said in the person's place.
    fn add_prompt(&mut self, content: &Value) {
        if let Value::Array(blocks) = content
            && blocks.iter().any(|block| block["type"] == "tool_result")
        {
            return;
        }
        for text in content_texts(content) {
            let text = text.replace('\n', " ");
            let text = text.trim();
            if let Some(name) = command_name(text) {
                self.command_fallback.get_or_insert_with(|| name.to_owned());
            } else if !text.is_empty() && !is_synthetic_prompt(text) {
                (self.first_prompt, self.first_prompt_locked) = (Some(truncate_prompt(text)), true);
                return;
            }
        }
    }
}

fn non_empty(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

fn parse_millis(time: &str) -> Option<u64> {
    let time: jiff::Timestamp = time.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}
