//! Changes to a settings file on somebody's word.
//!
//! In three steps, so that nobody who only wants to know what is in force waits for a disk: the settings make a
//! [`Draft`]; it is written while nobody holds the settings; what the files say then is taken in. Whoever shares
//! settings sees to it that one draft is written after the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use whimbrel_wire::control::UpdateSettings;
use whimbrel_wire::options::SettingSource;
use whimbrel_wire::permission::{Destination, PermissionMode, PermissionUpdate, RuleValue};

use super::edit::{Act, Change, List};
use super::error::SettingsError;
use super::load::{self, Found};
use super::sources::{Request, Scope, Source};
use super::write::{self, Readers, Replaced};
use super::{Settings, own, trust};
use crate::permission::paths;

/// A change that may be made, and where.
#[derive(Debug, Clone)]
pub struct Draft {
    request: Request,
    source: SettingSource,
    file: PathBuf,
    change: Change,
    skipped: Vec<RuleValue>,
}

/// A change that was written, and what all files say now.
#[derive(Debug)]
pub struct Written {
    source: SettingSource,
    file: PathBuf,
    change: Change,
    skipped: Vec<RuleValue>,
    replaced: Option<Replaced>,
    found: Result<Found, SettingsError>,
    warnings: Vec<String>,
}

/// What became of a change to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    /// The file.
    pub file: PathBuf,
    /// Whether it says something new now.
    pub changed: bool,
    /// Whether it counts by itself. If not, it is up to the caller to keep the change for the session.
    pub counts: Counts,
    /// Whose settings are others now, by this change or by somebody else's meanwhile.
    pub sources: BTreeSet<Source>,
    /// Rules that could not be written.
    pub skipped: Vec<RuleValue>,
    /// What the host should know.
    pub warnings: Vec<String>,
}

/// Whether what was written to a file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// It does, in this session and in those to come.
    ByItself,
    /// It does not: this session was told not to read the file.
    NotRead,
    /// It does not: it grants something in a project that nobody vouches for.
    NotTrusted,
    /// Nobody can tell: the settings cannot be read again.
    Unknown,
}

impl Settings {
    /// A change of rules, mode or directories for the file that it names. Touches no disk.
    pub fn draft(&self, update: &PermissionUpdate) -> Result<Draft, SettingsError> {
        let source = source_of(update.destination())?;
        let (change, skipped) = Change::of(update);
        self.check(&change, &skipped)?;
        Ok(Draft { skipped, ..self.drafted(source, change)? })
    }

    /// Values to write to a file for the host: the style of answers to the local one, the effort to the person's.
    pub fn draft_values(&self, update: &UpdateSettings) -> Result<Vec<Draft>, SettingsError> {
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
        changes.map(|change| self.drafted(source, change)).collect()
    }

    fn drafted(&self, source: SettingSource, change: Change) -> Result<Draft, SettingsError> {
        let file = self.request.file(source).ok_or_else(|| {
            refused("There is no configuration folder. Set HOME or CLAUDE_CONFIG_DIR.".into())
        })?;
        Ok(Draft { request: self.request.clone(), source, file, change, skipped: Vec::new() })
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
            Change::List { .. } | Change::Mode(_) | Change::Value { .. } | Change::Entry { .. } => Ok(()),
        }
    }

    /// Takes in what the files say after a change. If they cannot be taken, what was in force stays in force.
    pub fn adopt(&mut self, written: Written) -> Updated {
        let Written { source, file, change, skipped, replaced, found, mut warnings } = written;
        let (sources, counts) = match found.and_then(|found| self.renew(found)) {
            Ok(sources) => (sources, self.counts(source, &file, &change)),
            Err(error) => {
                let file = file.display();
                warnings.push(format!("{file} was changed, but the settings cannot be read again. {error}"));
                (BTreeSet::new(), Counts::Unknown)
            }
        };
        Updated { file, changed: replaced.is_some(), counts, sources, skipped, warnings }
    }

    /// Whether a change of a file counts in this session.
    fn counts(&self, source: SettingSource, file: &Path, change: &Change) -> Counts {
        if !self.request.sources.contains(&source) {
            return Counts::NotRead;
        }
        let layer = self.layers().iter().find(|layer| layer.origin.file.as_deref() == Some(file));
        let scope = layer.map_or(Scope::Person, |layer| layer.origin.scope);
        match trust::filter(said(change), scope, self.request.trust).1[..] {
            [] => Counts::ByItself,
            [..] => Counts::NotTrusted,
        }
    }
}

impl Draft {
    /// Writes the change, and reads all files again. Touches the disk, and may wait for another writer.
    pub fn write(self) -> Result<Written, SettingsError> {
        let Self { request, source, file, change, skipped } = self;
        let change = with_real_directories(change);
        let readers = match source {
            SettingSource::User => Readers::Person,
            SettingSource::Project => Readers::Project,
            SettingSource::Local => Readers::PersonInProject,
        };
        let replaced = write::change(&file, readers, &change)?;
        let warnings = match &replaced {
            Some(replaced) if source == SettingSource::Local => vouch(&request, &file, replaced),
            Some(_) | None => None,
        };
        let found = load::find(&request);
        Ok(Written { source, file, change, skipped, replaced, found, warnings: Vec::from_iter(warnings) })
    }
}

/// Notes that a local file is the person's own: it was before, or there was none. What else stood in it is not vouched
/// for by adding to it.
fn vouch(request: &Request, file: &Path, replaced: &Replaced) -> Option<String> {
    let config = request.config.as_deref()?;
    let is_own = replaced.old.as_ref().is_none_or(|old| own::is_own(Some(config), file, old));
    let noted = if is_own { own::note(config, file, &replaced.new) } else { Ok(()) };
    let error = noted.err()?;
    Some(format!("{} counts in later sessions only if the folder is trusted. {error}", file.display()))
}

/// What a change adds to a file, as if that were all that it says.
fn said(change: &Change) -> Map<String, Value> {
    let value = match change {
        Change::List { act: Act::Remove, .. } => json!({}),
        Change::List { list, entries, .. } => json!({"permissions": {list.key(): entries}}),
        Change::Mode(mode) => json!({"permissions": {"defaultMode": mode}}),
        Change::Value { key, value } => json!({key: value}),
        Change::Entry { path, value } => {
            let entry = value.clone().unwrap_or_default();
            path.iter().rev().fold(entry, |below, key| json!({key: below}))
        }
    };
    value.as_object().cloned().unwrap_or_default()
}

fn with_real_directories(change: Change) -> Change {
    let real = |path: String| paths::real(Path::new(&path)).to_string_lossy().into_owned();
    match change {
        Change::List { list: List::Directories, act, entries } => {
            let entries = entries.into_iter().map(real).collect();
            Change::List { list: List::Directories, act, entries }
        }
        change @ (Change::List { .. } | Change::Mode(_) | Change::Value { .. } | Change::Entry { .. }) => {
            change
        }
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
