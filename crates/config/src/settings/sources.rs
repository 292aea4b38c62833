//! Sources of settings: their files, precedence, and the base of paths in them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Map, Value};
use whimbrel_os::files::{self, FileKind};
use whimbrel_wire::options::SettingSource;

use crate::settings::error::SettingsError;
use crate::settings::trust::Trust;

/// Sources of settings layers, weakest first; on conflict the stronger applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayerSource {
    /// The user, for all projects.
    User,
    /// The project, shared by everyone who works on it.
    Project,
    /// The user, for this project.
    Local,
    /// The host, at the start or later.
    Flag,
    /// An administrator, or managed settings of the host.
    Managed,
}

impl LayerSource {
    /// All sources, weakest first.
    pub const ALL: &[Self] = &[Self::User, Self::Project, Self::Local, Self::Flag, Self::Managed];

    /// Name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "userSettings",
            Self::Project => "projectSettings",
            Self::Local => "localSettings",
            Self::Flag => "flagSettings",
            Self::Managed => "policySettings",
        }
    }
}

/// Origin of a settings layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerOrigin {
    pub source: LayerSource,
    pub scope: LayerScope,
    /// The file; `None` for settings that the host passed as a value.
    pub file: Option<PathBuf>,
    /// Base of paths in rules that begin with one `/`.
    pub base: PathBuf,
}

impl LayerOrigin {
    /// Name for messages.
    pub fn display_name(&self) -> String {
        match (&self.file, self.source) {
            (Some(file), _) => file.display().to_string(),
            (None, LayerSource::Managed) => "the host's managed settings".into(),
            (None, _) => "the host's settings (--settings)".into(),
        }
    }
}

/// Whose settings a layer counts as, independent of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerScope {
    /// Settings of the user, the host or an administrator.
    User,
    /// Settings that came with the project.
    Project,
}

/// Handling of unreadable settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tolerance {
    /// The start fails, because deny rules could be among them.
    #[default]
    Strict,
    /// They are left out with a warning. Managed settings still fail the start.
    Tolerant,
}

/// Which settings to load.
#[derive(Debug, Clone, Default)]
pub struct SettingsRequest {
    /// The user's configuration directory; see [`config_dir`].
    pub config_dir: Option<PathBuf>,
    /// The directory that contains the project's `.claude`.
    pub project_root: PathBuf,
    /// The directory that contains the `.claude` of the local settings: the working directory or the repository root.
    pub local_root: PathBuf,
    /// Working directory of the session.
    pub cwd: PathBuf,
    /// The sources to read.
    pub sources: BTreeSet<SettingSource>,
    /// Sources that the host named. By naming the local source the host vouches for its file.
    pub named_sources: BTreeSet<SettingSource>,
    /// Trust in the project.
    pub trust: Trust,
    /// Settings of the host: a path or JSON.
    pub flag: Option<String>,
    /// Settings of the sandbox that the host passed beside `flag`.
    pub flag_sandbox: Option<Map<String, Value>>,
    /// Files of an administrator, strongest first; see [`managed_files`].
    pub managed_files: Vec<PathBuf>,
    /// Managed settings of the host, weaker than an administrator's files.
    pub managed: Option<Map<String, Value>>,
    /// Handling of unreadable settings.
    pub tolerance: Tolerance,
    /// The user's plugin directory, if it is not in the configuration directory.
    pub plugin_dir: Option<PathBuf>,
}

impl SettingsRequest {
    /// Path of a source's file.
    pub fn file(&self, source: SettingSource) -> Option<PathBuf> {
        match source {
            SettingSource::User => Some(self.config_dir.as_ref()?.join("settings.json")),
            SettingSource::Project => Some(self.project_root.join(".claude/settings.json")),
            SettingSource::Local => Some(self.local_root.join(".claude/settings.local.json")),
        }
    }

    /// The files to read, weakest first, each with its source and base. If two paths are the same file, it is read as
    /// the user's.
    pub(super) fn setting_files(&self) -> Vec<(LayerSource, PathBuf, PathBuf)> {
        let rows = [
            (SettingSource::User, LayerSource::User, self.config_dir.as_ref()),
            (SettingSource::Project, LayerSource::Project, Some(&self.project_root)),
            (SettingSource::Local, LayerSource::Local, Some(&self.cwd)),
        ];
        let mut seen = BTreeSet::new();
        let mut files = Vec::new();
        for (setting_source, source, base) in rows {
            let (Some(file), Some(base)) = (self.file(setting_source), base) else { continue };
            if self.sources.contains(&setting_source) && seen.insert(canonical_path(&file)) {
                files.push((source, file, base.clone()));
            }
        }
        files
    }
}

impl SettingsRequest {
    /// Settings files of requested sources between the working directory and the repository root that are not read.
    /// Accesses the disk.
    pub(super) fn skipped_files(&self) -> Vec<PathBuf> {
        let Some(root) = repository_root(&self.cwd) else { return Vec::new() };
        let read: BTreeSet<PathBuf> =
            self.setting_files().iter().map(|(_, file, _)| canonical_path(file)).collect();
        let kinds = [
            (SettingSource::Project, ".claude/settings.json"),
            (SettingSource::Local, ".claude/settings.local.json"),
        ];
        let requested = kinds.into_iter().filter(|(source, _)| self.sources.contains(source));
        let names: Vec<&str> = requested.map(|(_, name)| name).collect();
        let dirs = self.cwd.ancestors().take_while(|dir| dir.starts_with(root));
        let files = dirs.flat_map(|dir| names.iter().map(|name| dir.join(name)));
        let exists = |file: &PathBuf| matches!(files::file_kind(file), Ok(FileKind::File(_)));
        files.filter(|file| exists(file) && !read.contains(&canonical_path(file))).collect()
    }
}

/// The root of the repository that contains a directory. Accesses the disk.
pub fn repository_root(dir: &Path) -> Option<&Path> {
    dir.ancestors().find(|dir| is_repository_root(dir))
}

/// Returns whether a directory contains `.git`, also if that cannot be read. Accesses the disk.
pub(crate) fn is_repository_root(dir: &Path) -> bool {
    !matches!(files::file_kind(&dir.join(".git")), Ok(FileKind::Missing))
}

fn canonical_path(file: &Path) -> PathBuf {
    files::real_path(file).unwrap_or_else(|| files::normalize_path(file))
}

/// The user's configuration directory: from the environment, or `.claude` in the home directory. `None` without such a
/// variable, or if `HOME` is relative.
pub fn config_dir(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    match explicit_config_dir(env) {
        Some(dir) => std::path::absolute(dir).ok(),
        None => home_dir(env.get("HOME").map(String::as_str)).map(|home| home.join(".claude")),
    }
}

/// The files in a configuration directory that hold the engine's own credentials.
pub fn credential_files(config_dir: &Path) -> [PathBuf; 2] {
    [".credentials.json", "mcp-logins.json"].map(|name| config_dir.join(name))
}

/// The home directory from the value of `HOME`; `None` if it is relative.
pub fn home_dir(variable: Option<&str>) -> Option<PathBuf> {
    variable.map(PathBuf::from).filter(|home| home.is_absolute())
}

/// The configuration directory from `WHIMBREL_CONFIG_DIR` or `CLAUDE_CONFIG_DIR`.
pub fn explicit_config_dir(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    env_path(env, "WHIMBREL_CONFIG_DIR").or_else(|| env_path(env, "CLAUDE_CONFIG_DIR"))
}

/// A path from an environment variable; empty counts as unset.
pub fn env_path(env: &BTreeMap<String, String>, variable: &str) -> Option<PathBuf> {
    env.get(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The administrator's files on this machine, strongest first: our own, then those of the official engine. In a
/// directory `managed-settings.d`, later names are stronger, and all are stronger than the main file.
pub fn managed_files() -> Result<Vec<PathBuf>, SettingsError> {
    let official = if cfg!(target_os = "macos") {
        "/Library/Application Support/ClaudeCode"
    } else {
        "/etc/claude-code"
    };
    let mut files = managed_files_in(Path::new("/etc/whimbrel"))?;
    files.append(&mut managed_files_in(Path::new(official))?);
    Ok(files)
}

fn managed_files_in(dir: &Path) -> Result<Vec<PathBuf>, SettingsError> {
    let parts = dir.join("managed-settings.d");
    let unreadable = |error: io::Error| {
        SettingsError::unreadable(&parts, error.to_string(), "Make the directory readable.")
    };
    let mut files = Vec::new();
    match fs::read_dir(&parts) {
        Ok(entries) => {
            for entry in entries {
                let path = entry.map_err(unreadable)?.path();
                let is_hidden = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
                if path.extension().is_some_and(|extension| extension == "json") && !is_hidden {
                    files.push(path);
                }
            }
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => return Err(unreadable(error)),
    }
    files.sort_unstable_by(|one, other| other.cmp(one));
    files.push(dir.join("managed-settings.json"));
    Ok(files)
}

/// The file that `--settings` names; `None` if it is JSON.
pub(super) fn host_settings_file(given: &str, cwd: &Path) -> Option<PathBuf> {
    (!given.trim_start().starts_with('{')).then(|| cwd.join(given))
}

#[cfg(test)]
mod tests;
