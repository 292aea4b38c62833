//! The messages of a stored session as updates, as the editor would have got them while they were made. Pure.

use std::collections::HashMap;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, MessageId, SessionUpdate, ToolCall, ToolCallStatus,
};
use serde::Deserialize;
use serde_json::Value;
use whimbrel::store::Message;
use whimbrel::wire::content::{Block, Content, ResultContent, Source, Usage};
use whimbrel::wire::message::CommandExit;

use crate::prompt::CONTEXT_TAG;
use crate::stored_conversation::StoredConversation;
use crate::translate::result::{RawResult, without_reminders};
use crate::translate::{StreamedReply, Translator, text_chunk};

/// Beginnings of texts that the engine wrote in place of the user.
const ENGINE_TEXTS: [&str; 5] = [
    CONTEXT_TAG,
    "[Request interrupted by user",
    "<task-notification>",
    "<local-command-caveat>",
    "<context>",
];

/// The result of a call.
struct StoredResult<'a> {
    structured: Option<&'a Value>,
    for_model: Option<ResultContent>,
    is_error: bool,
    exit: Option<&'a CommandExit>,
}

impl StoredResult<'_> {
    fn as_raw(&self) -> RawResult<'_> {
        RawResult {
            structured: self.structured,
            for_model: self.for_model.as_ref(),
            is_error: self.is_error,
            exit: self.exit,
        }
    }
}

/// Whether the replayed session works meanwhile.
#[derive(Clone, Copy)]
pub(crate) enum Liveness<'a> {
    /// It has just been opened: what has no result will get none.
    Opened,
    /// It is open: what its translator still follows goes on.
    Running(&'a Translator),
}

impl<'a> Liveness<'a> {
    fn translator(self) -> Option<&'a Translator> {
        match self {
            Self::Opened => None,
            Self::Running(translator) => Some(translator),
        }
    }
}

/// Updates for a whole session. The translator has to be a new one; it then knows plan and usage.
pub(crate) fn replay(
    translator: &mut Translator,
    stored: &StoredConversation,
    liveness: Liveness<'_>,
) -> Vec<SessionUpdate> {
    let mut replay = Replay { translator, stored, liveness, updates: Vec::new() };
    replay.add_conversation();
    if let Liveness::Running(live) = liveness {
        replay.updates.extend(live.calls.show_open_of_subagents());
    }
    replay.updates
}

/// The updates so far.
struct Replay<'a> {
    translator: &'a mut Translator,
    stored: &'a StoredConversation,
    liveness: Liveness<'a>,
    updates: Vec<SessionUpdate>,
}

impl Replay<'_> {
    fn add_conversation(&mut self) {
        let messages = &self.stored.messages;
        let results = stored_results(messages);
        let mut streaming = self.liveness.translator().and_then(Translator::streaming_reply);
        let streaming_id = streaming.map(|reply| reply.id.as_str());
        for message in messages {
            let blocks = blocks_of(message);
            if message.kind == "user" {
                let chunks = blocks.into_iter().filter_map(|block| user_chunk(block, &message.uuid));
                self.updates.extend(chunks);
                continue;
            }
            let reply_id = message.message["id"].as_str();
            if let Ok(usage) = Usage::deserialize(&message.message["usage"]) {
                self.translator.set_usage(&usage);
            }
            let is_streaming = reply_id.is_some() && reply_id == streaming_id;
            if is_streaming && let Some(reply) = streaming.take() {
                self.updates.extend(reply.updates());
            }
            for block in blocks {
                match block {
                    Block::ToolUse { id, name, input } => {
                        self.add_call(&id, &name, &input, results.get(&id), None);
                    }
                    // The editor has to get it up to the delta that comes next.
                    _ if is_streaming => {}
                    block => self.updates.extend(reply_chunk(&block, reply_id)),
                }
            }
        }
        self.updates.extend(streaming.into_iter().flat_map(StreamedReply::updates));
    }

    /// Adds a call with its final state, or with its present state if it goes on, and the calls of the agent that it
    /// started.
    fn add_call(
        &mut self,
        id: &str,
        tool: &str,
        input: &Value,
        result: Option<&StoredResult<'_>>,
        parent: Option<&str>,
    ) {
        let live = self.liveness.translator().map(|live| &live.calls);
        if let Some(live) = live.filter(|live| live.find(id).is_some()) {
            // Calls of subagents follow at the end.
            self.updates.extend(live.show_open(id).filter(|_| parent.is_none()));
            return;
        }
        let call = self.translator.calls.complete_input(id, tool, input, parent);
        let mut finished = match result {
            Some(result) => self.translator.finish_call(id, result.as_raw()),
            None => self.translator.calls.close(id).into_iter().collect(),
        };
        if !live.is_some_and(|live| live.is_background_command(id)) {
            // The command has ended with the process that started it, or before.
            finished.extend(self.translator.calls.finish_background_command(id));
        }
        self.updates.extend(join_call(call, finished));
        if let Some(messages) = self.stored.subagents.get(id) {
            self.add_subagent(messages, id);
        }
    }

    /// Adds the calls of a subagent. Its text is not that of the session.
    fn add_subagent(&mut self, messages: &[Message], parent: &str) {
        let results = stored_results(messages);
        for block in messages.iter().filter(|message| message.kind != "user").flat_map(blocks_of) {
            if let Block::ToolUse { id, name, input } = block {
                self.add_call(&id, &name, &input, results.get(&id), Some(parent));
            }
        }
    }
}

/// The results of all calls, so that each call is shown with its final state.
fn stored_results(messages: &[Message]) -> HashMap<String, StoredResult<'_>> {
    let mut results = HashMap::new();
    for message in messages.iter().filter(|message| message.kind == "user") {
        for block in blocks_of(message) {
            if let Block::ToolResult { tool_use_id, content, is_error } = block {
                let structured = message.tool_use_result.as_ref();
                let is_error = is_error.unwrap_or(false);
                let exit = message.command_exit.as_ref();
                let result = StoredResult { structured, for_model: content, is_error, exit };
                results.insert(tool_use_id, result);
            }
        }
    }
    results
}

fn reply_chunk(block: &Block, reply_id: Option<&str>) -> Option<SessionUpdate> {
    match block {
        Block::Text { text, .. } if !text.trim().is_empty() => {
            Some(SessionUpdate::AgentMessageChunk(text_chunk(text, reply_id)))
        }
        Block::Thinking { thinking, .. } if !thinking.is_empty() => {
            Some(SessionUpdate::AgentThoughtChunk(text_chunk(thinking, reply_id)))
        }
        _ => None,
    }
}

/// Joins a call and its result to one update; others follow it.
fn join_call(call: Option<SessionUpdate>, finished: Vec<SessionUpdate>) -> Vec<SessionUpdate> {
    let Some(SessionUpdate::ToolCall(mut call)) = call else { return finished };
    let mut others = Vec::new();
    for update in finished {
        match update {
            SessionUpdate::ToolCallUpdate(update) if update.tool_call_id == call.tool_call_id => {
                call.update(update.fields);
                call = match (call.meta.clone(), update.meta) {
                    (Some(mut meta), Some(mut more)) => {
                        meta.append(&mut more);
                        call.meta(meta)
                    }
                    (None, Some(more)) => call.meta(more),
                    (_, None) => call,
                };
            }
            other => others.push(other),
        }
    }
    if call.status == ToolCallStatus::Pending {
        call = ToolCall::status(call, ToolCallStatus::Failed);
    }
    std::iter::once(SessionUpdate::ToolCall(call)).chain(others).collect()
}

fn blocks_of(message: &Message) -> Vec<Block> {
    match &message.message["content"] {
        Value::String(text) => vec![Block::text(text)],
        content => {
            serde_json::from_value::<Content>(content.clone()).map(Content::into_blocks).unwrap_or_default()
        }
    }
}

fn user_chunk(block: Block, uuid: &str) -> Option<SessionUpdate> {
    match block {
        Block::Text { text, .. } => shown_prompt(&text).map(|shown| match shown {
            ShownPrompt::User(text) => SessionUpdate::UserMessageChunk(text_chunk(&text, Some(uuid))),
            ShownPrompt::CommandOutput(text) => {
                SessionUpdate::AgentMessageChunk(text_chunk(&text, Some(uuid)))
            }
        }),
        Block::Image { source: Source::Base64 { media_type, data } } => {
            let chunk = ContentChunk::new(ContentBlock::Image(ImageContent::new(data, media_type)));
            Some(SessionUpdate::UserMessageChunk(chunk.message_id(MessageId::new(uuid))))
        }
        _ => None,
    }
}

enum ShownPrompt {
    User(String),
    CommandOutput(String),
}

/// What the user has typed, or what a command has printed; `None` for texts of the engine.
fn shown_prompt(text: &str) -> Option<ShownPrompt> {
    let text = without_reminders(text);
    let text = text_behind_context(&text).unwrap_or(&text).to_owned();
    if text.is_empty() || ENGINE_TEXTS.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    if let Some(output) = between(&text, "<local-command-stdout>", "</local-command-stdout>") {
        return (!output.trim().is_empty()).then(|| ShownPrompt::CommandOutput(output.to_owned()));
    }
    if let Some(name) = between(&text, "<command-name>", "</command-name>") {
        let arguments = between(&text, "<command-args>", "</command-args>").unwrap_or_default();
        let line = format!("/{} {arguments}", name.trim_start_matches('/'));
        return Some(ShownPrompt::User(line.trim_end().to_owned()));
    }
    Some(ShownPrompt::User(text))
}

/// What was typed behind a file, in sessions that older versions stored as one text.
fn text_behind_context(text: &str) -> Option<&str> {
    let (_, behind) = text.strip_prefix(CONTEXT_TAG)?.rsplit_once("\n</context>")?;
    Some(behind.trim()).filter(|behind| !behind.is_empty())
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end).map_or(rest, |(inner, _)| inner))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::capabilities::{ClientFeatures, TerminalOutput};

    fn message(kind: &str, content: &Value, tool_use_result: Option<Value>) -> Message {
        Message {
            kind: kind.into(),
            uuid: "u".into(),
            session_id: "s".into(),
            message: json!({"id": "m", "content": content}),
            parent_tool_use_id: None,
            timestamp: None,
            tool_use_result,
            command_exit: None,
        }
    }

    fn stored(messages: &[Message]) -> StoredConversation {
        StoredConversation { messages: messages.to_vec(), subagents: HashMap::new() }
    }

    fn replayed(messages: &[Message]) -> Vec<Value> {
        let mut translator = Translator::new("/w".into(), ClientFeatures::default());
        let updates = replay(&mut translator, &stored(messages), Liveness::Opened);
        updates.iter().map(|update| json!(update)).collect()
    }

    #[test]
    fn conversation_is_shown_in_order_with_final_calls() {
        let call =
            |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "/w/a"}});
        let result = json!([{"type": "tool_result", "tool_use_id": "c", "content": "1 x"}]);
        let structured = json!({"type": "text", "file": {"content": "x"}});
        let messages = [
            message("user", &json!("hello"), None),
            message("assistant", &json!([{"type": "thinking", "thinking": "hm", "signature": ""}]), None),
            message("assistant", &json!([call("c"), call("lost")]), None),
            message("user", &result, Some(structured)),
            message("assistant", &json!([{"type": "text", "text": "done"}]), None),
        ];
        let updates = replayed(&messages);
        let kinds: Vec<&str> =
            updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
        let expected =
            ["user_message_chunk", "agent_thought_chunk", "tool_call", "tool_call", "agent_message_chunk"];
        assert_eq!(kinds, expected);
        assert_eq!((&updates[2]["status"], &updates[3]["status"]), (&json!("completed"), &json!("failed")));
        assert_eq!(updates[2]["content"][0]["content"]["text"], "```\nx\n```");
        assert_eq!(updates[4]["messageId"], "m");
    }

    fn call(id: &str, name: &str, input: &Value) -> Value {
        json!({"type": "tool_use", "id": id, "name": name, "input": input})
    }

    fn result(id: &str) -> Value {
        json!([{"type": "tool_result", "tool_use_id": id, "content": "Running (task b1)."}])
    }

    fn live_frame(frame: &Value) -> whimbrel::Frame {
        whimbrel::wire::codec::decode(&frame.to_string()).unwrap()
    }

    #[test]
    fn background_command_has_output_and_an_end() {
        let features =
            ClientFeatures { terminal_output: Some(TerminalOutput::Output), ..ClientFeatures::default() };
        let messages = [
            message("assistant", &json!([call("c", "Bash", &json!({"command": "serve"}))]), None),
            message("user", &result("c"), Some(json!({"stdout": "", "backgroundTaskId": "b1"}))),
        ];
        let mut translator = Translator::new("/w".into(), features);
        let opened = json!(replay(&mut translator, &stored(&messages), Liveness::Opened));
        assert_eq!(opened[0]["_meta"]["terminal_output"]["data"], "Running (task b1).");
        assert_eq!(opened[0]["_meta"]["terminal_exit"]["exit_code"], Value::Null);
        assert_eq!(opened[0]["status"], "completed");

        let mut live = Translator::new("/w".into(), features);
        for frame in [
            json!({"type": "assistant", "parent_tool_use_id": null,
                "message": {"id": "m", "model": "m", "content": messages[0].message["content"]}}),
            json!({"type": "user", "tool_use_result": messages[1].tool_use_result,
                "message": {"role": "user", "content": messages[1].message["content"]}}),
        ] {
            live.translate(&live_frame(&frame));
        }
        let running = json!(replay(&mut live.for_replay(), &stored(&messages), Liveness::Running(&live)));
        assert_eq!(running[0]["_meta"].get("terminal_exit"), None, "it goes on");
    }

    #[test]
    fn replay_of_a_running_turn_leaves_it_alone() {
        let mut live = Translator::new("/w".into(), ClientFeatures::default());
        let event =
            |event: Value| json!({"type": "stream_event", "event": event, "parent_tool_use_id": null});
        let delta = |text: &str| {
            event(json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": text}}))
        };
        let reply =
            json!([{"type": "text", "text": "I will"}, call("c", "Bash", &json!({"command": "make"}))]);
        let started = json!({"type": "tool_progress", "tool_use_id": "c", "tool_name": "Bash",
            "parent_tool_use_id": null, "elapsed_time_seconds": 0});
        for frame in [
            event(json!({"type": "message_start", "message": {"id": "m", "usage": {}}})),
            delta("I "),
            delta("will"),
            json!({"type": "assistant", "parent_tool_use_id": null,
                "message": {"id": "m", "model": "m", "content": reply}}),
            started,
        ] {
            live.translate(&live_frame(&frame));
        }
        let shown = |messages: &[Message]| {
            let updates = json!(replay(&mut live.for_replay(), &stored(messages), Liveness::Running(&live)));
            let row = |update: &Value| {
                let text = update["content"]["text"].as_str().unwrap_or_default();
                (
                    update["sessionUpdate"].as_str().unwrap().to_owned(),
                    text.to_owned(),
                    update["status"].clone(),
                )
            };
            updates.as_array().unwrap().iter().map(row).collect::<Vec<_>>()
        };
        let text = ("agent_message_chunk".to_owned(), "I will".to_owned(), Value::Null);
        let command = ("tool_call".to_owned(), String::new(), json!("in_progress"));
        assert_eq!(shown(&[message("assistant", &reply, None)]), [text.clone(), command]);
        assert_eq!(shown(&[]), [text], "what is not recorded yet");
        assert!(live.calls.find("c").is_some(), "the call goes on");
    }

    #[test]
    fn plan_is_the_same_after_each_replay() {
        let task = |id: &str| json!({"task": {"id": id, "subject": "Build"}});
        let messages = [
            message("assistant", &json!([call("c", "TaskCreate", &json!({"subject": "Build"}))]), None),
            message("user", &result("c"), Some(task("1"))),
        ];
        let mut live = Translator::new("/w".into(), ClientFeatures::default());
        let mut translator = live.for_replay();
        let first = replay(&mut translator, &stored(&messages), Liveness::Opened);
        live.take_over(translator);
        for _ in 0..2 {
            let again = replay(&mut live.for_replay(), &stored(&messages), Liveness::Running(&live));
            assert_eq!(json!(again), json!(first));
        }
        assert_eq!(json!(live.open_plan())["entries"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn calls_of_a_subagent_follow_its_call() {
        let agent = json!({"description": "look around", "prompt": "Look."});
        let finished = json!({"agentId": "a1", "content": [{"type": "text", "text": "report"}]});
        let messages = [
            message("assistant", &json!([call("agent", "Agent", &agent)]), None),
            message("user", &result("agent"), Some(finished)),
        ];
        let nested = vec![
            message("user", &json!("Look."), None),
            message("assistant", &json!([{"type": "text", "text": "hidden"}]), None),
            message("assistant", &json!([call("c", "Read", &json!({"file_path": "/w/a"}))]), None),
            message("user", &result("c"), Some(json!({"type": "text", "file": {"content": "x"}}))),
        ];
        let conversation = StoredConversation {
            messages: messages.to_vec(),
            subagents: HashMap::from([("agent".to_owned(), nested)]),
        };
        let mut translator = Translator::new("/w".into(), ClientFeatures::default());
        let updates = json!(replay(&mut translator, &conversation, Liveness::Opened));
        let row = |update: &Value| {
            let parent = &update["_meta"]["claudeCode"]["parentToolUseId"];
            (update["title"].clone(), update["status"].clone(), parent.clone())
        };
        let rows: Vec<_> = updates.as_array().unwrap().iter().map(row).collect();
        let expected = [
            (json!("look around"), json!("completed"), Value::Null),
            (json!("Read a"), json!("completed"), json!("agent")),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn texts_of_the_engine_are_left_out() {
        let rows = [
            ("<system-reminder>x</system-reminder>", None),
            ("[Request interrupted by user]", None),
            ("<context ref=\"file:///a\">\nx\n</context>", None),
            ("<context ref=\"file:///a\">\nx\n</context>typed behind it", Some("typed behind it")),
            ("<command-name>/greet</command-name>\n<command-args>Ada</command-args>", Some("/greet Ada")),
            ("<local-command-stdout>out</local-command-stdout>", Some("out")),
            ("plain", Some("plain")),
        ];
        for (text, expected) in rows {
            let updates = replayed(&[message("user", &json!(text), None)]);
            let shown = updates.first().and_then(|update| update["content"]["text"].as_str());
            assert_eq!(shown, expected, "{text}");
        }
    }
}
