//! What this agent announces to the editor, and what the editor announces to it.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, ClientCapabilities, Implementation, InitializeResponse, McpCapabilities, Meta,
    PromptCapabilities, SessionAdditionalDirectoriesCapabilities, SessionCapabilities,
    SessionCloseCapabilities, SessionDeleteCapabilities, SessionForkCapabilities, SessionListCapabilities,
    SessionResumeCapabilities,
};
use serde_json::{Value, json};
use whimbrel::wire::message::CommandExit;

/// The method that adds a prompt to the running turn.
pub(crate) const STEERING_METHOD: &str = "_session/steering";

/// What the editor can do, as far as it matters here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientFeatures {
    /// Notices beside the conversation.
    pub(crate) notices: bool,
    /// Updates about compactions.
    pub(crate) compaction: bool,
    /// Forms for questions.
    pub(crate) forms: bool,
    /// Pages for questions.
    pub(crate) urls: bool,
    /// Output of commands in a terminal, by the convention of the `_meta` fields.
    pub(crate) terminal_output: Option<TerminalOutput>,
}

/// The field in which the editor expects the output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalOutput {
    Output,
    Delta,
}

impl ClientFeatures {
    /// Reads what the editor announced.
    pub(crate) fn from_capabilities(capabilities: &ClientCapabilities) -> Self {
        let session = capabilities.session.as_ref();
        let elicitation = capabilities.elicitation.as_ref();
        let is_on = |name: &str| {
            capabilities.meta.as_ref().and_then(|meta| meta.get(name)) == Some(&Value::Bool(true))
        };
        let terminal_output = match (is_on("terminal_output_delta"), is_on("terminal_output")) {
            (true, _) => Some(TerminalOutput::Delta),
            (false, true) => Some(TerminalOutput::Output),
            (false, false) => None,
        };
        Self {
            notices: session.is_some_and(|session| session.notices.is_some()),
            compaction: session.is_some_and(|session| session.compaction.is_some()),
            forms: elicitation.is_some_and(|elicitation| elicitation.form.is_some()),
            urls: elicitation.is_some_and(|elicitation| elicitation.url.is_some()),
            terminal_output,
        }
    }
}

impl TerminalOutput {
    /// The field with output.
    pub(crate) fn output_meta(self, terminal: &str, data: &str) -> Meta {
        let field = match self {
            Self::Output => "terminal_output",
            Self::Delta => "terminal_output_delta",
        };
        Meta::from_iter([(field.to_owned(), json!({"terminal_id": terminal, "data": data}))])
    }

    /// The field with the end of the command.
    pub(crate) fn exit_meta(self, terminal: &str, exit: &CommandExit) -> Meta {
        let exit = json!({"terminal_id": terminal, "exit_code": exit.exit_code, "signal": exit.signal});
        Meta::from_iter([("terminal_exit".to_owned(), exit)])
    }
}

/// The answer to `initialize`.
pub(crate) fn initialize_response() -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
        .fork(SessionForkCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
        .session_capabilities(sessions)
        .meta(Meta::from_iter([("claudeCode".to_owned(), json!({"promptQueueing": true}))]));
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(Implementation::new("whimbrel", env!("CARGO_PKG_VERSION")).title("Whimbrel".to_owned()))
        .meta(Meta::from_iter([(
            "steering".to_owned(),
            json!({"supported": true, "method": STEERING_METHOD}),
        )]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_must_be_present_and_not_null() {
        let read = |capabilities: Value| {
            ClientFeatures::from_capabilities(&serde_json::from_value(capabilities).unwrap())
        };
        assert_eq!(read(json!({"elicitation": {}, "session": {"notices": null}})), ClientFeatures::default());
        let all = json!({
            "elicitation": {"form": {}, "url": {}},
            "session": {"notices": {}, "compaction": {}},
            "_meta": {"terminal_output": true},
        });
        let expected = ClientFeatures {
            notices: true,
            compaction: true,
            forms: true,
            urls: true,
            terminal_output: Some(TerminalOutput::Output),
        };
        assert_eq!(read(all), expected);
        let delta = json!({"_meta": {"terminal_output": true, "terminal_output_delta": true}});
        assert_eq!(read(delta).terminal_output, Some(TerminalOutput::Delta));
    }
}
