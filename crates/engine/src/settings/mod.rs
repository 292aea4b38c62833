//! Settings: what the person, the project, the host and an administrator want, made into one answer.
//!
//! [`Settings::load`] reads the layers once; whoever holds the [`Settings`] may read them again, change the host's layer
//! or write to a file. Nothing here decides about a tool call: rules are handed on with their source, file and line.
//!
//! The rooms, along the way of a file:
//! - [`sources`] (which files there are), [`read`] (a file to values that know their lines), [`load`] (all of them)
//! - [`trust`], [`environment`] (what a project may bring along), [`tracked`] (what came with a repository), [`vouched`]
//!   (which folders the person trusts)
//! - [`schema`], [`hooks`] (what the keys may hold), [`layer`] (what one source says)
//! - [`merge`](mod@merge) (many layers to one), [`known`] (its keys in types), [`view`] (what the host sees)
//! - [`flag`] (changes by the host), [`edit`], [`write`](mod@write) (changes to a file), [`rule_text`] (how a rule is written)

pub mod edit;
pub mod environment;
mod error;
pub mod flag;
pub mod hooks;
pub mod known;
pub mod layer;
pub mod load;
pub mod merge;
pub mod read;
pub mod rule_text;
pub mod schema;
pub mod sources;
pub mod tracked;
pub mod trust;
pub mod view;
pub mod vouched;
pub mod write;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Map, Value};
use whimbrel_wire::control::{SettingsReport, UpdateSettings};
use whimbrel_wire::options::SettingSource;
use whimbrel_wire::permission::{
    Destination, PermissionBehavior, PermissionMode, PermissionUpdate, RuleValue,
};

pub use edit::{Act, Change, List};
pub use error::{Problem, SettingsError};
pub use hooks::{CommandHook, Handler};
pub use known::Known;
pub use layer::{Hook, Layer, Rule};
pub use merge::{Directory, Effective};
pub use sources::{Origin, Request, Scope, Source, Tolerance, config_folder, managed_files};
pub use trust::Trust;

use crate::permission::paths;
use load::{Found, Gathered};
use write::Readers;

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct Settings {
    request: Request,
    overlay: Map<String, Value>,
    found: Found,
    gathered: Gathered,
    effective: Effective,
}

/// What became of a change to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    /// The file.
    pub file: PathBuf,
    /// Whether it says something new now.
    pub changed: bool,
    /// Whether it counts in this session by itself. If not, its source is not read here or the project is not trusted;
    /// then it is up to the caller to keep the change for the session.
    pub in_force: bool,
    /// Rules that could not be written.
    pub skipped: Vec<RuleValue>,
    /// What the host should know.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads the settings. Touches the disk.
    pub fn load(request: Request) -> Result<Self, SettingsError> {
        let found = load::find(&request)?;
        let gathered = load::sift(&request, &found, &Map::new())?;
        let effective = merge::merge(&gathered.layers);
        Ok(Self { request, overlay: Map::new(), found, gathered, effective })
    }

    /// No settings at all.
    pub fn none() -> Self {
        let (request, overlay, found) = (Request::default(), Map::new(), Found::default());
        Self { request, overlay, found, gathered: Gathered::default(), effective: Effective::default() }
    }

    /// What is in force.
    pub fn effective(&self) -> &Effective {
        &self.effective
    }

    /// How far the project is trusted.
    pub fn trust(&self) -> Trust {
        self.request.trust
    }

    /// What the host should know: values that do not count, and what is held back from a project.
    pub fn warnings(&self) -> &[String] {
        &self.gathered.warnings
    }

    /// What each source says, the weakest first.
    pub fn layers(&self) -> &[Layer] {
        &self.gathered.layers
    }

    /// Reads the files again and says whose settings are others now. If that fails, what was in force stays in force.
    pub fn reload(&mut self) -> Result<BTreeSet<Source>, SettingsError> {
        let found = load::find(&self.request)?;
        let gathered = load::sift(&self.request, &found, &self.overlay)?;
        self.found = found;
        Ok(self.take(gathered))
    }

    fn take(&mut self, gathered: Gathered) -> BTreeSet<Source> {
        let says = |layers: &[Layer], source: Source| -> Vec<(Origin, Map<String, Value>)> {
            let of_source = layers.iter().filter(|layer| layer.origin.source == source);
            of_source.map(|layer| (layer.origin.clone(), layer.given.clone())).collect()
        };
        let changed = Source::ALL
            .iter()
            .copied()
            .filter(|source| says(&self.gathered.layers, *source) != says(&gathered.layers, *source))
            .collect();
        self.effective = merge::merge(&gathered.layers);
        self.gathered = gathered;
        changed
    }

    /// Changes the host's layer: each key replaces its old value there, null takes it away. If something in it cannot
    /// be taken, nothing changes. No file is read.
    pub fn apply_flag(&mut self, changes: Map<String, Value>) -> Result<BTreeSet<Source>, SettingsError> {
        let mut overlay = self.overlay.clone();
        flag::change(&mut overlay, changes);
        let gathered = load::sift(&self.request, &self.found, &overlay)?;
        self.overlay = overlay;
        Ok(self.take(gathered))
    }

    /// The answer to `get_settings`. `applied` is what the session made of the settings.
    pub fn report(&self, applied: Map<String, Value>) -> SettingsReport {
        view::report(&self.effective, &self.gathered.layers, applied)
    }

    /// Writes a change of rules, mode or directories to the file that it names, and reads the settings again.
    pub fn update(&mut self, update: &PermissionUpdate) -> Result<Updated, SettingsError> {
        let source = source_of(update.destination())?;
        let (change, skipped) = Change::of(&self.with_real_directories(update));
        self.check(&change, &skipped)?;
        let updated = self.write(source, &change)?;
        Ok(Updated { skipped, ..updated })
    }

    /// Writes values to a file for the host: the style of answers to the local one, the effort to the person's.
    pub fn update_values(&mut self, update: &UpdateSettings) -> Result<Vec<Updated>, SettingsError> {
        let (source, allowed) = match update.source.as_str() {
            "localSettings" => (SettingSource::Local, "outputStyle"),
            "userSettings" => (SettingSource::User, "effortLevel"),
            other => {
                return Err(refused(format!(
                    "Settings cannot be written to \"{other}\": only to localSettings and userSettings."
                )));
            }
        };
        if !self.request.sources.contains(&source) {
            return Err(refused(format!(
                "This session does not read {}, so it does not write there.",
                update.source
            )));
        }
        if let Some((key, _)) =
            update.settings.iter().find(|(key, value)| *key != allowed || !value.is_string())
        {
            return Err(refused(format!(
                "{key} cannot be written to {}: only {allowed} can, as a text.",
                update.source
            )));
        }
        let changes = update
            .settings
            .iter()
            .map(|(key, value)| Change::Value { key: key.clone(), value: value.clone() });
        changes.map(|change| self.write(source, &change)).collect()
    }

    fn with_real_directories(&self, update: &PermissionUpdate) -> PermissionUpdate {
        let real = |directories: &[String]| {
            let path =
                |path: &String| paths::real(&self.request.cwd.join(path)).to_string_lossy().into_owned();
            directories.iter().map(path).collect()
        };
        let mut update = update.clone();
        match &mut update {
            PermissionUpdate::AddDirectories { directories, .. }
            | PermissionUpdate::RemoveDirectories { directories, .. } => *directories = real(directories),
            PermissionUpdate::AddRules { .. }
            | PermissionUpdate::ReplaceRules { .. }
            | PermissionUpdate::RemoveRules { .. }
            | PermissionUpdate::SetMode { .. } => {}
        }
        update
    }

    /// What may not be written.
    fn check(&self, change: &Change, skipped: &[RuleValue]) -> Result<(), SettingsError> {
        match change {
            Change::List { list: List::Rules(_), .. } if self.effective.managed_rules_only => Err(refused(
                "An administrator allows only managed permission rules, so none can be changed here.".into(),
            )),
            Change::List { act: Act::Replace, .. } if !skipped.is_empty() => Err(refused(format!(
                "The rules cannot be replaced because {:?} is not a rule. Correct it and try again.",
                skipped[0].tool_name
            ))),
            Change::Mode(PermissionMode::BypassPermissions) => Err(refused(
                "The mode bypassPermissions is never kept in a file. Choose it at the start of a session."
                    .into(),
            )),
            Change::List { .. } | Change::Mode(_) | Change::Value { .. } => Ok(()),
        }
    }

    fn write(&mut self, source: SettingSource, change: &Change) -> Result<Updated, SettingsError> {
        let file = self.request.file(source).ok_or_else(|| {
            refused("There is no configuration folder. Set HOME or CLAUDE_CONFIG_DIR.".into())
        })?;
        let readers = match source {
            SettingSource::User => Readers::Person,
            SettingSource::Project => Readers::Project,
            SettingSource::Local => Readers::PersonInProject,
        };
        let changed = write::change(&file, readers, change)?;
        let warnings = match self.reload() {
            Ok(_) => Vec::new(),
            Err(error) => vec![format!(
                "{} was changed, but the settings cannot be read again. {error}",
                file.display()
            )],
        };
        let in_force = warnings.is_empty() && self.counts(&file, change);
        Ok(Updated { file, changed, in_force, skipped: Vec::new(), warnings })
    }

    /// Whether a change of a file counts in this session.
    fn counts(&self, file: &std::path::Path, change: &Change) -> bool {
        let layer = self.gathered.layers.iter().find(|layer| layer.origin.file.as_deref() == Some(file));
        let forbids = matches!(
            change,
            Change::List { list: List::Rules(PermissionBehavior::Deny | PermissionBehavior::Ask), .. }
        );
        layer.is_some_and(|layer| {
            layer.origin.scope == Scope::Person || forbids || self.request.trust == Trust::Full
        })
    }
}

fn source_of(destination: Destination) -> Result<SettingSource, SettingsError> {
    match destination {
        Destination::UserSettings => Ok(SettingSource::User),
        Destination::ProjectSettings => Ok(SettingSource::Project),
        Destination::LocalSettings => Ok(SettingSource::Local),
        Destination::Session | Destination::CliArg => {
            Err(refused(format!("What is kept for the {destination} is not written to a file.")))
        }
    }
}

fn refused(text: String) -> SettingsError {
    SettingsError::Refused(text)
}

#[cfg(test)]
mod tests;
