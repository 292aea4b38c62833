//! Conversation of one agent: every message goes to the transcript, to the model's history and to the host.

mod attribution;
mod first_message;
mod rejected_input;
pub mod reload;
mod side_results;
mod thinking;
mod tool_calls;

use std::collections::HashSet;

use serde_json::Value;
use whimbrel_models::History;
use whimbrel_models::error::ModelError;
use whimbrel_os::ids;
use whimbrel_session_store::cost_state::CostState;
use whimbrel_session_store::load::IdKey;
use whimbrel_session_store::load::repair::{EMPTY_PROMPT, is_blank};
use whimbrel_session_store::open_reply::ReplyEnd;
use whimbrel_session_store::transcript_writer::TranscriptWriter;
use whimbrel_session_store::{MessageEntry, ResumedSession, TranscriptRecorder};
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_wire::content::{Block, Content, Role};
use whimbrel_wire::message::{Assistant, FailureKind, Reply, Said, User};
use whimbrel_wire::permission::PermissionMode;
use whimbrel_wire::system::CompactBoundary;
use whimbrel_wire::{RawJson, StopReason, Usage};

use crate::context::PlanModeState;
use crate::context::plan_mode::{CallPosition, PlanReminderContext};
use crate::context::token_estimate::estimate_tokens;
use crate::context::usage::ContextMeter;
use crate::transcript_notices as notices;
pub use attribution::Attribution;
pub use first_message::FirstMessage;
use rejected_input::Uncommitted;

#[derive(Debug)]
pub struct Conversation {
    /// Messages sent to the model.
    pub history: History,
    recorder: TranscriptRecorder,
    frame_sender: FrameSender,
    attribution: Attribution,
    /// Thinking of the current reply that is not followed by another block yet.
    pending_thinking: Vec<Block>,
    last_assistant_uuid: Option<String>,
    /// Tokens of the last request and its reply, as counted by the provider.
    counted_tokens: u64,
    /// Estimated tokens added since.
    added_tokens: u64,
    /// Prompts that have no reply yet.
    unanswered: Vec<UnansweredPrompt>,
    /// Text of the last prompt, truncated.
    last_prompt: String,
    /// The model whose thinking is in the history.
    thinking_model: Option<String>,
    context_meter: ContextMeter,
    /// Whether it has a message; injected context does not count.
    has_messages: bool,
    /// Ids of all tool calls so far.
    tool_call_ids: HashSet<String>,
    /// Keys of the injected texts.
    injected_keys: HashSet<IdKey>,
    /// Whether the model knows that plan mode is active.
    plan_mode: PlanModeState,
    /// Whether a resumed history has thinking without a signature.
    has_unsigned_thinking: bool,
    /// Input since the provider last accepted the conversation, if it can be rolled back.
    uncommitted: Option<Box<Uncommitted>>,
    /// Whether the host was warned about an empty or duplicate uuid of a prompt.
    warned_about_uuid: bool,
    /// Prompts to give back to the host.
    pending_replays: Vec<User>,
    /// Whether the host has seen anything of the current turn.
    first_message: FirstMessage,
    /// The prompts that the turn answers, by the ids that the host gave them.
    prompt_ids: Vec<String>,
}

#[derive(Debug)]
pub struct UnansweredPrompt {
    uuid: String,
    content: Vec<Block>,
    /// The permission mode, if it is a prompt.
    mode: Option<String>,
}

/// Fields shared by the blocks of one reply.
#[derive(Debug, Clone, Default)]
pub struct ReplyHead {
    /// The provider's id of the reply.
    pub id: String,
    /// The provider's id of the request, if there is one.
    pub request_id: Option<String>,
    pub model: String,
    /// Usage at the start of the reply.
    pub usage: Usage,
}

impl Conversation {
    pub fn new(recorder: TranscriptRecorder, frame_sender: FrameSender, attribution: Attribution) -> Self {
        Self {
            history: History::new(),
            recorder,
            frame_sender,
            attribution,
            pending_thinking: Vec::new(),
            last_assistant_uuid: None,
            counted_tokens: 0,
            added_tokens: 0,
            unanswered: Vec::new(),
            last_prompt: String::new(),
            thinking_model: None,
            context_meter: ContextMeter::default(),
            has_messages: false,
            tool_call_ids: HashSet::new(),
            injected_keys: HashSet::new(),
            plan_mode: PlanModeState::default(),
            has_unsigned_thinking: false,
            uncommitted: None,
            warned_about_uuid: false,
            pending_replays: Vec::new(),
            first_message: FirstMessage::default(),
            prompt_ids: Vec::new(),
        }
    }

    /// Restores a resumed conversation.
    pub fn restore(&mut self, resumed: ResumedSession) {
        let mut loaded = resumed.loaded;
        let writer = self.recorder.writer();
        writer.restore_title(loaded.recorded.title.take());
        writer.restore_metadata(std::mem::take(&mut loaded.metadata));
        writer.mirror_lines(resumed.mirror_lines);
        self.replace(loaded);
    }

    /// Gives a prompt a unique uuid: an empty or duplicate one would corrupt the transcript. Returns a warning for the
    /// host, once, if it had to be replaced.
    pub fn assign_prompt_uuid(&mut self, user: &mut User) -> Option<&'static str> {
        let host_uuid = user.uuid.take();
        let had_uuid = host_uuid.is_some();
        user.uuid = host_uuid.filter(|id| !id.trim().is_empty() && self.recorder.claim_uuid(id));
        if user.uuid.is_some() {
            return None;
        }
        user.uuid = Some(ids::new_uuid());
        let is_new_warning = had_uuid && !std::mem::replace(&mut self.warned_about_uuid, true);
        is_new_warning.then_some(
            "A message has an empty or duplicate uuid. It was assigned a new one, as will be later ones.",
        )
    }

    pub fn attribution(&self) -> &Attribution {
        &self.attribution
    }

    pub fn transcript_writer(&self) -> &TranscriptWriter {
        self.recorder.writer()
    }

    /// Path of the transcript, if there is one.
    pub fn transcript_path(&self) -> Option<std::path::PathBuf> {
        self.recorder.writer().path()
    }

    /// Appends a text for the model that is hidden from the host, such as reminders.
    pub fn push_hidden(&mut self, text: &str) {
        self.push_hidden_text(text, None);
    }

    fn push_hidden_text(&mut self, text: &str, announced_mode: Option<&str>) {
        self.add_to_history(Role::User, &Block::text(text));
        let key = IdKey::new(text);
        if self.injected_keys.insert(key)
            && let Some(uncommitted) = &mut self.uncommitted
        {
            uncommitted.record_key(key);
        }
        self.recorder.push_hidden(text, announced_mode);
    }

    /// Appends blocks for the model that are hidden from the host.
    pub fn push_hidden_blocks(&mut self, blocks: Vec<Block>) {
        for block in &blocks {
            self.add_to_history(Role::User, block);
        }
        self.write_user(&ids::new_uuid(), &Content::Blocks(blocks), vec![("isMeta", true.into())]);
    }

    /// Appends a hidden text unless the model has it already.
    pub fn push_hidden_once(&mut self, text: &str) {
        if !self.injected_keys.contains(&IdKey::new(text)) {
            self.push_hidden(text);
        }
    }

    /// Appends the plan mode reminder that is due, if any. The transcript records the mode with it, so that a resumed
    /// session knows what the model was told.
    pub fn push_plan_reminder(
        &mut self,
        mode: PermissionMode,
        position: CallPosition,
        context: &PlanReminderContext<'_>,
    ) {
        if let Some(text) = self.plan_mode.take_reminder(mode, position, context) {
            self.push_hidden_text(&text, Some(&mode.to_string()));
        }
    }

    /// Appends a prompt of the host.
    pub fn push_prompt(&mut self, uuid: &str, content: &Content, mode: &str) {
        self.push_user_content(uuid, content, Some(mode));
        self.recorder.record_prompt(content);
        self.write_user(uuid, content, vec![("permissionMode", mode.into())]);
    }

    /// Adds user content to the history. Providers reject blank text.
    fn push_user_content(&mut self, uuid: &str, content: &Content, mode: Option<&str>) {
        self.begin_uncommitted();
        self.has_messages = true;
        let mut blocks = content.clone().into_blocks();
        blocks.retain(|block| !is_blank(block));
        if blocks.is_empty() {
            blocks.push(Block::text(EMPTY_PROMPT));
        }
        for block in &blocks {
            self.add_to_history(Role::User, block);
        }
        self.last_prompt = truncate_prompt(&content.joined_text());
        let (uuid, mode) = (uuid.to_owned(), mode.map(str::to_owned));
        self.unanswered.push(UnansweredPrompt { uuid, content: blocks, mode });
    }

    /// Adds a block to the history and to the token estimate.
    fn add_to_history(&mut self, role: Role, block: &Block) {
        self.added_tokens += estimate_tokens(block);
        self.history.push(role, block);
    }

    /// Appends the task of a subagent, which is shown to the host.
    pub async fn push_task(&mut self, content: &Content) {
        let uuid = ids::new_uuid();
        self.push_user_content(&uuid, content, None);
        self.write_user(&uuid, content, Vec::new());
        let frame = self.user_frame(uuid, Content::Blocks(content.clone().into_blocks()));
        self.publish_pending().await;
        self.frame_sender.send(frame).await;
    }

    /// Attributes further messages of a subagent to this tool call.
    pub fn set_parent_call(&mut self, call: &str) {
        if let Some(subagent) = &mut self.attribution.subagent_info {
            call.clone_into(&mut subagent.parent_tool_use_id);
        }
    }

    /// Appends a text of the engine in the user's role, shown to the host as synthetic.
    pub async fn push_synthetic(&mut self, text: &str) {
        self.push_synthetic_with(text, Vec::new()).await;
    }

    async fn push_synthetic_with(&mut self, text: &str, extra_fields: Vec<(&'static str, Value)>) {
        let uuid = ids::new_uuid();
        let content = Content::Blocks(vec![Block::text(text)]);
        self.add_to_history(Role::User, &Block::text(text));
        self.write_user(&uuid, &content, extra_fields);
        let frame = User { is_synthetic: Some(true), ..self.user_frame(uuid, content) };
        self.publish_pending().await;
        self.frame_sender.send(frame).await;
    }

    /// Appends one block of the model's reply.
    pub async fn push_reply_block(&mut self, head: &ReplyHead, block: Block, aborted: bool) {
        self.add_reply_block(&block);
        let visible = self.attribution.is_visible(&block);
        let reply = Reply {
            id: head.id.clone(),
            kind: "message".into(),
            role: Role::Assistant,
            model: head.model.clone(),
            content: vec![block],
            stop_reason: None,
            stop_sequence: None,
            usage: head.usage.clone(),
        };
        let frame = Assistant {
            aborted: aborted.then_some(true),
            request_id: head.request_id.clone(),
            ..self.assistant_frame(reply)
        };
        self.write_assistant(&frame, TranscriptRecorder::append_reply_block);
        self.publish_pending().await;
        if visible {
            self.frame_sender.send(frame).await;
        }
    }

    /// Ends the model's reply: its stop reason and usage are final, in the transcript too.
    pub fn finish_reply(&mut self, stop_reason: Option<StopReason>, usage: &Usage) {
        self.note_usage(usage);
        let end = ReplyEnd { stop_reason, stop_sequence: None, usage: usage.clone() };
        self.recorder.writer().finish_reply(&end);
    }

    /// Waits until lines of the reply that is streaming must not be held back any longer from the store or the mirroring
    /// host.
    pub async fn held_lines_due(&self) {
        self.recorder.writer().held_lines_due().await;
    }

    /// Passes the lines of a reply on that has not ended.
    pub async fn release_held_lines(&mut self) {
        self.recorder.writer().release_held_lines();
        self.publish_pending().await;
    }

    /// Returns whether it has a message. Injected context does not count.
    pub fn has_begun(&self) -> bool {
        self.has_messages
    }

    pub fn is_main(&self) -> bool {
        self.attribution.subagent_info.is_none()
    }

    /// Records the provider's count for the last request and its reply.
    fn note_usage(&mut self, usage: &Usage) {
        if usage.total() > 0 {
            (self.counted_tokens, self.added_tokens) = (usage.total(), 0);
            self.context_meter.note_usage(usage);
        }
    }

    /// Token count: the provider's count plus the estimate for what was added since.
    pub fn token_count(&self) -> u64 {
        self.counted_tokens.saturating_add(self.added_tokens)
    }

    /// Text of the last prompt, truncated.
    pub fn last_prompt(&self) -> &str {
        &self.last_prompt
    }

    /// Returns whether a prompt has no reply yet.
    pub fn has_unanswered(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// Takes the prompts that have no reply yet.
    pub fn take_unanswered(&mut self) -> Vec<UnansweredPrompt> {
        std::mem::take(&mut self.unanswered)
    }

    /// Adds unanswered prompts again after the history was reset. In the transcript they follow the summary as copies
    /// that refer to the original uuid.
    pub fn restore_unanswered(&mut self, unanswered: Vec<UnansweredPrompt>) {
        for prompt in unanswered {
            self.begin_uncommitted();
            for block in &prompt.content {
                self.add_to_history(Role::User, block);
            }
            let mut extra_fields = vec![("copyOf", Value::String(prompt.uuid.clone()))];
            extra_fields.extend(prompt.mode.clone().map(|mode| ("permissionMode", mode.into())));
            self.write_user(&ids::new_uuid(), &Content::Blocks(prompt.content.clone()), extra_fields);
            self.unanswered.push(prompt);
        }
    }

    /// The context meter, which can be read while a turn runs.
    pub fn context_meter(&self) -> &ContextMeter {
        &self.context_meter
    }

    /// Resets the history at a compaction boundary. The transcript keeps everything, and the loaded tools.
    pub async fn reset_at_boundary(&mut self, boundary: CompactBoundary, tools: &[String]) {
        self.history = History::new();
        self.uncommitted = None;
        (self.counted_tokens, self.added_tokens) = (0, 0);
        self.context_meter.reset();
        self.injected_keys.clear();
        self.plan_mode = PlanModeState::default();
        let uuid = ids::new_uuid();
        self.recorder.append_boundary(&uuid, &boundary, tools);
        self.publish_pending().await;
        if self.is_main() {
            self.frame_sender.notify_as(uuid, boundary).await;
        }
    }

    /// Appends the summary after a compaction.
    pub async fn push_summary(&mut self, text: &str) {
        self.push_synthetic_with(text, vec![("isCompactSummary", true.into())]).await;
    }

    /// Records a local command and its output. The model sees neither.
    pub async fn push_local_command(&mut self, prompt: &User, answer: &str) {
        let prompt_uuid = prompt.uuid.clone().unwrap_or_else(ids::new_uuid);
        self.recorder.append_local_command(&prompt_uuid, &prompt.message.content.joined_text());
        let (uuid, text) =
            (ids::new_uuid(), format!("<local-command-stdout>{answer}</local-command-stdout>"));
        self.recorder.append_local_command(&uuid, &text);
        self.publish_pending().await;
        let frame = User { is_replay: Some(true), ..self.user_frame(uuid, Content::Text(text)) };
        self.frame_sender.send(frame).await;
    }

    /// Records a local command without output. The model does not see it.
    pub fn record_local_command(&mut self, prompt: &User) {
        let uuid = prompt.uuid.clone().unwrap_or_else(ids::new_uuid);
        self.recorder.append_local_command(&uuid, &prompt.message.content.joined_text());
    }

    /// Records a local command with its output as a synthetic reply. The model sees neither.
    pub async fn push_local_answer(&mut self, prompt: &User, answer: &str) {
        let prompt_uuid = prompt.uuid.clone().unwrap_or_else(ids::new_uuid);
        self.recorder.append_local_command(&prompt_uuid, &prompt.message.content.joined_text());
        let frame = self.assistant_frame(synthetic_reply(answer));
        self.recorder.append_local_command(&frame.uuid, answer);
        self.flush().await;
        self.frame_sender.send(frame).await;
    }

    /// Reports a failed API call to the host. The model never sees it.
    pub async fn push_error(&mut self, text: &str, kind: FailureKind, cause: Option<&ModelError>) {
        let reply = synthetic_reply(text);
        let request_id = cause.and_then(|cause| cause.request_id.clone());
        let frame = Assistant { error: Some(kind), request_id, ..self.assistant_frame(reply) };
        self.write_assistant(&frame, TranscriptRecorder::append);
        self.publish_pending().await;
        self.frame_sender.send(frame).await;
    }

    /// Begins a turn. The flag tells whether the host has seen anything of it.
    pub fn begin_turn(&mut self, prompt_ids: Vec<String>) -> FirstMessage {
        self.prompt_ids = prompt_ids;
        self.first_message = FirstMessage::default();
        self.first_message.clone()
    }

    /// Adds a prompt that has come into the running turn.
    pub fn add_prompt_id(&mut self, id: Option<String>) {
        self.prompt_ids.extend(id);
    }

    /// Gives a prompt back to the host with the next message, or when the model begins to answer: hosts take a replayed
    /// prompt for one that is being answered.
    pub fn queue_replay(&mut self, prompt: User) {
        self.pending_replays.push(prompt);
    }

    /// Sends the prompts that are to be given back, before the first message of a turn.
    pub async fn publish_replays(&mut self) {
        self.first_message.mark_sent();
        for prompt in std::mem::take(&mut self.pending_replays) {
            replay_prompt(&self.frame_sender, prompt).await;
        }
    }

    /// Sends the host what must precede the next message: replayed prompts, warnings about the transcript and mirror
    /// frames.
    async fn publish_pending(&mut self) {
        self.publish_replays().await;
        notices::publish_notices(self.recorder.writer(), &self.frame_sender).await;
    }

    /// Waits until everything so far is in the transcript or store.
    pub async fn flush(&mut self) {
        self.recorder.writer().flush().await;
    }

    /// Records the cost of the session so far in the transcript.
    pub async fn record_cost(&mut self, cost: &CostState) {
        self.recorder.writer().record_cost(cost);
        self.publish_pending().await;
    }

    /// Ends a turn: writes and syncs the transcript, and publishes what is pending.
    pub async fn end_turn(&mut self) {
        self.recorder.end_turn().await;
        self.publish_pending().await;
    }

    fn user_frame(&self, uuid: String, content: Content) -> User {
        let session_id = self.frame_sender.session_id().to_string();
        let mut frame = User { uuid: Some(uuid), session_id, ..User::prompt(content) };
        if let Some(subagent) = &self.attribution.subagent_info {
            frame.parent_tool_use_id = Some(subagent.parent_tool_use_id.clone());
            frame.agent_id = Some(subagent.agent_id.clone());
            frame.subagent_type = Some(subagent.agent_type.clone());
            frame.task_description = Some(subagent.description.clone());
        }
        frame
    }

    fn assistant_frame(&self, message: Reply) -> Assistant {
        let subagent = self.attribution.subagent_info.as_ref();
        Assistant {
            message,
            parent_tool_use_id: subagent.map(|subagent| subagent.parent_tool_use_id.clone()),
            uuid: ids::new_uuid(),
            session_id: self.frame_sender.session_id().to_string(),
            error: None,
            request_id: None,
            aborted: None,
            user_message_uuid: self.prompt_ids.first().cloned(),
            user_message_uuids: (self.prompt_ids.len() > 1).then(|| self.prompt_ids.clone()),
            resume_reason: None,
            supersedes: None,
            agent_id: subagent.map(|subagent| subagent.agent_id.clone()),
            subagent_type: subagent.map(|subagent| subagent.agent_type.clone()),
            task_description: subagent.map(|subagent| subagent.description.clone()),
            timestamp: None,
            context_usage: None,
            usage_report: None,
        }
    }

    fn write_user(&mut self, uuid: &str, content: &Content, extra_fields: Vec<(&'static str, Value)>) {
        self.context_meter.note_size(self.history.size());
        if let Some(uncommitted) = &mut self.uncommitted {
            uncommitted.record_message(
                uuid,
                content,
                extra_fields.iter().any(|(field, _)| *field == "isMeta"),
            );
        }
        let wire_message = Said { role: Role::User, content: content.clone() };
        if let Ok(message) = RawJson::from_value(&wire_message) {
            self.recorder.append(MessageEntry { kind: "user", uuid, message, extra_fields });
        }
    }

    fn write_assistant(&mut self, frame: &Assistant, append: fn(&mut TranscriptRecorder, MessageEntry<'_>)) {
        self.context_meter.note_size(self.history.size());
        if let Ok(message) = RawJson::from_value(&frame.message) {
            let request = frame.request_id.iter().map(|id| ("requestId", Value::String(id.clone())));
            let calls = frame.message.content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
            let starts = calls.then(|| ("startsRecorded", true.into()));
            let extra_fields = request.chain(starts).collect();
            append(
                &mut self.recorder,
                MessageEntry { kind: "assistant", uuid: &frame.uuid, message, extra_fields },
            );
        }
        self.last_assistant_uuid = Some(frame.uuid.clone());
    }
}

/// Sends a prompt back to the host.
pub(crate) async fn replay_prompt(frame_sender: &FrameSender, user: User) {
    let session_id = frame_sender.session_id().to_string();
    frame_sender.send(User { is_replay: Some(true), session_id, ..user }).await;
}

/// Limit on the stored text of the last prompt.
const MAX_LAST_PROMPT_BYTES: usize = 8_000;

fn truncate_prompt(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_LAST_PROMPT_BYTES);
    if end < text.len() { format!("{} [...]", &text[..end]) } else { text.to_owned() }
}

/// A reply that no model wrote.
fn synthetic_reply(text: &str) -> Reply {
    Reply {
        id: ids::new_uuid(),
        kind: "message".into(),
        role: Role::Assistant,
        model: whimbrel_wire::message::SYNTHETIC_MODEL.into(),
        content: vec![Block::text(text)],
        stop_reason: Some(StopReason::StopSequence),
        stop_sequence: Some(String::new()),
        usage: Usage::default(),
    }
}
