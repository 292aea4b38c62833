//! Who is measured: any program that speaks stream-json on its standard streams and takes the flags of the official one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::context::BenchContext;
use super::args::BenchArgs;

/// An engine.
pub(super) struct Engine {
    /// What it is called in the tables.
    pub(super) name: String,
    /// The program.
    pub(super) program: PathBuf,
    /// Its home folder, empty at first and kept from run to run.
    pub(super) home: PathBuf,
}

/// How an engine is started.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LaunchOptions<'a> {
    /// Whether every delta is wanted.
    pub(super) partial_messages: PartialMessages,
    /// Who decides about tool calls.
    pub(super) permissions: Permissions,
    /// The session to go on with.
    pub(super) resume: Option<&'a str>,
    /// Where it works; the common workspace, if none is given.
    pub(super) working_dir: Option<&'a Path>,
}

/// Whether every delta is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum PartialMessages {
    #[default]
    Off,
    On,
}

/// Who decides about tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Permissions {
    /// Everything is allowed.
    #[default]
    BypassAll,
    /// The host is asked.
    AskHost,
}

/// Our engine and the others, in the order in which they were named.
pub(super) fn create_engines(wish: &BenchArgs, lab: &BenchContext) -> Result<Vec<Engine>> {
    let mut engines: Vec<Engine> = Vec::new();
    for program in wish.engine.iter().chain(&wish.peers) {
        let stem = program.file_stem().context("an engine needs a file name")?.to_string_lossy().into_owned();
        let alike = engines.iter().filter(|engine| engine.name.starts_with(&stem)).count();
        let name = if alike == 0 { stem } else { format!("{stem} {}", alike + 1) };
        let home = lab.create_dir(&format!("home-{}", engines.len()))?;
        engines.push(Engine { name, program: program.clone(), home });
    }
    Ok(engines)
}

impl<'a> LaunchOptions<'a> {
    /// The flags.
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
    /// Its whole environment: nothing of ours, a key that opens nothing, and nobody to ask but the canned model.
    pub(super) fn environment(&self, lab: &BenchContext) -> Vec<(&'static str, String)> {
        vec![
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME", self.home.display().to_string()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            ("TMPDIR", lab.engine_temp_dir().display().to_string()),
            ("ANTHROPIC_BASE_URL", lab.server.base_url()),
            ("ANTHROPIC_API_KEY", "sk-ant-dummy".into()),
            ("CLAUDE_CODE_ENTRYPOINT", "sdk-ts".into()),
            // An engine that refuses to skip permissions as root is told that this is no ordinary machine.
            ("IS_SANDBOX", "1".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            ("DISABLE_TELEMETRY", "1".into()),
            ("DISABLE_ERROR_REPORTING", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
        ]
    }
}
