//! Directories of consecutive sessions, which outlive each host.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;
use tempfile::TempDir;
use whimbrel_wire::options::Options;

use crate::host::{Host, HostBuilder};
use crate::script::Script;

/// Working directory and config directory of consecutive sessions; removed on drop.
#[derive(Debug)]
pub struct SessionDirs {
    root: PathBuf,
    _temp_dir: TempDir,
}

impl SessionDirs {
    /// Creates the working directory, empty. The engine creates the config directory.
    pub fn new() -> anyhow::Result<Self> {
        let builder = tempfile::Builder::new().prefix("whimbrel-").tempdir();
        let temp_dir = builder.context("cannot create a temporary directory")?;
        let root = temp_dir.path().canonicalize()?;
        fs::create_dir(root.join("work"))?;
        Ok(Self { root, _temp_dir: temp_dir })
    }

    /// The parent of both directories.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The working directory of the sessions.
    pub fn work_dir(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The config directory, in which the engine stores the transcripts.
    pub fn config_dir(&self) -> PathBuf {
        self.root.join("config")
    }

    /// Builds a host for a session in these directories.
    pub fn host(&self, script: impl Into<Script>, options: Options) -> HostBuilder {
        let options = Options { cwd: Some(self.work_dir().to_string_lossy().into_owned()), ..options };
        Host::with_script(script)
            .options(options)
            .env("CLAUDE_CONFIG_DIR", self.config_dir().to_string_lossy())
    }

    /// Paths of the transcripts of all sessions, without those of subagents.
    pub fn transcript_paths(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for project in fs::read_dir(self.config_dir().join("projects"))? {
            for entry in fs::read_dir(project?.path())? {
                paths.push(entry?.path());
            }
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        Ok(paths)
    }

    /// Reads the transcript of a session.
    pub fn read_transcript(&self, session: &str) -> anyhow::Result<Vec<Value>> {
        let paths = self.transcript_paths()?;
        let path = paths.iter().find(|path| path.file_stem().is_some_and(|stem| stem == session));
        let text = fs::read_to_string(path.with_context(|| format!("session {session} has no transcript"))?)?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}
