//! The lines that record a rewind of the conversation, and system entries as such.

use serde_json::{Value, json};
use whimbrel_os::clock;
use whimbrel_wire::PROTOCOL_VERSION;

use crate::entry::CONVERSATION_REWOUND;
use crate::metadata::LAST_PROMPT;

/// A rewind of the conversation, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindRecord {
    pub uuid: String,
    /// The entry to go back to; `None` for the beginning.
    pub to: Option<String>,
    /// The last prompt that is left, for lists.
    pub last_prompt: Option<String>,
}

impl RewindRecord {
    /// The lines that record it; `left` is the last entry before it.
    pub(crate) fn render(&self, session: &str, cwd: &str, left: Option<&str>) -> [Value; 2] {
        let subtype = (CONVERSATION_REWOUND, self.to.as_deref());
        let marker = render_system(session, cwd, &self.uuid, subtype, json!({"leftUuid": left}));
        // Without it, lists would show a prompt that was dropped.
        let prompt = self.last_prompt.as_deref().unwrap_or_default();
        [marker, render_last_prompt(session, Some(&self.uuid), prompt)]
    }
}

/// Renders a system entry of the main conversation.
pub(crate) fn render_system(
    session: &str,
    cwd: &str,
    uuid: &str,
    (subtype, parent): (&str, Option<&str>),
    more: Value,
) -> Value {
    let mut line = json!({
        "parentUuid": parent,
        "isSidechain": false,
        "type": "system",
        "subtype": subtype,
        "cwd": cwd,
        "sessionId": session,
        "version": PROTOCOL_VERSION,
        "uuid": uuid,
        "timestamp": clock::timestamp(),
    });
    if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
        line.extend(more);
    }
    line
}

/// Renders the entry with the last prompt.
pub(crate) fn render_last_prompt(session: &str, leaf: Option<&str>, prompt: &str) -> Value {
    json!({"type": LAST_PROMPT, "lastPrompt": prompt, "leafUuid": leaf, "sessionId": session})
}
