//! The tool calls of a session that the editor has seen and that have no result yet, and the updates about them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Meta, SessionUpdate, Terminal, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use serde_json::{Value, json};
use whimbrel::wire::message::{CommandExit, ToolOutputChunk};

use super::call::{describe_call, is_plan_tool, kind, provisional_title};
use super::result::{RawResult, command_exit, command_output, describe_result};
use super::text::{fenced_content, tail};
use crate::capabilities::{ClientFeatures, TerminalOutput};

/// Live output of a command that is kept for an editor without terminals, which gets all of it with each update.
const MAX_SHOWN_OUTPUT_BYTES: usize = 16 * 1024;

/// Calls without a result, and what must be known of finished ones.
#[derive(Debug)]
pub(crate) struct Calls {
    cwd: PathBuf,
    terminals: Option<TerminalOutput>,
    open: HashMap<String, OpenCall>,
    /// The order in which the calls were announced.
    order: Vec<String>,
    /// Commands that go on in the background, by their call.
    background_commands: HashMap<String, OpenCall>,
    /// `Agent` calls whose agent goes on in the background.
    background_agents: HashSet<String>,
}

/// A call that the editor has seen.
#[derive(Debug, Clone)]
struct OpenCall {
    tool: String,
    input: Value,
    /// The `Agent` call above it.
    parent: Option<String>,
    is_running: bool,
    /// Live output so far, if the editor has no terminals.
    output: String,
    has_streamed: bool,
}

impl Calls {
    pub(crate) fn new(cwd: PathBuf, features: &ClientFeatures) -> Self {
        Self {
            cwd,
            terminals: features.terminal_output,
            open: HashMap::new(),
            order: Vec::new(),
            background_commands: HashMap::new(),
            background_agents: HashSet::new(),
        }
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// A call that has no result yet, as it is now.
    pub(crate) fn show_open(&self, id: &str) -> Option<SessionUpdate> {
        let call = self.open.get(id).filter(|call| !is_plan_tool(&call.tool))?;
        let mut shown = self.describe(id, &call.tool, &call.input, None);
        if call.is_running {
            shown = shown.status(ToolCallStatus::InProgress);
        }
        if !call.output.is_empty() {
            shown = shown.content(vec![fenced_content(&call.output, "console")]);
        }
        Some(SessionUpdate::ToolCall(shown))
    }

    /// The calls of subagents that have no result yet, as they are now.
    pub(crate) fn show_open_of_subagents(&self) -> impl Iterator<Item = SessionUpdate> {
        let is_nested = |id: &&String| self.open.get(*id).is_some_and(|call| call.parent.is_some());
        self.order.iter().filter(is_nested).filter_map(|id| self.show_open(id))
    }

    /// Whether a command goes on in the background.
    pub(crate) fn is_background_command(&self, id: &str) -> bool {
        self.background_commands.contains_key(id)
    }

    /// The tool and the input of an open call.
    pub(crate) fn find(&self, id: &str) -> Option<(&str, &Value)> {
        self.open.get(id).map(|call| (call.tool.as_str(), &call.input))
    }

    /// Announces a call whose input is still streaming.
    pub(crate) fn announce(&mut self, id: &str, tool: &str, parent: Option<&str>) -> Option<SessionUpdate> {
        if self.open.contains_key(id) {
            return None;
        }
        self.insert(id, tool, json!({}), parent);
        if is_plan_tool(tool) {
            return None;
        }
        let mut call = ToolCall::new(id.to_owned(), provisional_title(tool))
            .name(tool.to_owned())
            .kind(kind(tool))
            .raw_input(json!({}));
        if self.has_terminal(tool) {
            call = call.content(vec![terminal(id)]);
        }
        Some(SessionUpdate::ToolCall(call.meta(self.call_meta(id, tool, parent))))
    }

    /// Shows the complete input of a call.
    pub(crate) fn complete_input(
        &mut self,
        id: &str,
        tool: &str,
        input: &Value,
        parent: Option<&str>,
    ) -> Option<SessionUpdate> {
        let is_known = self.open.contains_key(id);
        if !is_known {
            self.insert(id, tool, input.clone(), parent);
        }
        if let Some(call) = self.open.get_mut(id) {
            call.input = input.clone();
        }
        if is_plan_tool(tool) {
            return None;
        }
        let call = self.describe(id, tool, input, parent);
        Some(match is_known {
            false => SessionUpdate::ToolCall(call),
            true => {
                let ToolCall { title, kind, content, locations, raw_input, .. } = call;
                let mut fields = ToolCallUpdateFields::new()
                    .title(title)
                    .kind(kind)
                    .raw_input(raw_input)
                    .locations(locations);
                if !content.is_empty() {
                    fields = fields.content(content);
                }
                SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields))
            }
        })
    }

    /// A call with its complete input.
    pub(crate) fn describe(&self, id: &str, tool: &str, input: &Value, parent: Option<&str>) -> ToolCall {
        let described = describe_call(tool, input, &self.cwd);
        let parent = parent.or_else(|| self.open.get(id)?.parent.as_deref());
        let content = match self.has_terminal(tool) {
            true => vec![terminal(id)],
            false => described.content,
        };
        ToolCall::new(id.to_owned(), described.title)
            .name(tool.to_owned())
            .kind(described.kind)
            .content(content)
            .locations(described.locations)
            .raw_input(input.clone())
            .meta(self.call_meta(id, tool, parent))
    }

    /// Reports that a call runs.
    pub(crate) fn start(&mut self, id: &str) -> Option<SessionUpdate> {
        let call = self.open.get_mut(id)?;
        if call.is_running || is_plan_tool(&call.tool) {
            return None;
        }
        call.is_running = true;
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        Some(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields)))
    }

    /// Shows what a command printed.
    pub(crate) fn add_output(&mut self, chunk: &ToolOutputChunk) -> Option<SessionUpdate> {
        let id = &chunk.tool_use_id;
        let call = self.open.get_mut(id).or_else(|| self.background_commands.get_mut(id))?;
        call.has_streamed = true;
        let mut text = String::new();
        if chunk.omitted_bytes > 0 {
            text += &format!("[{} bytes left out]\n", chunk.omitted_bytes);
        }
        text += &chunk.text;
        let update = match self.terminals {
            Some(terminals) => ToolCallUpdate::new(id.clone(), ToolCallUpdateFields::new())
                .meta(terminals.output_meta(id, &text)),
            None => {
                call.output.push_str(&text);
                call.output = tail(&call.output, MAX_SHOWN_OUTPUT_BYTES).to_owned();
                let content = vec![fenced_content(&call.output, "console")];
                ToolCallUpdate::new(id.clone(), ToolCallUpdateFields::new().content(content))
            }
        };
        Some(SessionUpdate::ToolCallUpdate(update))
    }

    /// Closes a call with its result. Also returns the call, for the plan.
    pub(crate) fn finish(
        &mut self,
        id: &str,
        result: RawResult<'_>,
    ) -> Option<(String, Value, Option<SessionUpdate>)> {
        let call = self.open.remove(id)?;
        self.order.retain(|open| open != id);
        if let Some(structured) = result.structured {
            if structured["status"] == "async_launched" {
                self.background_agents.insert(id.to_owned());
            }
            if structured["backgroundTaskId"].is_string() {
                self.background_commands.insert(id.to_owned(), call.clone());
            }
        }
        if is_plan_tool(&call.tool) {
            return Some((call.tool, call.input, None));
        }
        let update = self.result_update(id, &call, result);
        Some((call.tool, call.input, Some(SessionUpdate::ToolCallUpdate(update))))
    }

    /// Ends the terminal of a background command.
    pub(crate) fn finish_background_command(&mut self, id: &str) -> Option<SessionUpdate> {
        self.background_commands.remove(id)?;
        let terminals = self.terminals?;
        let update = ToolCallUpdate::new(id.to_owned(), ToolCallUpdateFields::new());
        Some(SessionUpdate::ToolCallUpdate(update.meta(terminals.exit_meta(id, &CommandExit::default()))))
    }

    /// Closes the calls that get no result any more because the turn is over. Those of agents in the background go on.
    pub(crate) fn close_all(&mut self) -> Vec<SessionUpdate> {
        let (background, ended): (Vec<String>, Vec<String>) =
            std::mem::take(&mut self.order).into_iter().partition(|id| self.is_in_background(id));
        self.order = background;
        ended.iter().filter_map(|id| self.close(id)).collect()
    }

    /// Closes a call that gets no result any more.
    pub(crate) fn close(&mut self, id: &str) -> Option<SessionUpdate> {
        let call = self.open.remove(id)?;
        self.order.retain(|open| open != id);
        if is_plan_tool(&call.tool) {
            return None;
        }
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Failed);
        let mut update = ToolCallUpdate::new(id.to_owned(), fields);
        if let Some(terminals) = self.terminals.filter(|_| is_command(&call.tool)) {
            update = update.meta(terminals.exit_meta(id, &CommandExit::default()));
        }
        Some(SessionUpdate::ToolCallUpdate(update))
    }

    fn is_in_background(&self, id: &str) -> bool {
        let parent = self.open.get(id).and_then(|call| call.parent.as_deref());
        parent.is_some_and(|parent| self.background_agents.contains(parent))
    }

    fn insert(&mut self, id: &str, tool: &str, input: Value, parent: Option<&str>) {
        let call = OpenCall {
            tool: tool.to_owned(),
            input,
            parent: parent.map(str::to_owned),
            is_running: false,
            output: String::new(),
            has_streamed: false,
        };
        self.open.insert(id.to_owned(), call);
        self.order.push(id.to_owned());
    }

    fn result_update(&self, id: &str, call: &OpenCall, result: RawResult<'_>) -> ToolCallUpdate {
        let described = describe_result(&call.tool, result);
        let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let mut fields = ToolCallUpdateFields::new().status(status).raw_output(described.raw_output);
        if !described.locations.is_empty() {
            fields = fields.locations(described.locations);
        }
        let Some(terminals) = self.terminals.filter(|_| is_command(&call.tool)) else {
            if !described.content.is_empty() {
                fields = fields.content(described.content);
            }
            return ToolCallUpdate::new(id.to_owned(), fields);
        };
        let mut meta = Meta::new();
        if !call.has_streamed {
            meta.append(&mut terminals.output_meta(id, &command_output(result)));
        }
        if !self.background_commands.contains_key(id) {
            meta.append(&mut terminals.exit_meta(id, &command_exit(result)));
        }
        ToolCallUpdate::new(id.to_owned(), fields.content(vec![terminal(id)])).meta(meta)
    }

    fn has_terminal(&self, tool: &str) -> bool {
        self.terminals.is_some() && is_command(tool)
    }

    /// What the protocol has no field for: the tool, the call above, the terminal.
    fn call_meta(&self, id: &str, tool: &str, parent: Option<&str>) -> Meta {
        let mut claude_code = json!({"toolName": tool});
        if let Some(parent) = parent {
            claude_code["parentToolUseId"] = parent.into();
        }
        let mut meta = Meta::from_iter([("claudeCode".to_owned(), claude_code)]);
        if self.has_terminal(tool) {
            let cwd = self.cwd.display().to_string();
            meta.insert("terminal_info".into(), json!({"terminal_id": id, "cwd": cwd}));
        }
        meta
    }
}

fn is_command(tool: &str) -> bool {
    tool == "Bash"
}

fn terminal(id: &str) -> ToolCallContent {
    ToolCallContent::Terminal(Terminal::new(id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(terminal_output: Option<TerminalOutput>) -> Calls {
        Calls::new("/w".into(), &ClientFeatures { terminal_output, ..ClientFeatures::default() })
    }

    fn to_json(update: Option<SessionUpdate>) -> Value {
        json!(update.unwrap())
    }

    fn success(structured: &Value) -> RawResult<'_> {
        RawResult { structured: Some(structured), for_model: None, is_error: false, exit: None }
    }

    #[test]
    fn call_is_announced_once_and_then_updated() {
        let mut calls = calls(None);
        let announced = to_json(calls.announce("c", "Read", None));
        assert_eq!((&announced["sessionUpdate"], &announced["title"]), (&json!("tool_call"), &json!("Read")));
        assert_eq!(calls.announce("c", "Read", None), None);
        let input = json!({"file_path": "/w/a"});
        let update = to_json(calls.complete_input("c", "Read", &input, None));
        assert_eq!(
            (&update["sessionUpdate"], &update["title"]),
            (&json!("tool_call_update"), &json!("Read a"))
        );
        assert_eq!(to_json(calls.start("c"))["status"], "in_progress");
        assert_eq!(calls.start("c"), None);
        let result = json!({"type": "text", "file": {"content": "x"}});
        let (_, _, update) = calls.finish("c", success(&result)).unwrap();
        assert_eq!(to_json(update)["status"], "completed");
        assert!(calls.finish("c", success(&result)).is_none(), "a call ends once");
    }

    #[test]
    fn plan_tools_are_not_shown() {
        let mut calls = calls(None);
        assert_eq!(calls.announce("c", "TodoWrite", None), None);
        assert_eq!(calls.complete_input("c", "TodoWrite", &json!({}), None), None);
        assert_eq!(calls.finish("c", success(&json!({}))).unwrap().2, None);
    }

    #[test]
    fn command_streams_into_a_terminal_and_exits() {
        let mut calls = calls(Some(TerminalOutput::Delta));
        let input = json!({"command": "make"});
        let announced = to_json(calls.complete_input("c", "Bash", &input, None));
        assert_eq!(announced["content"], json!([{"type": "terminal", "terminalId": "c"}]));
        assert_eq!(announced["_meta"]["terminal_info"]["terminal_id"], "c");
        let chunk =
            ToolOutputChunk { tool_use_id: "c".into(), text: "one\n".into(), ..ToolOutputChunk::default() };
        let output = to_json(calls.add_output(&chunk));
        assert_eq!(output["_meta"]["terminal_output_delta"], json!({"terminal_id": "c", "data": "one\n"}));
        let (_, _, update) = calls.finish("c", success(&json!({"stdout": "one\n", "stderr": ""}))).unwrap();
        let update = to_json(update);
        assert_eq!(
            update["_meta"]["terminal_exit"],
            json!({"terminal_id": "c", "exit_code": 0, "signal": null})
        );
        assert_eq!(update["_meta"].get("terminal_output_delta"), None, "the output was streamed");
    }

    #[test]
    fn terminal_of_a_killed_command_names_the_signal() {
        let mut calls = calls(Some(TerminalOutput::Output));
        calls.complete_input("c", "Bash", &json!({"command": "make"}), None);
        let exit = CommandExit { exit_code: None, signal: Some("SIGKILL".into()) };
        let result = RawResult { structured: None, for_model: None, is_error: true, exit: Some(&exit) };
        let (_, _, update) = calls.finish("c", result).unwrap();
        assert_eq!(
            to_json(update)["_meta"]["terminal_exit"],
            json!({"terminal_id": "c", "exit_code": null, "signal": "SIGKILL"})
        );
    }

    #[test]
    fn command_without_terminal_shows_all_output_so_far() {
        let mut calls = calls(None);
        calls.complete_input("c", "Bash", &json!({"command": "make"}), None);
        let chunk = |text: &str| ToolOutputChunk {
            tool_use_id: "c".into(),
            text: text.into(),
            ..ToolOutputChunk::default()
        };
        calls.add_output(&chunk("one\n"));
        let update = to_json(calls.add_output(&chunk("two\n")));
        assert_eq!(update["content"][0]["content"]["text"], "```console\none\ntwo\n```");
    }

    #[test]
    fn open_calls_fail_at_the_end_except_those_of_background_agents() {
        let mut calls = calls(None);
        calls.announce("agent", "Agent", None);
        calls.finish("agent", success(&json!({"status": "async_launched"})));
        calls.announce("nested", "Read", Some("agent"));
        calls.announce("own", "Read", None);
        let closed: Vec<Value> = calls.close_all().iter().map(|update| json!(update)).collect();
        assert_eq!(closed.len(), 1);
        assert_eq!((&closed[0]["toolCallId"], &closed[0]["status"]), (&json!("own"), &json!("failed")));
        assert!(calls.find("nested").is_some());
    }
}
