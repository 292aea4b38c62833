//! Generates a title for the session with the small model.

use serde_json::json;
use whimbrel_session_store::metadata;
use whimbrel_wire::control::{ControlResponse, GenerateSessionTitle};

use super::AgentHandles;
use crate::event_loop::Session;

const TITLE_PROMPT: &str = "You name work sessions. Reply with a title for the session that is described: three to seven \
    words in the language of the description, in sentence case, naming the goal. No quotes, no period, nothing else.";

/// Limit on the description that is sent to the model.
const MAX_DESCRIPTION_BYTES: usize = 4_000;

/// Responds with a title, or with `null` if the model's reply is no usable title. Sets it on request.
pub(super) fn generate_title(
    session: &mut Session,
    id: String,
    request: GenerateSessionTitle,
) -> Option<ControlResponse> {
    let Some(AgentHandles { transcript_writer, small_model, .. }) = session.main_agent.handles.clone() else {
        return Some(ControlResponse::error(id, "The session has no title yet: send a prompt first."));
    };
    session.mcp.respond_later(async move {
        let description =
            &request.description[..request.description.floor_char_boundary(MAX_DESCRIPTION_BYTES)];
        let reply = match small_model.ask(TITLE_PROMPT, description).await {
            Ok(reply) => reply,
            Err(error) => return ControlResponse::error(id, error.message),
        };
        let title = parse_title(&reply);
        if let Some(title) = title.as_deref().filter(|_| request.persist == Some(true))
            && let Err(error) = transcript_writer.rename(title).await
        {
            return ControlResponse::error(id, format!("The title cannot be written: {error}."));
        }
        ControlResponse::success(id, &json!({"title": title}))
    });
    None
}

/// The first line of a reply without quotes and final period; `None` if nothing is left.
fn parse_title(reply: &str) -> Option<String> {
    let line = reply.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.trim_matches(['"', '\'', '`', '*', '#', ' ']).trim_end_matches('.');
    metadata::validate_title(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_is_the_first_line_without_decoration() {
        let rows = [
            ("Fix the login bug", Some("Fix the login bug")),
            ("\n\"Fix the login bug.\"\n\nMore.", Some("Fix the login bug")),
            ("**Fix it**", Some("Fix it")),
            (" \n", None),
            ("\"\"", None),
        ];
        for (reply, expected) in rows {
            assert_eq!(parse_title(reply).as_deref(), expected, "{reply:?}");
        }
    }
}
