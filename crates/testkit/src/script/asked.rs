//! A request as a script sees it.

use serde_json::Value;

/// One request for a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// How many requests came before it.
    pub number: usize,
    /// The language it is in.
    pub dialect: Dialect,
    /// Its body.
    pub body: Value,
}

/// The language of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The Messages API.
    Messages,
    /// Chat Completions.
    ChatCompletions,
}

impl Asked {
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
        self.messages().last().map(text_of).unwrap_or_default()
    }

    /// Whether the text appears in any message.
    pub fn says(&self, text: &str) -> bool {
        self.messages().iter().any(|message| text_of(message).contains(text))
    }

    /// The system prompt, its blocks joined by newlines.
    pub fn system(&self) -> String {
        match self.dialect {
            Dialect::Messages => joined(&self.body["system"]),
            Dialect::ChatCompletions => {
                let system = self.messages().iter().filter(|message| message["role"] == "system");
                system.map(text_of).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// The names of the tools that the model may call.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        tools
            .iter()
            .filter_map(|tool| match self.dialect {
                Dialect::Messages => tool["name"].as_str(),
                Dialect::ChatCompletions => tool["function"]["name"].as_str(),
            })
            .collect()
    }
}

fn text_of(message: &Value) -> String {
    joined(&message["content"])
}

/// The text of a string or of blocks, tool results included.
fn joined(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| match &block["text"] {
                Value::String(text) => Some(text.clone()),
                _ if block["content"].is_null() => None,
                _ => Some(joined(&block["content"])),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
