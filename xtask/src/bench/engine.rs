//! The measured engines: any program that uses stream-json on its standard streams and accepts the official flags.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::args::BenchArgs;
use super::context::BenchContext;

pub(super) struct Engine {
    /// Name in the tables.
    pub(super) name: String,
    pub(super) program: PathBuf,
    /// Home directory, empty at first and kept between runs.
    pub(super) home: PathBuf,
}

/// Options with which an engine is started.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LaunchOptions<'a> {
    /// Whether to stream every delta.
    pub(super) partial_messages: PartialMessages,
    /// Permission setup for tool calls.
    pub(super) permissions: Permissions,
    /// Session to resume.
    pub(super) resume: Option<&'a str>,
    /// Working directory; the common workspace by default.
    pub(super) working_dir: Option<&'a Path>,
}

/// Whether to stream every delta.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PartialMessages {
    #[default]
    Off,
    On,
}

/// Permission setup for tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Permissions {
    /// Allows everything.
    #[default]
    BypassAll,
    /// Sends a permission request to the host.
    AskHost,
}

/// Creates our engine and its peers, in the order given.
pub(super) fn create_engines(args: &BenchArgs, context: &BenchContext) -> Result<Vec<Engine>> {
    let mut engines: Vec<Engine> = Vec::new();
    for program in args.engine.iter().chain(&args.peers) {
        let stem = program.file_stem().context("an engine needs a file name")?.to_string_lossy().into_owned();
        let same_name = engines.iter().filter(|engine| engine.name.starts_with(&stem)).count();
        let name = if same_name == 0 { stem } else { format!("{stem} {}", same_name + 1) };
        let home = context.create_dir(&format!("home-{}", engines.len()))?;
        engines.push(Engine { name, program: program.clone(), home });
    }
    Ok(engines)
}

impl<'a> LaunchOptions<'a> {
    /// Command line flags.
    pub(super) fn flags(self) -> Vec<&'a str> {
        let mut flags =
            vec!["-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
        flags.extend(["--model", "claude-sonnet-4-5"]);
        if let Some(session) = self.resume {
            flags.extend(["--resume", session]);
        }
        if self.partial_messages == PartialMessages::On {
            flags.push("--include-partial-messages");
        }
        match self.permissions {
            Permissions::BypassAll => flags.push("--dangerously-skip-permissions"),
            Permissions::AskHost => {
                flags.extend(["--permission-prompt-tool", "stdio", "--permission-mode", "default"]);
            }
        }
        flags
    }
}

impl Engine {
    /// The complete environment: nothing inherited, a dummy key, and the canned model as only endpoint.
    pub(super) fn environment(&self, context: &BenchContext) -> Vec<(&'static str, String)> {
        vec![
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME", self.home.display().to_string()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            ("TMPDIR", context.engine_temp_dir().display().to_string()),
            ("ANTHROPIC_BASE_URL", context.server.base_url()),
            ("ANTHROPIC_API_KEY", "sk-ant-dummy".into()),
            ("CLAUDE_CODE_ENTRYPOINT", "sdk-ts".into()),
            // Lets engines skip permissions although the benchmark may run as root.
            ("IS_SANDBOX", "1".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            ("DISABLE_TELEMETRY", "1".into()),
            ("DISABLE_ERROR_REPORTING", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
        ]
    }
}
