//! Temporary directories and a closed environment for one run of an engine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::TempDir;

/// Workspace, home and temp directory of one run; removed on drop.
#[derive(Debug)]
pub struct TestDirs {
    root: PathBuf,
    _temp_dir: TempDir,
}

impl TestDirs {
    /// Creates the three directories, empty.
    pub fn new() -> anyhow::Result<Self> {
        let temp_dir = tempfile::Builder::new()
            .prefix("whimbrel-")
            .tempdir()
            .context("cannot create a temporary directory")?;
        let root = temp_dir.path().canonicalize()?;
        let dirs = Self { root, _temp_dir: temp_dir };
        for path in [dirs.workspace(), dirs.home(), dirs.temp_dir()] {
            fs::create_dir(path)?;
        }
        Ok(dirs)
    }

    /// The directory in which the agent works.
    pub fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The directory for temporary files.
    pub fn temp_dir(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// The engine's environment: these directories, `PATH`, and nothing else of this process.
    pub fn env(&self) -> BTreeMap<String, String> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let variables = [
            ("HOME", text(self.home())),
            ("TMPDIR", text(self.temp_dir())),
            ("LANG", "C.UTF-8".to_owned()),
            ("PATH", std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned())),
            // Containers often run everything as root; this permits bypass mode there.
            ("IS_SANDBOX", "1".to_owned()),
        ];
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Writes a file into the workspace and creates its parent directories.
    pub fn write_file(&self, path: &str, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
        write_file(&self.workspace().join(path), content.as_ref())
    }

    /// Copies all files of a directory into the workspace.
    pub fn copy_from(&self, from: &Path) -> anyhow::Result<()> {
        for (path, content) in read_files(from)? {
            self.write_file(&path, content)?;
        }
        Ok(())
    }

    /// All files of the workspace by relative path.
    pub fn files(&self) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
        read_files(&self.workspace())
    }
}

/// Reads all files below a directory, keyed by relative path; empty if the directory does not exist.
pub(crate) fn read_files(root: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(dir) = pending.pop().filter(|dir| dir.is_dir()) {
        for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
                found.insert(name, fs::read(&path).with_context(|| path.display().to_string())?);
            }
        }
    }
    Ok(found)
}

pub(crate) fn write_file(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content).with_context(|| path.display().to_string())
}
