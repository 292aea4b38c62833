//! The conversation as hosts read and cut it (`context.jsonl`): one message a line. A session whose transcript is not
//! there, such as a fork that a host made by copying files, begins with what this file holds.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use whimbrel::Frame;
use whimbrel::store::ImportedMessage;
use whimbrel::wire::Role;
use whimbrel::wire::content::{Block, Content, ResultContent};

use crate::tools;
use crate::user_input;
use crate::wire_log::open_to_append;

/// Writes the conversation. The file is created with the first message.
pub(crate) struct ContextLog {
    file: Option<File>,
    /// The reply whose blocks come one by one.
    reply: Option<OpenReply>,
}

struct OpenReply {
    id: String,
    blocks: Vec<Block>,
}

impl ContextLog {
    pub(crate) fn new() -> Self {
        Self { file: None, reply: None }
    }

    /// Opens the file for what is recorded from now on.
    pub(crate) fn open(&mut self, path: &Path) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(open_to_append(path)?);
        }
        Ok(())
    }

    /// The conversation was cleared: the file that holds it gets another name.
    pub(crate) fn rotate(&mut self, path: &Path) {
        (self.file, self.reply) = (None, None);
        let free = (1..).map(|number| numbered(path, number)).find(|path| !path.exists());
        if let Some(free) = free {
            // Without the rename the old conversation stays in the file, which no session reads while its transcript is
            // there.
            let _ = fs::rename(path, free);
        }
    }

    /// Records a prompt, as the client sent it.
    pub(crate) fn record_prompt(&mut self, user_input: &Value) {
        self.finish_reply();
        self.write(&json!({"role": "user", "content": user_input}));
    }

    /// Records the messages of the main line.
    pub(crate) fn record_frame(&mut self, frame: &Frame) {
        match frame {
            Frame::Assistant(message) if message.parent_tool_use_id.is_none() && message.error.is_none() => {
                let reply = &message.message;
                if self.reply.as_ref().is_some_and(|open| open.id != reply.id) {
                    self.finish_reply();
                }
                let new = || OpenReply { id: reply.id.clone(), blocks: Vec::new() };
                self.reply.get_or_insert_with(new).blocks.extend(reply.content.iter().cloned());
            }
            Frame::User(message)
                if message.parent_tool_use_id.is_none() && message.is_replay != Some(true) =>
            {
                let Content::Blocks(blocks) = &message.message.content else { return };
                for block in blocks {
                    if let Block::ToolResult { tool_use_id, content, is_error } = block {
                        self.finish_reply();
                        self.write(&tool_line(tool_use_id, content.as_ref(), *is_error == Some(true)));
                    }
                }
            }
            _ => {}
        }
    }

    /// Writes the reply whose blocks have all come.
    pub(crate) fn finish_reply(&mut self) {
        if let Some(reply) = self.reply.take() {
            self.write(&assistant_line(&reply.blocks));
        }
    }

    fn write(&mut self, line: &Value) {
        if let Some(file) = &mut self.file {
            // The conversation itself is the engine's transcript.
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    path.with_file_name(format!("context_{number}.jsonl"))
}

fn assistant_line(blocks: &[Block]) -> Value {
    let part = |block: &Block| match block {
        Block::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        Block::Thinking { thinking, signature } => {
            let encrypted = Some(signature).filter(|signature| !signature.is_empty());
            Some(json!({"type": "think", "think": thinking, "encrypted": encrypted}))
        }
        _ => None,
    };
    let call = |block: &Block| match block {
        Block::ToolUse { id, name, input } => {
            let (shown, input) = (tools::shown_name(name), tools::to_kimi(name, input).1);
            let function = json!({"name": shown, "arguments": input.to_string()});
            // The engine's own name makes the import exact.
            Some(json!({"type": "function", "id": id, "function": function, "extras": {"tool": name}}))
        }
        _ => None,
    };
    let content: Vec<Value> = blocks.iter().filter_map(part).collect();
    let calls: Vec<Value> = blocks.iter().filter_map(call).collect();
    let mut line = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        line["tool_calls"] = calls.into();
    }
    line
}

fn tool_line(call: &str, content: Option<&ResultContent>, is_error: bool) -> Value {
    let empty = ResultContent::Text(String::new());
    let value = tools::return_value("", &Value::Null, content.unwrap_or(&empty), false, None);
    json!({"role": "tool", "tool_call_id": call, "content": value.output, "is_error": is_error})
}

#[derive(Deserialize)]
struct Line {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Vec<ToolCallLine>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct ToolCallLine {
    id: String,
    function: FunctionLine,
    #[serde(default)]
    extras: Option<ExtrasLine>,
}

#[derive(Deserialize)]
struct FunctionLine {
    name: String,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct ExtrasLine {
    #[serde(default)]
    tool: Option<String>,
}

/// Reads a conversation for a new session of the engine. Lines of other kinds, such as marks, are left out.
pub(crate) fn read(path: &Path) -> io::Result<Vec<ImportedMessage>> {
    let mut messages = Vec::new();
    for line in BufReader::new(File::open(path)?).split(b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(&line?) else { continue };
        messages.extend(to_message(line));
    }
    Ok(messages)
}

fn to_message(line: Line) -> Option<ImportedMessage> {
    let (role, blocks) = match line.role.as_str() {
        "user" => (Role::User, user_input::to_blocks(&line.content).unwrap_or_default()),
        "assistant" => {
            let calls = line.tool_calls.into_iter().map(to_tool_use);
            (Role::Assistant, text_blocks(&line.content).into_iter().chain(calls).collect())
        }
        "tool" => {
            let content = Some(ResultContent::Blocks(text_blocks(&line.content)));
            let is_error = line.is_error.then_some(true);
            (Role::User, vec![Block::ToolResult { tool_use_id: line.tool_call_id?, content, is_error }])
        }
        _ => return None,
    };
    (!blocks.is_empty()).then_some(ImportedMessage { role, content: Content::Blocks(blocks) })
}

fn to_tool_use(call: ToolCallLine) -> Block {
    let input = call.function.arguments.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let (name, input) = tools::to_engine(&call.function.name, input.unwrap_or_else(|| json!({})));
    let name = call.extras.and_then(|extras| extras.tool).unwrap_or_else(|| name.to_owned());
    Block::ToolUse { id: call.id, name, input }
}

/// The texts of a message. Thoughts are left out: only the provider that wrote them could check them.
fn text_blocks(content: &Value) -> Vec<Block> {
    match content {
        Value::String(text) if !text.is_empty() => vec![Block::text(text)],
        Value::Array(parts) => {
            let texts = parts.iter().filter(|part| part["type"] == "text");
            let texts = texts.filter_map(|part| part["text"].as_str()).filter(|text| !text.is_empty());
            texts.map(Block::text).collect()
        }
        _ => Vec::new(),
    }
}
