//! What all operations on marketplaces and plugins need: the plugin directory, the settings, git, and how records and
//! settings are written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use whimbrel_config::plugins::enabled::{ENABLED_KEY, MARKETPLACES_KEY};
use whimbrel_config::plugins::marketplace_policy::MarketplacePolicy;
use whimbrel_config::plugins::marketplace_source::MarketplaceSource;
use whimbrel_config::plugins::plugin_id::PluginId;
use whimbrel_config::plugins::records::{
    INSTALLED_VERSION, InstallRecord, InstallScope, InstalledPlugins, KnownMarketplace, PluginDir,
};
use whimbrel_config::settings::{
    ChangeStatus, FileOwnership, LayerSource, Settings, SettingsChange, SettingsError, change_file, home_dir,
};
use whimbrel_os::files;
use whimbrel_wire::options::SettingSource;

use crate::dir_lock::DirLock;
use crate::error::InstallError;
use crate::git::Git;

/// Prefix of temporary directories. The holder of the lock may remove those of killed processes.
const TEMP_PREFIX: &str = ".whimbrel-tmp-";

/// Limit on directory entries that are searched for temporary directories.
const MAX_SWEPT_ENTRIES: usize = 10_000;

/// Adds marketplaces and installs plugins for a user who works in a directory.
pub struct PluginInstaller {
    pub(crate) dir: PluginDir,
    pub(crate) settings: Settings,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) git: Git,
    notes: Vec<String>,
}

impl PluginInstaller {
    /// `settings` are those of a session in the working directory.
    pub fn new(settings: Settings, environment: BTreeMap<String, String>) -> Result<Self, InstallError> {
        let dir = PluginDir::from_env(&environment)
            .ok_or_else(|| invalid("the plugin directory is unknown. Set HOME or CLAUDE_CONFIG_DIR"))?;
        let git = Git::new(environment.clone())?;
        Ok(Self { dir, settings, environment, git, notes: Vec::new() })
    }

    /// Notes for the user about the operations so far.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn add_note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        home_dir(self.environment.get("HOME").map(String::as_str))
    }

    /// The project of local and project installations.
    pub(crate) fn project(&self) -> &Path {
        self.settings.project_root()
    }

    /// Waits until no other process changes the plugins, and removes what killed ones left.
    pub(crate) async fn lock(&self) -> Result<DirLock, InstallError> {
        let lock = DirLock::acquire(self.dir.path()).await?;
        let names = files::entry_names(self.dir.path(), MAX_SWEPT_ENTRIES);
        for name in names.iter().filter(|name| name.starts_with(TEMP_PREFIX)) {
            let _ = files::remove_dir(&self.dir.path().join(name));
        }
        Ok(lock)
    }

    /// Creates a temporary directory in the file system of the plugins.
    pub(crate) fn new_temp_dir(&self) -> Result<TempDir, InstallError> {
        let dir = self.dir.path();
        tempfile::Builder::new().prefix(TEMP_PREFIX).tempdir_in(dir).map_err(InstallError::io(dir))
    }

    pub(crate) fn known_marketplaces(&self) -> Result<BTreeMap<String, KnownMarketplace>, InstallError> {
        self.dir.read_known_marketplaces().map_err(InstallError::Invalid)
    }

    pub(crate) fn installed_plugins(&self) -> Result<InstalledPlugins, InstallError> {
        self.dir.read_installed_plugins().map_err(InstallError::Invalid)
    }

    /// Writes the record of a marketplace; none removes it.
    pub(crate) fn write_known(
        &self,
        name: &str,
        known: Option<&KnownMarketplace>,
    ) -> Result<(), InstallError> {
        let value = known.map(to_value).transpose()?;
        self.write_record(&self.dir.known_marketplaces_file(), vec![name.to_owned()], value)
    }

    /// Writes the records of a plugin; none are removed.
    pub(crate) fn write_records(&self, id: &PluginId, records: &[InstallRecord]) -> Result<(), InstallError> {
        let file = self.dir.installed_plugins_file();
        self.write_record(&file, vec!["version".to_owned()], Some(json!(INSTALLED_VERSION)))?;
        let value = if records.is_empty() { None } else { Some(to_value(&records)?) };
        self.write_record(&file, vec!["plugins".to_owned(), id.to_string()], value)
    }

    fn write_record(&self, file: &Path, path: Vec<String>, value: Option<Value>) -> Result<(), InstallError> {
        change_file(file, FileOwnership::User, &SettingsChange::Entry { path, value })?;
        Ok(())
    }

    /// Writes an entry of the settings of a scope; none removes it. Returns whether the file changed.
    pub(crate) fn write_setting(
        &mut self,
        scope: InstallScope,
        path: &[&str],
        value: Option<Value>,
    ) -> Result<bool, InstallError> {
        let source = to_setting_source(scope)?;
        let is_removed = value.is_none();
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        let written = self.settings.draft_entry(source, path, value)?.write()?;
        let report = self.settings.adopt_written(written);
        for warning in report.warnings {
            self.add_note(warning);
        }
        if report.changed && !is_removed && report.status == ChangeStatus::NotTrusted {
            self.add_note(format!(
                "{} has no effect in this directory yet, because the project is not trusted.",
                report.file.display()
            ));
        }
        Ok(report.changed)
    }

    /// The value of a plugin in the settings of a scope, as written.
    pub(crate) fn written_state(&self, scope: InstallScope, id: &PluginId) -> Option<bool> {
        self.written_entry(scope, ENABLED_KEY, &id.to_string()).map(|value| *value == Value::Bool(true))
    }

    /// Returns whether the settings of a scope name a marketplace.
    pub(crate) fn is_declared_in(&self, scope: InstallScope, marketplace: &str) -> bool {
        self.written_entry(scope, MARKETPLACES_KEY, marketplace).is_some()
    }

    fn written_entry(&self, scope: InstallScope, key: &str, entry: &str) -> Option<&Value> {
        let source = match scope {
            InstallScope::User => LayerSource::User,
            InstallScope::Project => LayerSource::Project,
            InstallScope::Local => LayerSource::Local,
            InstallScope::Managed => LayerSource::Managed,
        };
        let layers = self.settings.layers().iter().filter(|layer| layer.origin.source == source);
        layers.rev().find_map(|layer| layer.raw.get(key)?.get(entry))
    }

    /// Returns whether the settings in force enable a plugin.
    pub(crate) fn is_enabled(&self, id: &str) -> bool {
        let plugins = self.settings.effective().values.get(ENABLED_KEY);
        plugins.and_then(|plugins| plugins.get(id)) == Some(&Value::Bool(true))
    }

    /// Marketplaces that the settings in force name, with their sources. Those of a project that is not trusted are not
    /// among them.
    pub(crate) fn declared_marketplaces(&self) -> BTreeMap<String, Result<MarketplaceSource, String>> {
        let mut declared = BTreeMap::new();
        for layer in self.settings.layers() {
            let entries = layer.values.get(MARKETPLACES_KEY).and_then(Value::as_object);
            for (name, entry) in entries.into_iter().flatten() {
                let source = entry.get("source").unwrap_or(&Value::Null);
                declared.insert(name.clone(), MarketplaceSource::parse(source, &layer.origin.base));
            }
        }
        declared
    }

    /// Checks that an administrator permits a source.
    pub(crate) fn check_policy(&self, source: &MarketplaceSource) -> Result<(), InstallError> {
        MarketplacePolicy::from_settings(&self.settings).check(source).map_err(InstallError::Invalid)
    }
}

pub(crate) fn invalid(text: impl Into<String>) -> InstallError {
    InstallError::Invalid(text.into())
}

fn to_value(record: &impl serde::Serialize) -> Result<Value, InstallError> {
    serde_json::to_value(record).map_err(|error| invalid(format!("a path cannot be recorded: {error}")))
}

fn to_setting_source(scope: InstallScope) -> Result<SettingSource, SettingsError> {
    match scope {
        InstallScope::User => Ok(SettingSource::User),
        InstallScope::Project => Ok(SettingSource::Project),
        InstallScope::Local => Ok(SettingSource::Local),
        InstallScope::Managed => {
            Err(SettingsError::NotAllowed("Only an administrator can change managed settings.".into()))
        }
    }
}
