//! What all runs share: folders, the model, and the program that counts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tempfile::TempDir;

use super::engine::{Engine, Start};
use super::run::Run;
use super::script::{Call, Script};
use super::server::Server;

/// A place to measure in. Its folders go away with it.
pub(super) struct Lab {
    /// The model.
    pub(super) server: Server,
    /// The program that runs many sessions in one process.
    pub(super) swarm: Option<PathBuf>,
    /// This program, which is also the meter.
    pub(super) myself: PathBuf,
    work: TempDir,
}

impl Lab {
    pub(super) fn new(swarm: Option<PathBuf>) -> Result<Self> {
        // A thousand sessions need two thousand connections' ends.
        let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
        let work = tempfile::Builder::new()
            .prefix("bench-")
            .tempdir()
            .context("there is no room for temporary files")?;
        let lab = Self { server: Server::start()?, swarm, myself: std::env::current_exe()?, work };
        fs::create_dir(lab.temporary())?;
        fs::create_dir(lab.workspace())?;
        fs::write(lab.workspace().join("small.txt"), "hello\n".repeat(20))?;
        Ok(lab)
    }

    /// A new folder.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.work.path().join(name);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Where engines work: a folder with one small file, which is no repository.
    pub(super) fn workspace(&self) -> PathBuf {
        self.work.path().join("workspace")
    }

    /// A file of twenty lines in the workspace.
    pub(super) fn small_file(&self) -> PathBuf {
        self.workspace().join("small.txt")
    }

    /// For temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.work.path().join("tmp")
    }

    /// The folder that all others are in.
    pub(super) fn root(&self) -> &Path {
        self.work.path()
    }

    /// Lets an engine do what it does only the first time.
    pub(super) fn warm_up(&self, engine: &Engine) -> Result<()> {
        for _ in 0..2 {
            self.server.play(Script::calls(&[Call::bash("true")]));
            Run::whole(self, engine, Start::default())
                .with_context(|| format!("{} does not work", engine.name))?;
        }
        Ok(())
    }
}
