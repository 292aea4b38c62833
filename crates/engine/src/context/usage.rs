//! What fills the context: one computation for `/context` and for the host's question.
//!
//! The provider counts a request as a whole. Its parts have their share of it by their bytes; where nothing was counted
//! yet, four bytes are taken for a token.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use whimbrel_models::ToolSpec;
use whimbrel_wire::Usage;
use whimbrel_wire::control::{ContextCategory, ContextUsage};

use crate::clock;
use crate::context::memory::Loaded;

/// Shows how full the context of a conversation is, also while a turn owns it. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<Mutex<Reading>>);

/// What a gauge shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// What the provider counted for the last request and its reply.
    pub usage: Option<Usage>,
    /// When that was.
    pub heard: Option<Instant>,
    /// The size of the conversation then, in bytes.
    pub counted_at: usize,
    /// Its size now.
    pub size: usize,
    /// The instruction files in it.
    pub memory: Vec<Loaded>,
}

impl Gauge {
    /// Notes what the provider counted.
    pub fn note_usage(&self, usage: &Usage) {
        let mut reading = self.open();
        reading.counted_at = reading.size;
        reading.usage = Some(usage.clone());
        reading.heard = Some(clock::monotonic());
    }

    /// Notes how many bytes the conversation has.
    pub fn note_size(&self, size: usize) {
        self.open().size = size;
    }

    /// Notes which instruction files are in it.
    pub fn note_memory(&self, files: &[Loaded]) {
        let mut reading = self.open();
        if reading.memory != files {
            reading.memory = files.to_vec();
        }
    }

    /// The conversation is so many bytes that were there before, and so many tokens if the provider counted them.
    pub fn recall(&self, size: usize, counted: u64) {
        self.note_size(size);
        if counted > 0 {
            self.note_usage(&Usage { input_tokens: counted, ..Usage::default() });
        }
    }

    /// The conversation is empty again.
    pub fn reset(&self) {
        *self.open() = Reading::default();
    }

    /// How many tokens the provider counted last, if it did.
    pub fn counted(&self) -> Option<u64> {
        self.open().usage.as_ref().map(Usage::total).filter(|total| *total > 0)
    }

    /// When the provider was heard last, if it was.
    pub fn heard(&self) -> Option<Instant> {
        self.open().heard
    }

    /// What it shows.
    pub fn read(&self) -> Reading {
        self.open().clone()
    }

    fn open(&self) -> MutexGuard<'_, Reading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the computation is made of.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The model.
    pub model: &'a str,
    /// Its window, in tokens; nought if it is not known.
    pub window: u64,
    /// Whether room is made when it is nearly full.
    pub room: Room,
    /// The blocks of the system prompt.
    pub system: &'a [String],
    /// The tools that the model has, those of MCP servers apart.
    pub tools: &'a [Arc<ToolSpec>],
    /// The tools of MCP servers.
    pub guests: &'a [Guest],
    /// How many slash commands there are. The model does not see them.
    pub commands: usize,
    /// The conversation.
    pub reading: &'a Reading,
}

/// Whether the engine makes room by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It does not.
    Never,
    /// It does, from so many tokens on; none if the window is not known.
    From(Option<u64>),
}

/// A tool of an MCP server.
#[derive(Debug, Clone)]
pub struct Guest {
    /// The tool.
    pub spec: Arc<ToolSpec>,
    /// The server, as it stands in the tool's name.
    pub server: String,
    /// Whether the model has it, or would have to look for it first.
    pub is_loaded: bool,
}

/// What fills the context.
pub fn usage(facts: &Facts<'_>) -> ContextUsage {
    let Reading { usage, counted_at, size, memory, .. } = facts.reading;
    let prompt: usize = facts.system.iter().map(String::len).sum();
    let tools: Vec<(&str, usize)> =
        facts.tools.iter().map(|tool| (tool.name.as_str(), bytes_of(tool))).collect();
    let own_tools: usize = tools.iter().map(|(_, bytes)| bytes).sum();
    let loaded = facts.guests.iter().filter(|guest| guest.is_loaded);
    let all_guests: usize = loaded.map(|guest| bytes_of(&guest.spec)).sum();
    let all_tools = own_tools + all_guests;
    let all_files: usize = memory.iter().map(|file| file.bytes).sum();
    let counted_tokens = usage.as_ref().map(Usage::total).filter(|total| *total > 0);
    let rate = match counted_tokens {
        Some(tokens) => Rate { tokens, bytes: prompt + all_tools + counted_at },
        None => Rate { tokens: 1, bytes: 4 },
    };
    let total = match counted_tokens {
        Some(tokens) => tokens + rate.tokens(size.saturating_sub(*counted_at)),
        None => rate.tokens(prompt + all_tools + size),
    };
    let [prompt_sum, tools_sum, guests_sum, files_sum] =
        [prompt, own_tools, all_guests, all_files].map(|bytes| rate.tokens(bytes));
    let messages = total.saturating_sub(prompt_sum + tools_sum + guests_sum + files_sum);
    let categories = [
        ("system_prompt", "System prompt", prompt_sum, "gray", "used"),
        ("system_tools", "System tools", tools_sum, "blue", "used"),
        ("mcp_tools", "MCP tools", guests_sum, "cyan", "used"),
        ("memory_files", "Memory files", files_sum, "orange", "used"),
        ("messages", "Messages", messages, "purple", "used"),
        ("free_space", "Free space", facts.window.saturating_sub(total), "none", "free"),
    ];
    ContextUsage {
        categories: categories.into_iter().filter(|(_, _, tokens, ..)| *tokens > 0).map(category).collect(),
        total_tokens: total,
        max_tokens: facts.window,
        raw_max_tokens: facts.window,
        percentage: percentage(total, facts.window),
        model: facts.model.to_owned(),
        is_auto_compact_enabled: facts.room != Room::Never,
        auto_compact_threshold: match facts.room {
            Room::From(threshold) => threshold.map(|tokens| tokens as f64),
            Room::Never => None,
        },
        memory_files: memory.iter().map(|file| described(file, rate.tokens(file.bytes))).collect(),
        mcp_tools: facts.guests.iter().map(|guest| hosted(guest, rate)).collect(),
        api_usage: usage.as_ref().map(counted),
        system_tools: Some(
            tools.iter().map(|(name, bytes)| json!({"name": name, "tokens": rate.tokens(*bytes)})).collect(),
        ),
        slash_commands: Some(json!({"totalCommands": facts.commands, "includedCommands": 0, "tokens": 0})),
        ..ContextUsage::default()
    }
}

/// How many tokens so many bytes make.
#[derive(Debug, Clone, Copy)]
struct Rate {
    tokens: u64,
    bytes: usize,
}

impl Rate {
    fn tokens(self, bytes: usize) -> u64 {
        let tokens = bytes as u128 * u128::from(self.tokens) / self.bytes.max(1) as u128;
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

fn bytes_of(tool: &ToolSpec) -> usize {
    tool.name.len() + tool.description.len() + tool.input_schema.as_str().len()
}

fn category((id, name, tokens, color, kind): (&str, &str, u64, &str, &str)) -> ContextCategory {
    ContextCategory {
        id: Some(id.into()),
        name: name.into(),
        tokens,
        color: color.into(),
        is_deferred: None,
        kind: Some(kind.into()),
    }
}

fn hosted(guest: &Guest, rate: Rate) -> Value {
    let Guest { spec, server, is_loaded } = guest;
    json!({"name": spec.name, "serverName": server, "tokens": rate.tokens(bytes_of(spec)), "isLoaded": is_loaded})
}

fn described(file: &Loaded, tokens: u64) -> Value {
    json!({"path": file.path, "type": file.kind.name(), "tokens": tokens})
}

fn counted(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
    })
}

fn percentage(total: u64, window: u64) -> f64 {
    if window == 0 { 0.0 } else { (total as f64 / window as f64 * 100.0).round() }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::context::memory::{Kind, Reason};

    fn parts(usage: &ContextUsage) -> Vec<(&str, u64)> {
        usage.categories.iter().map(|part| (part.id.as_deref().unwrap(), part.tokens)).collect()
    }

    #[test]
    fn the_parts_make_up_what_the_provider_counted() {
        let gauge = Gauge::default();
        let file = Loaded {
            path: PathBuf::from("/w/CLAUDE.md"),
            kind: Kind::Project,
            reason: Reason::SessionStart,
            trigger: None,
            parent: None,
            bytes: 400,
        };
        gauge.note_memory(&[file]);
        gauge.note_size(2_000);
        let system = ["x".repeat(40)];
        let facts = |reading: Reading| {
            usage(&Facts {
                model: "m",
                window: 10_000,
                room: Room::From(Some(7_000)),
                system: &system,
                tools: &[],
                guests: &[],
                commands: 3,
                reading: &reading,
            })
        };
        let guessed = facts(gauge.read());
        assert_eq!(
            parts(&guessed),
            [("system_prompt", 10), ("memory_files", 100), ("messages", 400), ("free_space", 9_490)]
        );
        assert_eq!((guessed.total_tokens, &guessed.api_usage), (510, &None));
        assert_eq!((guessed.is_auto_compact_enabled, guessed.auto_compact_threshold), (true, Some(7_000.0)));
        gauge.note_usage(&Usage { input_tokens: 900, output_tokens: 100, ..Usage::default() });
        gauge.note_size(2_400);
        let counted = facts(gauge.read());
        assert_eq!(
            parts(&counted),
            [("system_prompt", 19), ("memory_files", 196), ("messages", 981), ("free_space", 8_804)]
        );
        assert_eq!((counted.total_tokens, counted.percentage), (1_196, 12.0));
        assert_eq!(counted.memory_files, [json!({"path": "/w/CLAUDE.md", "type": "Project", "tokens": 196})]);
        gauge.reset();
        assert_eq!(facts(gauge.read()).total_tokens, 10);
    }

    #[test]
    fn tools_of_servers_are_told_apart_and_count_once_they_are_loaded() {
        let spec = |name: &str, bytes: usize| {
            let (name, description) = (name.to_owned(), "x".repeat(bytes - name.len() - 2));
            let input_schema = whimbrel_wire::RawJson::of(&json!({})).unwrap();
            Arc::new(ToolSpec { name, description, input_schema })
        };
        let guest = |name, bytes, is_loaded| Guest { spec: spec(name, bytes), server: "s".into(), is_loaded };
        let found = usage(&Facts {
            model: "m",
            window: 0,
            room: Room::Never,
            system: &[],
            tools: &[spec("Read", 40)],
            guests: &[guest("mcp__s__a", 80, true), guest("mcp__s__b", 400, false)],
            commands: 0,
            reading: &Reading::default(),
        });
        assert_eq!(parts(&found), [("system_tools", 10), ("mcp_tools", 20)]);
        assert_eq!((found.is_auto_compact_enabled, found.auto_compact_threshold), (false, None));
        assert_eq!(
            found.mcp_tools,
            [
                json!({"name": "mcp__s__a", "serverName": "s", "tokens": 20, "isLoaded": true}),
                json!({"name": "mcp__s__b", "serverName": "s", "tokens": 100, "isLoaded": false})
            ]
        );
    }

    #[test]
    fn a_window_that_nobody_knows_is_never_full() {
        let reading = Reading { size: 400, ..Reading::default() };
        let found = usage(&Facts {
            model: "m",
            window: 0,
            room: Room::From(None),
            system: &[],
            tools: &[],
            guests: &[],
            commands: 0,
            reading: &reading,
        });
        assert_eq!((parts(&found), found.percentage), (vec![("messages", 100)], 0.0));
    }
}
