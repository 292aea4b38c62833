//! A request to the model, as scripts and tests see it.

use serde_json::Value;

/// One request for a model reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The number of requests before this one.
    pub number: usize,
    /// The API format of the body.
    pub api_format: ApiFormat,
    /// The JSON body.
    pub body: Value,
}

/// The API format of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiFormat {
    /// The Messages API.
    Messages,
    /// Chat Completions.
    ChatCompletions,
}

impl ModelRequest {
    /// The requested model.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// The messages, unchanged.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The text of the last message, its blocks joined by newlines. Includes the text of tool results.
    pub fn last_text(&self) -> String {
        self.messages().last().map(message_text).unwrap_or_default()
    }

    /// Returns whether any message contains the text.
    pub fn contains_text(&self, text: &str) -> bool {
        self.messages().iter().any(|message| message_text(message).contains(text))
    }

    /// The system prompt, its blocks joined by newlines.
    pub fn system_prompt(&self) -> String {
        match self.api_format {
            ApiFormat::Messages => join_text(&self.body["system"]),
            ApiFormat::ChatCompletions => {
                let system = self.messages().iter().filter(|message| message["role"] == "system");
                system.map(message_text).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// The names of the offered tools.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        tools
            .iter()
            .filter_map(|tool| match self.api_format {
                ApiFormat::Messages => tool["name"].as_str(),
                ApiFormat::ChatCompletions => tool["function"]["name"].as_str(),
            })
            .collect()
    }
}

fn message_text(message: &Value) -> String {
    join_text(&message["content"])
}

/// Joins the text of a string or of blocks, tool results included.
fn join_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| match &block["text"] {
                Value::String(text) => Some(text.clone()),
                _ if block["content"].is_null() => None,
                _ => Some(join_text(&block["content"])),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
