//! Where settings come from: which files there are, who wrote them, and from where the paths in them are meant.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Map, Value};
use whimbrel_wire::options::SettingSource;

use super::error::SettingsError;
use super::trust::Trust;
use crate::files::{self, FileKind};

/// Who settings come from, the weakest first: where two say different things, the stronger counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayerSource {
    /// The person, for all projects.
    User,
    /// The project, shared by all who work on it.
    Project,
    /// The person, for this project.
    Local,
    /// The host, at the start or later.
    Flag,
    /// An administrator, or the host in an administrator's place.
    Managed,
}

impl LayerSource {
    /// All of them, the weakest first.
    pub const ALL: &[Self] = &[Self::User, Self::Project, Self::Local, Self::Flag, Self::Managed];

    /// The name on the wire.
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

/// Where a layer of settings comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerOrigin {
    /// Who wrote it.
    pub source: LayerSource,
    /// Whether it counts as something that came with the project.
    pub scope: LayerScope,
    /// The file; none for settings that the host passed as a value.
    pub file: Option<PathBuf>,
    /// What a rule's path that begins with one `/` starts from.
    pub base: PathBuf,
}

impl LayerOrigin {
    /// What to call it in a message.
    pub fn display_name(&self) -> String {
        match (&self.file, self.source) {
            (Some(file), _) => file.display().to_string(),
            (None, LayerSource::Managed) => "the host's managed settings".into(),
            (None, _) => "the host's settings (--settings)".into(),
        }
    }
}

/// Whose word a layer is, whatever file it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerScope {
    /// The person's, the host's or an administrator's.
    User,
    /// The project's: what a clone brings along.
    Project,
}

/// Whether settings that cannot be read stop the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tolerance {
    /// They do: rules that forbid something might be among them.
    #[default]
    Strict,
    /// They are left out, with a warning. Managed settings stop the start all the same.
    Tolerant,
}

/// What to load.
#[derive(Debug, Clone, Default)]
pub struct SettingsRequest {
    /// The person's configuration folder; see [`config_folder`].
    pub config_dir: Option<PathBuf>,
    /// The folder that holds the project's `.claude`.
    pub project_root: PathBuf,
    /// The folder that holds the `.claude` of the local settings: the working directory, or the root of the repository.
    pub local_root: PathBuf,
    /// Where the session started.
    pub cwd: PathBuf,
    /// The files to read.
    pub sources: BTreeSet<SettingSource>,
    /// Those of them that the host named. Whoever names the local file vouches for it.
    pub named_sources: BTreeSet<SettingSource>,
    /// How far the project is trusted.
    pub trust: Trust,
    /// Settings of the host: a path, or JSON.
    pub flag: Option<String>,
    /// Files of an administrator, the strongest first; see [`managed_files`].
    pub managed_files: Vec<PathBuf>,
    /// Managed settings that the host supplies. They are weaker than an administrator's files.
    pub managed: Option<Map<String, Value>>,
    /// What happens to settings that cannot be read.
    pub tolerance: Tolerance,
}

impl SettingsRequest {
    /// The file of a source.
    pub fn file(&self, source: SettingSource) -> Option<PathBuf> {
        match source {
            SettingSource::User => Some(self.config_dir.as_ref()?.join("settings.json")),
            SettingSource::Project => Some(self.project_root.join(".claude/settings.json")),
            SettingSource::Local => Some(self.local_root.join(".claude/settings.local.json")),
        }
    }

    /// The files to read, the weakest first. Where two are one and the same file, it is read as the person's own.
    pub(super) fn setting_files(&self) -> Vec<(LayerSource, PathBuf, PathBuf)> {
        let rows = [
            (SettingSource::User, LayerSource::User, self.config_dir.as_ref()),
            (SettingSource::Project, LayerSource::Project, Some(&self.project_root)),
            (SettingSource::Local, LayerSource::Local, Some(&self.cwd)),
        ];
        let mut seen = BTreeSet::new();
        let mut files = Vec::new();
        for (wanted, source, base) in rows {
            let (Some(file), Some(base)) = (self.file(wanted), base) else { continue };
            if self.sources.contains(&wanted) && seen.insert(canonical_path(&file)) {
                files.push((source, file, base.clone()));
            }
        }
        files
    }
}

impl SettingsRequest {
    /// Settings files on the way from the working directory up to the root of its repository that are not read although
    /// their kind is asked for. Touches the disk.
    pub(super) fn skipped_files(&self) -> Vec<PathBuf> {
        let Some(root) = repository_root(&self.cwd) else { return Vec::new() };
        let read: BTreeSet<PathBuf> = self.setting_files().iter().map(|(_, file, _)| canonical_path(file)).collect();
        let kinds = [
            (SettingSource::Project, ".claude/settings.json"),
            (SettingSource::Local, ".claude/settings.local.json"),
        ];
        let asked = kinds.into_iter().filter(|(source, _)| self.sources.contains(source));
        let names: Vec<&str> = asked.map(|(_, name)| name).collect();
        let folders = self.cwd.ancestors().take_while(|folder| folder.starts_with(&root));
        let files = folders.flat_map(|folder| names.iter().map(|name| folder.join(name)));
        let is_there = |file: &PathBuf| matches!(files::file_kind(file), Ok(FileKind::File(_)));
        files.filter(|file| is_there(file) && !read.contains(&canonical_path(file))).collect()
    }
}

/// The folder of the repository that a folder lies in, if it lies in one. Touches the disk.
pub fn repository_root(folder: &Path) -> Option<PathBuf> {
    let is_repository = |folder: &&Path| !matches!(files::file_kind(&folder.join(".git")), Ok(FileKind::Missing));
    folder.ancestors().find(is_repository).map(Into::into)
}

fn canonical_path(file: &Path) -> PathBuf {
    files::real_path(file).unwrap_or_else(|| files::normalize_path(file))
}

/// The person's configuration folder: the one that the environment names, or `.claude` at home. None where no variable
/// names one, or only a home that depends on where we happen to be.
pub fn config_dir(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    match explicit_config_dir(env) {
        Some(folder) => std::path::absolute(folder).ok(),
        None => home_dir(env.get("HOME").map(String::as_str)).map(|home| home.join(".claude")),
    }
}

/// The person's home folder: what the variable `HOME` says, unless that depends on where we happen to be.
pub fn home_dir(variable: Option<&str>) -> Option<PathBuf> {
    variable.map(PathBuf::from).filter(|home| home.is_absolute())
}

/// The configuration folder that the environment names outright.
pub(crate) fn explicit_config_dir(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    env_path(env, "WHIMBREL_CONFIG_DIR").or_else(|| env_path(env, "CLAUDE_CONFIG_DIR"))
}

/// The path in a variable; an empty one is none.
fn env_path(env: &BTreeMap<String, String>, variable: &str) -> Option<PathBuf> {
    env.get(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The files of an administrator on this machine, the strongest first: our own, then those written for the official
/// engine. In a folder `managed-settings.d` beside a file, the later names are the stronger ones.
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

fn managed_files_in(folder: &Path) -> Result<Vec<PathBuf>, SettingsError> {
    let parts = folder.join("managed-settings.d");
    let listed =
        |error: io::Error| SettingsError::unreadable(&parts, error.to_string(), "Make the folder readable.");
    let mut files = Vec::new();
    match fs::read_dir(&parts) {
        Ok(entries) => {
            for entry in entries {
                let path = entry.map_err(listed)?.path();
                let hidden = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
                if path.extension().is_some_and(|end| end == "json") && !hidden {
                    files.push(path);
                }
            }
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => return Err(listed(error)),
    }
    files.sort_unstable_by(|one, other| other.cmp(one));
    files.push(folder.join("managed-settings.json"));
    Ok(files)
}

/// What `--settings` means: JSON if it begins like an object, else a file.
pub(super) fn host_settings_file(given: &str, cwd: &Path) -> Option<PathBuf> {
    (!given.trim_start().starts_with('{')).then(|| cwd.join(given))
}

#[cfg(test)]
mod tests;
