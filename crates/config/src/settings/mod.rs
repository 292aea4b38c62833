//! Settings of the user, the project, the host and an administrator, merged into one [`EffectiveSettings`].
//!
//! [`Settings::load`] reads the layers once; later the host's layer can be changed, and files written.
//! Nothing here decides about tool calls: permission rules are passed on with their source, file and line.
//!
//! Modules, in the order in which a file passes through them:
//! - [`sources`] (which files), [`document`] (parses a file and records line numbers), `load` (reads all files)
//! - [`trust`] (whether a local file belongs to the user, and what a project may set)
//! - `schema` and [`hooks`] (validation), [`http_hooks`] (URL limits), `typos` (misspelled keys), [`layer`] (one
//!   source)
//! - [`managed_policy`] (restrictions by an administrator), [`merge`](mod@merge), [`sandbox`] (the same for the sandbox),
//!   `protected_paths` (configuration
//!   files that need permission)
//! - `host_overlay` (changes by the host), `change` (changes to files)
//!
//! [`user_mcp_servers`] are not settings; they are in the same file as the trusted directories.

mod change;
pub mod document;
mod error;
pub mod hooks;
mod host_overlay;
pub mod http_hooks;
pub mod layer;
mod load;
pub mod managed_policy;
pub mod merge;
mod protected_paths;
pub mod sandbox;
mod schema;
pub mod sources;
pub mod trust;
mod typos;
pub mod user_mcp_servers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};
use whimbrel_wire::control::SettingsReport;
use whimbrel_wire::options::SettingSource;

pub use change::{
    ChangeDraft, ChangeStatus, FileOwnership, ListAction, PermissionList, SettingsChange, UpdateReport,
    WrittenChange, change_file,
};
pub use error::{InvalidKeyError, SettingsError};
pub use hooks::{CommandHookConfig, HookActionConfig};
pub use layer::{HookSetting, RuleSetting, SettingsLayer};
use load::{LoadedLayers, SettingsDocuments};
pub use merge::{AdditionalDirectory, EffectiveSettings};
pub use sandbox::SandboxSettings;
pub use schema::TypedSettings;
pub use sources::{
    LayerOrigin, LayerScope, LayerSource, SettingsRequest, Tolerance, config_dir, credential_files, home_dir,
    managed_files, repository_root,
};
pub use trust::Trust;

#[derive(Debug, Clone)]
pub struct Settings {
    request: SettingsRequest,
    overlay: Map<String, Value>,
    documents: SettingsDocuments,
    loaded: LoadedLayers,
    effective: Arc<EffectiveSettings>,
    sandbox: Arc<SandboxSettings>,
}

impl Settings {
    /// Loads the settings. Reads files.
    pub fn load(request: SettingsRequest) -> Result<Self, SettingsError> {
        let found = load::read_documents(&request)?;
        let loaded = load::build_layers(&request, &found, &Map::new())?;
        let effective = merge_shared(&loaded.layers);
        let sandbox = merge_sandbox(&loaded.layers, &request);
        Ok(Self { request, overlay: Map::new(), documents: found, loaded, effective, sandbox })
    }

    pub fn empty() -> Self {
        let (request, overlay, documents) =
            (SettingsRequest::default(), Map::new(), SettingsDocuments::default());
        Self {
            sandbox: merge_sandbox(&[], &request),
            request,
            overlay,
            documents,
            loaded: LoadedLayers::default(),
            effective: merge_shared(&[]),
        }
    }

    pub fn effective(&self) -> &Arc<EffectiveSettings> {
        &self.effective
    }

    /// Settings of the sandbox.
    pub fn sandbox(&self) -> &Arc<SandboxSettings> {
        &self.sandbox
    }

    /// Trust in the project.
    pub fn trust(&self) -> Trust {
        self.request.trust
    }

    /// Whether invalid settings abort the start.
    pub fn tolerance(&self) -> Tolerance {
        self.request.tolerance
    }

    /// The directory that contains the project's `.claude`.
    pub fn project_root(&self) -> &Path {
        &self.request.project_root
    }

    /// The settings as the files have them now, with the changes of the host. Reads files.
    pub fn read_again(&self) -> Result<Self, SettingsError> {
        let mut settings = self.clone();
        settings.replace_documents(load::read_documents(&self.request)?)?;
        Ok(settings)
    }

    /// Path of a source's file.
    pub fn file_for(&self, source: SettingSource) -> Option<PathBuf> {
        self.request.file(source)
    }

    /// Warnings for the host: invalid values, and values withheld from the project.
    pub fn warnings(&self) -> &[String] {
        &self.loaded.warnings
    }

    /// The layers, weakest first.
    pub fn layers(&self) -> &[SettingsLayer] {
        &self.loaded.layers
    }

    /// Rebuilds the layers from newly read documents and returns the sources that have changed. After an error the
    /// previous settings stay in force.
    fn replace_documents(
        &mut self,
        found: SettingsDocuments,
    ) -> Result<BTreeSet<LayerSource>, SettingsError> {
        let loaded = load::build_layers(&self.request, &found, &self.overlay)?;
        self.documents = found;
        Ok(self.replace_layers(loaded))
    }

    /// The settings as they would be if the project were trusted. Reads no file.
    pub fn as_if_trusted(&self) -> Result<Self, SettingsError> {
        let mut trusted = self.clone();
        trusted.request.trust = Trust::Full;
        trusted.replace_documents(self.documents.clone())?;
        Ok(trusted)
    }

    fn replace_layers(&mut self, loaded: LoadedLayers) -> BTreeSet<LayerSource> {
        let documents_from =
            |layers: &[SettingsLayer], source: LayerSource| -> Vec<(LayerOrigin, Map<String, Value>)> {
                let of_source = layers.iter().filter(|layer| layer.origin.source == source);
                of_source.map(|layer| (layer.origin.clone(), layer.raw.clone())).collect()
            };
        let changed = LayerSource::ALL
            .iter()
            .copied()
            .filter(|source| {
                documents_from(&self.loaded.layers, *source) != documents_from(&loaded.layers, *source)
            })
            .collect();
        self.effective = merge_shared(&loaded.layers);
        self.sandbox = merge_sandbox(&loaded.layers, &self.request);
        self.loaded = loaded;
        changed
    }

    /// Changes the host's layer: each key replaces its value there, null removes it; restrictions from the start stay.
    /// If a value is invalid, nothing changes. Reads no file.
    pub fn apply_host_changes(
        &mut self,
        changes: Map<String, Value>,
    ) -> Result<BTreeSet<LayerSource>, SettingsError> {
        let mut overlay = self.overlay.clone();
        host_overlay::apply_changes(&mut overlay, changes);
        let loaded = load::build_layers(&self.request, &self.documents, &overlay)?;
        self.overlay = overlay;
        Ok(self.replace_layers(loaded))
    }

    /// The response to `get_settings`. `applied` is what the session derived from the settings.
    pub fn report(&self, applied: Map<String, Value>) -> SettingsReport {
        merge::build_report(&self.effective, &self.loaded.layers, applied)
    }
}

/// Merges layers. Sessions without settings share one value, because a process may have many sessions.
fn merge_shared(layers: &[SettingsLayer]) -> Arc<EffectiveSettings> {
    static EMPTY: LazyLock<Arc<EffectiveSettings>> = LazyLock::new(|| Arc::new(merge::merge(&[])));
    if layers.is_empty() { Arc::clone(&EMPTY) } else { Arc::new(merge::merge(layers)) }
}

/// The same for the settings of the sandbox.
fn merge_sandbox(layers: &[SettingsLayer], request: &SettingsRequest) -> Arc<SandboxSettings> {
    static DEFAULT: LazyLock<Arc<SandboxSettings>> = LazyLock::new(Arc::default);
    let has_settings = layers.iter().any(|layer| layer.values.contains_key("sandbox"));
    if !has_settings {
        return Arc::clone(&DEFAULT);
    }
    Arc::new(SandboxSettings::merge(layers, &request.project_root))
}

#[cfg(test)]
mod tests;
