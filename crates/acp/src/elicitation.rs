//! Questions of MCP servers as questions of the protocol, and their answers. Pure.

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationFormMode,
    ElicitationSchema, ElicitationSessionScope, ElicitationUrlMode,
};
use whimbrel::wire::control::{Elicitation, ElicitationAction as Action, ElicitationReply};

use crate::capabilities::ClientFeatures;

/// The request for the editor; `None` if the editor cannot ask such a question.
pub(crate) fn to_request(
    asked: &Elicitation,
    session: &str,
    features: &ClientFeatures,
) -> Option<CreateElicitationRequest> {
    let scope = ElicitationSessionScope::new(session.to_owned());
    let message = match asked.message.trim() {
        "" => format!("{} has a question.", asked.mcp_server_name),
        message => message.to_owned(),
    };
    match (&asked.url, asked.mode.as_deref()) {
        (Some(url), Some("url")) if features.urls => {
            let id = asked.elicitation_id.clone().unwrap_or_default();
            Some(CreateElicitationRequest::new(ElicitationUrlMode::new(scope, id, url.clone()), message))
        }
        (_, Some("form") | None) if features.forms => {
            let schema = asked.requested_schema.clone().map(serde_json::from_value::<ElicitationSchema>);
            let schema = schema.transpose().ok()?.unwrap_or_default();
            Some(CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema), message))
        }
        _ => None,
    }
}

/// The answer for the server.
pub(crate) fn to_reply(response: &CreateElicitationResponse) -> ElicitationReply {
    match &response.action {
        ElicitationAction::Accept(accepted) => {
            let content = accepted.content.as_ref().and_then(|content| serde_json::to_value(content).ok());
            let content = content.and_then(|content| content.as_object().cloned());
            ElicitationReply { action: Action::Accept, content }
        }
        ElicitationAction::Decline => ElicitationReply { action: Action::Decline, content: None },
        _ => cancelled(),
    }
}

/// No answer.
pub(crate) fn cancelled() -> ElicitationReply {
    ElicitationReply { action: Action::Cancel, content: None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(mode: &str) -> Elicitation {
        Elicitation {
            mcp_server_name: "srv".into(),
            message: "Name?".into(),
            mode: Some(mode.into()),
            url: (mode == "url").then(|| "https://a.b".into()),
            elicitation_id: Some("e".into()),
            requested_schema: Some(json!({"type": "object", "properties": {"name": {"type": "string"}}})),
            ..Elicitation::default()
        }
    }

    #[test]
    fn question_is_asked_only_in_a_mode_of_the_editor() {
        let all = ClientFeatures { forms: true, urls: true, ..ClientFeatures::default() };
        let form = json!(to_request(&asked("form"), "s", &all).unwrap());
        assert_eq!(
            (&form["mode"], &form["sessionId"], &form["message"]),
            (&json!("form"), &json!("s"), &json!("Name?"))
        );
        assert_eq!(form["requestedSchema"]["properties"]["name"]["type"], "string");
        assert_eq!(json!(to_request(&asked("url"), "s", &all).unwrap())["url"], "https://a.b");
        for mode in ["form", "url", "other"] {
            assert!(to_request(&asked(mode), "s", &ClientFeatures::default()).is_none());
        }
    }

    #[test]
    fn answers_are_passed_on() {
        let reply = |response: Value| to_reply(&serde_json::from_value(response).unwrap());
        let accepted = reply(json!({"action": "accept", "content": {"name": "x"}}));
        assert_eq!(accepted.content, json!({"name": "x"}).as_object().cloned());
        assert_eq!(reply(json!({"action": "decline"})).action, Action::Decline);
        assert_eq!(reply(json!({"action": "cancel"})), cancelled());
    }
}
