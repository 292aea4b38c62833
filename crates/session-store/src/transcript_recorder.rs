//! Writes the entries of one session's transcript: an append-only tree in which each entry names its parent.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use whimbrel_os::clock;
use whimbrel_wire::content::{Block, Content};
use whimbrel_wire::system::CompactBoundary;
use whimbrel_wire::{PROTOCOL_VERSION, RawJson};

use crate::entry::{COMPACT_BOUNDARY, HIDDEN_TEXT, HiddenText, IdKey, REJECTED};
use crate::line_appender::LineAppender;
use crate::lock::TranscriptLock;
use crate::open_reply::{self, OpenLine};
use crate::paths::SUBAGENTS;
use crate::rewind_record::{RewindRecord, render_last_prompt, render_system};
use crate::summary::prompt_excerpt;
use crate::transcript_writer::{Persistence, TranscriptWriter};

/// Fields shared by all entries of a session.
#[derive(Debug, Clone)]
pub struct SessionIdentity {
    pub session: String,
    pub cwd: String,
    /// Git branch of the working directory; may be empty.
    pub git_branch: String,
    /// How the engine was started (`sdk-ts`, `sdk-py`, `cli`, ...).
    pub entrypoint: String,
}

/// Builds transcript entries and passes them to the [`TranscriptWriter`].
#[derive(Debug)]
pub struct TranscriptRecorder {
    identity: SessionIdentity,
    writer: TranscriptWriter,
    leaf: Option<String>,
    /// The subagent that this transcript belongs to.
    agent_id: Option<String>,
    /// Hidden texts since the last message; written before the next one.
    pending_hidden: Vec<HiddenText>,
    /// Prompt of this turn, for the metadata entry.
    last_prompt: Option<String>,
    /// Uuids already used in the conversation.
    used_uuids: HashSet<IdKey>,
}

/// A user or assistant message to append.
#[derive(Debug)]
pub struct MessageEntry<'a> {
    /// `user` or `assistant`.
    pub kind: &'static str,
    /// The same as on the wire.
    pub uuid: &'a str,
    pub message: RawJson,
    /// Additional fields of the entry.
    pub extra_fields: Vec<(&'static str, Value)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryLine<'a> {
    parent_uuid: Option<&'a str>,
    is_sidechain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    user_type: &'static str,
    cwd: &'a str,
    session_id: &'a str,
    version: &'static str,
    git_branch: &'a str,
    entrypoint: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    message: RawJson,
    uuid: &'a str,
    timestamp: String,
    #[serde(flatten)]
    more: serde_json::Map<String, Value>,
}

impl TranscriptRecorder {
    /// Creates the transcript of a session. The file is created and locked by its first entry, unless the lock is
    /// passed in; without a path nothing is stored on disk.
    pub fn new(
        identity: SessionIdentity,
        path: Option<PathBuf>,
        persistence: &Persistence,
        lock: Option<TranscriptLock>,
    ) -> Self {
        if let Some(store_writer) = &persistence.store_writer {
            let writer =
                TranscriptWriter::for_store(&identity.session, None, store_writer, persistence.durability);
            return Self::with_writer(identity, writer, None);
        }
        let mut lock = lock;
        let file = path.map(|path| {
            LineAppender::with_opener(
                path,
                persistence.durability,
                Box::new(move |path| {
                    // A lock on a removed file excludes no other process, and a file that was read-only may be writable
                    // now: lock again.
                    let ours = lock.take().filter(|lock| lock.can_write() && lock.is_at_path());
                    let mut lock = ours.map_or_else(|| TranscriptLock::acquire_or_create(path), Ok)?;
                    lock.repair_tail()?;
                    Ok(Box::new(lock))
                }),
            )
        });
        let writer = TranscriptWriter::with_persistence(&identity.session, file, persistence);
        Self::with_writer(identity, writer, None)
    }

    fn with_writer(identity: SessionIdentity, writer: TranscriptWriter, agent_id: Option<String>) -> Self {
        let (pending_hidden, used_uuids) = (Vec::new(), HashSet::new());
        Self { identity, writer, leaf: None, agent_id, pending_hidden, last_prompt: None, used_uuids }
    }

    /// Creates the transcript of a subagent: in the session store, or in a file in `dir`; without a directory
    /// nothing is stored on disk.
    pub fn sidechain(
        identity: SessionIdentity,
        agent_id: &str,
        dir: Option<&Path>,
        persistence: &Persistence,
    ) -> Self {
        let name = format!("agent-{agent_id}");
        let writer = match &persistence.store_writer {
            Some(store_writer) => {
                let subpath = format!("{SUBAGENTS}/{name}");
                TranscriptWriter::for_store(
                    &identity.session,
                    Some(&subpath),
                    store_writer,
                    persistence.durability,
                )
            }
            None => {
                let path = dir.map(|dir| dir.join(format!("{name}.jsonl")));
                let file = path.map(|path| LineAppender::new(path, persistence.durability));
                TranscriptWriter::with_persistence(&identity.session, file, persistence)
            }
        };
        Self::with_writer(identity, writer, Some(agent_id.to_owned()))
    }

    /// Continues after an entry of a loaded conversation that uses these uuids.
    pub fn resume_after(&mut self, leaf: Option<String>, names: HashSet<IdKey>) {
        self.leaf = leaf;
        self.used_uuids.extend(names);
    }

    /// The entry that the next one will follow.
    pub fn leaf(&self) -> Option<&str> {
        self.leaf.as_deref()
    }

    /// Reserves a uuid; false if it is in use.
    pub fn claim_uuid(&mut self, uuid: &str) -> bool {
        self.used_uuids.insert(IdKey::new(uuid))
    }

    /// Records the prompt for the metadata that lists show.
    pub fn record_prompt(&mut self, content: &Content) {
        let blocks = match content {
            Content::Text(text) => return self.record_prompt_texts(&[text]),
            Content::Blocks(blocks) => blocks,
        };
        let texts = blocks.iter().filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        self.record_prompt_texts(&texts.collect::<Vec<_>>());
    }

    fn record_prompt_texts(&mut self, texts: &[&str]) {
        self.last_prompt = texts.iter().find_map(|text| prompt_excerpt(text)).or(self.last_prompt.take());
    }

    /// Ends a turn: writes the metadata entries, and syncs if durability requires it.
    pub async fn end_turn(&mut self) {
        if self.agent_id.is_none() {
            if let Some(prompt) = self.last_prompt.take() {
                let line = render_last_prompt(&self.identity.session, self.leaf.as_deref(), &prompt);
                self.write(&line);
            }
            self.writer.rewrite_metadata();
        }
        self.writer.end_turn().await;
    }

    /// Takes the hidden texts since the last message, each with the permission mode that it announces.
    pub fn take_pending_hidden(&mut self) -> Vec<(String, Option<String>)> {
        let pending = std::mem::take(&mut self.pending_hidden);
        pending.into_iter().map(|hidden| (hidden.text, hidden.announced_mode)).collect()
    }

    pub fn writer(&self) -> &TranscriptWriter {
        &self.writer
    }

    /// Appends a message as a child of the last entry.
    pub fn append(&mut self, entry: MessageEntry<'_>) {
        // The writer keeps and reports lines that could not be written.
        let line = self.render_message(entry);
        let _ = self.writer.write_line(line);
        self.write_title();
    }

    /// Appends a block of a reply that is streaming. [`TranscriptWriter::finish_reply`] completes it.
    pub fn append_reply_block(&mut self, entry: MessageEntry<'_>) {
        let Some(message) = open_reply::reserve_space(&entry.message) else { return self.append(entry) };
        let line = self.render_message(MessageEntry { message: message.clone(), ..entry });
        let written = match line.map(|line| OpenLine::new(line, &message)) {
            Ok(Some(line)) => self.writer.write_open_line(line),
            Ok(None) => Ok(()),
            Err(error) => self.writer.write_line(Err(error)),
        };
        // The writer keeps and reports lines that could not be written.
        let _ = written;
        self.write_title();
    }

    /// Renders a message as a child of the last entry, after the hidden texts that precede it.
    fn render_message(&mut self, entry: MessageEntry<'_>) -> serde_json::Result<String> {
        for HiddenText { text, announced_mode } in std::mem::take(&mut self.pending_hidden) {
            let mut line = json!({
                "type": HIDDEN_TEXT,
                "beforeUuid": entry.uuid,
                "text": text,
                "sessionId": self.identity.session,
                "timestamp": clock::timestamp(),
            });
            if let Some(mode) = announced_mode {
                line["permissionMode"] = mode.into();
            }
            self.write(&line);
        }
        self.claim_uuid(entry.uuid);
        let leaf = self.leaf.replace(entry.uuid.to_owned());
        serde_json::to_string(&EntryLine {
            parent_uuid: leaf.as_deref(),
            is_sidechain: self.agent_id.is_some(),
            agent_id: self.agent_id.as_deref(),
            user_type: "external",
            cwd: &self.identity.cwd,
            session_id: &self.identity.session,
            version: PROTOCOL_VERSION,
            git_branch: &self.identity.git_branch,
            entrypoint: &self.identity.entrypoint,
            kind: entry.kind,
            message: entry.message,
            uuid: entry.uuid,
            timestamp: clock::timestamp(),
            more: entry.extra_fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        })
    }

    /// Adds text for the model that is hidden from the user. It is stored outside the tree, so readers of messages skip
    /// it. `announced_mode` is the permission mode that the text announces to the model, if it does.
    pub fn push_hidden(&mut self, text: &str, announced_mode: Option<&str>) {
        let announced_mode = announced_mode.map(str::to_owned);
        self.pending_hidden.push(HiddenText { text: text.to_owned(), announced_mode });
    }

    /// Appends a compaction boundary with the tools loaded so far. It has no parent; later entries descend from it.
    pub fn append_boundary(&mut self, uuid: &str, boundary: &CompactBoundary, tools: &[String]) {
        self.pending_hidden.clear();
        let facts = &boundary.compact_metadata;
        let mut line = json!({
            "logicalParentUuid": self.leaf,
            "compactMetadata": { "trigger": facts.trigger, "preTokens": facts.pre_tokens },
        });
        if !tools.is_empty() {
            line["compactMetadata"]["preCompactDiscoveredTools"] = tools.into();
        }
        self.append_system(uuid, COMPACT_BOUNDARY, None, line);
    }

    /// Records messages that the provider rejected permanently. They stay in the transcript and are not sent again.
    pub fn append_rejection(&mut self, messages: &[String]) {
        self.pending_hidden.clear();
        let line = json!({
            "type": REJECTED,
            "messageUuids": messages,
            "sessionId": self.identity.session,
            "timestamp": clock::timestamp(),
        });
        self.write(&line);
    }

    /// Records a rewind; later entries descend from it.
    pub fn append_rewind(&mut self, rewind: &RewindRecord) {
        self.pending_hidden.clear();
        for line in rewind.render(&self.identity.session, &self.identity.cwd, self.leaf.as_deref()) {
            self.write(&line);
        }
        self.claim_uuid(&rewind.uuid);
        self.leaf = Some(rewind.uuid.clone());
        self.write_title();
    }

    /// Records a local command of the user, or its output.
    pub fn append_local_command(&mut self, uuid: &str, text: &str) {
        let parent = self.leaf.clone();
        self.append_system(uuid, "local_command", parent.as_deref(), json!({"content": text}));
    }

    /// Appends a system entry, which is not sent to the model.
    fn append_system(&mut self, uuid: &str, subtype: &str, parent: Option<&str>, more: Value) {
        let SessionIdentity { session, cwd, .. } = &self.identity;
        let mut line = render_system(session, cwd, uuid, (subtype, parent), more);
        line["isSidechain"] = self.agent_id.is_some().into();
        self.write(&line);
        self.claim_uuid(uuid);
        self.leaf = Some(uuid.to_owned());
        self.write_title();
    }

    /// Writes the title if it has changed. A failed write stays pending like any other line.
    fn write_title(&self) {
        let _ = self.writer.write_title();
    }

    fn write(&self, line: &impl Serialize) {
        // The writer keeps and reports lines that could not be written.
        let _ = self.writer.write_line(serde_json::to_string(line));
    }
}
