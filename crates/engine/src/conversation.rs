//! The conversation of one agent: whatever is said goes to the transcript, to the model's history and to the host.

mod done;
mod speaker;
mod withdraw;

use std::collections::HashSet;

use serde_json::Value;
use whimbrel_models::History;
use whimbrel_models::Thinking;
use whimbrel_models::fault::Fault;
use whimbrel_models::providers::Dialect;
use whimbrel_wire::content::{Block, Content, ResultContent, Role};
use whimbrel_wire::message::{Assistant, FailureKind, Reply, Said, User};
use whimbrel_wire::system::CompactBoundary;
use whimbrel_wire::{RawJson, StopReason, Usage};

use crate::context::room;
use crate::context::usage::Gauge;
use crate::ids;
use crate::outbox::Outbox;
use crate::session::journal::Journal;
use crate::session::load::Key;
use crate::session::mend::{EMPTY_PROMPT, is_blank};
use crate::session::{Entry, Log, Past, bulletin};
use crate::workshop::Made;
pub use speaker::Speaker;
use withdraw::Fresh;

/// The model's name on messages that no model wrote.
pub const SYNTHETIC: &str = "<synthetic>";

/// A conversation.
#[derive(Debug)]
pub struct Conversation {
    /// What the model is sent.
    pub history: History,
    log: Log,
    outbox: Outbox,
    speaker: Speaker,
    /// Thinking of the reply at hand that nothing has followed yet.
    thoughts: Vec<Block>,
    last_assistant: Option<String>,
    /// Tokens of the last request and its reply, as the provider counted them.
    counted: u64,
    /// Tokens of what was added since, by a rule of thumb.
    added: u64,
    /// What was asked and has not been answered with a word yet.
    unanswered: Vec<Asked>,
    /// The words of the last prompt, as far as they are worth repeating.
    task: String,
    /// The model that has thought in this conversation.
    thinker: Option<String>,
    /// How full the context is.
    gauge: Gauge,
    /// Whether anything was said yet.
    begun: bool,
    /// The ids of all calls so far.
    calls: HashSet<String>,
    /// What the model has been told beside the conversation.
    told: HashSet<Key>,
    /// Whether thinking was read back that nobody has signed.
    unsigned: bool,
    /// What was added since the provider last took the conversation, if it can be withdrawn.
    fresh: Option<Box<Fresh>>,
}

/// Something that was asked.
#[derive(Debug)]
pub struct Asked {
    uuid: String,
    content: Vec<Block>,
    /// The permission mode it was asked in, if it is a prompt.
    mode: Option<String>,
}

/// What the blocks of one reply share.
#[derive(Debug, Clone, Default)]
pub struct ReplyHead {
    /// The provider's id of the reply.
    pub id: String,
    /// The provider's id of the request, if it gave one.
    pub request_id: Option<String>,
    /// The model.
    pub model: String,
    /// Tokens as of the reply's beginning.
    pub usage: Usage,
}

impl Conversation {
    /// An empty conversation.
    pub fn new(log: Log, outbox: Outbox, speaker: Speaker) -> Self {
        Self {
            history: History::new(),
            log,
            outbox,
            speaker,
            thoughts: Vec::new(),
            last_assistant: None,
            counted: 0,
            added: 0,
            unanswered: Vec::new(),
            task: String::new(),
            thinker: None,
            gauge: Gauge::default(),
            begun: false,
            calls: HashSet::new(),
            told: HashSet::new(),
            unsigned: false,
            fresh: None,
        }
    }

    /// Goes on with what was said before.
    pub fn recall(&mut self, past: Past) {
        let loaded = past.loaded;
        self.begun = loaded.has_begun();
        self.thinker.clone_from(&loaded.facts.model);
        self.history = loaded.history;
        self.unsigned = loaded.unsigned;
        self.calls = loaded.calls;
        self.told = loaded.told;
        self.gauge.recall(self.history.size(), loaded.counted);
        self.counted = loaded.counted;
        self.added = if loaded.counted > 0 { 0 } else { self.history.size() as u64 / 4 };
        self.log.go_on_after(loaded.leaf, loaded.names);
        self.log.journal().recall_title(loaded.facts.title);
        self.log.journal().recall_labels(loaded.labels);
        self.log.journal().copy(past.copies);
    }

    /// Takes an id for a message; false if it is taken already.
    pub fn take_name(&mut self, uuid: &str) -> bool {
        self.log.take_name(uuid)
    }

    /// Who speaks here.
    pub fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    /// The way into the transcript.
    pub fn journal(&self) -> &Journal {
        self.log.journal()
    }

    /// The transcript's path, if one is kept.
    pub fn transcript(&self) -> Option<std::path::PathBuf> {
        self.log.journal().path()
    }

    /// Tells the model something that the host need not see: surroundings, reminders.
    pub fn brief(&mut self, text: &str) {
        self.keep(Role::User, &Block::text(text));
        let key = Key::of(text);
        if self.told.insert(key)
            && let Some(fresh) = &mut self.fresh
        {
            fresh.tell(key);
        }
        self.log.brief(text);
    }

    /// Shows the model something that the host need not see.
    pub fn brief_with(&mut self, blocks: Vec<Block>) {
        for block in &blocks {
            self.keep(Role::User, block);
        }
        self.write_user(&ids::uuid(), &Content::Blocks(blocks), vec![("isMeta", true.into())]);
    }

    /// Tells the model something that it may have been told before; then once is enough.
    pub fn remind(&mut self, text: &str) {
        if !self.told.contains(&Key::of(text)) {
            self.brief(text);
        }
    }

    /// A prompt of the host.
    pub fn prompt(&mut self, uuid: &str, content: &Content, mode: &str) {
        self.push_said(uuid, content, Some(mode));
        self.log.asked(content);
        self.write_user(uuid, content, vec![("permissionMode", mode.into())]);
    }

    /// Keeps what was said for the model. Providers refuse blank text.
    fn push_said(&mut self, uuid: &str, content: &Content, mode: Option<&str>) {
        self.open();
        self.begun = true;
        let mut blocks = content.clone().into_blocks();
        blocks.retain(|block| !is_blank(block));
        if blocks.is_empty() {
            blocks.push(Block::text(EMPTY_PROMPT));
        }
        for block in &blocks {
            self.keep(Role::User, block);
        }
        self.task = shortened(&content.joined_text());
        let (uuid, mode) = (uuid.to_owned(), mode.map(str::to_owned));
        self.unanswered.push(Asked { uuid, content: blocks, mode });
    }

    /// Keeps a block for the model.
    fn keep(&mut self, role: Role, block: &Block) {
        self.added += room::weight(block);
        self.history.push(role, block);
    }

    /// The errand of a subagent: shown to the host as what it was told.
    pub async fn hear_errand(&mut self, content: &Content) {
        let uuid = ids::uuid();
        self.push_said(&uuid, content, None);
        self.write_user(&uuid, content, Vec::new());
        let frame = self.user_frame(uuid, Content::Blocks(content.clone().into_blocks()));
        self.report_losses().await;
        self.outbox.send(frame).await;
    }

    /// From now on a subagent answers to this call.
    pub fn answer_to(&mut self, call: &str) {
        if let Some(below) = &mut self.speaker.below {
            call.clone_into(&mut below.call);
        }
    }

    /// Something that the engine says to the model in the user's place, and shows to the host.
    pub async fn note(&mut self, text: &str) {
        self.tell(text, Vec::new()).await;
    }

    async fn tell(&mut self, text: &str, more: Vec<(&'static str, Value)>) {
        let uuid = ids::uuid();
        let content = Content::Blocks(vec![Block::text(text)]);
        self.keep(Role::User, &Block::text(text));
        self.write_user(&uuid, &content, more);
        let frame = User { is_synthetic: Some(true), ..self.user_frame(uuid, content) };
        self.report_losses().await;
        self.outbox.send(frame).await;
    }

    /// One block of the model's reply.
    pub async fn reply(&mut self, head: &ReplyHead, block: Block, aborted: bool) {
        self.remember(&block);
        let heard = self.speaker.is_heard(&block);
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
        self.write_assistant(&frame);
        self.report_losses().await;
        if heard {
            self.outbox.send(frame).await;
        }
    }

    /// Makes the id of a call its own: no two calls of a conversation may share a result, and some servers number the
    /// calls of each reply anew or give them no id.
    pub fn name_call(&mut self, id: &mut String) {
        let given = if id.is_empty() { "call".to_owned() } else { id.clone() };
        id.clone_from(&given);
        let mut nth = 2;
        while !self.calls.insert(id.clone()) {
            *id = format!("{given}_{nth}");
            nth += 1;
        }
    }

    /// Keeps a block of the reply for the model. Providers refuse blank text, and a message that ends in thinking: so
    /// thinking waits until something follows it.
    fn remember(&mut self, block: &Block) {
        match block {
            Block::Thinking { .. } | Block::RedactedThinking { .. } => self.thoughts.push(block.clone()),
            block if is_blank(block) => {}
            block => {
                self.unanswered.clear();
                self.fresh = None;
                for thought in std::mem::take(&mut self.thoughts) {
                    self.keep(Role::Assistant, &thought);
                }
                self.keep(Role::Assistant, block);
            }
        }
    }

    /// The reply has ended, or will be given again: thoughts that led to nothing are dropped.
    pub fn end_reply(&mut self) {
        self.thoughts.clear();
    }

    /// The result of a tool call.
    pub async fn tool_result(&mut self, made: Made) {
        let frame = self.keep_result(made);
        self.record().await;
        self.outbox.send(frame).await;
    }

    /// The result of a call that was not made because the turn ended before: for the model and the transcript only.
    pub fn close_call(&mut self, made: Made) {
        self.keep_result(made);
    }

    fn keep_result(&mut self, made: Made) -> User {
        self.open();
        let Made { id, content, meta, failed, .. } = made;
        let block =
            Block::ToolResult { tool_use_id: id, content: Some(not_empty(content)), is_error: Some(failed) };
        self.keep(Role::User, &block);
        let uuid = ids::uuid();
        let content = Content::Blocks(vec![block]);
        let mut more = vec![("toolUseResult", meta.clone())];
        more.extend(self.last_assistant.clone().map(|id| ("sourceToolAssistantUUID", Value::String(id))));
        self.write_user(&uuid, &content, more);
        User { tool_use_result: Some(meta), ..self.user_frame(uuid, content) }
    }

    /// Whether anything was said yet. What the engine itself tells the model does not count.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether this is the main conversation of the session.
    pub fn is_main(&self) -> bool {
        self.speaker.below.is_none()
    }

    /// Notes what the provider counted for the last request and its reply, if it did.
    pub fn note_usage(&mut self, usage: &Usage) {
        if usage.total() > 0 {
            (self.counted, self.added) = (usage.total(), 0);
            self.gauge.note_usage(usage);
        }
    }

    /// How many tokens the conversation has: as counted by the provider, and what was added since by a rule of thumb.
    pub fn tokens(&self) -> u64 {
        self.counted.saturating_add(self.added)
    }

    /// The next request goes to this model. Thoughts are signed for the model that had them; another one refuses them, and
    /// one that signs its thoughts refuses those without a signature.
    pub fn address(&mut self, model: &str, dialect: Option<Dialect>) {
        if dialect == Some(Dialect::Messages) && std::mem::take(&mut self.unsigned) {
            self.history.forget_unsigned();
        }
        if self.thinker.as_deref().is_some_and(|thinker| !is_same_model(thinker, model)) {
            self.history.forget_thinking();
        }
        self.thinker = Some(model.to_owned());
    }

    /// How the model can think in the next request, if it is to think like this. What begins with results goes on as its
    /// calls began, with thinking or without: the Messages API refuses anything else. Chat Completions wants the reasoning
    /// before a call back, whatever was asked for.
    pub fn thinking(&mut self, wanted: Thinking, dialect: Option<Dialect>) -> Thinking {
        if dialect == Some(Dialect::Chat) {
            return wanted;
        }
        match (wanted, self.history.loop_thinks()) {
            (Thinking::Enabled { .. }, Some(false)) => Thinking::Disabled,
            (Thinking::Disabled, Some(true)) => {
                self.history.forget_thinking();
                Thinking::Disabled
            }
            _ => wanted,
        }
    }

    /// The words of the last prompt, shortened if they are many.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// Whether something was asked that has not been answered with a word yet.
    pub fn has_unanswered(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// What was asked and has not been answered with a word yet.
    pub fn take_unanswered(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.unanswered)
    }

    /// Lets the model have it again after everything was forgotten. For whoever reads the transcript it stands behind the
    /// summary, and what it was called before still means it.
    pub fn put_back(&mut self, unanswered: Vec<Asked>) {
        for asked in unanswered {
            self.open();
            for block in &asked.content {
                self.keep(Role::User, block);
            }
            let mut more = vec![("copyOf", Value::String(asked.uuid.clone()))];
            more.extend(asked.mode.clone().map(|mode| ("permissionMode", mode.into())));
            self.write_user(&ids::uuid(), &Content::Blocks(asked.content.clone()), more);
            self.unanswered.push(asked);
        }
    }

    /// How full the context is, for whoever looks on while a turn runs.
    pub fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// Lets the model forget everything said so far. The transcript keeps it all, and which tools are loaded.
    pub async fn forget(&mut self, boundary: CompactBoundary, tools: &[String]) {
        self.history = History::new();
        self.fresh = None;
        (self.counted, self.added) = (0, 0);
        self.gauge.reset();
        self.told.clear();
        let uuid = ids::uuid();
        self.log.boundary(&uuid, &boundary, tools);
        self.report_losses().await;
        if self.is_main() {
            self.outbox.notify_as(uuid, boundary).await;
        }
    }

    /// Lets the model forget everything, as if nothing had been said. The transcript keeps it all, and goes on with a new
    /// root.
    pub fn clear(&mut self) {
        self.history = History::new();
        self.thoughts.clear();
        self.unanswered.clear();
        self.fresh = None;
        self.task.clear();
        (self.counted, self.added, self.thinker) = (0, 0, None);
        self.told.clear();
        self.gauge.reset();
        self.begun = false;
        self.log.restart(&ids::uuid());
    }

    /// A summary of what was forgotten.
    pub async fn summary(&mut self, text: &str) {
        self.tell(text, vec![("isCompactSummary", true.into())]).await;
    }

    /// A command that the engine answered itself, and what it says for it. The model sees neither.
    pub async fn command(&mut self, prompt: &User, answer: &str) {
        let asked = prompt.uuid.clone().unwrap_or_else(ids::uuid);
        self.log.command(&asked, &prompt.message.content.joined_text());
        let (uuid, text) = (ids::uuid(), format!("<local-command-stdout>{answer}</local-command-stdout>"));
        self.log.command(&uuid, &text);
        self.report_losses().await;
        let frame = User { is_replay: Some(true), ..self.user_frame(uuid, Content::Text(text)) };
        self.outbox.send(frame).await;
    }

    /// A command that the engine answered itself, its answer said in the model's place. The model sees neither.
    pub async fn answer(&mut self, prompt: &User, answer: &str) {
        let asked = prompt.uuid.clone().unwrap_or_else(ids::uuid);
        self.log.command(&asked, &prompt.message.content.joined_text());
        let frame = self.assistant_frame(synthetic(answer));
        self.log.command(&frame.uuid, answer);
        self.record().await;
        self.outbox.send(frame).await;
    }

    /// Reports a failed API call to the host. The model never sees it.
    pub async fn failure(&mut self, text: &str, kind: FailureKind, fault: Option<&Fault>) {
        let reply = synthetic(text);
        let request_id = fault.and_then(|fault| fault.request_id.clone());
        let frame = Assistant { error: Some(kind), request_id, ..self.assistant_frame(reply) };
        self.write_assistant(&frame);
        self.report_losses().await;
        self.outbox.send(frame).await;
    }

    /// Tells the host what it should know about the transcript: that it cannot be written, or what was written.
    pub async fn report_losses(&mut self) {
        bulletin::publish(self.log.journal(), &self.outbox).await;
    }

    /// Sees to it that what was said is where it is kept, before anybody builds on it.
    pub async fn record(&mut self) {
        self.log.journal().deliver().await;
    }

    /// Ends a turn: what can be written is written, and as safe as it is to be.
    pub async fn settle(&mut self) {
        self.log.end_turn().await;
        self.report_losses().await;
    }

    fn user_frame(&self, uuid: String, content: Content) -> User {
        let session_id = self.outbox.session().to_owned();
        let mut frame = User { uuid: Some(uuid), session_id, ..User::prompt(content) };
        if let Some(below) = &self.speaker.below {
            frame.parent_tool_use_id = Some(below.call.clone());
            frame.agent_id = Some(below.agent_id.clone());
            frame.subagent_type = Some(below.kind.clone());
            frame.task_description = Some(below.errand.clone());
        }
        frame
    }

    fn assistant_frame(&self, message: Reply) -> Assistant {
        let below = self.speaker.below.as_ref();
        Assistant {
            message,
            parent_tool_use_id: below.map(|below| below.call.clone()),
            uuid: ids::uuid(),
            session_id: self.outbox.session().to_owned(),
            error: None,
            request_id: None,
            aborted: None,
            user_message_uuid: None,
            user_message_uuids: None,
            resume_reason: None,
            supersedes: None,
            agent_id: below.map(|below| below.agent_id.clone()),
            subagent_type: below.map(|below| below.kind.clone()),
            task_description: below.map(|below| below.errand.clone()),
            timestamp: None,
            context_usage: None,
            usage_report: None,
        }
    }

    fn write_user(&mut self, uuid: &str, content: &Content, more: Vec<(&'static str, Value)>) {
        self.gauge.note_size(self.history.size());
        if let Some(fresh) = &mut self.fresh {
            fresh.say(uuid, content, more.iter().any(|(field, _)| *field == "isMeta"));
        }
        let said = Said { role: Role::User, content: content.clone() };
        if let Ok(message) = RawJson::of(&said) {
            self.log.append(Entry { kind: "user", uuid, message, more });
        }
    }

    fn write_assistant(&mut self, frame: &Assistant) {
        self.gauge.note_size(self.history.size());
        if let Ok(message) = RawJson::of(&frame.message) {
            let request = frame.request_id.iter().map(|id| ("requestId", Value::String(id.clone())));
            let calls = frame.message.content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
            let starts = calls.then(|| ("startsRecorded", true.into()));
            let more = request.chain(starts).collect();
            self.log.append(Entry { kind: "assistant", uuid: &frame.uuid, message, more });
        }
        self.last_assistant = Some(frame.uuid.clone());
    }
}

/// Whether two names mean one model: replies are signed with its version, requests often leave it out.
fn is_same_model(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// How many bytes of a prompt are worth repeating.
const TASK: usize = 8_000;

fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(TASK);
    if end < text.len() { format!("{} [...]", &text[..end]) } else { text.to_owned() }
}

/// A reply that no model gave.
fn synthetic(text: &str) -> Reply {
    Reply {
        id: ids::uuid(),
        kind: "message".into(),
        role: Role::Assistant,
        model: SYNTHETIC.into(),
        content: vec![Block::text(text)],
        stop_reason: Some(StopReason::StopSequence),
        stop_sequence: Some(String::new()),
        usage: Usage::default(),
    }
}

/// Providers refuse an empty result.
fn not_empty(content: ResultContent) -> ResultContent {
    match content {
        ResultContent::Text(text) if text.is_empty() => ResultContent::Text("(no output)".into()),
        other => other,
    }
}
