//! What was typed, flag by flag, before it is known whether it makes sense as a whole.

use whimbrel_wire::options::{Options, SystemPrompt, ThinkingDisplay};

/// What the program is to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CliCommand {
    /// Serve a session.
    #[default]
    Run,
    /// Show what it can do, without a key.
    Demo,
    /// Say why a call would be allowed, asked about or refused.
    Explain,
    /// Print the help page.
    Help,
    /// Print the version.
    Version,
}

/// What comes in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum InputFormat {
    /// One prompt.
    #[default]
    Text,
    /// Frames, one per line.
    StreamJson,
}

/// What goes out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// The answer.
    #[default]
    Text,
    /// The result frame.
    Json,
    /// All frames, one per line.
    StreamJson,
}

/// Everything that was typed.
#[derive(Debug, Default)]
pub(super) struct RawArgs {
    pub(super) command: CliCommand,
    /// Arguments that are no flags.
    pub(super) positional: Vec<String>,
    pub(super) print: bool,
    pub(super) verbose: bool,
    pub(super) strict_input: bool,
    /// What `--debug` is to tell of.
    pub(super) debug_topics: Option<String>,
    pub(super) input_format: InputFormat,
    pub(super) output_format: OutputFormat,
    /// A text or a file; the preset is made of the fields below.
    pub(super) system_prompt: Option<SystemPrompt>,
    pub(super) append_system_prompt: Option<String>,
    pub(super) exclude_dynamic_sections: Option<bool>,
    pub(super) prompt_snapshot: Option<bool>,
    pub(super) thinking_display: Option<ThinkingDisplay>,
    /// JSON texts or files.
    pub(super) mcp_configs: Vec<String>,
    pub(super) agents: Vec<String>,
    /// JSON texts or files.
    pub(super) settings: Vec<String>,
    /// Whatever is an option as it stands.
    pub(super) options: Options,
}
