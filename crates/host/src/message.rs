//! Messages of people: as requests have them, as they are stored, and as the engine gets them.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use whimbrel::wire::content::Content;
use whimbrel::wire::message::{Priority, User};

use crate::error::{ApiError, ApiResult};
use crate::store::messages::MessageRow;

/// A message as a client sends it.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    /// The same key again is the same message.
    pub(crate) key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Blocks of the wire, in place of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Vec<Json>>,
    /// Ids of uploads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) uploads: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<MessagePriority>,
    /// Adds it to the conversation without asking the model.
    #[serde(default)]
    pub(crate) context_only: bool,
}

/// When a message is given while a turn runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MessagePriority {
    /// After the turn.
    #[default]
    Later,
    /// Before the next model call.
    Next,
    /// At once: the turn is interrupted.
    Now,
}

/// A message as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredBody {
    /// A text, or blocks of the wire.
    pub(crate) content: Json,
    pub(crate) priority: MessagePriority,
    #[serde(default)]
    pub(crate) context_only: bool,
    #[serde(default)]
    pub(crate) uploads: Vec<Json>,
}

/// Keys are short names that the client chooses.
const MAX_KEY: usize = 200;

pub(crate) fn check_key(key: &str) -> ApiResult<()> {
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(ApiError::bad_request(format!(
            "`key` must have 1 to {MAX_KEY} bytes: choose a random one"
        )));
    }
    Ok(())
}

impl Message {
    /// Checks what can be checked without the store.
    pub(crate) fn check(&self) -> ApiResult<()> {
        check_key(&self.key)?;
        match (&self.text, &self.content) {
            (Some(_), Some(_)) => Err(ApiError::bad_request("give either `text` or `content`, not both")),
            (Some(text), None) if text.trim().is_empty() && self.uploads.is_empty() => {
                Err(ApiError::bad_request("`text` is empty: write something, or add an upload"))
            }
            (None, None) if self.uploads.is_empty() => {
                Err(ApiError::bad_request("the message is empty: give `text`, `content` or `uploads`"))
            }
            (None, Some(blocks)) => {
                if blocks.is_empty() && self.uploads.is_empty() {
                    return Err(ApiError::bad_request("`content` has no blocks"));
                }
                serde_json::from_value::<Content>(Json::Array(blocks.clone()))
                    .map(drop)
                    .map_err(|error| ApiError::bad_request(format!("`content`: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Tells the same request from another one with the same key.
    pub(crate) fn digest(&self) -> String {
        crate::clock::digest(&serde_json::to_string(self).unwrap_or_default())
    }

    /// The first words, as the title of a session.
    pub(crate) fn title(&self) -> String {
        let text = self.text.clone().unwrap_or_else(|| {
            let texts = self.content.iter().flatten().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join(" ")
        });
        title_of(&text)
    }
}

/// The first line of a text, cut to the length of a title.
pub(crate) fn title_of(text: &str) -> String {
    const MAX_TITLE: usize = 80;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("New session");
    if line.chars().count() <= MAX_TITLE {
        return line.to_owned();
    }
    let cut = line.chars().take(MAX_TITLE - 1).collect::<String>();
    format!("{}…", cut.trim_end())
}

impl StoredBody {
    /// The message of a row; `None` if what is stored is damaged.
    pub(crate) fn of_row(row: &MessageRow) -> Option<Self> {
        serde_json::from_str(&row.body).ok()
    }

    /// Whether a row is a message that the agent does not answer.
    pub(crate) fn is_context_only(row: &MessageRow) -> bool {
        Self::of_row(row).is_some_and(|body| body.context_only)
    }

    /// The prompt for the engine.
    pub(crate) fn to_prompt(&self, uuid: &str) -> User {
        let content = serde_json::from_value::<Content>(self.content.clone())
            .unwrap_or_else(|_| self.content.to_string().into());
        let priority = match self.priority {
            MessagePriority::Later => Priority::Later,
            MessagePriority::Next => Priority::Next,
            MessagePriority::Now => Priority::Now,
        };
        let mut prompt = User::prompt(content).with_priority(priority);
        prompt.uuid = Some(uuid.to_owned());
        prompt.should_query = self.context_only.then_some(false);
        prompt
    }

    /// The `queued` event.
    pub(crate) fn to_queued(&self, uuid: &str, by: &Json) -> Json {
        let mut frame = json!({
            "type": "host", "subtype": "queued", "uuid": uuid, "content": self.content, "by": by,
            "priority": self.priority,
        });
        if self.context_only {
            frame["context_only"] = true.into();
        }
        if !self.uploads.is_empty() {
            frame["uploads"] = self.uploads.clone().into();
        }
        frame
    }
}
