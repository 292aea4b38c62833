//! Follows the frames of the session.

use tokio::time::Instant;
use whimbrel::Frame;
use whimbrel::wire::content::{Block, Content};
use whimbrel::wire::message::{Assistant, StreamEvent, TerminalReason, TurnResult, User};
use whimbrel::wire::stream_delta::StreamDelta;
use whimbrel::wire::system::{CompactResult, InformationLevel, Status, StatusKind, SystemEvent, TaskEnd};

use super::agents::AgentState;
use super::calls::{CallResult, result_text};
use super::{Change, ContextFill, Conversation, InterruptState, Phase, TurnEnd};
use crate::transcript::{Item, NoteLevel};

impl Conversation {
    /// Follows one frame.
    pub(crate) fn handle_frame(&mut self, frame: &Frame, now: Instant) -> Vec<Change> {
        let mut changes = Vec::new();
        match frame {
            Frame::StreamEvent(event) if event.parent_tool_use_id.is_none() => {
                self.handle_delta(event, now, &mut changes);
            }
            Frame::Assistant(assistant) => match &assistant.parent_tool_use_id {
                Some(parent) => self.handle_agent_reply(parent, assistant, now),
                None => self.handle_reply(assistant, now, &mut changes),
            },
            Frame::User(user) => match &user.parent_tool_use_id {
                Some(parent) => self.handle_agent_results(parent, user, now),
                None => self.handle_user(user, now, &mut changes),
            },
            Frame::Result(result) => self.handle_result(result, now, &mut changes),
            Frame::ToolOutput(chunk) => self.add_output(chunk),
            Frame::System(system) => {
                if !system.session_id.is_empty() {
                    self.session_id = Some(system.session_id.clone());
                }
                self.handle_system(&system.event, now, &mut changes);
            }
            Frame::ConversationReset(_) => changes.push(Change::ConversationReset),
            _ => {}
        }
        changes
    }

    fn handle_delta(&mut self, event: &StreamEvent, now: Instant, changes: &mut Vec<Change>) {
        let Some(delta) = event.delta() else { return };
        self.begin_turn(now);
        match delta {
            StreamDelta::Text(text) => {
                self.set_phase(Phase::Writing);
                self.count_written(text.len());
                self.streamed.get_or_insert_default().push_str(&text);
                changes.push(Change::Text(text.into_owned()));
            }
            StreamDelta::Thinking(text) => {
                self.set_phase(Phase::Thinking);
                self.count_written(text.len());
                self.reasoning.push_str(&text);
            }
            StreamDelta::ToolInput(text) => {
                self.set_phase(Phase::Writing);
                self.count_written(text.len());
            }
            StreamDelta::BlockStart => self.end_text(changes),
            _ => {}
        }
    }

    fn set_phase(&mut self, phase: Phase) {
        if let Some(turn) = &mut self.turn {
            turn.phase = phase;
        }
    }

    fn count_written(&mut self, bytes: usize) {
        if let Some(turn) = &mut self.turn {
            turn.written_bytes += bytes;
        }
    }

    fn handle_reply(&mut self, assistant: &Assistant, now: Instant, changes: &mut Vec<Change>) {
        // The text of a failed model call comes again with the result.
        if assistant.error.is_some() {
            self.end_text(changes);
            return;
        }
        let usage = &assistant.message.usage;
        let read = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
        if read > 0 {
            let window = self.context.map_or(0, |context| context.window);
            self.context = Some(ContextFill { tokens: read + usage.output_tokens, window });
        }
        for block in &assistant.message.content {
            match block {
                Block::Text { text, .. } if self.streamed.is_none() && !text.is_empty() => {
                    self.show(Item::Answer(text.clone()), changes);
                }
                Block::Text { .. } => self.end_text(changes),
                Block::Thinking { .. } => self.end_text(changes),
                Block::ToolUse { id, name, input } => {
                    self.end_text(changes);
                    self.start_call(id, name, input, now);
                    self.set_phase(Phase::Waiting);
                }
                _ => {}
            }
        }
    }

    fn handle_user(&mut self, user: &User, now: Instant, changes: &mut Vec<Change>) {
        if user.is_replay == Some(true) {
            if let Some(uuid) = &user.uuid {
                changes.push(Change::PromptTaken { uuid: uuid.clone() });
            }
            return;
        }
        let Content::Blocks(blocks) = &user.message.content else { return };
        for block in blocks {
            if let Block::ToolResult { tool_use_id, content, is_error } = block {
                let result = CallResult {
                    text: result_text(content.as_ref()),
                    is_error: *is_error == Some(true),
                    structured: user.tool_use_result.clone(),
                };
                self.finish_call(tool_use_id, result, now, changes);
            }
        }
    }

    fn handle_result(&mut self, result: &TurnResult, now: Instant, changes: &mut Vec<Change>) {
        self.end_text(changes);
        self.abandon_calls(now, changes);
        self.record_result(result);
        let turn = self.turn.take();
        let was_requested = turn.as_ref().is_some_and(|turn| turn.interrupt == InterruptState::Requested);
        let is_interrupted = was_requested
            || matches!(
                result.terminal_reason,
                Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools)
            );
        if is_interrupted {
            self.show(Item::Note(NoteLevel::Warning, "interrupted".into()), changes);
        } else if result.is_error {
            self.show(Item::Note(NoteLevel::Error, failure_text(result)), changes);
        } else if result.local_command.is_some()
            && let Some(text) = result.result.as_deref().filter(|text| !text.is_empty())
            && !self.was_shown(text)
        {
            self.show(Item::Page(text.to_owned()), changes);
        }
        changes.push(Change::TurnEnded(Box::new(TurnEnd {
            elapsed: turn.map_or_else(
                || std::time::Duration::from_millis(result.duration_ms),
                |turn| now.saturating_duration_since(turn.started),
            ),
            is_interrupted,
            is_error: result.is_error,
            cost_usd: result.total_cost_usd,
            output_tokens: result.usage.output_tokens,
        })));
    }

    /// Returns whether the text of a result is the entry before it.
    fn was_shown(&self, text: &str) -> bool {
        match self.transcript.items().last() {
            Some(Item::Answer(shown) | Item::Page(shown)) => shown.trim() == text.trim(),
            _ => false,
        }
    }

    fn handle_system(&mut self, event: &SystemEvent, now: Instant, changes: &mut Vec<Change>) {
        match event {
            SystemEvent::Init(init) => {
                self.begin_turn(now);
                self.model = Some(init.model.clone());
                self.mode = init.permission_mode;
                self.effort.clone_from(&init.effort);
                changes.push(Change::CommandNames(init.slash_commands.clone()));
                changes.push(Change::SessionInfo);
            }
            SystemEvent::Status(status) => self.handle_status(status, changes),
            SystemEvent::CompactBoundary(boundary) => {
                let before = boundary.compact_metadata.pre_tokens;
                let text = match boundary.compact_metadata.post_tokens {
                    Some(after) => format!("the conversation was compacted: {before} → {after} tokens"),
                    None => format!("the conversation was compacted (it had {before} tokens)"),
                };
                self.show(Item::Mark(text), changes);
            }
            SystemEvent::ApiRetry(retry) => {
                self.set_phase(Phase::Retrying);
                let seconds = retry.retry_delay_ms.div_ceil(1000);
                let text = format!(
                    "the model call failed and is repeated in {seconds} s (attempt {} of {})",
                    retry.attempt, retry.max_retries
                );
                self.show(Item::Note(NoteLevel::Warning, text), changes);
            }
            SystemEvent::Informational(message) => {
                let level = match message.level {
                    InformationLevel::Warning => NoteLevel::Warning,
                    _ => NoteLevel::Info,
                };
                self.show(Item::Note(level, message.content.clone()), changes);
            }
            SystemEvent::LocalCommandOutput(output) => {
                self.show(Item::Page(output.content.clone()), changes);
            }
            SystemEvent::Notification(message) => {
                self.show(Item::Note(NoteLevel::Info, message.text.clone()), changes);
            }
            SystemEvent::SessionWritesLost(lost) => {
                let text = format!(
                    "parts of the session could not be stored ({}): free some space on the disk",
                    lost.error_code
                );
                self.show(Item::Note(NoteLevel::Error, text), changes);
            }
            SystemEvent::PermissionDenied(denied) => {
                let text = format!("{} was denied: {}", denied.tool_name, denied.message);
                self.show(Item::Note(NoteLevel::Warning, text), changes);
            }
            SystemEvent::ModelFallback(_) => {
                let text = "the model is overloaded; the fallback model continues".to_owned();
                self.show(Item::Note(NoteLevel::Warning, text), changes);
            }
            SystemEvent::TaskStarted(started) => self.handle_task_started(started, now),
            SystemEvent::TaskUpdated(updated) => self.handle_task_update(updated),
            SystemEvent::TaskProgress(progress) => self.handle_task_progress(progress),
            SystemEvent::TaskNotification(ended) => {
                // A subagent that its call waits for has an entry of its own: the result of the call.
                let before = self.handle_task_end(ended);
                if before.is_some_and(|state| state != AgentState::Background) {
                    return;
                }
                let (level, word) = match ended.status {
                    TaskEnd::Completed => (NoteLevel::Info, "finished"),
                    TaskEnd::Stopped => (NoteLevel::Warning, "was stopped"),
                    _ => (NoteLevel::Warning, "failed"),
                };
                let text = format!("background task {} {word}: {}", ended.task_id, ended.summary);
                self.show(Item::Note(level, text), changes);
            }
            SystemEvent::BackgroundTasksChanged(changed) => {
                self.background =
                    changed.tasks.iter().filter(|task| task.ambient != Some(true)).cloned().collect();
            }
            SystemEvent::CommandsChanged(changed) => {
                changes.push(Change::Commands(changed.commands.clone()));
            }
            _ => {}
        }
    }

    fn handle_status(&mut self, status: &Status, changes: &mut Vec<Change>) {
        match status.status {
            Some(StatusKind::Compacting) => self.set_phase(Phase::Compacting),
            Some(StatusKind::Requesting) => self.set_phase(Phase::Waiting),
            _ => {}
        }
        if let Some(mode) = status.permission_mode {
            self.mode = mode;
            changes.push(Change::SessionInfo);
        }
        if status.compact_result == Some(CompactResult::Failed) {
            let reason = status.compact_error.clone().unwrap_or_else(|| "the model gave no summary".into());
            self.show(Item::Note(NoteLevel::Warning, format!("the compaction failed: {reason}")), changes);
        }
    }
}

/// Why a turn failed.
fn failure_text(result: &TurnResult) -> String {
    let texts = result.errors.iter().flatten().chain(&result.result);
    let texts: Vec<&str> = texts.map(String::as_str).filter(|text| !text.is_empty()).collect();
    if texts.is_empty() { "the turn failed without a reason".to_owned() } else { texts.join("\n") }
}
