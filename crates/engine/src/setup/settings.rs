//! Loads the settings of a session: which files to read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use whimbrel_config::locations::{ConfigLocations, SharedDirs};
use whimbrel_config::plugins::records::PluginDir;
use whimbrel_config::settings::trust::project_trust::project_trust;
use whimbrel_config::settings::{self, Settings, SettingsRequest, Tolerance};
use whimbrel_wire::options::{Options, SettingSource};

use super::SetupError;
use super::env::{Env, is_env_set};

/// Loads the settings. Reads files.
pub(super) fn load_settings(options: &Options, env: &Env, root: &Path) -> Result<Settings, SetupError> {
    let invalid = |error: settings::SettingsError| SetupError::Invalid(error.to_string());
    let project = project_root(options, root);
    let named_sources = options.setting_sources.as_deref().unwrap_or_default();
    Settings::load(SettingsRequest {
        config_dir: settings::config_dir(env),
        trust: project_trust(named_sources, env, &project, is_disposable(env)),
        project_root: project,
        local_root: local_settings_root(env, root),
        cwd: root.into(),
        sources: setting_sources(options),
        named_sources: named_sources.iter().copied().collect(),
        flag: options.settings.clone(),
        flag_sandbox: options.sandbox.clone(),
        managed_files: settings::managed_files().map_err(invalid)?,
        managed: managed_settings(options)?,
        tolerance: tolerance(options),
        plugin_dir: PluginDir::from_env(env).map(|dir| dir.path().to_path_buf()),
    })
    .map_err(invalid)
}

/// Switches of the official program for a session without files that nothing names, as with `--bare`.
const BARE_VARIABLES: [&str; 2] = ["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"];

/// Leaves out all setting sources if the environment says so. Settings cannot: they are sources themselves.
pub(super) fn restrict_sources(options: &mut Options, env: &Env) {
    if BARE_VARIABLES.iter().any(|name| is_env_set(env, name)) {
        options.setting_sources = Some(Vec::new());
    }
}

/// The directory that contains the project's `.claude`.
pub(super) fn project_root(options: &Options, root: &Path) -> PathBuf {
    options.project_config_root.as_ref().map_or_else(|| root.into(), |dir| root.join(dir))
}

/// The directory that contains the `.claude` of the local settings: the working directory for an SDK host, the
/// repository root at the terminal. Accesses the disk.
fn local_settings_root(env: &Env, root: &Path) -> PathBuf {
    let by_host = env.get("CLAUDE_CODE_ENTRYPOINT").is_some_and(|name| name.starts_with("sdk"));
    let repository = if by_host { None } else { settings::repository_root(root) };
    repository.unwrap_or(root).into()
}

fn tolerance(options: &Options) -> Tolerance {
    if options.tolerate_bad_settings { Tolerance::Tolerant } else { Tolerance::Strict }
}

/// The setting sources that the host named, or all.
pub(super) fn setting_sources(options: &Options) -> BTreeSet<SettingSource> {
    match &options.setting_sources {
        Some(sources) => sources.iter().copied().collect(),
        None => [SettingSource::User, SettingSource::Project, SettingSource::Local].into(),
    }
}

/// True if `IS_SANDBOX` says that the machine is disposable.
pub(super) fn is_disposable(env: &Env) -> bool {
    is_env_set(env, "IS_SANDBOX")
}

fn managed_settings(options: &Options) -> Result<Option<Map<String, Value>>, SetupError> {
    match &options.managed_settings {
        None => Ok(None),
        Some(Value::Object(values)) => Ok(Some(values.clone())),
        Some(_) => Err(SetupError::InvalidOption {
            option: "managed_settings",
            reason: "must be a JSON object.".into(),
        }),
    }
}

pub(super) fn config_locations(
    options: &Options,
    settings: &Settings,
    config: Option<PathBuf>,
    root: &Path,
) -> ConfigLocations {
    let (project, sources) = (project_root(options, root), setting_sources(options));
    ConfigLocations {
        sources,
        trust: settings.trust(),
        user_dir: config,
        working_dir: root.into(),
        project_dir: project,
        instruction_dirs: SharedDirs::default(),
        skill_dirs: SharedDirs::default(),
        named_skill_dirs: Vec::new(),
    }
}

/// Directories in which skills are searched, instead of those of the user and the project; separated by colons.
const SKILL_DIRS_VARIABLE: &str = "WHIMBREL_SKILL_DIRS";

pub(super) fn named_skill_dirs(env: &Env) -> Vec<PathBuf> {
    let named = env.get(SKILL_DIRS_VARIABLE).map(String::as_str).unwrap_or_default();
    std::env::split_paths(named).filter(|dir| dir.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_settings_are_at_the_repository_root_without_an_sdk() {
        let temp_dir = tempfile::tempdir().unwrap();
        let root = temp_dir.path().join("repository");
        let dir = root.join("part");
        std::fs::create_dir_all(&dir).unwrap();
        let with_entrypoint =
            |name: &str| Env::from([("CLAUDE_CODE_ENTRYPOINT".to_owned(), name.to_owned())]);
        assert_eq!(local_settings_root(&Env::new(), &dir), dir, "no repository");
        std::fs::create_dir(root.join(".git")).unwrap();
        let rows = [
            (Env::new(), &root),
            (with_entrypoint("cli"), &root),
            (with_entrypoint("sdk-py"), &dir),
            (with_entrypoint("sdk-ts"), &dir),
        ];
        for (env, expected) in rows {
            assert_eq!(local_settings_root(&env, &dir), *expected, "{env:?}");
        }
    }

    #[test]
    fn is_sandbox_variable_is_parsed() {
        for (value, expected) in
            [(None, false), (Some(""), false), (Some("0"), false), (Some("false"), false), (Some("1"), true)]
        {
            let env = value.map(|value| ("IS_SANDBOX".to_owned(), value.to_owned())).into_iter().collect();
            assert_eq!(is_disposable(&env), expected, "{value:?}");
        }
    }
}
