//! The settings that a session begins with: which files are read, how far the project is trusted, and what the session
//! takes from them: rights, hooks, the model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use whimbrel_wire::options::{Options, SettingSource};

use super::{SetupError, absent};
use crate::ground::Ground;
use crate::hooks::{self, HookSet};
use crate::settings::hooks::{CommandHook, Handler};
use crate::settings::{self, Effective, Hook, Request, Settings, Tolerance, Trust, vouched};

type Env = BTreeMap<String, String>;

/// Reads the settings that were asked for. Touches the disk.
pub(super) fn read(options: &Options, env: &Env, root: &Path) -> Result<Settings, SetupError> {
    let invalid = |error: settings::SettingsError| SetupError::Invalid(error.to_string());
    let project = project(options, root);
    let settings = Settings::load(Request {
        config: settings::config_folder(env),
        trust: trust(options, env, &project),
        project,
        local: root.into(),
        cwd: root.into(),
        sources: sources(options),
        named: options.setting_sources.iter().flatten().copied().collect(),
        flag: options.settings.clone(),
        managed_files: settings::managed_files().map_err(invalid)?,
        managed: managed(options)?,
        tolerance: Tolerance::Strict,
    })
    .map_err(invalid)?;
    match absent::in_settings(&settings) {
        Some(text) => Err(SetupError::Absent(text)),
        None => Ok(settings),
    }
}

/// The folder that holds the project's `.claude`.
pub(super) fn project(options: &Options, root: &Path) -> PathBuf {
    options.project_config_root.as_ref().map_or_else(|| root.into(), |folder| root.join(folder))
}

/// The files to read: those that were named, or all.
pub(super) fn sources(options: &Options) -> BTreeSet<SettingSource> {
    match &options.setting_sources {
        Some(sources) => sources.iter().copied().collect(),
        None => [SettingSource::User, SettingSource::Project, SettingSource::Local].into(),
    }
}

/// How far the project is trusted: wholly if the host asked for its settings by name or the person trusts the folder;
/// on a machine that is said to be disposable as far as is customary; otherwise not at all.
pub(super) fn trust(options: &Options, env: &Env, project: &Path) -> Trust {
    let asked_for =
        options.setting_sources.as_ref().is_some_and(|sources| sources.contains(&SettingSource::Project));
    if asked_for || vouched::is_trusted(env, project) {
        Trust::Full
    } else if is_disposable(env) {
        Trust::Customary
    } else {
        Trust::Unknown
    }
}

/// Whether the machine is said to be disposable.
pub(super) fn is_disposable(env: &Env) -> bool {
    env.contains_key("IS_SANDBOX")
}

fn managed(options: &Options) -> Result<Option<Map<String, Value>>, SetupError> {
    match &options.managed_settings {
        None => Ok(None),
        Some(Value::Object(values)) => Ok(Some(values.clone())),
        Some(_) => Err(SetupError::Invalid("--managed-settings must be a JSON object.".into())),
    }
}

/// The ground that the session stands on.
pub(super) fn ground(options: &Options, settings: &Settings, config: Option<PathBuf>, root: &Path) -> Ground {
    let (project, sources) = (project(options, root), sources(options));
    Ground { sources, trust: settings.trust(), config, root: root.into(), project }
}

/// The hooks that the settings bring, and what cannot be had of them.
pub(super) fn hooks(effective: &Effective) -> Result<(HookSet, Vec<String>), SetupError> {
    let mut set = HookSet::default();
    let mut warnings = Vec::new();
    for hook in &effective.hooks {
        let origin = origin(hook);
        let (event, matcher) = (hook.event.to_string(), hook.matcher.as_deref());
        let invalid = |error: hooks::HookError| SetupError::Invalid(format!("Hooks: {error}."));
        if let Handler::Other { kind, fields } = &hook.handler
            && kind == "http"
        {
            set.add_http(&event, matcher, &http(fields, &origin)?, &origin).map_err(invalid)?;
            continue;
        }
        match command(&hook.handler) {
            Ok(command) => set.add_commands(&event, matcher, vec![command], &origin).map_err(invalid)?,
            Err(why) => warnings.push(format!("{origin}: a {} hook does not run: {why}.", hook.event)),
        }
    }
    warnings.extend(set.warnings().iter().cloned());
    Ok((set, warnings))
}

fn origin(hook: &Hook) -> String {
    match (&hook.file, hook.line) {
        (Some(file), Some(line)) => format!("{}, line {line}", file.display()),
        (Some(file), None) => file.display().to_string(),
        (None, _) => "the host's settings".into(),
    }
}

fn http(fields: &Map<String, Value>, origin: &str) -> Result<hooks::HttpHook, SetupError> {
    serde_path_to_error::deserialize(Value::Object(fields.clone())).map_err(|error| {
        SetupError::Invalid(format!("Hooks: {origin}: no http hook: {}: {}.", error.path(), error.inner()))
    })
}

/// The command of a hook, or why there is none in this version.
pub(super) fn command(handler: &Handler) -> Result<hooks::CommandHook, String> {
    let hook = match handler {
        Handler::Command(hook) => hook,
        Handler::Other { kind, .. } => return Err(format!("hooks of the type \"{kind}\" are not there yet")),
    };
    let lacking = [
        (hook.shell.as_deref().is_some_and(|shell| shell != "bash"), "only bash runs hooks"),
        (hook.wakes_the_model, "\"asyncRewake\" is not there yet"),
    ];
    if let Some((_, why)) = lacking.iter().find(|(lacks, _)| *lacks) {
        return Err((*why).into());
    }
    Ok(hooks::CommandHook {
        command: spelled(hook),
        timeout: hook.timeout,
        background: hook.in_background,
        on_failure: hook.on_failure.clone(),
        condition: hook.condition.clone(),
        once: hook.once,
        ..hooks::CommandHook::default()
    })
}

/// The command as a shell reads it. With arguments, each word is taken as it is.
fn spelled(hook: &CommandHook) -> String {
    let Some(args) = &hook.args else { return hook.command.clone() };
    let quoted = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    std::iter::once(&hook.command).chain(args).map(quoted).collect::<Vec<_>>().join(" ")
}
