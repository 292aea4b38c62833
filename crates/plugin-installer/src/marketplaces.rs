//! Adds, updates and removes marketplaces.

use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use whimbrel_config::plugins::enabled::{ENABLED_KEY, MARKETPLACES_KEY};
use whimbrel_config::plugins::marketplace::{MARKETPLACE_PATH, Marketplace};
use whimbrel_config::plugins::marketplace_source::{MarketplaceLocation, MarketplaceSource};
use whimbrel_config::plugins::plugin_id::{PluginId, check_name};
use whimbrel_config::plugins::records::{InstallScope, KnownMarketplace};
use whimbrel_os::files::{self, FileKind};
use whimbrel_os::{clock, ids};

use crate::download::download;
use crate::error::InstallError;
use crate::installer::{PluginInstaller, invalid};

/// Scopes whose settings a user can change.
pub(crate) const WRITABLE_SCOPES: [InstallScope; 3] =
    [InstallScope::Local, InstallScope::Project, InstallScope::User];

/// Result of adding a marketplace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedMarketplace {
    pub name: String,
    /// Number of plugins that it offers.
    pub plugins: usize,
    /// It was there before.
    pub was_known: bool,
}

/// Result of removing a marketplace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedMarketplace {
    /// Plugins that were uninstalled with it.
    pub plugins: Vec<String>,
    /// Its files are kept, because other settings still name it.
    pub is_still_declared: bool,
}

/// A marketplace whose files are at hand.
pub(crate) struct OpenMarketplace {
    pub(crate) marketplace: Marketplace,
    /// Base of relative plugin sources; none if only the file is known.
    pub(crate) root: Option<PathBuf>,
    /// Commit of its repository.
    pub(crate) commit: Option<String>,
}

/// A marketplace that was fetched, but not stored yet.
struct FetchedMarketplace {
    marketplace: Marketplace,
    /// Files to store; none if they are used in place.
    staged: Option<StagedFiles>,
}

struct StagedFiles {
    /// Holds the files; removed on drop.
    _dir: TempDir,
    files: PathBuf,
}

impl PluginInstaller {
    /// Adds a marketplace from a repository, URL or path, and names it in the settings of a scope.
    pub async fn add_marketplace(
        &mut self,
        argument: &str,
        cwd: &Path,
        scope: InstallScope,
    ) -> Result<AddedMarketplace, InstallError> {
        let is_dir = |path: &Path| matches!(files::file_kind(path), Ok(FileKind::Directory));
        let source = MarketplaceSource::parse_argument(argument, cwd, self.home().as_deref(), is_dir)
            .map_err(InstallError::Invalid)?;
        let _lock = self.lock().await?;
        let added = self.add_source(&source, None).await?;
        self.write_setting(
            scope,
            &[MARKETPLACES_KEY, &added.name],
            Some(json!({"source": source.to_value()})),
        )?;
        Ok(added)
    }

    /// Adds a marketplace that the settings name, if it is not there yet. The caller holds the lock.
    pub(crate) async fn add_declared_marketplace(&mut self, name: &str) -> Result<(), InstallError> {
        let Some(declared) = self.declared_marketplaces().remove(name) else {
            return Err(self.unknown_marketplace(name)?);
        };
        let source = declared
            .map_err(|cause| invalid(format!("{MARKETPLACES_KEY}: the marketplace {name}: {cause}")))?;
        self.add_source(&source, Some(name)).await?;
        self.add_note(format!("The marketplace {name} was added from {}.", source.describe()));
        Ok(())
    }

    async fn add_source(
        &mut self,
        source: &MarketplaceSource,
        expected_name: Option<&str>,
    ) -> Result<AddedMarketplace, InstallError> {
        self.check_policy(source)?;
        let fetched = self.fetch(source).await?;
        let name = fetched.marketplace.name.clone();
        source.check_marketplace_name(&name).map_err(InstallError::Invalid)?;
        if let Some(expected) = expected_name.filter(|expected| *expected != name) {
            return Err(invalid(format!(
                "the marketplace of {} has the name {name}, but the settings call it {expected}. Correct the name in \
                 {MARKETPLACES_KEY}",
                source.describe()
            )));
        }
        let known = self.known_marketplaces()?.remove(&name);
        let old_source =
            known.as_ref().and_then(|known| MarketplaceSource::parse(&known.source, self.dir.path()).ok());
        if let Some(old) = old_source.as_ref().filter(|old| !old.is_same_location(source)) {
            return Err(invalid(format!(
                "there is already a marketplace {name}, from {}. Remove it first: whimbrel plugin marketplace remove \
                 {name}",
                old.describe()
            )));
        }
        let added =
            AddedMarketplace { plugins: fetched.marketplace.plugins.len(), was_known: known.is_some(), name };
        self.note_invalid_entries(&fetched.marketplace);
        self.store(&added.name, source, &fetched, known)?;
        Ok(added)
    }

    /// Fetches a marketplace again, or all of them. Returns the names of those that were updated.
    pub async fn update_marketplaces(&mut self, name: Option<&str>) -> Result<Vec<String>, InstallError> {
        let _lock = self.lock().await?;
        if let Some(name) = name {
            self.refresh(name).await?;
            return Ok(vec![name.to_owned()]);
        }
        let mut updated = Vec::new();
        for name in self.known_marketplaces()?.into_keys() {
            match self.refresh(&name).await {
                Ok(()) => updated.push(name),
                Err(error) => self.add_note(format!("The marketplace {name} was not updated: {error}.")),
            }
        }
        Ok(updated)
    }

    /// Fetches a marketplace again. The caller holds the lock.
    pub(crate) async fn refresh(&mut self, name: &str) -> Result<(), InstallError> {
        let (known, source) = self.find_known(name)?;
        self.check_policy(&source)?;
        let fetched = self.fetch(&source).await?;
        if fetched.marketplace.name != name {
            return Err(invalid(format!(
                "the marketplace {name} is now called {}. Remove it, and add it again from {}",
                fetched.marketplace.name,
                source.describe()
            )));
        }
        self.note_invalid_entries(&fetched.marketplace);
        self.store(name, &source, &fetched, Some(known))
    }

    /// Removes a marketplace from the settings of a scope, or of all of them. If none names it any more, its files are
    /// removed and its plugins are uninstalled.
    pub async fn remove_marketplace(
        &mut self,
        name: &str,
        scope: Option<InstallScope>,
    ) -> Result<RemovedMarketplace, InstallError> {
        check_name("marketplace", name).map_err(InstallError::Invalid)?;
        let _lock = self.lock().await?;
        let is_known = self.known_marketplaces()?.contains_key(name);
        if let Some(scope) = scope.filter(|scope| !self.is_declared_in(*scope, name)) {
            let scope = scope.as_str();
            return Err(invalid(format!(
                "the {scope} settings do not name the marketplace {name}. Leave out --scope to remove it everywhere"
            )));
        }
        if !is_known && !WRITABLE_SCOPES.iter().any(|scope| self.is_declared_in(*scope, name)) {
            return Err(self.unknown_marketplace(name)?);
        }
        for scope in WRITABLE_SCOPES.into_iter().filter(|other| scope.is_none_or(|scope| scope == *other)) {
            self.write_setting(scope, &[MARKETPLACES_KEY, name], None)?;
        }
        if WRITABLE_SCOPES.iter().any(|scope| self.is_declared_in(*scope, name)) {
            return Ok(RemovedMarketplace { plugins: Vec::new(), is_still_declared: true });
        }
        let plugins = self.remove_plugins_of(name)?;
        self.write_known(name, None)?;
        let dir = self.dir.marketplace_dir(name);
        files::remove_dir(&dir).map_err(InstallError::io(&dir))?;
        Ok(RemovedMarketplace { plugins, is_still_declared: false })
    }

    fn remove_plugins_of(&mut self, marketplace: &str) -> Result<Vec<String>, InstallError> {
        let mut removed = Vec::new();
        for text in self.installed_plugins()?.0.into_keys() {
            let Ok(id) = PluginId::parse(&text) else { continue };
            if id.marketplace() == marketplace {
                for scope in WRITABLE_SCOPES {
                    self.write_setting(scope, &[ENABLED_KEY, &text], None)?;
                }
                self.write_records(&id, &[])?;
                let dir = self.dir.plugin_cache_dir(&id);
                files::remove_dir(&dir).map_err(InstallError::io(&dir))?;
                removed.push(text);
            }
        }
        Ok(removed)
    }

    /// Reads a marketplace that was added. The caller holds the lock.
    pub(crate) async fn open_marketplace(&self, name: &str) -> Result<OpenMarketplace, InstallError> {
        let (_, source) = self.find_known(name)?;
        self.check_policy(&source)?;
        let (file, root) = self.marketplace_paths(name, &source);
        let marketplace = Marketplace::read(&file).map_err(|cause| {
            invalid(format!("the marketplace {name} cannot be used: {cause}. Run: whimbrel plugin marketplace update {name}"))
        })?;
        let commit = match (source.location(), &root) {
            (MarketplaceLocation::Git { .. }, Some(root)) if root.join(".git").exists() => {
                self.git.head_commit(root).await.ok()
            }
            _ => None,
        };
        Ok(OpenMarketplace { marketplace, root, commit })
    }

    /// The file of a marketplace, and the base of relative plugin sources.
    pub(crate) fn marketplace_paths(
        &self,
        name: &str,
        source: &MarketplaceSource,
    ) -> (PathBuf, Option<PathBuf>) {
        let dir = self.dir.marketplace_dir(name);
        match source.location() {
            MarketplaceLocation::Git { file, .. } => (dir.join(file), Some(dir)),
            MarketplaceLocation::Url(_) => (dir.join(MARKETPLACE_PATH), None),
            MarketplaceLocation::Directory(root) => (root.join(MARKETPLACE_PATH), Some(root.clone())),
            MarketplaceLocation::File(file) => (file.clone(), file.ancestors().nth(2).map(Path::to_path_buf)),
        }
    }

    /// The record of a marketplace, and its source.
    pub(crate) fn find_known(
        &self,
        name: &str,
    ) -> Result<(KnownMarketplace, MarketplaceSource), InstallError> {
        let Some(known) = self.known_marketplaces()?.remove(name) else {
            return Err(self.unknown_marketplace(name)?);
        };
        check_name("marketplace", name).map_err(InstallError::Invalid)?;
        let source = MarketplaceSource::parse(&known.source, self.dir.path())
            .map_err(|cause| invalid(format!("the marketplace {name} cannot be used: {cause}")))?;
        Ok((known, source))
    }

    fn unknown_marketplace(&self, name: &str) -> Result<InstallError, InstallError> {
        let known: Vec<String> = self.known_marketplaces()?.into_keys().collect();
        let hint = match known.as_slice() {
            [] => "There are none; add one with: whimbrel plugin marketplace add SOURCE".to_owned(),
            names => format!("The marketplaces are {}", names.join(", ")),
        };
        Ok(invalid(format!("there is no marketplace {name:?}. {hint}")))
    }

    fn note_invalid_entries(&mut self, marketplace: &Marketplace) {
        for error in &marketplace.errors {
            self.add_note(format!(
                "The marketplace {} has an entry that cannot be used: {error}.",
                marketplace.name
            ));
        }
    }

    async fn fetch(&self, source: &MarketplaceSource) -> Result<FetchedMarketplace, InstallError> {
        let read = |file: &Path| {
            Marketplace::read(file)
                .map_err(|cause| invalid(format!("{} is not a marketplace: {cause}", source.describe())))
        };
        match source.location() {
            MarketplaceLocation::Directory(root) => {
                Ok(FetchedMarketplace { marketplace: read(&root.join(MARKETPLACE_PATH))?, staged: None })
            }
            MarketplaceLocation::File(file) => {
                Ok(FetchedMarketplace { marketplace: read(file)?, staged: None })
            }
            MarketplaceLocation::Git { repository, file } => {
                let dir = self.new_temp_dir()?;
                let files = dir.path().join(ids::new_uuid());
                self.git.check_out(repository, &files).await?;
                let marketplace = read(&files.join(file))?;
                Ok(FetchedMarketplace { marketplace, staged: Some(StagedFiles { _dir: dir, files }) })
            }
            MarketplaceLocation::Url(url) => {
                let bytes = download(url, source.to_value().get("headers"), &self.environment).await?;
                let dir = self.new_temp_dir()?;
                let files = dir.path().join("files");
                let file = files.join(MARKETPLACE_PATH);
                files::create(&file, &bytes).map_err(InstallError::io(&file))?;
                Ok(FetchedMarketplace {
                    marketplace: read(&file)?,
                    staged: Some(StagedFiles { _dir: dir, files }),
                })
            }
        }
    }

    /// Stores the files, then the record.
    fn store(
        &self,
        name: &str,
        source: &MarketplaceSource,
        fetched: &FetchedMarketplace,
        known: Option<KnownMarketplace>,
    ) -> Result<(), InstallError> {
        let install_location = match (source.location(), &fetched.staged) {
            (MarketplaceLocation::Directory(path) | MarketplaceLocation::File(path), _) => path.clone(),
            (MarketplaceLocation::Git { .. } | MarketplaceLocation::Url(_), staged) => {
                let target = self.dir.marketplace_dir(name);
                if let Some(StagedFiles { files, .. }) = staged {
                    files::replace_dir(files, &target).map_err(InstallError::io(&target))?;
                }
                target
            }
        };
        let record = KnownMarketplace {
            source: source.to_value(),
            install_location,
            last_updated: Some(clock::timestamp()),
            other: known.map(|known| known.other).unwrap_or_default(),
        };
        self.write_known(name, Some(&record))
    }
}
