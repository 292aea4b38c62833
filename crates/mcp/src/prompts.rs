//! MCP prompts as slash commands.

use rmcp::model::{
    ClientRequest, CustomResult, GetPromptRequest, GetPromptRequestParams, JsonObject, PromptArgument,
    ServerResult,
};
use tokio_util::sync::CancellationToken;
use whimbrel_wire::content::Block;

use super::connection::{Connection, RequestOrigin};
use super::content::{OutputLimits, to_blocks};
use super::error::McpError;
use super::limits::RequestTimeouts;

/// MCP prompt as a slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptCommand {
    /// Command name: `mcp__server__prompt`.
    pub name: String,
    pub server: String,
    /// Prompt name at the server.
    pub prompt: String,
    pub description: String,
    /// Argument names.
    pub arguments: Vec<String>,
}

impl PromptCommand {
    pub fn argument_hint(&self) -> String {
        self.arguments.iter().map(|name| format!("[{name}]")).collect::<Vec<_>>().join(" ")
    }

    /// Splits the text behind the command into arguments: one word each; the last argument takes the rest.
    pub(super) fn parse_arguments(&self, text: &str) -> JsonObject {
        let mut rest = text.trim();
        let mut values = JsonObject::new();
        for (number, name) in self.arguments.iter().enumerate() {
            if rest.is_empty() {
                break;
            }
            let is_last = number + 1 == self.arguments.len();
            let end = if is_last { rest.len() } else { rest.find(char::is_whitespace).unwrap_or(rest.len()) };
            values.insert(name.clone(), rest[..end].into());
            rest = rest[end..].trim_start();
        }
        values
    }
}

pub(super) fn argument_names(arguments: Option<&Vec<PromptArgument>>) -> Vec<String> {
    arguments.into_iter().flatten().map(|argument| argument.name.clone()).collect()
}

/// Sends `prompts/get`.
pub(super) async fn get_prompt(
    connection: &Connection,
    prompt: &str,
    arguments: JsonObject,
    timeouts: RequestTimeouts,
    limits: OutputLimits,
) -> Result<Vec<Block>, McpError> {
    let mut params = GetPromptRequestParams::new(prompt);
    params.arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let never = CancellationToken::new();
    let result = connection
        .request(
            request,
            timeouts,
            RequestOrigin { tool: prompt, tool_use_id: "", cancel: &never, details: None },
        )
        .await?;
    match result {
        ServerResult::GetPromptResult(result) => {
            let content = result.messages.into_iter().map(|message| message.content).collect();
            Ok(to_blocks(content, limits).await)
        }
        ServerResult::CustomResult(CustomResult(value)) => {
            Err(McpError::InvalidResponse(format!("not a prompt response: {:.200}", value.to_string())))
        }
        _ => Err(McpError::InvalidResponse("not a prompt response.".into())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn words_are_assigned_to_arguments_in_order() {
        let command = |arguments: &[&str]| PromptCommand {
            name: "mcp__s__p".into(),
            server: "s".into(),
            prompt: "p".into(),
            description: String::new(),
            arguments: arguments.iter().map(|name| (*name).to_owned()).collect(),
        };
        for (names, text, expected) in [
            (&[][..], "what else", json!({})),
            (&["who"], "Zed", json!({"who": "Zed"})),
            (&["who"], "  Zed and others ", json!({"who": "Zed and others"})),
            (&["a", "b"], "1 2 3", json!({"a": "1", "b": "2 3"})),
            (&["a", "b"], "1", json!({"a": "1"})),
            (&["a"], "", json!({})),
        ] {
            assert_eq!(Value::Object(command(names).parse_arguments(text)), expected, "{text}");
        }
        assert_eq!(command(&["a", "b"]).argument_hint(), "[a] [b]");
    }
}
