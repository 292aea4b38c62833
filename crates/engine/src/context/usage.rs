//! Context usage: one computation for `/context` and the host's request.
//!
//! The provider counts a request as a whole; the parts get their share by bytes. Before the first count, four bytes
//! are taken for a token.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use whimbrel_models::ToolSpec;
use whimbrel_os::clock;
use whimbrel_wire::Usage;
use whimbrel_wire::control::{ContextCategory, ContextUsage};

use crate::context::instructions::InstructionFile;

/// Measures the context of a conversation; readable while a turn owns it. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ContextMeter(Arc<Mutex<MeterReading>>);

#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeterReading {
    /// Usage of the last request and reply, as counted by the provider.
    pub usage: Option<Usage>,
    pub last_reply_at: Option<Instant>,
    /// Size of the conversation at that time, in bytes.
    pub size_when_counted: usize,
    /// Current size, in bytes.
    pub size: usize,
    /// Instruction files in the context.
    pub instructions: Vec<InstructionFile>,
}

impl ContextMeter {
    /// Records the provider's count.
    pub fn note_usage(&self, usage: &Usage) {
        let mut reading = self.lock();
        reading.size_when_counted = reading.size;
        reading.usage = Some(usage.clone());
        reading.last_reply_at = Some(clock::monotonic());
    }

    /// Records the size of the conversation in bytes.
    pub fn note_size(&self, size: usize) {
        self.lock().size = size;
    }

    /// Records the instruction files.
    pub fn note_instructions(&self, files: &[InstructionFile]) {
        let mut reading = self.lock();
        if reading.instructions != files {
            reading.instructions = files.to_vec();
        }
    }

    /// Restores size and token count of a resumed conversation.
    pub fn restore(&self, size: usize, counted: u64) {
        self.note_size(size);
        if counted > 0 {
            self.note_usage(&Usage { input_tokens: counted, ..Usage::default() });
        }
    }

    /// Resets the meter for an empty conversation.
    pub fn reset(&self) {
        *self.lock() = MeterReading::default();
    }

    /// Token count of the last request and reply, if there is one.
    pub fn counted_tokens(&self) -> Option<u64> {
        self.lock().usage.as_ref().map(Usage::total).filter(|total| *total > 0)
    }

    /// Time of the last reply, if there was one.
    pub fn last_reply_at(&self) -> Option<Instant> {
        self.lock().last_reply_at
    }

    pub fn read(&self) -> MeterReading {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, MeterReading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Input of the computation.
#[derive(Debug)]
pub struct UsageInput<'a> {
    pub model: &'a str,
    /// Context window in tokens; 0 if unknown.
    pub window: u64,
    pub auto_compact: AutoCompact,
    /// Blocks of the system prompt.
    pub system: &'a [String],
    /// Tools shown to the model, without those of MCP servers.
    pub tools: &'a [Arc<ToolSpec>],
    /// Tools of MCP servers.
    pub mcp_tools: &'a [McpToolEntry],
    /// Number of slash commands, which the model does not see.
    pub commands: usize,
    /// The conversation.
    pub meter: &'a MeterReading,
}

/// State of auto-compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoCompact {
    Disabled,
    /// Enabled, with the threshold in tokens; `None` if the window is unknown.
    Threshold(Option<u64>),
}

/// A tool of an MCP server.
#[derive(Debug, Clone)]
pub struct McpToolEntry {
    pub spec: Arc<ToolSpec>,
    /// Server name, as in the tool's name.
    pub server: String,
    /// Whether it is loaded or deferred.
    pub is_loaded: bool,
}

/// Computes what fills the context.
pub fn compute_usage(input: &UsageInput<'_>) -> ContextUsage {
    let MeterReading { usage, size_when_counted, size, instructions, .. } = input.meter;
    let prompt: usize = input.system.iter().map(String::len).sum();
    let tools: Vec<(&str, usize)> =
        input.tools.iter().map(|tool| (tool.name.as_str(), spec_size(tool))).collect();
    let own_tools: usize = tools.iter().map(|(_, bytes)| bytes).sum();
    let loaded = input.mcp_tools.iter().filter(|entry| entry.is_loaded);
    let all_mcp_tools: usize = loaded.map(|entry| spec_size(&entry.spec)).sum();
    let all_tools = own_tools + all_mcp_tools;
    let all_files: usize = instructions.iter().map(|file| file.bytes).sum();
    let counted_tokens = usage.as_ref().map(Usage::total).filter(|total| *total > 0);
    let rate = match counted_tokens {
        Some(tokens) => TokenRate { tokens, bytes: prompt + all_tools + size_when_counted },
        None => TokenRate { tokens: 1, bytes: 4 },
    };
    let total = match counted_tokens {
        Some(tokens) => tokens + rate.tokens(size.saturating_sub(*size_when_counted)),
        None => rate.tokens(prompt + all_tools + size),
    };
    let [prompt_sum, tools_sum, mcp_sum, files_sum] =
        [prompt, own_tools, all_mcp_tools, all_files].map(|bytes| rate.tokens(bytes));
    let messages = total.saturating_sub(prompt_sum + tools_sum + mcp_sum + files_sum);
    let categories = [
        ("system_prompt", "System prompt", prompt_sum, "gray", "used"),
        ("system_tools", "System tools", tools_sum, "blue", "used"),
        ("mcp_tools", "MCP tools", mcp_sum, "cyan", "used"),
        ("memory_files", "Memory files", files_sum, "orange", "used"),
        ("messages", "Messages", messages, "purple", "used"),
        ("free_space", "Free space", input.window.saturating_sub(total), "none", "free"),
    ];
    ContextUsage {
        categories: categories.into_iter().filter(|(_, _, tokens, ..)| *tokens > 0).map(category).collect(),
        total_tokens: total,
        max_tokens: input.window,
        raw_max_tokens: input.window,
        percentage: percentage(total, input.window),
        model: input.model.to_owned(),
        is_auto_compact_enabled: input.auto_compact != AutoCompact::Disabled,
        auto_compact_threshold: match input.auto_compact {
            AutoCompact::Threshold(threshold) => threshold.map(|tokens| tokens as f64),
            AutoCompact::Disabled => None,
        },
        memory_files: instructions.iter().map(|file| file_json(file, rate.tokens(file.bytes))).collect(),
        mcp_tools: input.mcp_tools.iter().map(|entry| mcp_tool_json(entry, rate)).collect(),
        api_usage: usage.as_ref().map(usage_json),
        system_tools: Some(
            tools.iter().map(|(name, bytes)| json!({"name": name, "tokens": rate.tokens(*bytes)})).collect(),
        ),
        slash_commands: Some(json!({"totalCommands": input.commands, "includedCommands": 0, "tokens": 0})),
        ..ContextUsage::default()
    }
}

/// Ratio of tokens to bytes.
#[derive(Debug, Clone, Copy)]
struct TokenRate {
    tokens: u64,
    bytes: usize,
}

impl TokenRate {
    fn tokens(self, bytes: usize) -> u64 {
        let tokens = bytes as u128 * u128::from(self.tokens) / self.bytes.max(1) as u128;
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

fn spec_size(tool: &ToolSpec) -> usize {
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

fn mcp_tool_json(tool: &McpToolEntry, rate: TokenRate) -> Value {
    let McpToolEntry { spec, server, is_loaded } = tool;
    json!({"name": spec.name, "serverName": server, "tokens": rate.tokens(spec_size(spec)), "isLoaded": is_loaded})
}

fn file_json(file: &InstructionFile, tokens: u64) -> Value {
    json!({"path": file.path, "type": file.kind.name(), "tokens": tokens})
}

fn usage_json(usage: &Usage) -> Value {
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
    use crate::context::instructions::{InstructionKind, LoadReason};

    fn parts(usage: &ContextUsage) -> Vec<(&str, u64)> {
        usage.categories.iter().map(|part| (part.id.as_deref().unwrap(), part.tokens)).collect()
    }

    #[test]
    fn parts_add_up_to_provider_count() {
        let meter = ContextMeter::default();
        let file = InstructionFile {
            path: PathBuf::from("/w/CLAUDE.md"),
            kind: InstructionKind::Project,
            reason: LoadReason::SessionStart,
            trigger: None,
            parent: None,
            bytes: 400,
        };
        meter.note_instructions(&[file]);
        meter.note_size(2_000);
        let system = ["x".repeat(40)];
        let usage_of = |reading: MeterReading| {
            compute_usage(&UsageInput {
                model: "m",
                window: 10_000,
                auto_compact: AutoCompact::Threshold(Some(7_000)),
                system: &system,
                tools: &[],
                mcp_tools: &[],
                commands: 3,
                meter: &reading,
            })
        };
        let estimated = usage_of(meter.read());
        assert_eq!(
            parts(&estimated),
            [("system_prompt", 10), ("memory_files", 100), ("messages", 400), ("free_space", 9_490)]
        );
        assert_eq!((estimated.total_tokens, &estimated.api_usage), (510, &None));
        assert_eq!(
            (estimated.is_auto_compact_enabled, estimated.auto_compact_threshold),
            (true, Some(7_000.0))
        );
        meter.note_usage(&Usage { input_tokens: 900, output_tokens: 100, ..Usage::default() });
        meter.note_size(2_400);
        let counted = usage_of(meter.read());
        assert_eq!(
            parts(&counted),
            [("system_prompt", 19), ("memory_files", 196), ("messages", 981), ("free_space", 8_804)]
        );
        assert_eq!((counted.total_tokens, counted.percentage), (1_196, 12.0));
        assert_eq!(counted.memory_files, [json!({"path": "/w/CLAUDE.md", "type": "Project", "tokens": 196})]);
        meter.reset();
        assert_eq!(usage_of(meter.read()).total_tokens, 10);
    }

    #[test]
    fn mcp_tools_count_once_loaded() {
        let spec = |name: &str, bytes: usize| {
            let (name, description) = (name.to_owned(), "x".repeat(bytes - name.len() - 2));
            let input_schema = whimbrel_wire::RawJson::from_value(&json!({})).unwrap();
            Arc::new(ToolSpec { name, description, input_schema })
        };
        let tool =
            |name, bytes, is_loaded| McpToolEntry { spec: spec(name, bytes), server: "s".into(), is_loaded };
        let usage = compute_usage(&UsageInput {
            model: "m",
            window: 0,
            auto_compact: AutoCompact::Disabled,
            system: &[],
            tools: &[spec("Read", 40)],
            mcp_tools: &[tool("mcp__s__a", 80, true), tool("mcp__s__b", 400, false)],
            commands: 0,
            meter: &MeterReading::default(),
        });
        assert_eq!(parts(&usage), [("system_tools", 10), ("mcp_tools", 20)]);
        assert_eq!((usage.is_auto_compact_enabled, usage.auto_compact_threshold), (false, None));
        assert_eq!(
            usage.mcp_tools,
            [
                json!({"name": "mcp__s__a", "serverName": "s", "tokens": 20, "isLoaded": true}),
                json!({"name": "mcp__s__b", "serverName": "s", "tokens": 100, "isLoaded": false})
            ]
        );
    }

    #[test]
    fn unknown_window_is_never_full() {
        let reading = MeterReading { size: 400, ..MeterReading::default() };
        let usage = compute_usage(&UsageInput {
            model: "m",
            window: 0,
            auto_compact: AutoCompact::Threshold(None),
            system: &[],
            tools: &[],
            mcp_tools: &[],
            commands: 0,
            meter: &reading,
        });
        assert_eq!((parts(&usage), usage.percentage), (vec![("messages", 100)], 0.0));
    }
}
