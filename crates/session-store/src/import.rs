//! Renders a conversation of another program as the transcript of a new session.

use std::path::Path;

use serde_json::{Value, json};
use whimbrel_os::{clock, ids};
use whimbrel_wire::content::Content;
use whimbrel_wire::{PROTOCOL_VERSION, RawJson, Role};

/// Model of the imported replies, whose real one is unknown.
const UNKNOWN_MODEL: &str = "unknown";

/// A message of a conversation that is imported.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedMessage {
    /// Who speaks. Tool results are messages of the user.
    pub role: Role,
    /// What is said.
    pub content: Content,
}

/// Renders the lines of a transcript: each message is the parent of the next.
pub(crate) fn render_lines(
    session: &str,
    cwd: &Path,
    messages: Vec<ImportedMessage>,
) -> serde_json::Result<Vec<RawJson>> {
    let mut parent = Value::Null;
    let timestamp = clock::timestamp();
    let render = |message: ImportedMessage| {
        let uuid = ids::new_uuid();
        let (kind, body) = match message.role {
            Role::User => ("user", json!({"role": "user", "content": message.content})),
            Role::Assistant => (
                "assistant",
                json!({
                    "id": format!("msg_{uuid}"),
                    "type": "message",
                    "role": "assistant",
                    "model": UNKNOWN_MODEL,
                    "content": message.content.into_blocks(),
                    "stop_reason": null,
                    "stop_sequence": null,
                    "usage": {"input_tokens": 0, "output_tokens": 0},
                }),
            ),
        };
        RawJson::from_value(&json!({
            "parentUuid": std::mem::replace(&mut parent, uuid.clone().into()),
            "isSidechain": false,
            "userType": "external",
            "cwd": cwd.to_string_lossy(),
            "sessionId": session,
            "version": PROTOCOL_VERSION,
            "type": kind,
            "message": body,
            "uuid": uuid,
            "timestamp": timestamp,
        }))
    };
    messages.into_iter().map(render).collect()
}
