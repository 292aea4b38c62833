//! Plugins that the settings enable (`enabledPlugins`), and where they are installed. The settings are already
//! filtered by trust, so a project that is not trusted enables nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use whimbrel_os::files::{self, FileKind};
use whimbrel_wire::system::PluginError;

use crate::plugins::load::{self, PluginLoadError};
use crate::plugins::marketplace::{MARKETPLACE_PATH, Marketplace};
use crate::plugins::marketplace_policy::MarketplacePolicy;
use crate::plugins::marketplace_source::{MarketplaceLocation, MarketplaceSource};
use crate::plugins::plugin_id::PluginId;
use crate::plugins::records::{InstalledPlugins, PluginDir};
use crate::settings::{LayerSource, Settings};

/// Settings key with the plugins that are on or off.
pub const ENABLED_KEY: &str = "enabledPlugins";

/// Settings key with marketplaces.
pub const MARKETPLACES_KEY: &str = "extraKnownMarketplaces";

/// File in an installed plugin with its entry in the marketplace at the time of the installation. So a later change of
/// the marketplace cannot add hooks or servers to it.
pub const ENTRY_PATH: &str = ".claude-plugin/whimbrel-entry.json";

/// Installed plugin that is to be loaded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InstalledPlugin {
    pub(super) id: PluginId,
    pub(super) root: PathBuf,
    pub(super) version: String,
    /// Its entry in the marketplace.
    pub(super) entry: Option<Map<String, Value>>,
}

/// Plugins that the settings enable, with what is needed to find them.
#[derive(Debug, Clone, Default)]
pub struct EnabledPlugins {
    /// Ids with their values in the settings.
    ids: Vec<String>,
    /// Which marketplaces an administrator permits.
    policy: MarketplacePolicy,
    /// Names of plugins that an administrator enables or disables, with the value and the marketplace.
    managed: BTreeMap<String, (bool, String)>,
    dir: Option<PluginDir>,
    project: PathBuf,
}

impl EnabledPlugins {
    /// Takes the enabled plugins from the settings. `dir` is the plugin directory of the user.
    pub fn from_settings(settings: &Settings, dir: Option<PluginDir>) -> Self {
        let entries = settings.effective().values.get(ENABLED_KEY).and_then(Value::as_object);
        let is_on = |(_, value): &(&String, &Value)| **value == Value::Bool(true);
        let ids = entries.into_iter().flatten().filter(is_on).map(|(id, _)| id.clone()).collect();
        Self {
            ids,
            policy: MarketplacePolicy::from_settings(settings),
            managed: managed_plugins(settings),
            dir,
            project: settings.project_root().into(),
        }
    }

    /// Finds the installed plugins, and reports the others. Reads the disk.
    pub(super) fn find_installed(&self) -> (Vec<InstalledPlugin>, Vec<PluginError>) {
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        if self.ids.is_empty() {
            return (found, errors);
        }
        let installed = match self.dir.as_ref().map(PluginDir::read_installed_plugins) {
            Some(Ok(installed)) => installed,
            Some(Err(text)) => {
                errors
                    .push(PluginLoadError::new("generic-error", text).into_report(ENABLED_KEY.into(), None));
                return (found, errors);
            }
            None => InstalledPlugins::default(),
        };
        for text in &self.ids {
            match self.find_plugin(text, &installed) {
                Ok(plugin) => found.push(plugin),
                Err(error) => errors.push(error.into_report(text.clone(), None)),
            }
        }
        (found, errors)
    }

    fn find_plugin(
        &self,
        text: &str,
        installed: &InstalledPlugins,
    ) -> Result<InstalledPlugin, PluginLoadError> {
        let id = PluginId::parse(text).map_err(|cause| {
            PluginLoadError::new("generic-error", format!("{ENABLED_KEY}: {text} is not loaded: {cause}."))
        })?;
        let not_found = |cause: &str| {
            let text = format!("The plugin {id} is enabled, but {cause}. Run: whimbrel plugin install {id}");
            PluginLoadError::new("plugin-not-found", text)
        };
        let record = installed.find(&id, &self.project).ok_or_else(|| not_found("not installed"))?;
        if !matches!(files::file_kind(&record.install_path), Ok(FileKind::Directory)) {
            return Err(not_found(&format!("{} does not exist", record.install_path.display())));
        }
        self.check_policy(&id).map_err(|cause| {
            PluginLoadError::new("generic-error", format!("The plugin {id} is not loaded: {cause}."))
        })?;
        let (root, version) = (record.install_path.clone(), record.version.clone());
        let entry = self.read_entry(&id, &root);
        Ok(InstalledPlugin { id, root, version, entry })
    }

    /// Checks that an administrator permits the plugin's marketplace.
    fn check_policy(&self, id: &PluginId) -> Result<(), String> {
        if self.policy.is_empty() {
            return Ok(());
        }
        let dir = self.dir.as_ref().ok_or("there is no plugin directory")?;
        let known = dir.read_known_marketplaces()?.remove(id.marketplace());
        let known = known
            .ok_or("the source of its marketplace is unknown, and an administrator restricts the sources")?;
        self.policy.check(&MarketplaceSource::parse(&known.source, dir.path())?)
    }

    /// The plugin's entry in the marketplace: as it was at the installation, or, if another program installed the
    /// plugin, from a marketplace in the plugin directory, which only the user changes.
    fn read_entry(&self, id: &PluginId, root: &Path) -> Option<Map<String, Value>> {
        if let Ok(entry) = load::read_object(&root.join(ENTRY_PATH)) {
            return Some(entry);
        }
        let dir = self.dir.as_ref()?;
        let known = dir.read_known_marketplaces().ok()?.remove(id.marketplace())?;
        let marketplace = read_marketplace(dir, id.marketplace(), &known.source)?;
        marketplace.find(id.name()).map(|entry| entry.fields.clone())
    }

    /// Why a plugin that the host named is not loaded: an administrator decides about plugins of this name.
    pub(super) fn managed_lock(&self, name: &str) -> Option<Value> {
        let (is_enabled, marketplace) = self.managed.get(name)?;
        Some(json!({"plugin_enabled": is_enabled, "name": name, "marketplace": marketplace}))
    }
}

/// Reads a marketplace that was fetched to the plugin directory.
fn read_marketplace(dir: &PluginDir, name: &str, source: &Value) -> Option<Marketplace> {
    let source = MarketplaceSource::parse(source, dir.path()).ok()?;
    let file = match source.location() {
        MarketplaceLocation::Git { file, .. } => file.clone(),
        MarketplaceLocation::Url(_) => MARKETPLACE_PATH.into(),
        MarketplaceLocation::Directory(_) | MarketplaceLocation::File(_) => return None,
    };
    Marketplace::read(&dir.marketplace_dir(name).join(file)).ok()
}

fn managed_plugins(settings: &Settings) -> BTreeMap<String, (bool, String)> {
    let mut managed = BTreeMap::new();
    let layers = settings.layers().iter().filter(|layer| layer.origin.source == LayerSource::Managed);
    for (text, value) in layers.filter_map(|layer| layer.values.get(ENABLED_KEY)?.as_object()).flatten() {
        if let (Ok(id), Some(is_enabled)) = (PluginId::parse(text), value.as_bool()) {
            managed.insert(id.name().to_owned(), (is_enabled, id.marketplace().to_owned()));
        }
    }
    managed
}

#[cfg(test)]
mod tests;
