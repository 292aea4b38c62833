//! Lists marketplaces and plugins: what is known, installed and offered.

use std::path::PathBuf;

use serde_json::Value;
use whimbrel_config::plugins::Plugins;
use whimbrel_config::plugins::enabled::{ENABLED_KEY, EnabledPlugins};
use whimbrel_config::plugins::marketplace::{Marketplace, MarketplaceEntry};
use whimbrel_config::plugins::marketplace_source::MarketplaceSource;
use whimbrel_config::plugins::plugin_id::PluginId;
use whimbrel_config::plugins::records::{InstallRecord, KnownMarketplace};

use crate::error::InstallError;
use crate::installer::PluginInstaller;

/// A marketplace in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedMarketplace {
    pub name: String,
    /// Source object.
    pub source: Value,
    /// The source for users, or what is wrong with it.
    pub description: String,
    /// None if only the settings name it, and it was not added yet.
    pub install_location: Option<PathBuf>,
}

/// An installation in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedPlugin {
    pub id: String,
    pub record: InstallRecord,
    pub is_enabled: bool,
    /// Why it, or a part of it, is not loaded.
    pub errors: Vec<String>,
}

/// Plugins of a user in a directory.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginListing {
    pub installed: Vec<ListedPlugin>,
    /// Ids that the settings enable, but that are not installed.
    pub missing: Vec<String>,
}

impl PluginInstaller {
    /// Lists the marketplaces that were added, and those that only the settings name. Reads the disk.
    pub fn list_marketplaces(&self) -> Result<Vec<ListedMarketplace>, InstallError> {
        let known = self.known_marketplaces()?;
        let declared = self.declared_marketplaces().into_iter().filter(|(name, _)| !known.contains_key(name));
        let declared = declared.map(|(name, source)| ListedMarketplace {
            source: source.as_ref().map(MarketplaceSource::to_value).unwrap_or_default(),
            description: source.map_or_else(|cause| cause, |source| source.describe()),
            name,
            install_location: None,
        });
        let mut all: Vec<ListedMarketplace> = declared.collect();
        all.extend(known.iter().map(|(name, known)| self.describe_known(name, known)));
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    fn describe_known(&self, name: &str, known: &KnownMarketplace) -> ListedMarketplace {
        let source = MarketplaceSource::parse(&known.source, self.dir.path());
        ListedMarketplace {
            name: name.to_owned(),
            source: known.source.clone(),
            description: source.map_or_else(|cause| cause, |source| source.describe()),
            install_location: Some(known.install_location.clone()),
        }
    }

    /// Lists the plugins that are installed for this directory. Reads the disk.
    pub fn list_plugins(&self) -> Result<PluginListing, InstallError> {
        let records = self.installed_plugins()?;
        let enabled = EnabledPlugins::from_settings(&self.settings, Some(self.dir.clone()));
        let loaded = Plugins::load(&[], &enabled, self.project());
        let errors = |id: &str| {
            let of_plugin = loaded.errors().iter().filter(|error| error.plugin == id);
            of_plugin.map(|error| error.message.clone()).collect()
        };
        let here = records.0.iter().flat_map(|(id, records)| records.iter().map(move |record| (id, record)));
        let here = here.filter(|(_, record)| record.applies_in(self.project()));
        let installed: Vec<ListedPlugin> = here
            .map(|(id, record)| ListedPlugin {
                id: id.clone(),
                record: record.clone(),
                is_enabled: self.is_enabled(id),
                errors: errors(id),
            })
            .collect();
        let settings = self.settings.effective().values.get(ENABLED_KEY).and_then(Value::as_object);
        let wanted = settings.into_iter().flatten().filter(|(_, value)| **value == Value::Bool(true));
        let missing = wanted.map(|(id, _)| id.clone());
        let missing = missing.filter(|id| !installed.iter().any(|plugin| plugin.id == *id)).collect();
        Ok(PluginListing { installed, missing })
    }

    /// Lists the plugins that the added marketplaces offer and that are not installed here. Reads the disk.
    pub fn list_available(&self) -> Result<Vec<(PluginId, MarketplaceEntry)>, InstallError> {
        let installed = self.installed_plugins()?;
        let mut offers = self.all_offers()?;
        offers.retain(|(id, _)| installed.find(id, self.project()).is_none());
        Ok(offers)
    }

    /// All plugins of the added marketplaces. A marketplace that cannot be read is left out.
    pub(crate) fn all_offers(&self) -> Result<Vec<(PluginId, MarketplaceEntry)>, InstallError> {
        let mut offers = Vec::new();
        for name in self.known_marketplaces()?.keys() {
            let Ok((_, source)) = self.find_known(name) else { continue };
            let Ok(marketplace) = Marketplace::read(&self.marketplace_paths(name, &source).0) else {
                continue;
            };
            offers.extend(marketplace.plugins.into_iter().filter_map(|entry| {
                let id = PluginId::new(&entry.name, name).ok()?;
                Some((id, entry))
            }));
        }
        Ok(offers)
    }
}
