//! Arguments flag by flag, before they are checked as a whole.

use whimbrel_wire::options::{Options, SystemPrompt, ThinkingDisplay};

use crate::official::is_subcommand;

/// Command of the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CliCommand {
    /// Run a session.
    #[default]
    Run,
    /// Run the demo, which needs no key.
    Demo,
    /// Explain why a call would be allowed, asked about or denied.
    Explain,
    /// Print the help page.
    Help,
    /// Print the version.
    Version,
}

/// Format of the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum InputFormat {
    /// One prompt.
    #[default]
    Text,
    /// Frames, one per line.
    StreamJson,
}

/// Format of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// Text of the answer.
    #[default]
    Text,
    /// The result frame.
    Json,
    /// All frames, one per line.
    StreamJson,
}

/// Arguments as typed.
#[derive(Debug, Default)]
pub(super) struct RawArgs {
    pub(super) command: CliCommand,
    /// Arguments that are not flags.
    pub(super) positional: Vec<String>,
    /// There was a `--`, so that what follows is text.
    pub(super) has_end: bool,
    pub(super) print: bool,
    pub(super) verbose: bool,
    pub(super) strict_input: bool,
    /// No colors, and no line is overwritten.
    pub(super) plain_output: bool,
    /// Prompt to which files are rewound.
    pub(super) rewind_files: Option<String>,
    /// `--resume` without a session.
    pub(super) choose_session: bool,
    /// Nothing is read from files that no flag names.
    pub(super) bare: bool,
    /// Topics of `--debug`.
    pub(super) debug_topics: Option<String>,
    pub(super) input_format: InputFormat,
    pub(super) output_format: OutputFormat,
    /// A text or a file; the preset is built from the fields below.
    pub(super) system_prompt: Option<SystemPrompt>,
    pub(super) append_system_prompt: Option<String>,
    pub(super) append_system_prompt_file: Option<String>,
    /// Appended to the system prompts of subagents.
    pub(super) append_subagent_prompt: Option<String>,
    pub(super) append_subagent_prompt_file: Option<String>,
    pub(super) exclude_dynamic_sections: Option<bool>,
    pub(super) prompt_snapshot: Option<bool>,
    pub(super) thinking_display: Option<ThinkingDisplay>,
    /// JSON texts or files.
    pub(super) mcp_configs: Vec<String>,
    pub(super) agents: Vec<String>,
    /// JSON texts or files.
    pub(super) settings: Vec<String>,
    /// Flags that map to one option each.
    pub(super) options: Options,
}

impl RawArgs {
    /// Returns whether a prompt of one word is rather a subcommand behind flags. It would cost a session.
    pub(super) fn is_likely_subcommand(&self, prompt: &str) -> bool {
        self.command == CliCommand::Run && !self.print && !self.has_end && is_subcommand(prompt)
    }
}
