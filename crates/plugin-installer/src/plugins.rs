//! Installs, updates, removes, enables and disables plugins of marketplaces.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use whimbrel_config::plugins::check_plugin;
use whimbrel_config::plugins::enabled::{ENABLED_KEY, ENTRY_PATH};
use whimbrel_config::plugins::marketplace::{MarketplaceEntry, PluginSource};
use whimbrel_config::plugins::marketplace_source::MarketplaceLocation;
use whimbrel_config::plugins::plugin_id::PluginId;
use whimbrel_config::plugins::records::{InstallRecord, InstallScope};
use whimbrel_os::{clock, files};

use crate::copy_tree::{PLUGIN_LIMITS, copy_tree};
use crate::error::InstallError;
use crate::installer::{PluginInstaller, invalid};
use crate::marketplaces::{OpenMarketplace, WRITABLE_SCOPES};

/// Characters of a commit that serve as a version.
const COMMIT_VERSION_LENGTH: usize = 12;

/// Version of a plugin without any.
const UNKNOWN_VERSION: &str = "unknown";

/// Whether a plugin is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginState {
    Enabled,
    Disabled,
}

/// Result of an installation or an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallOutcome {
    pub id: String,
    pub version: String,
    /// Nothing was to be done.
    pub was_current: bool,
}

/// A plugin whose files are complete, but not in their final place.
struct StagedPlugin {
    _dir: TempDir,
    files: PathBuf,
    version: String,
    commit: Option<String>,
}

impl PluginInstaller {
    /// Installs a plugin (`name` or `name@marketplace`) and enables it in the settings of a scope.
    pub async fn install(
        &mut self,
        plugin: &str,
        scope: InstallScope,
    ) -> Result<InstallOutcome, InstallError> {
        let _lock = self.lock().await?;
        let id = match plugin.contains('@') {
            true => {
                let id = parse_id(plugin)?;
                self.prepare_marketplace(id.marketplace()).await?;
                id
            }
            false => self.find_offer(plugin)?,
        };
        self.check_managed_state(&id)?;
        let records = self.installed_plugins()?.records(&id).to_vec();
        let project = self.project().to_path_buf();
        let existing =
            records.iter().find(|record| record.is_at(scope, &project) && record.install_path.is_dir());
        if let Some(record) = existing {
            return Ok(InstallOutcome {
                id: id.to_string(),
                version: record.version.clone(),
                was_current: true,
            });
        }
        let (version, commit, install_path) = self.fetch_and_store(&id).await?;
        let now = clock::timestamp();
        let record = InstallRecord {
            scope,
            project_path: scope.is_of_project().then(|| project.clone()),
            install_path,
            version: version.clone(),
            installed_at: Some(now.clone()),
            last_updated: Some(now),
            git_commit_sha: commit,
            other: serde_json::Map::new(),
        };
        let others = records.into_iter().filter(|other| !other.is_at(scope, &project));
        let records: Vec<InstallRecord> = others.chain([record]).collect();
        self.write_records(&id, &records)?;
        self.write_setting(scope, &[ENABLED_KEY, &id.to_string()], Some(Value::Bool(true)))?;
        Ok(InstallOutcome { id: id.to_string(), version, was_current: false })
    }

    /// Updates a plugin to what its marketplace offers now.
    pub async fn update(&mut self, plugin: &str) -> Result<InstallOutcome, InstallError> {
        let _lock = self.lock().await?;
        let id = self.find_installed_id(plugin)?;
        let project = self.project().to_path_buf();
        let mut records = self.installed_plugins()?.records(&id).to_vec();
        if !records.iter().any(|record| record.applies_in(&project)) {
            return Err(not_installed(plugin));
        }
        self.prepare_marketplace(id.marketplace()).await?;
        let (entry, marketplace) = self.find_entry(&id).await?;
        let staged = self.stage(&entry, &marketplace).await?;
        let is_current = |record: &InstallRecord| {
            record.version == staged.version
                && staged.version != UNKNOWN_VERSION
                && record.install_path.is_dir()
        };
        if records.iter().filter(|record| record.applies_in(&project)).all(is_current) {
            return Ok(InstallOutcome { id: id.to_string(), version: staged.version, was_current: true });
        }
        let old_paths: Vec<PathBuf> = records.iter().map(|record| record.install_path.clone()).collect();
        let StagedPlugin { ref version, ref commit, .. } = staged;
        let install_path = self.store_plugin(&id, &staged)?;
        for record in records.iter_mut().filter(|record| record.applies_in(&project)) {
            record.install_path.clone_from(&install_path);
            record.version.clone_from(version);
            record.git_commit_sha.clone_from(commit);
            record.last_updated = Some(clock::timestamp());
        }
        self.write_records(&id, &records)?;
        self.remove_unused(&id, &old_paths, &records)?;
        Ok(InstallOutcome { id: id.to_string(), version: version.clone(), was_current: false })
    }

    /// Removes the installation of a scope; without a scope, the only one that applies here. Returns the id and the
    /// scope.
    pub async fn uninstall(
        &mut self,
        plugin: &str,
        scope: Option<InstallScope>,
    ) -> Result<(String, InstallScope), InstallError> {
        let _lock = self.lock().await?;
        let id = self.find_installed_id(plugin)?;
        let project = self.project().to_path_buf();
        let records = self.installed_plugins()?.records(&id).to_vec();
        let here: Vec<InstallScope> =
            records.iter().filter(|record| record.applies_in(&project)).map(|record| record.scope).collect();
        let scope = match (scope, here.as_slice()) {
            (Some(scope), here) if here.contains(&scope) => scope,
            (None, [scope]) => *scope,
            (None, [_, _, ..]) => {
                let scopes: Vec<&str> = here.iter().map(|scope| scope.as_str()).collect();
                return Err(invalid(format!(
                    "the plugin {id} is installed in several scopes: {}. Choose one with --scope",
                    scopes.join(", ")
                )));
            }
            (Some(scope), [_, ..]) => {
                return Err(invalid(format!(
                    "the plugin {id} is not installed in the {} scope. Leave out --scope, or see whimbrel plugin list",
                    scope.as_str()
                )));
            }
            (_, []) => return Err(not_installed(plugin)),
        };
        // In this order a killed process leaves a plugin that is disabled, not one that is enabled and missing.
        self.write_setting(scope, &[ENABLED_KEY, &id.to_string()], None)?;
        let (removed, kept): (Vec<InstallRecord>, Vec<InstallRecord>) =
            records.into_iter().partition(|record| record.is_at(scope, &project));
        self.write_records(&id, &kept)?;
        let paths: Vec<PathBuf> = removed.into_iter().map(|record| record.install_path).collect();
        self.remove_unused(&id, &paths, &kept)?;
        Ok((id.to_string(), scope))
    }

    /// Enables or disables a plugin in the settings of a scope; without a scope, in the narrowest one that names the
    /// plugin. Returns the id and the scope.
    pub fn set_state(
        &mut self,
        plugin: &str,
        state: PluginState,
        scope: Option<InstallScope>,
    ) -> Result<(String, InstallScope), InstallError> {
        let id = self.find_installed_id(plugin)?;
        self.check_managed_state(&id)?;
        let named = WRITABLE_SCOPES.into_iter().find(|scope| self.written_state(*scope, &id).is_some());
        let installed = self.installed_plugins()?.find(&id, self.project()).map(|record| record.scope);
        let scope = scope.or(named).or(installed).ok_or_else(|| not_installed(plugin))?;
        let is_on = state == PluginState::Enabled;
        if self.written_state(scope, &id) == Some(is_on) {
            let word = if is_on { "enabled" } else { "disabled" };
            return Err(invalid(format!(
                "the plugin {id} is already {word} in the {} settings",
                scope.as_str()
            )));
        }
        self.write_setting(scope, &[ENABLED_KEY, &id.to_string()], Some(Value::Bool(is_on)))?;
        if self.is_enabled(&id.to_string()) != is_on && self.are_settings_in_force(scope) {
            self.add_note(format!("Other settings override this for {id}. See whimbrel plugin list."));
        }
        Ok((id.to_string(), scope))
    }

    /// Returns whether settings of a scope are in force, so that a change should have had an effect.
    fn are_settings_in_force(&self, scope: InstallScope) -> bool {
        scope != InstallScope::Project || self.settings.trust() == whimbrel_config::settings::Trust::Full
    }

    /// Fails if an administrator disabled the plugin.
    fn check_managed_state(&self, id: &PluginId) -> Result<(), InstallError> {
        match self.written_state(InstallScope::Managed, id) {
            Some(false) => Err(invalid(format!("an administrator has disabled {id} ({ENABLED_KEY})"))),
            Some(true) | None => Ok(()),
        }
    }

    /// Adds the marketplace if only the settings name it; otherwise fetches it again if it is not local. If that fails,
    /// the files that are there are used.
    async fn prepare_marketplace(&mut self, name: &str) -> Result<(), InstallError> {
        if !self.known_marketplaces()?.contains_key(name) {
            return self.add_declared_marketplace(name).await;
        }
        let (_, source) = self.find_known(name)?;
        match source.location() {
            MarketplaceLocation::Directory(_) | MarketplaceLocation::File(_) => return Ok(()),
            MarketplaceLocation::Git { .. } | MarketplaceLocation::Url(_) => {}
        }
        let has_files = self.marketplace_paths(name, &source).0.exists();
        match self.refresh(name).await {
            Err(error) if has_files => {
                self.check_policy(&source)?;
                self.add_note(format!("The marketplace {name} was not updated: {error}."));
                Ok(())
            }
            refreshed => refreshed,
        }
    }

    /// Finds the marketplace that offers a plugin.
    fn find_offer(&self, plugin: &str) -> Result<PluginId, InstallError> {
        let offers: Vec<PluginId> =
            self.all_offers()?.into_iter().filter(|(id, _)| id.name() == plugin).map(|(id, _)| id).collect();
        match offers.as_slice() {
            [id] => Ok(id.clone()),
            [] => Err(invalid(format!(
                "no marketplace offers the plugin {plugin:?}. See whimbrel plugin list --available, or add a \
                 marketplace with whimbrel plugin marketplace add"
            ))),
            several => Err(ambiguous(plugin, several)),
        }
    }

    /// Finds an installed plugin, or one that settings name, by its name or id.
    fn find_installed_id(&self, plugin: &str) -> Result<PluginId, InstallError> {
        if plugin.contains('@') {
            return parse_id(plugin);
        }
        let installed = self.installed_plugins()?;
        let ids: Vec<PluginId> = installed.0.keys().filter_map(|text| PluginId::parse(text).ok()).collect();
        let here = |id: &&PluginId| id.name() == plugin && installed.find(id, self.project()).is_some();
        let found: Vec<PluginId> = ids.iter().filter(here).cloned().collect();
        match found.as_slice() {
            [id] => Ok(id.clone()),
            [] => Err(not_installed(plugin)),
            several => Err(ambiguous(plugin, several)),
        }
    }

    async fn find_entry(&self, id: &PluginId) -> Result<(MarketplaceEntry, OpenMarketplace), InstallError> {
        let marketplace = self.open_marketplace(id.marketplace()).await?;
        match marketplace.marketplace.find(id.name()) {
            Some(entry) => Ok((entry.clone(), marketplace)),
            None => {
                let names: Vec<&str> = marketplace
                    .marketplace
                    .plugins
                    .iter()
                    .map(|entry| entry.name.as_str())
                    .take(20)
                    .collect();
                Err(invalid(format!(
                    "the marketplace {} does not offer the plugin {:?}. It offers: {}",
                    id.marketplace(),
                    id.name(),
                    names.join(", ")
                )))
            }
        }
    }

    async fn fetch_and_store(
        &mut self,
        id: &PluginId,
    ) -> Result<(String, Option<String>, PathBuf), InstallError> {
        let (entry, marketplace) = self.find_entry(id).await?;
        let staged = self.stage(&entry, &marketplace).await?;
        let path = self.store_plugin(id, &staged)?;
        Ok((staged.version, staged.commit, path))
    }

    fn store_plugin(&self, id: &PluginId, staged: &StagedPlugin) -> Result<PathBuf, InstallError> {
        let target = self.dir.version_dir(id, &staged.version);
        files::replace_dir(&staged.files, &target).map_err(InstallError::io(&target))?;
        Ok(target)
    }

    /// Copies the files of a plugin to a temporary directory and checks them.
    async fn stage(
        &mut self,
        entry: &MarketplaceEntry,
        from: &OpenMarketplace,
    ) -> Result<StagedPlugin, InstallError> {
        let dir = self.new_temp_dir()?;
        let files = dir.path().join("plugin");
        let commit = match &entry.source {
            PluginSource::Directory(path) => {
                let root = from.root.as_ref().ok_or_else(|| {
                    invalid(format!(
                        "the plugin {} has a path as its source, but its marketplace is only a file on a web server. Its \
                         owner must name a repository",
                        entry.name
                    ))
                })?;
                copy_tree(&find_inside(root, path)?, &files, PLUGIN_LIMITS)?;
                from.commit.clone()
            }
            PluginSource::Git { repository, subdir } => {
                let checkout = dir.path().join("repository");
                let commit = self.git.check_out(repository, &checkout).await?;
                copy_tree(&find_inside(&checkout, subdir)?, &files, PLUGIN_LIMITS)?;
                Some(commit)
            }
            PluginSource::Unsupported(kind) => {
                return Err(invalid(format!(
                    "the plugin {} has a source of the type {kind:?}, which is not supported. Supported are paths, \
                     github, url and git-subdir",
                    entry.name
                )));
            }
        };
        write_entry(&files, entry)?;
        let checked = check_plugin(&files, Some(entry)).map_err(InstallError::Invalid)?;
        for error in checked.errors {
            self.add_note(error);
        }
        self.note_dependencies(&files, entry);
        let commit_version =
            commit.as_deref().map(|commit| &commit[..commit.len().min(COMMIT_VERSION_LENGTH)]);
        let version =
            checked.plugin.version.as_deref().or(commit_version).unwrap_or(UNKNOWN_VERSION).to_owned();
        Ok(StagedPlugin { _dir: dir, files, version, commit })
    }

    /// Other plugins that a plugin needs are not installed with it.
    fn note_dependencies(&mut self, files: &Path, entry: &MarketplaceEntry) {
        let manifest = std::fs::read(files.join(".claude-plugin/plugin.json")).ok();
        let manifest: Option<Value> = manifest.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let of_manifest = manifest.as_ref().and_then(|manifest| manifest.get("dependencies"));
        let names: Vec<&str> = [entry.fields.get("dependencies"), of_manifest]
            .into_iter()
            .flatten()
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(|item| item.as_str().or_else(|| item.get("name")?.as_str()))
            .collect();
        if !names.is_empty() {
            self.add_note(format!(
                "The plugin {} needs other plugins, which are not installed with it: {}.",
                entry.name,
                names.join(", ")
            ));
        }
    }

    /// Removes versions that no installation uses any more.
    fn remove_unused(
        &self,
        id: &PluginId,
        paths: &[PathBuf],
        records: &[InstallRecord],
    ) -> Result<(), InstallError> {
        let cache = self.dir.plugin_cache_dir(id);
        for path in paths {
            let is_used = records.iter().any(|record| record.install_path == *path);
            // A path from elsewhere was not created here.
            if !is_used && path.parent() == Some(cache.as_path()) {
                files::remove_dir(path).map_err(InstallError::io(path))?;
                files::remove_empty_dirs(path, self.dir.path());
            }
        }
        Ok(())
    }
}

fn parse_id(text: &str) -> Result<PluginId, InstallError> {
    PluginId::parse(text).map_err(InstallError::Invalid)
}

fn not_installed(plugin: &str) -> InstallError {
    invalid(format!("the plugin {plugin:?} is not installed here. See whimbrel plugin list"))
}

fn ambiguous(plugin: &str, ids: &[PluginId]) -> InstallError {
    let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
    invalid(format!("{plugin:?} can be {}. Give the whole id", names.join(" or ")))
}

/// A directory below another one; links must not lead out of it.
fn find_inside(root: &Path, path: &Path) -> Result<PathBuf, InstallError> {
    let dir = root.join(path);
    let real_root = std::fs::canonicalize(root).map_err(InstallError::io(root))?;
    match files::real_path(&dir) {
        Some(real) if real.starts_with(&real_root) && real.is_dir() => Ok(real),
        Some(_) => Err(invalid(format!("{} is not a directory inside the marketplace", path.display()))),
        None => Err(invalid(format!("the directory {} of the plugin does not exist", path.display()))),
    }
}

/// Stores the entry of the marketplace with the plugin.
fn write_entry(files: &Path, entry: &MarketplaceEntry) -> Result<(), InstallError> {
    let path = files.join(ENTRY_PATH);
    let text =
        serde_json::to_string_pretty(&entry.fields).map_err(|error| invalid(error.to_string()))? + "\n";
    // The plugin may have brought a file of this name.
    files::remove_file(&path).map_err(InstallError::io(&path))?;
    files::create(&path, text.as_bytes()).map(drop).map_err(InstallError::io(&path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_config::settings::{Settings, SettingsRequest};
    use whimbrel_wire::options::SettingSource;

    use super::*;

    /// An installer in a directory with the marketplace `shop`, under managed settings.
    fn test_installer(managed: &Value) -> (TempDir, PathBuf, PluginInstaller) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let marketplace =
            json!({"name": "shop", "plugins": [{"name": "fmt", "source": "./fmt", "version": "1"}]});
        for (path, text) in [
            ("shop/.claude-plugin/marketplace.json", marketplace.to_string()),
            ("shop/fmt/commands/go.md", "Go".to_owned()),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let request = SettingsRequest {
            config_dir: Some(root.join("home/.claude")),
            project_root: root.clone(),
            local_root: root.clone(),
            cwd: root.clone(),
            sources: [SettingSource::User].into(),
            managed: managed.as_object().cloned(),
            ..SettingsRequest::default()
        };
        let environment = [("HOME".to_owned(), root.join("home").display().to_string())].into();
        let installer = PluginInstaller::new(Settings::load(request).unwrap(), environment).unwrap();
        (dir, root, installer)
    }

    #[tokio::test]
    async fn an_administrator_restricts_marketplaces_and_plugins() {
        let rows = [
            ("no restriction", json!({}), None),
            ("other source", json!({"strictKnownMarketplaces": []}), Some("strictKnownMarketplaces")),
            (
                "blocked",
                json!({"blockedMarketplaces": [{"source": "pathPattern", "pathPattern": "shop"}]}),
                Some("blocked"),
            ),
            ("disabled", json!({"enabledPlugins": {"fmt@shop": false}}), Some("administrator has disabled")),
        ];
        for (name, managed, expected) in rows {
            let (_dir, root, mut installer) = test_installer(&managed);
            let added = installer.add_marketplace("./shop", &root, InstallScope::User).await.map(drop);
            let installed = match added {
                Ok(()) => installer.install("fmt@shop", InstallScope::User).await.map(drop),
                Err(error) => Err(error),
            };
            match (installed, expected) {
                (Ok(()), None) => {}
                (Err(error), Some(cause)) => assert!(error.to_string().contains(cause), "{name}: {error}"),
                (installed, _) => panic!("{name}: {installed:?}"),
            }
            let path = root.join("home/.claude/plugins/cache/shop/fmt/1/commands/go.md");
            assert_eq!(path.exists(), expected.is_none(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_plugin_without_a_version_is_replaced_by_an_update() {
        let (_dir, root, mut installer) = test_installer(&json!({}));
        let marketplace =
            json!({"name": "shop", "plugins": [{"name": "fmt", "source": "./fmt"}]}).to_string();
        std::fs::write(root.join("shop/.claude-plugin/marketplace.json"), marketplace).unwrap();
        installer.add_marketplace("./shop", &root, InstallScope::User).await.unwrap();
        assert_eq!(installer.install("fmt", InstallScope::User).await.unwrap().version, UNKNOWN_VERSION);
        std::fs::write(root.join("shop/fmt/commands/go.md"), "Go on").unwrap();
        assert!(!installer.update("fmt").await.unwrap().was_current);
        let path = root.join("home/.claude/plugins/cache/shop/fmt/unknown/commands/go.md");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "Go on");
    }
}
