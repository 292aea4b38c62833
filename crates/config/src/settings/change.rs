//! Changes to settings files requested by the user or the host. `edit` changes the text, `file` replaces the file.
//!
//! A change takes three steps, so that readers of the settings do not wait for the disk: create a [`ChangeDraft`] from
//! the settings; write it without holding the settings; adopt the result. Callers that share settings must write drafts
//! one at a time.

mod edit;
mod file;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use whimbrel_os::links::resolve_links;
use whimbrel_wire::control::UpdateSettings;
use whimbrel_wire::options::SettingSource;
use whimbrel_wire::permission::{Destination, PermissionMode, PermissionUpdate, RuleValue};

use crate::settings::document::SettingsDocument;
use crate::settings::error::SettingsError;
use crate::settings::layer::check_layer;
use crate::settings::load::{self, SettingsDocuments};
use crate::settings::sources::{LayerOrigin, LayerScope, LayerSource, SettingsRequest};
use crate::settings::{Settings, trust};

pub use edit::{ListAction, PermissionList, SettingsChange};
pub(super) use file::ReplacedText;
pub use file::{FileOwnership, change_file};

/// A permitted change and its file.
#[derive(Debug, Clone)]
pub struct ChangeDraft {
    request: SettingsRequest,
    source: SettingSource,
    file: PathBuf,
    change: SettingsChange,
    skipped: Vec<RuleValue>,
}

/// A written change and the newly read files.
#[derive(Debug)]
pub struct WrittenChange {
    source: SettingSource,
    file: PathBuf,
    change: SettingsChange,
    skipped: Vec<RuleValue>,
    replaced: Option<ReplacedText>,
    found: Result<SettingsDocuments, SettingsError>,
    warnings: Vec<String>,
}

/// Result of a change to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateReport {
    pub file: PathBuf,
    /// The file was modified.
    pub changed: bool,
    /// Whether the change is in force through the file. If not, the caller must apply it to the session.
    pub status: ChangeStatus,
    /// Sources that changed, by this or another change.
    pub sources: BTreeSet<LayerSource>,
    /// Rules that could not be written.
    pub skipped: Vec<RuleValue>,
    pub warnings: Vec<String>,
}

/// Whether a written change is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeStatus {
    /// In this session and later ones.
    InForce,
    /// No: this session does not read the file.
    NotRead,
    /// No: it grants something and the project is not trusted.
    NotTrusted,
    /// Unknown: the settings cannot be read again.
    Unknown,
}

impl Settings {
    /// Drafts a change of rules, mode or directories. No disk access.
    pub fn draft_update(&self, update: &PermissionUpdate) -> Result<ChangeDraft, SettingsError> {
        let source = to_setting_source(update.destination())?;
        let (change, skipped) = SettingsChange::from_update(update);
        self.check_change(&change, &skipped)?;
        Ok(ChangeDraft { skipped, ..self.new_draft(source, change)? })
    }

    /// Drafts values to write for the host: the output style to the local file, the effort to the user's.
    pub fn draft_values(&self, update: &UpdateSettings) -> Result<Vec<ChangeDraft>, SettingsError> {
        let (source, allowed) = match update.source.as_str() {
            "localSettings" => (SettingSource::Local, "outputStyle"),
            "userSettings" => (SettingSource::User, "effortLevel"),
            other => {
                return Err(not_allowed(format!(
                    "Settings cannot be written to \"{other}\": only to localSettings and userSettings."
                )));
            }
        };
        if !self.request.sources.contains(&source) {
            return Err(not_allowed(format!(
                "This session does not read {}, so it does not write there.",
                update.source
            )));
        }
        if let Some((key, _)) =
            update.settings.iter().find(|(key, value)| *key != allowed || !value.is_string())
        {
            return Err(not_allowed(format!(
                "{key} cannot be written to {}: only {allowed} can, as a string.",
                update.source
            )));
        }
        let changes = update
            .settings
            .iter()
            .map(|(key, value)| SettingsChange::Value { key: key.clone(), value: value.clone() });
        changes.map(|change| self.new_draft(source, change)).collect()
    }

    /// Drafts one entry that the user sets, or removes if there is no value. The keys of `path` lead to it. No disk
    /// access.
    pub fn draft_entry(
        &self,
        source: SettingSource,
        path: Vec<String>,
        value: Option<Value>,
    ) -> Result<ChangeDraft, SettingsError> {
        let sets = value.is_some();
        let change = SettingsChange::Entry { path, value };
        if sets {
            check_entry(&change)?;
        }
        self.new_draft(source, change)
    }

    fn new_draft(&self, source: SettingSource, change: SettingsChange) -> Result<ChangeDraft, SettingsError> {
        let file = self.request.file(source).ok_or_else(|| {
            not_allowed("There is no configuration directory. Set HOME or CLAUDE_CONFIG_DIR.".into())
        })?;
        Ok(ChangeDraft { request: self.request.clone(), source, file, change, skipped: Vec::new() })
    }

    /// Checks that the change may be written.
    fn check_change(&self, change: &SettingsChange, skipped: &[RuleValue]) -> Result<(), SettingsError> {
        match change {
            SettingsChange::List { list: PermissionList::Rules(_), .. }
                if self.effective.managed_rules_only =>
            {
                Err(not_allowed(
                    "An administrator allows only managed permission rules, so none can be changed here."
                        .into(),
                ))
            }
            SettingsChange::List { action: ListAction::Replace, .. } if !skipped.is_empty() => {
                Err(not_allowed(format!(
                    "The rules cannot be replaced because {:?} is not a rule. Correct it and try again.",
                    skipped[0].tool_name
                )))
            }
            SettingsChange::Mode(PermissionMode::BypassPermissions) => Err(not_allowed(BYPASS_ERROR.into())),
            SettingsChange::List { .. }
            | SettingsChange::Mode(_)
            | SettingsChange::Value { .. }
            | SettingsChange::Entry { .. } => Ok(()),
        }
    }

    /// Adopts the newly read files. If they are invalid, the previous settings stay in force.
    pub fn adopt_written(&mut self, written: WrittenChange) -> UpdateReport {
        let WrittenChange { source, file, change, skipped, replaced, found, mut warnings } = written;
        let (sources, status) = match found.and_then(|found| self.replace_documents(found)) {
            Ok(sources) => (sources, self.change_status(source, &file, &change)),
            Err(error) => {
                let file = file.display();
                warnings.push(format!("{file} was changed, but the settings cannot be read again. {error}"));
                (BTreeSet::new(), ChangeStatus::Unknown)
            }
        };
        UpdateReport { file, changed: replaced.is_some(), status, sources, skipped, warnings }
    }

    /// Whether a change is in force in this session.
    fn change_status(&self, source: SettingSource, file: &Path, change: &SettingsChange) -> ChangeStatus {
        if !self.request.sources.contains(&source) {
            return ChangeStatus::NotRead;
        }
        let layer = self.layers().iter().find(|layer| layer.origin.file.as_deref() == Some(file));
        let scope = layer.map_or(LayerScope::User, |layer| layer.origin.scope);
        match trust::filter_values(added_values(change), scope, self.request.trust).1[..] {
            [] => ChangeStatus::InForce,
            [..] => ChangeStatus::NotTrusted,
        }
    }
}

impl ChangeDraft {
    /// Writes the change and reads all files again. Accesses the disk, and may wait for another writer.
    pub fn write(self) -> Result<WrittenChange, SettingsError> {
        let Self { request, source, file, change, skipped } = self;
        let change = with_real_directories(change);
        let access = match source {
            SettingSource::User => FileOwnership::User,
            SettingSource::Project => FileOwnership::Project,
            SettingSource::Local => FileOwnership::UserInProject,
        };
        let replaced = change_file(&file, access, &change)?;
        let warnings = match &replaced {
            Some(replaced) if source == SettingSource::Local => {
                trust::local_settings::record_written_file(&request, &file, replaced)
            }
            Some(_) | None => None,
        };
        let found = load::read_documents(&request);
        Ok(WrittenChange {
            source,
            file,
            change,
            skipped,
            replaced,
            found,
            warnings: Vec::from_iter(warnings),
        })
    }
}

const BYPASS_ERROR: &str =
    "The mode bypassPermissions is never saved to a file. Choose it at the start of a session.";

/// Checks that an entry is valid where it is put.
fn check_entry(change: &SettingsChange) -> Result<(), SettingsError> {
    let values = added_values(change);
    let mode = values.get("permissions").and_then(|permissions| permissions.get("defaultMode"));
    if mode.and_then(Value::as_str) == Some(PermissionMode::BypassPermissions.as_str()) {
        return Err(not_allowed(BYPASS_ERROR.into()));
    }
    let origin = LayerOrigin {
        source: LayerSource::User,
        scope: LayerScope::User,
        file: None,
        base: PathBuf::from("/"),
    };
    let checked = check_layer(origin, SettingsDocument::from_values(values), trust::Trust::Full);
    match checked.critical.iter().chain(&checked.minor).next() {
        Some(error) => Err(not_allowed(format!("The setting {} {}.", error.key, error.cause))),
        None => Ok(()),
    }
}

/// The values that a change adds.
fn added_values(change: &SettingsChange) -> Map<String, Value> {
    let value = match change {
        SettingsChange::List { action: ListAction::Remove, .. } => json!({}),
        SettingsChange::List { list, entries, .. } => json!({"permissions": {list.key(): entries}}),
        SettingsChange::Mode(mode) => json!({"permissions": {"defaultMode": mode}}),
        SettingsChange::Value { key, value } => json!({key: value}),
        SettingsChange::Entry { path, value } => {
            let entry = value.clone().unwrap_or_default();
            path.iter().rev().fold(entry, |below, key| json!({key: below}))
        }
    };
    value.as_object().cloned().unwrap_or_default()
}

fn with_real_directories(change: SettingsChange) -> SettingsChange {
    let real = |path: String| resolve_links(Path::new(&path)).to_string_lossy().into_owned();
    match change {
        SettingsChange::List { list: PermissionList::Directories, action, entries } => {
            let entries = entries.into_iter().map(real).collect();
            SettingsChange::List { list: PermissionList::Directories, action, entries }
        }
        change @ (SettingsChange::List { .. }
        | SettingsChange::Mode(_)
        | SettingsChange::Value { .. }
        | SettingsChange::Entry { .. }) => change,
    }
}

fn to_setting_source(destination: Destination) -> Result<SettingSource, SettingsError> {
    match destination {
        Destination::UserSettings => Ok(SettingSource::User),
        Destination::ProjectSettings => Ok(SettingSource::Project),
        Destination::LocalSettings => Ok(SettingSource::Local),
        Destination::Session | Destination::CliArg => {
            Err(not_allowed(format!("Changes for the destination {destination} are not written to a file.")))
        }
    }
}

fn not_allowed(text: String) -> SettingsError {
    SettingsError::NotAllowed(text)
}
