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
//! - [`merge`](mod@merge) (many layers to one), [`known`] (its keys in types), [`view`] (what the host sees)
//! - [`flag`] (changes by the host), `update`, [`edit`], [`write`](mod@write) (changes to a file)

pub mod edit;
pub mod environment;
mod error;
pub mod flag;
pub mod hooks;
pub mod http_hooks;
pub mod known;
pub mod layer;
pub mod load;
pub mod merge;
mod nearby;
mod own;
mod places;
pub mod read;
pub mod schema;
pub mod sources;
pub mod tracked;
pub mod trust;
mod update;
pub mod view;
pub mod vouched;
pub mod write;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};
use whimbrel_wire::control::SettingsReport;
use whimbrel_wire::options::SettingSource;

pub use edit::{Act, Change, List};
pub use error::{Problem, SettingsError};
pub use hooks::{CommandHook, Handler};
pub use known::Known;
pub use layer::{Hook, Layer, Rule};
pub use merge::{Directory, Effective};
pub use sources::{
    Origin, Request, Scope, Source, Tolerance, config_folder, home_folder, managed_files, repository_root,
};
pub use trust::Trust;
pub use update::{Counts, Draft, Updated, Written};

use load::{Found, Gathered};

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct Settings {
    request: Request,
    overlay: Map<String, Value>,
    found: Found,
    gathered: Gathered,
    effective: Arc<Effective>,
}

impl Settings {
    /// Reads the settings. Touches the disk.
    pub fn load(request: Request) -> Result<Self, SettingsError> {
        let found = load::find(&request)?;
        let gathered = load::sift(&request, &found, &Map::new())?;
        let effective = in_force(&gathered.layers);
        Ok(Self { request, overlay: Map::new(), found, gathered, effective })
    }

    /// No settings at all.
    pub fn none() -> Self {
        let (request, overlay, found) = (Request::default(), Map::new(), Found::default());
        Self { request, overlay, found, gathered: Gathered::default(), effective: in_force(&[]) }
    }

    /// What is in force.
    pub fn effective(&self) -> &Arc<Effective> {
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
    pub fn file(&self, source: SettingSource) -> Option<PathBuf> {
        self.request.file(source)
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
        self.renew(load::find(&self.request)?)
    }

    /// Puts what was found now in the place of what was found before.
    fn renew(&mut self, found: Found) -> Result<BTreeSet<Source>, SettingsError> {
        let gathered = load::sift(&self.request, &found, &self.overlay)?;
        self.found = found;
        Ok(self.take(gathered))
    }

    /// The settings as they would count if the project were trusted. Reads no file.
    pub fn if_trusted(&self) -> Result<Self, SettingsError> {
        let mut trusted = self.clone();
        trusted.request.trust = Trust::Full;
        trusted.renew(self.found.clone())?;
        Ok(trusted)
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
        self.effective = in_force(&gathered.layers);
        self.gathered = gathered;
        changed
    }

    /// Changes the host's layer: each key replaces its old value there, null takes it away; what the host forbade at the
    /// start stays. If something in it cannot be taken, nothing changes. No file is read.
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
}

/// What layers come to. Sessions without any settings, which may be many in one process, share theirs.
fn in_force(layers: &[Layer]) -> Arc<Effective> {
    static NOTHING: LazyLock<Arc<Effective>> = LazyLock::new(|| Arc::new(merge::merge(&[])));
    if layers.is_empty() { Arc::clone(&NOTHING) } else { Arc::new(merge::merge(layers)) }
}

#[cfg(test)]
mod tests;
