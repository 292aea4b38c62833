//! A request as a script sees it.

use serde_json::Value;

/// One request for a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// How many requests came before it.
    pub number: usize,
    /// The language it is in.
    pub api_format: ApiFormat,
    /// Its body.
    pub body: Value,
}

/// The language of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiFormat {
    /// The Messages API.
    Messages,
    /// Chat Completions.
    ChatCompletions,
}

impl ModelRequest {
    /// The model that is asked.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// The messages, as they came.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The text of the last message, its blocks joined by newlines. Tool results count as text.
    pub fn last_text(&self) -> String {
        self.messages().last().map(message_text).unwrap_or_default()
    }

    /// Whether the text appears in any message.
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

    /// The names of the tools that the model may call.
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

/// The text of a string or of blocks, tool results included.
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
