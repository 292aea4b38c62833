//! Gathering the layers: which files are read, whose word each is, and what to do with one that is broken.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use whimbrel_wire::options::SettingSource;

use super::error::{SettingsError, join_first, display_path};
use super::host_overlay;
use super::layer::{SettingsLayer, check_layer};
use super::provenance;
use super::read::{self, SettingsDocument};
use super::sources::{self, LayerOrigin, SettingsRequest, LayerScope, LayerSource, Tolerance};
use super::git_index::is_tracked;
use super::trust::Trust;
use crate::files;

/// What stands in the files, before anything is judged.
#[derive(Debug, Clone, Default)]
pub struct SettingsDocuments {
    /// The person's and the project's, the weakest first.
    files: Vec<(LayerOrigin, SettingsDocument)>,
    /// The host's, as it was at the start.
    host: Option<(LayerOrigin, SettingsDocument)>,
    /// The administrator's, the weakest first.
    managed: Vec<(LayerOrigin, SettingsDocument)>,
    /// What could not be read, where that is tolerated.
    warnings: Vec<String>,
}

/// The layers, the weakest first, and what the host should know about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadedLayers {
    /// The layers.
    pub layers: Vec<SettingsLayer>,
    /// What the host should know.
    pub warnings: Vec<String>,
}

/// Reads all that was asked for. Touches the disk.
pub fn read_documents(request: &SettingsRequest) -> Result<SettingsDocuments, SettingsError> {
    let mut found = SettingsDocuments { host: read_host_settings(request)?, managed: read_managed(request)?, ..SettingsDocuments::default() };
    for (source, file, base) in request.setting_files() {
        let read = read::read_text(&file)
            .and_then(|text| text.map(|text| Ok((read::parse_document(&text, &display_path(&file))?, text))).transpose());
        match read {
            Ok(Some((document, text))) => {
                let scope = layer_scope(source, &file, &text, request);
                found.files.push((LayerOrigin { source, scope, file: Some(file), base }, document));
            }
            Ok(None) => {}
            Err(error) if request.tolerance == Tolerance::Tolerant => {
                found.warnings.push(format!("{error} Nothing in it is in force."));
            }
            Err(error) => return Err(error),
        }
    }
    let passed_over = request.skipped_files();
    if !passed_over.is_empty() {
        let files: Vec<String> = passed_over.iter().map(|file| display_path(file)).collect();
        found.warnings.push(format!(
            "Not read, because the session began in another folder: {}. Nothing in it is in force.",
            files.join(", ")
        ));
    }
    Ok(found)
}

/// Whose word a file is. A local file that came with the repository, or that a link leads away from, is the project's;
/// and so is one that nobody vouches for: it may have come with an archive.
fn layer_scope(source: LayerSource, file: &Path, text: &str, request: &SettingsRequest) -> LayerScope {
    let came_along = match source {
        LayerSource::User | LayerSource::Flag | LayerSource::Managed => false,
        LayerSource::Project => true,
        LayerSource::Local => {
            is_behind_symlink(file, &request.local_root) || is_tracked(file) || !is_user_file(file, text, request)
        }
    };
    if came_along { LayerScope::Project } else { LayerScope::User }
}

/// Whether a local file is the person's: the project is trusted as far as is customary, the host asked for the file by
/// name, or the engine wrote it on the person's word.
fn is_user_file(file: &Path, text: &str, request: &SettingsRequest) -> bool {
    request.trust >= Trust::Limited
        || request.named_sources.contains(&SettingSource::Local)
        || provenance::is_user_written(request.config_dir.as_deref(), file, text)
}

fn is_behind_symlink(file: &Path, root: &Path) -> bool {
    match (files::real_path(file), files::real_path(root), file.strip_prefix(root)) {
        (Some(real), Some(root), Ok(below)) => real != root.join(below),
        _ => true,
    }
}

fn host_origin(file: Option<PathBuf>, base: &Path) -> LayerOrigin {
    LayerOrigin { source: LayerSource::Flag, scope: LayerScope::User, file, base: base.into() }
}

/// What the host gave at the start.
fn read_host_settings(request: &SettingsRequest) -> Result<Option<(LayerOrigin, SettingsDocument)>, SettingsError> {
    let Some(given) = &request.flag else { return Ok(None) };
    let Some(file) = sources::host_settings_file(given, &request.cwd) else {
        let document = read::parse_document(given, "--settings")?;
        return Ok(Some((host_origin(None, &request.cwd), document)));
    };
    let document = read::read_file(&file)?.ok_or_else(|| {
        SettingsError::unreadable(&file, "there is no such file", "Give --settings another path, or JSON.")
    })?;
    let base = file.parent().unwrap_or(&request.cwd).to_path_buf();
    Ok(Some((host_origin(Some(file), &base), document)))
}

fn read_managed(request: &SettingsRequest) -> Result<Vec<(LayerOrigin, SettingsDocument)>, SettingsError> {
    let origin =
        |file, base: &Path| LayerOrigin { source: LayerSource::Managed, scope: LayerScope::User, file, base: base.into() };
    let mut documents = Vec::new();
    if let Some(values) = &request.managed {
        documents.push((origin(None, &request.cwd), SettingsDocument::from_values(values.clone())));
    }
    for file in request.managed_files.iter().rev() {
        if let Some(document) = read::read_file(file)? {
            let base = file.parent().unwrap_or(Path::new("/"));
            documents.push((origin(Some(file.clone()), base), document));
        }
    }
    Ok(documents)
}

/// Judges what was found, with what the host changed since the start over it; pure. All that may have cost a guard is
/// told at once.
pub fn build_layers(
    request: &SettingsRequest,
    found: &SettingsDocuments,
    overlay: &Map<String, Value>,
) -> Result<LoadedLayers, SettingsError> {
    let start = found.host.clone().map(|(origin, mut document)| {
        document.values = host_overlay::remaining_start_settings(document.values, overlay);
        (origin, document)
    });
    let since =
        (!overlay.is_empty()).then(|| (host_origin(None, &request.cwd), SettingsDocument::from_values(host_overlay::overlay_settings(overlay))));
    let documents = found.files.iter().cloned().chain(start).chain(since).chain(found.managed.iter().cloned());
    let mut gathered = LoadedLayers { warnings: found.warnings.clone(), ..LoadedLayers::default() };
    let mut grave = Vec::new();
    let mut held = Vec::new();
    for (origin, document) in documents {
        let trust = if origin.scope == LayerScope::Project { request.trust } else { Trust::Full };
        let judged = check_layer(origin, document, trust);
        let mut slight = judged.minor;
        // What the host or an administrator says is never left out without a word.
        if request.tolerance == Tolerance::Tolerant && judged.layer.origin.source < LayerSource::Flag {
            slight.extend(judged.critical);
        } else {
            grave.extend(judged.critical);
        }
        if !slight.is_empty() {
            gathered.warnings.push(format!("These settings do not count.\n{}", join_first(&slight, "\n")));
        }
        held.extend(judged.withheld);
        gathered.layers.push(judged.layer);
    }
    if !grave.is_empty() {
        return Err(SettingsError::InvalidKeys(grave));
    }
    if !held.is_empty() {
        gathered.warnings.push(held.join("\n"));
    }
    Ok(gathered)
}
