//! Translates frames of the engine to updates for the editor. No I/O: a frame in, updates out.
//!
//! Modules: [`Translator`] here, [`calls`] (open tool calls), [`call`] and [`result`] (how a call and its result look),
//! [`diff`], [`plan`], [`notices`], [`stream`] (events of a reply), [`text`].

pub(crate) mod call;
pub(crate) mod calls;
mod diff;
mod notices;
mod plan;
pub(crate) mod result;
mod stream;
pub(crate) mod text;

use std::collections::HashSet;
use std::path::PathBuf;

use agent_client_protocol::v1::schema::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, Cost, MessageId, SessionUpdate,
    TextContent, UsageUpdate,
};
use whimbrel::Frame;
use whimbrel::wire::content::{Block, Content, Usage};
use whimbrel::wire::message::{Assistant, FailureKind, StreamEvent, TurnResult, User};
use whimbrel::wire::system::{CompactResult, Status, StatusKind, SystemEvent};

use crate::capabilities::ClientFeatures;
use calls::Calls;
use plan::TaskPlan;
use result::RawResult;
use stream::{Delta, ReplyEvent, StartedBlock};

/// Replies whose ids are kept, to recognize what was streamed.
const MAX_STREAMED_REPLIES: usize = 64;

/// State of the translation of one session.
#[derive(Debug)]
pub(crate) struct Translator {
    features: ClientFeatures,
    pub(crate) calls: Calls,
    plan: TaskPlan,
    /// The reply that streams, or the last one of the turn.
    reply: Option<StreamedReply>,
    /// Replies of which text or thinking was streamed.
    streamed: HashSet<String>,
    usage: ContextUsage,
    /// The running or last compaction.
    compaction: u64,
    /// Why the last model call of the turn failed.
    failure: Option<FailureKind>,
}

/// The text of a reply so far, for an editor that loads the session meanwhile.
#[derive(Debug, Default)]
pub(crate) struct StreamedReply {
    pub(crate) id: String,
    parts: Vec<(ReplyPart, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyPart {
    Text,
    Thinking,
}

impl StreamedReply {
    fn add(&mut self, part: ReplyPart, delta: &str) {
        match self.parts.last_mut() {
            Some((last, text)) if *last == part => text.push_str(delta),
            _ => self.parts.push((part, delta.to_owned())),
        }
    }

    /// All of it as updates.
    pub(crate) fn updates(&self) -> impl Iterator<Item = SessionUpdate> {
        self.parts.iter().map(|(part, text)| part.update(text_chunk(text, Some(&self.id))))
    }
}

impl ReplyPart {
    fn update(self, chunk: ContentChunk) -> SessionUpdate {
        match self {
            Self::Text => SessionUpdate::AgentMessageChunk(chunk),
            Self::Thinking => SessionUpdate::AgentThoughtChunk(chunk),
        }
    }
}

/// How full the context is.
#[derive(Debug, Default)]
struct ContextUsage {
    tokens: u64,
    window: Option<u64>,
}

impl Translator {
    pub(crate) fn new(cwd: PathBuf, features: ClientFeatures) -> Self {
        Self {
            features,
            calls: Calls::new(cwd, &features),
            plan: TaskPlan::default(),
            reply: None,
            streamed: HashSet::new(),
            usage: ContextUsage::default(),
            compaction: 0,
            failure: None,
        }
    }

    /// Translates a frame.
    pub(crate) fn translate(&mut self, frame: &Frame) -> Vec<SessionUpdate> {
        match frame {
            Frame::StreamEvent(event) => self.translate_event(event).into_iter().collect(),
            Frame::Assistant(assistant) => self.translate_reply(assistant),
            Frame::User(user) if user.is_replay != Some(true) => self.translate_results(user),
            Frame::ToolProgress(progress) => self.calls.start(&progress.tool_use_id).into_iter().collect(),
            Frame::ToolOutput(chunk) => {
                self.calls.start(&chunk.tool_use_id).into_iter().chain(self.calls.add_output(chunk)).collect()
            }
            Frame::System(system) => self.translate_system(&system.event),
            Frame::Result(result) => self.translate_turn_result(result),
            Frame::RateLimitEvent(event) => notices::rate_limit(event, self.features).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Why the last model call of the turn failed, if it did.
    pub(crate) fn take_failure(&mut self) -> Option<FailureKind> {
        self.failure.take()
    }

    /// Records the size of the model's context.
    pub(crate) fn set_window(&mut self, window: u64) -> Option<SessionUpdate> {
        let window = Some(window).filter(|window| *window > 0);
        if self.usage.window == window {
            return None;
        }
        self.usage.window = window;
        self.usage_update(None)
    }

    /// Whether the size of the model's context is known.
    pub(crate) fn has_window(&self) -> bool {
        self.usage.window.is_some()
    }

    /// The reply of the running turn, as far as it was streamed.
    pub(crate) fn streaming_reply(&self) -> Option<&StreamedReply> {
        self.reply.as_ref()
    }

    /// A translator for the stored messages of the session.
    pub(crate) fn for_replay(&self) -> Self {
        Self::new(self.calls.cwd().to_owned(), self.features)
    }

    /// Continues with the plan and the usage of stored messages.
    pub(crate) fn take_over(&mut self, replayed: Self) {
        self.plan = replayed.plan;
        self.usage.tokens = replayed.usage.tokens;
    }

    /// Records the usage of a stored reply.
    pub(crate) fn set_usage(&mut self, usage: &Usage) {
        self.usage.tokens = stream::context_tokens(usage);
    }

    /// The plan, if a task is open.
    pub(crate) fn open_plan(&self) -> Option<SessionUpdate> {
        self.plan.has_open_tasks().then(|| SessionUpdate::Plan(self.plan.to_plan()))
    }

    /// The usage so far; nothing before the first model call.
    pub(crate) fn usage_update(&self, cost: Option<f64>) -> Option<SessionUpdate> {
        let (tokens, window) = (self.usage.tokens, self.usage.window?);
        if tokens == 0 {
            return None;
        }
        let update =
            UsageUpdate::new(tokens, window.max(tokens)).cost(cost.map(|amount| Cost::new(amount, "USD")));
        Some(SessionUpdate::UsageUpdate(update))
    }

    fn translate_event(&mut self, event: &StreamEvent) -> Option<SessionUpdate> {
        let is_main = event.parent_tool_use_id.is_none();
        match stream::parse(event)? {
            ReplyEvent::MessageStart { message } if is_main => {
                self.reply = Some(StreamedReply { id: message.id.into_owned(), parts: Vec::new() });
                // The output is counted when the reply is complete.
                self.usage.tokens = stream::context_tokens(&message.usage) - message.usage.output_tokens;
                None
            }
            ReplyEvent::ContentBlockStart { content_block: StartedBlock::ToolUse { id, name } } => {
                self.calls.announce(&id, &name, event.parent_tool_use_id.as_deref())
            }
            ReplyEvent::ContentBlockDelta { delta: Delta::Text { text } } if is_main && !text.is_empty() => {
                Some(self.stream(ReplyPart::Text, &text))
            }
            ReplyEvent::ContentBlockDelta { delta: Delta::Thinking { thinking } }
                if is_main && !thinking.is_empty() =>
            {
                Some(self.stream(ReplyPart::Thinking, &thinking))
            }
            ReplyEvent::MessageDelta { usage: Some(usage) } if is_main => {
                // Some providers repeat the input here, some only count the output.
                let input = self.usage.tokens;
                self.usage.tokens = stream::context_tokens(&usage).max(input + usage.output_tokens);
                None
            }
            ReplyEvent::MessageStop if is_main => self.usage_update(None),
            _ => None,
        }
    }

    /// Translates the complete blocks of a reply; what was streamed is not sent again.
    fn translate_reply(&mut self, assistant: &Assistant) -> Vec<SessionUpdate> {
        let parent = assistant.parent_tool_use_id.as_deref();
        let is_main = parent.is_none();
        if is_main {
            self.failure.clone_from(&assistant.error);
        }
        let was_streamed = self.streamed.contains(&assistant.message.id);
        let is_shown = is_main && assistant.error.is_none() && !was_streamed;
        let message_id = &assistant.message.id;
        let mut updates = Vec::new();
        for block in &assistant.message.content {
            match block {
                Block::Text { text, .. } if is_shown && !text.is_empty() => {
                    updates.push(SessionUpdate::AgentMessageChunk(text_chunk(text, Some(message_id))));
                }
                Block::Thinking { thinking, .. } if is_shown && !thinking.is_empty() => {
                    updates.push(SessionUpdate::AgentThoughtChunk(text_chunk(thinking, Some(message_id))));
                }
                Block::ToolUse { id, name, input } => {
                    updates.extend(self.calls.complete_input(id, name, input, parent));
                }
                _ => {}
            }
        }
        updates
    }

    fn translate_results(&mut self, user: &User) -> Vec<SessionUpdate> {
        let Content::Blocks(blocks) = &user.message.content else { return Vec::new() };
        let mut updates = Vec::new();
        for block in blocks {
            if let Block::ToolResult { tool_use_id, content, is_error } = block {
                let result = RawResult {
                    structured: user.tool_use_result.as_ref(),
                    for_model: content.as_ref(),
                    is_error: is_error.unwrap_or(false),
                    exit: user.command_exit.as_ref(),
                };
                updates.extend(self.finish_call(tool_use_id, result));
            }
        }
        updates
    }

    /// Closes a call, and shows the plan if it has changed it.
    pub(crate) fn finish_call(&mut self, id: &str, result: RawResult<'_>) -> Vec<SessionUpdate> {
        let Some((tool, input, update)) = self.calls.finish(id, result) else { return Vec::new() };
        let mut updates: Vec<_> = update.into_iter().collect();
        if !result.is_error && self.plan.apply(&tool, &input, result.structured) {
            updates.push(SessionUpdate::Plan(self.plan.to_plan()));
        }
        updates
    }

    fn translate_system(&mut self, event: &SystemEvent) -> Vec<SessionUpdate> {
        match event {
            SystemEvent::Status(status) => self.translate_status(status).into_iter().collect(),
            SystemEvent::CompactBoundary(_) => {
                // Until the next model call it is not known how much is left.
                self.usage.tokens = 0;
                Vec::new()
            }
            SystemEvent::LocalCommandOutput(output) => {
                vec![SessionUpdate::AgentMessageChunk(text_chunk(&output.content, None))]
            }
            SystemEvent::ModelRefusalNoFallback(refusal) => {
                vec![SessionUpdate::AgentMessageChunk(text_chunk(&refusal.content, None))]
            }
            SystemEvent::TaskNotification(notification) => {
                let call = notification.tool_use_id.as_deref();
                call.and_then(|id| self.calls.finish_background_command(id)).into_iter().collect()
            }
            event => notices::translate(event, self.features),
        }
    }

    /// Translates begin and end of a compaction.
    fn translate_status(&mut self, status: &Status) -> Option<SessionUpdate> {
        let (state, error) = match (&status.status, status.compact_result) {
            (Some(StatusKind::Compacting), _) => {
                self.compaction += 1;
                (CompactionStatus::InProgress, None)
            }
            (_, Some(CompactResult::Success)) => (CompactionStatus::Completed, None),
            (_, Some(CompactResult::Failed)) => (CompactionStatus::Failed, status.compact_error.clone()),
            _ => return None,
        };
        if self.features.compaction {
            let update = CompactionUpdate::new(format!("compaction-{}", self.compaction), state);
            return Some(SessionUpdate::CompactionUpdate(match error {
                Some(error) => update.error(error),
                None => update,
            }));
        }
        let line = match (state, error) {
            (CompactionStatus::Completed, _) => "The conversation was compacted.".to_owned(),
            (CompactionStatus::Failed, Some(error)) => {
                format!("The conversation could not be compacted: {error}")
            }
            (CompactionStatus::Failed, None) => "The conversation could not be compacted.".to_owned(),
            _ => return None,
        };
        Some(SessionUpdate::AgentMessageChunk(text_chunk(&format!("\n\n{line}\n\n"), None)))
    }

    fn translate_turn_result(&mut self, result: &TurnResult) -> Vec<SessionUpdate> {
        self.reply = None;
        let mut updates = self.calls.close_all();
        let window = result.model_usage.values().map(|usage| usage.context_window).max();
        if self.usage.window.is_none() {
            self.usage.window = window.filter(|window| *window > 0);
        }
        updates.extend(self.usage_update(Some(result.total_cost_usd)));
        updates
    }

    /// Passes a delta of the reply on, and remembers it.
    fn stream(&mut self, part: ReplyPart, delta: &str) -> SessionUpdate {
        let Some(reply) = &mut self.reply else { return part.update(text_chunk(delta, None)) };
        reply.add(part, delta);
        if !self.streamed.contains(&reply.id) {
            if self.streamed.len() >= MAX_STREAMED_REPLIES {
                self.streamed.clear();
            }
            self.streamed.insert(reply.id.clone());
        }
        part.update(text_chunk(delta, Some(&reply.id)))
    }
}

/// A piece of a message.
pub(crate) fn text_chunk(text: &str, message_id: Option<&str>) -> ContentChunk {
    let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(text)));
    match message_id.filter(|id| !id.is_empty()) {
        Some(id) => chunk.message_id(MessageId::new(id)),
        None => chunk,
    }
}

#[cfg(test)]
mod tests;
