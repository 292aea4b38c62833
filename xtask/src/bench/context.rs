//! Shared context of all runs: directories, the model server and this program.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tempfile::TempDir;

use super::engine::{Engine, LaunchOptions};
use super::engine_process::EngineProcess;
use super::model_script::{ModelScript, ToolCall};
use super::model_server::ModelServer;

/// Shared context. Its directories are deleted on drop.
pub(super) struct BenchContext {
    /// The model server.
    pub(super) server: ModelServer,
    /// Driver that runs many sessions in one process.
    pub(super) swarm_program: Option<PathBuf>,
    /// Path of this program, which also runs as the meter.
    pub(super) bench_program: PathBuf,
    temp_dir: TempDir,
}

impl BenchContext {
    pub(super) fn new(swarm_program: Option<PathBuf>) -> Result<Self> {
        // A thousand sessions have two thousand connection ends.
        let (_, limit) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, limit, limit)?;
        let temp_dir = tempfile::Builder::new()
            .prefix("bench-")
            .tempdir()
            .context("cannot create a temporary directory")?;
        let context = Self {
            server: ModelServer::start()?,
            swarm_program,
            bench_program: std::env::current_exe()?,
            temp_dir,
        };
        fs::create_dir(context.engine_temp_dir())?;
        fs::create_dir(context.workspace_dir())?;
        fs::write(context.workspace_dir().join("small.txt"), "hello\n".repeat(20))?;
        Ok(context)
    }

    /// Creates a directory.
    pub(super) fn create_dir(&self, name: &str) -> Result<PathBuf> {
        let path = self.temp_dir.path().join(name);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Working directory of the engines: one small file, no repository.
    pub(super) fn workspace_dir(&self) -> PathBuf {
        self.temp_dir.path().join("workspace")
    }

    /// A file of twenty lines in the workspace.
    pub(super) fn small_file(&self) -> PathBuf {
        self.workspace_dir().join("small.txt")
    }

    /// `TMPDIR` of the engines.
    pub(super) fn engine_temp_dir(&self) -> PathBuf {
        self.temp_dir.path().join("tmp")
    }

    /// Parent of all other directories.
    pub(super) fn root_dir(&self) -> &Path {
        self.temp_dir.path()
    }

    /// Runs an engine twice, so that first-run work is not measured.
    pub(super) fn warm_up(&self, engine: &Engine) -> Result<()> {
        for _ in 0..2 {
            self.server.set_script(ModelScript::tool_calls(&[ToolCall::bash("true")]));
            EngineProcess::run_one_prompt(self, engine, LaunchOptions::default())
                .with_context(|| format!("{} fails", engine.name))?;
        }
        Ok(())
    }
}
