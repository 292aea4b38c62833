//! Settings: what the person, the project, the host and an administrator want, made into one answer.
//!
//! [`Settings::load`] reads the layers once; whoever holds the [`Settings`] may read them again, change the host's layer
//! or write to a file. Nothing here decides about a tool call: rules are handed on with their source, file and line.
//!
//! The rooms, along the way of a file:
//! - [`sources`] (which files there are), [`read`] (a file to values that know their lines), [`load`] (all of them)
//! - [`trust`], [`environment`] (what a project may bring along), [`tracked`] (what came with a repository), `own` (which
//!   local files are the person's), [`vouched`] (which folders the person trusts)
//! - [`schema`], [`hooks`] (what the keys may hold), [`http_hooks`] (which web addresses hooks may tell), `nearby`
//!   (keys that are almost known), [`layer`] (what one source says)
//! - [`merge`](mod@merge) (many layers to one), [`typed`] (its keys in types), [`view`] (what the host sees)
//! - [`flag`] (changes by the host), `update`, [`edit`], [`write`](mod@write) (changes to a file)

pub mod edit;
pub mod project_env;
mod error;
pub mod host_overlay;
pub mod hooks;
pub mod http_hooks;
pub mod typed;
pub mod layer;
pub mod load;
pub mod merge;
mod typos;
mod provenance;
mod protected_paths;
pub mod read;
pub mod schema;
pub mod sources;
pub mod git_index;
pub mod trust;
mod update;
pub mod report;
pub mod trusted_dirs;
pub mod write;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};
use whimbrel_wire::control::SettingsReport;
use whimbrel_wire::options::SettingSource;

pub use edit::{ListAction, SettingsChange, PermissionList};
pub use error::{InvalidKeyError, SettingsError};
pub use hooks::{CommandHookConfig, HookActionConfig};
pub use typed::TypedSettings;
pub use layer::{ConfiguredHook, SettingsLayer, ConfiguredRule};
pub use merge::{AdditionalDirectory, EffectiveSettings};
pub use sources::{
    LayerOrigin, SettingsRequest, LayerScope, LayerSource, Tolerance, config_dir, home_dir, managed_files, repository_root,
};
pub use trust::Trust;
pub use update::{ChangeStatus, ChangeDraft, UpdateReport, WrittenChange};

use load::{SettingsDocuments, LoadedLayers};

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct Settings {
    request: SettingsRequest,
    overlay: Map<String, Value>,
    documents: SettingsDocuments,
    loaded: LoadedLayers,
    effective: Arc<EffectiveSettings>,
}

impl Settings {
    /// Reads the settings. Touches the disk.
    pub fn load(request: SettingsRequest) -> Result<Self, SettingsError> {
        let found = load::read_documents(&request)?;
        let gathered = load::build_layers(&request, &found, &Map::new())?;
        let effective = merge_shared(&gathered.layers);
        Ok(Self { request, overlay: Map::new(), documents: found, loaded: gathered, effective })
    }

    /// No settings at all.
    pub fn empty() -> Self {
        let (request, overlay, documents) = (SettingsRequest::default(), Map::new(), SettingsDocuments::default());
        Self { request, overlay, documents, loaded: LoadedLayers::default(), effective: merge_shared(&[]) }
    }

    /// What is in force.
    pub fn effective(&self) -> &Arc<EffectiveSettings> {
        &self.effective
    }

    /// How far the project is trusted.
    pub fn trust(&self) -> Trust {
        self.request.trust
    }

    /// Whether what cannot be read stops the start.
    pub fn tolerance(&self) -> Tolerance {
        self.request.tolerance
    }

    /// The file of a source.
    pub fn file_for(&self, source: SettingSource) -> Option<PathBuf> {
        self.request.file(source)
    }

    /// What the host should know: values that do not count, and what is held back from a project.
    pub fn warnings(&self) -> &[String] {
        &self.loaded.warnings
    }

    /// What each source says, the weakest first.
    pub fn layers(&self) -> &[SettingsLayer] {
        &self.loaded.layers
    }

    /// Reads the files again and says whose settings are others now. If that fails, what was in force stays in force.
    pub fn reload(&mut self) -> Result<BTreeSet<LayerSource>, SettingsError> {
        self.replace_documents(load::read_documents(&self.request)?)
    }

    /// Puts what was found now in the place of what was found before.
    fn replace_documents(&mut self, found: SettingsDocuments) -> Result<BTreeSet<LayerSource>, SettingsError> {
        let gathered = load::build_layers(&self.request, &found, &self.overlay)?;
        self.documents = found;
        Ok(self.replace_layers(gathered))
    }

    /// The settings as they would count if the project were trusted. Reads no file.
    pub fn as_if_trusted(&self) -> Result<Self, SettingsError> {
        let mut trusted = self.clone();
        trusted.request.trust = Trust::Full;
        trusted.replace_documents(self.documents.clone())?;
        Ok(trusted)
    }

    fn replace_layers(&mut self, gathered: LoadedLayers) -> BTreeSet<LayerSource> {
        let says = |layers: &[SettingsLayer], source: LayerSource| -> Vec<(LayerOrigin, Map<String, Value>)> {
            let of_source = layers.iter().filter(|layer| layer.origin.source == source);
            of_source.map(|layer| (layer.origin.clone(), layer.raw.clone())).collect()
        };
        let changed = LayerSource::ALL
            .iter()
            .copied()
            .filter(|source| says(&self.loaded.layers, *source) != says(&gathered.layers, *source))
            .collect();
        self.effective = merge_shared(&gathered.layers);
        self.loaded = gathered;
        changed
    }

    /// Changes the host's layer: each key replaces its old value there, null takes it away; what the host forbade at the
    /// start stays. If something in it cannot be taken, nothing changes. No file is read.
    pub fn apply_host_changes(&mut self, changes: Map<String, Value>) -> Result<BTreeSet<LayerSource>, SettingsError> {
        let mut overlay = self.overlay.clone();
        host_overlay::apply_changes(&mut overlay, changes);
        let gathered = load::build_layers(&self.request, &self.documents, &overlay)?;
        self.overlay = overlay;
        Ok(self.replace_layers(gathered))
    }

    /// The answer to `get_settings`. `applied` is what the session made of the settings.
    pub fn report(&self, applied: Map<String, Value>) -> SettingsReport {
        report::build_report(&self.effective, &self.loaded.layers, applied)
    }
}

/// What layers come to. Sessions without any settings, which may be many in one process, share theirs.
fn merge_shared(layers: &[SettingsLayer]) -> Arc<EffectiveSettings> {
    static EMPTY: LazyLock<Arc<EffectiveSettings>> = LazyLock::new(|| Arc::new(merge::merge(&[])));
    if layers.is_empty() { Arc::clone(&EMPTY) } else { Arc::new(merge::merge(layers)) }
}

#[cfg(test)]
mod tests;
