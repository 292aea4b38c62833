//! Turns frames into text and events. Pure.

use std::collections::{HashMap, VecDeque};

use whimbrel_wire::content::{Content, ResultContent};
use whimbrel_wire::message::{Assistant, ProgressDetails, StreamEvent, ToolOutputChunk, ToolProgress, User};
use whimbrel_wire::stream_delta::StreamDelta;
use whimbrel_wire::system::SystemEvent;
use whimbrel_wire::{Block, Frame};

use super::{Event, LiveOutput, ProgressReport, ToolEnd, ToolStart};
use crate::warning::warning_text;

/// Stands between texts of different blocks.
const SEPARATOR: &str = "\n\n";

/// Collects the text of the main line, streamed or not.
#[derive(Debug, Default)]
pub(super) struct TextExtractor {
    streamed: StreamedMessages,
    /// Some text was given out.
    has_text: bool,
    /// The next piece begins a block.
    is_block_start: bool,
}

/// The replies that are streamed, by the call that started their agent: their complete messages bring nothing new.
#[derive(Debug, Default)]
struct StreamedMessages {
    ids: HashMap<Option<String>, String>,
}

impl StreamedMessages {
    fn record(&mut self, agent: Option<&str>, delta: &StreamDelta<'_>) {
        if let StreamDelta::MessageStart { id } = delta {
            self.ids.insert(agent.map(str::to_owned), id.clone().into_owned());
        }
    }

    fn contains(&self, message: &Assistant) -> bool {
        self.ids.get(&message.parent_tool_use_id) == Some(&message.message.id)
    }

    /// Forgets the replies of an agent that has ended.
    fn forget(&mut self, agent: &str) {
        self.ids.remove(&Some(agent.to_owned()));
    }
}

impl TextExtractor {
    /// The piece of text in a frame, if there is one.
    pub(super) fn extract(&mut self, frame: &Frame) -> Option<String> {
        match frame {
            Frame::StreamEvent(event) if event.parent_tool_use_id.is_none() => {
                let delta = event.delta()?;
                self.streamed.record(None, &delta);
                match delta {
                    StreamDelta::BlockStart => self.is_block_start = true,
                    StreamDelta::Text(text) => return self.give_out(&text),
                    _ => {}
                }
                None
            }
            Frame::Assistant(message)
                if message.parent_tool_use_id.is_none()
                    && message.error.is_none()
                    && !self.streamed.contains(message) =>
            {
                let texts = message.message.content.iter().filter_map(|block| match block {
                    Block::Text { text, .. } => Some(text.as_str()),
                    _ => None,
                });
                let text = texts.collect::<Vec<_>>().join(SEPARATOR);
                self.is_block_start = true;
                self.give_out(&text)
            }
            _ => None,
        }
    }

    fn give_out(&mut self, text: &str) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        let is_separated =
            std::mem::replace(&mut self.is_block_start, false) && std::mem::replace(&mut self.has_text, true);
        self.has_text = true;
        Some(if is_separated { format!("{SEPARATOR}{text}") } else { text.to_owned() })
    }
}

/// Makes events of frames.
#[derive(Debug, Default)]
pub(super) struct EventExtractor {
    streamed: StreamedMessages,
    /// Names of the tools of running calls, by the id of the call.
    tool_names: HashMap<String, String>,
}

impl EventExtractor {
    /// Appends the events of a frame.
    pub(super) fn extract(&mut self, frame: Frame, events: &mut VecDeque<Event>) {
        match frame {
            Frame::StreamEvent(event) => events.extend(self.extract_delta(&event)),
            Frame::Assistant(message) => self.extract_message(*message, events),
            Frame::User(message) => self.extract_results(*message, events),
            Frame::System(system) => events.extend(extract_notice(system.event)),
            Frame::ToolOutput(chunk) => events.push_back(of_live_output(*chunk)),
            Frame::ToolProgress(progress) => events.extend(of_progress(*progress)),
            _ => {}
        }
    }

    fn extract_delta(&mut self, event: &StreamEvent) -> Option<Event> {
        let delta = event.delta()?;
        self.streamed.record(event.parent_tool_use_id.as_deref(), &delta);
        let piece = match delta {
            StreamDelta::Text(text) => Event::Text(text.into_owned()),
            StreamDelta::Thinking(text) => Event::Thinking(text.into_owned()),
            _ => return None,
        };
        Some(of_agent(event.parent_tool_use_id.as_deref(), piece))
    }

    fn extract_message(&mut self, message: Assistant, events: &mut VecDeque<Event>) {
        // The error of a failed call is in the result.
        if message.error.is_some() {
            return;
        }
        let is_streamed = self.streamed.contains(&message);
        let parent = message.parent_tool_use_id;
        for block in message.message.content {
            let event = match block {
                Block::Text { text, .. } if !is_streamed && !text.is_empty() => Event::Text(text),
                Block::Thinking { thinking, .. } if !is_streamed && !thinking.is_empty() => {
                    Event::Thinking(thinking)
                }
                Block::ToolUse { id, name, input } => {
                    self.tool_names.insert(id.clone(), name.clone());
                    Event::ToolStarted(ToolStart { id, name, input })
                }
                _ => continue,
            };
            events.push_back(of_agent(parent.as_deref(), event));
        }
    }

    fn extract_results(&mut self, message: User, events: &mut VecDeque<Event>) {
        let Content::Blocks(blocks) = message.message.content else { return };
        for block in blocks {
            let Block::ToolResult { tool_use_id, content, is_error } = block else { continue };
            let name = self.tool_names.remove(&tool_use_id).unwrap_or_default();
            self.streamed.forget(&tool_use_id);
            let end = ToolEnd {
                id: tool_use_id,
                name,
                is_error: is_error == Some(true),
                text: content.map(result_text).unwrap_or_default(),
            };
            events.push_back(of_agent(message.parent_tool_use_id.as_deref(), Event::ToolEnded(end)));
        }
    }
}

/// An event of the main line or of the agent that a call started.
fn of_agent(parent: Option<&str>, event: Event) -> Event {
    match parent {
        None => event,
        Some(id) => Event::Subagent { tool_use_id: id.to_owned(), event: Box::new(event) },
    }
}

fn of_live_output(chunk: ToolOutputChunk) -> Event {
    let ToolOutputChunk { tool_use_id, task_id, parent_tool_use_id, text, omitted_bytes, .. } = chunk;
    let output = LiveOutput { id: tool_use_id, task_id, text, omitted_bytes };
    of_agent(parent_tool_use_id.as_deref(), Event::ToolOutput(output))
}

/// What a tool says; signs of life without news are no event.
fn of_progress(progress: ToolProgress) -> Option<Event> {
    let ProgressDetails { done, total, message } = progress.progress?;
    let report = ProgressReport { id: progress.tool_use_id, name: progress.tool_name, done, total, message };
    Some(of_agent(progress.parent_tool_use_id.as_deref(), Event::ToolProgress(report)))
}

fn result_text(content: ResultContent) -> String {
    match content {
        ResultContent::Text(text) => text,
        ResultContent::Blocks(blocks) => Content::Blocks(blocks).joined_text(),
    }
}

fn extract_notice(event: SystemEvent) -> Option<Event> {
    Some(match event {
        SystemEvent::TaskStarted(task) if task.is_backgrounded == Some(true) => {
            Event::TaskStarted { task_id: task.task_id, description: task.description }
        }
        SystemEvent::TaskNotification(task) => {
            Event::TaskEnded { task_id: task.task_id, summary: task.summary }
        }
        event => Event::Warning(warning_text(&event)?.into_owned()),
    })
}

#[cfg(test)]
mod tests;
