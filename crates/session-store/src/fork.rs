//! Copies a conversation to a new session: its entries in order, each with the previous one as parent, without
//! abandoned branches. The new file appears atomically.

use std::fs;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use whimbrel_os::{clock, files, ids};
use whimbrel_wire::RawJson;

use crate::append_file;
use crate::awaited_agents;
use crate::entry::{CONVERSATION_REWOUND, TOOL_START};
use crate::load::entry_reader::EntryReader;
use crate::load::{LoadError, LoadRange, LoadedConversation, load};
use crate::lock::TranscriptLock;
use crate::metadata::{MetadataEntries, MetadataEntry};
use crate::mirror::Mirror;
use crate::paths::TOOL_RESULTS;
use crate::resume_error::ResumeError;
use crate::session_files::SessionFile;

/// Fields that belong only to the source session.
const DROPPED_FIELDS: [&str; 3] = ["teamName", "agentName", "slug"];

/// Source and target session of a fork.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fork<'a> {
    pub old: &'a str,
    pub new: &'a str,
}

/// Files with long tool output. They lie next to the transcript that names them, so a fork needs its own.
struct ToolOutputLinks {
    from: PathBuf,
    to: PathBuf,
    /// Both directories as JSON text with a trailing slash.
    json_prefixes: Option<[String; 2]>,
}

impl ToolOutputLinks {
    fn new(from: &Path, to: &Path) -> Self {
        let [from, to] = [from, to].map(|path| path.with_extension("").join(TOOL_RESULTS));
        let to_json_prefix = |path: &Path| {
            let json = serde_json::to_string(path.to_str()?).ok()?;
            Some(json.trim_matches('"').to_owned() + "/")
        };
        let json_prefixes = to_json_prefix(&from).zip(to_json_prefix(&to)).map(|(from, to)| [from, to]);
        Self { from, to, json_prefixes }
    }

    /// Replaces paths of the source by those of the fork; true if the line contained one.
    fn rewrite_paths(&self, line: String) -> (String, bool) {
        match &self.json_prefixes {
            Some([from, to]) if line.contains(from.as_str()) => (line.replace(from.as_str(), to), true),
            _ => (line, false),
        }
    }

    /// Hard-links the files, which are never changed after creation.
    fn link_files(&self) -> io::Result<()> {
        link_tree(&self.from, &self.to)
    }
}

fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    files::create_private_dir(to)?;
    for entry in entries {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            link_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            files::link_or_copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

#[derive(Debug)]
pub(crate) struct ForkedTranscript {
    /// Lock on the new transcript.
    pub lock: TranscriptLock,
    /// Its lines, if the host mirrors transcripts.
    pub lines: Vec<RawJson>,
    pub metadata: MetadataEntries,
}

impl Fork<'_> {
    /// Copies a loaded conversation to a new file. It is an error if the target exists.
    pub(crate) fn copy(
        self,
        loaded: &LoadedConversation,
        from: &Path,
        to: &Path,
        mirror: Mirror,
    ) -> io::Result<ForkedTranscript> {
        let dir = to.parent().unwrap_or(Path::new("/"));
        files::create_private_dir(dir)?;
        let mut temp = files::new_temp_file_in(dir)?;
        let mut writer = BufWriter::new(temp.as_file_mut());
        let mut lines = Vec::new();
        let outputs = ToolOutputLinks::new(from, to);
        let mut mentioned = false;
        self.for_each_line(loaded, append_file::open_for_reading(from)?, |text| {
            let (text, mentions) = outputs.rewrite_paths(text);
            mentioned |= mentions;
            writeln!(writer, "{text}")?;
            if mirror.is_on() {
                lines.extend(RawJson::parse(text));
            }
            Ok(())
        })?;
        writer.flush()?;
        drop(writer);
        let metadata = MetadataEntries::for_new_transcript(temp.as_file().metadata()?.len());
        let lock_error = TranscriptLock::lock_new_file(temp.as_file());
        let file = temp.persist_noclobber(to).map_err(|error| error.error)?;
        let lock = TranscriptLock::for_new_file(to, file, lock_error);
        // From here on the session id, and with it the output directory, belongs to the fork.
        if mentioned && let Err(error) = outputs.link_files() {
            let _ = fs::remove_file(to);
            return Err(error);
        }
        Ok(ForkedTranscript { lock, lines, metadata })
    }

    /// The lines of the fork.
    pub(super) fn lines(
        self,
        loaded: &LoadedConversation,
        from: impl Read + Seek,
    ) -> io::Result<Vec<RawJson>> {
        let mut lines = Vec::new();
        self.for_each_line(loaded, from, |text| {
            lines.push(RawJson::parse(text)?);
            Ok(())
        })?;
        Ok(lines)
    }

    fn for_each_line(
        self,
        loaded: &LoadedConversation,
        from: impl Read + Seek,
        mut write_line: impl FnMut(String) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut reader = EntryReader::new(BufReader::new(from));
        let mut last = Value::Null;
        for span in &loaded.spans {
            let bytes = reader.read_bytes(*span)?;
            let Ok(mut line) = serde_json::from_slice::<Map<String, Value>>(bytes) else { continue };
            let is = |field: &str, value: &str| line.get(field).and_then(Value::as_str) == Some(value);
            // What a rewind dropped is not copied.
            if is("type", "progress") || is("subtype", CONVERSATION_REWOUND) {
                continue;
            }
            self.rewrite_entry(&mut line, &mut last);
            write_line(Value::Object(line).to_string())?;
        }
        for call in &loaded.unfinished_calls {
            write_line(
                json!({
                    "type": TOOL_START,
                    "toolUseID": call,
                    "sessionId": self.new,
                    "timestamp": clock::timestamp(),
                })
                .to_string(),
            )?;
        }
        if !loaded.awaited_agents.is_empty() {
            write_line(awaited_agents::render_entry(&loaded.awaited_agents, self.new))?;
        }
        if let Some(title) = loaded.fork_title() {
            write_line(
                json!({"type": "custom-title", "customTitle": title, "sessionId": self.new}).to_string(),
            )?;
        }
        Ok(())
    }

    fn rewrite_entry(self, line: &mut Map<String, Value>, last: &mut Value) {
        for field in DROPPED_FIELDS {
            line.remove(field);
        }
        line.insert("sessionId".into(), self.new.into());
        // Entries without a parent, such as hidden texts, must not become part of the chain.
        if let Some(uuid) = line.get("uuid").filter(|_| line.contains_key("parentUuid")).cloned() {
            line.insert("parentUuid".into(), std::mem::replace(last, uuid.clone()));
            line.insert("forkedFrom".into(), json!({"sessionId": self.old, "messageUuid": uuid}));
        }
    }
}

impl LoadedConversation {
    /// Title of a fork of a titled session.
    pub(super) fn fork_title(&self) -> Option<String> {
        self.recorded.title.as_ref().map(|title| format!("{title} (fork)"))
    }
}

impl SessionFile {
    /// Copies the conversation, up to a message or all of it, to a new session in the same project. Without a title the
    /// fork is named after this session.
    pub fn fork(&self, at: Option<&str>, title: Option<&str>) -> Result<Self, ResumeError> {
        let new = ids::new_uuid();
        if let Some(title) = title {
            MetadataEntry::title(title, &new).map_err(ResumeError::Title)?;
        }
        let until = LoadRange { last_message: at.map(str::to_owned), ..LoadRange::default() };
        let file = append_file::open_for_reading(&self.path).map_err(LoadError::Io)?;
        let loaded = load(file, &until)?;
        if !loaded.has_messages() {
            return Err(ResumeError::Empty(self.id.clone()));
        }
        let path = self.path.with_file_name(format!("{new}.jsonl"));
        let failed = |error: io::Error| ResumeError::Copy(path.clone(), error);
        Fork { old: &self.id, new: &new }.copy(&loaded, &self.path, &path, Mirror::Off).map_err(failed)?;
        let (modified, size) = (clock::wall(), 0);
        let forked = Self { id: new, path: path.clone(), modified, size };
        // The first prompt may be too long to be found in the fork; the summary of the source serves then.
        let derived_title = || {
            let found = forked.summary().ok().flatten().or_else(|| self.summary().ok().flatten())?;
            Some(format!("{} (fork)", found.first_prompt.unwrap_or(found.summary)))
        };
        let title =
            title.map(str::to_owned).or_else(|| derived_title().filter(|_| loaded.recorded.title.is_none()));
        if let Some(title) = title {
            forked.rename(&title).map_err(failed)?;
        }
        Ok(forked)
    }
}
