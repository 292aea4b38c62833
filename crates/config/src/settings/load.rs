//! Reads the settings files and builds the layers: which files, and the handling of invalid ones.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::settings::document::{self, SettingsDocument};
use crate::settings::error::{SettingsError, display_path, join_first};
use crate::settings::host_overlay;
use crate::settings::layer::{SettingsLayer, check_layer};
use crate::settings::sources::{self, LayerOrigin, LayerScope, LayerSource, SettingsRequest, Tolerance};
use crate::settings::trust::{Trust, local_settings};

/// The parsed files, before validation.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingsDocuments {
    /// Files of the user and the project, weakest first.
    files: Vec<(LayerOrigin, SettingsDocument)>,
    /// Settings of the host, as passed at the start.
    host: Option<(LayerOrigin, SettingsDocument)>,
    /// Settings of the administrator, weakest first.
    managed: Vec<(LayerOrigin, SettingsDocument)>,
    /// Warnings about files that were not read.
    warnings: Vec<String>,
}

/// The layers, weakest first, and warnings about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LoadedLayers {
    pub layers: Vec<SettingsLayer>,
    pub warnings: Vec<String>,
}

/// Reads all requested settings. Reads files.
pub(crate) fn read_documents(request: &SettingsRequest) -> Result<SettingsDocuments, SettingsError> {
    let mut found = SettingsDocuments {
        host: read_host_settings(request)?,
        managed: read_managed(request)?,
        ..SettingsDocuments::default()
    };
    for (source, file, base) in request.setting_files() {
        let parsed = document::read_text(&file).and_then(|text| {
            text.map(|text| Ok((document::parse_document(&text, &display_path(&file))?, text))).transpose()
        });
        match parsed {
            Ok(Some((document, text))) => {
                let scope = local_settings::layer_scope(source, &file, &text, request);
                found.files.push((LayerOrigin { source, scope, file: Some(file), base }, document));
            }
            Ok(None) => {}
            Err(error) if request.tolerance == Tolerance::Tolerant => {
                found.warnings.push(format!("{error} None of its settings apply."));
            }
            Err(error) => return Err(error),
        }
    }
    let skipped = request.skipped_files();
    if !skipped.is_empty() {
        let files: Vec<String> = skipped.iter().map(|file| display_path(file)).collect();
        found.warnings.push(format!(
            "Not read, because the session started in another directory: {}. None of these settings apply.",
            files.join(", ")
        ));
    }
    Ok(found)
}

fn host_origin(file: Option<PathBuf>, base: &Path) -> LayerOrigin {
    LayerOrigin { source: LayerSource::Flag, scope: LayerScope::User, file, base: base.into() }
}

/// The settings that the host passed at the start.
fn read_host_settings(
    request: &SettingsRequest,
) -> Result<Option<(LayerOrigin, SettingsDocument)>, SettingsError> {
    let Some(mut read) = read_flag(request)? else {
        let sandbox = request.flag_sandbox.clone().map(|sandbox| [("sandbox".to_owned(), sandbox.into())]);
        return Ok(sandbox.map(|values| {
            let document = SettingsDocument::from_values(values.into_iter().collect());
            (host_origin(None, &request.cwd), document)
        }));
    };
    if let Some(sandbox) = request.flag_sandbox.clone() {
        read.1.values.insert("sandbox".into(), sandbox.into());
    }
    Ok(Some(read))
}

fn read_flag(request: &SettingsRequest) -> Result<Option<(LayerOrigin, SettingsDocument)>, SettingsError> {
    let Some(flag) = &request.flag else { return Ok(None) };
    let Some(file) = sources::host_settings_file(flag, &request.cwd) else {
        let document = document::parse_document(flag, "--settings")?;
        return Ok(Some((host_origin(None, &request.cwd), document)));
    };
    let document = document::read_file(&file)?.ok_or_else(|| {
        SettingsError::unreadable(&file, "there is no such file", "Give --settings another path, or JSON.")
    })?;
    let base = file.parent().unwrap_or(&request.cwd).to_path_buf();
    Ok(Some((host_origin(Some(file), &base), document)))
}

fn read_managed(request: &SettingsRequest) -> Result<Vec<(LayerOrigin, SettingsDocument)>, SettingsError> {
    let origin = |file, base: &Path| LayerOrigin {
        source: LayerSource::Managed,
        scope: LayerScope::User,
        file,
        base: base.into(),
    };
    let mut documents = Vec::new();
    if let Some(values) = &request.managed {
        documents.push((origin(None, &request.cwd), SettingsDocument::from_values(values.clone())));
    }
    for file in request.managed_files.iter().rev() {
        if let Some(document) = document::read_file(file)? {
            let base = file.parent().unwrap_or(Path::new("/"));
            documents.push((origin(Some(file.clone()), base), document));
        }
    }
    Ok(documents)
}

/// Validates the documents, with the host's overlay applied, and builds the layers. Pure. All critical errors are
/// reported at once.
pub(crate) fn build_layers(
    request: &SettingsRequest,
    found: &SettingsDocuments,
    overlay: &Map<String, Value>,
) -> Result<LoadedLayers, SettingsError> {
    let start = found.host.clone().map(|(origin, mut document)| {
        document.values = host_overlay::remaining_start_settings(document.values, overlay);
        (origin, document)
    });
    let host_changes = (!overlay.is_empty()).then(|| {
        (
            host_origin(None, &request.cwd),
            SettingsDocument::from_values(host_overlay::overlay_settings(overlay)),
        )
    });
    let documents =
        found.files.iter().cloned().chain(start).chain(host_changes).chain(found.managed.iter().cloned());
    let mut loaded = LoadedLayers { warnings: found.warnings.clone(), ..LoadedLayers::default() };
    let mut critical = Vec::new();
    let mut withheld = Vec::new();
    for (origin, document) in documents {
        let trust = if origin.scope == LayerScope::Project { request.trust } else { Trust::Full };
        let checked = check_layer(origin, document, trust);
        let mut minor = checked.minor;
        // Errors in settings of the host or an administrator are never tolerated.
        if request.tolerance == Tolerance::Tolerant && checked.layer.origin.source < LayerSource::Flag {
            minor.extend(checked.critical);
        } else {
            critical.extend(checked.critical);
        }
        if !minor.is_empty() {
            loaded.warnings.push(format!("These settings are ignored.\n{}", join_first(&minor, "\n")));
        }
        withheld.extend(checked.withheld);
        loaded.layers.push(checked.layer);
    }
    if !critical.is_empty() {
        return Err(SettingsError::InvalidKeys(critical));
    }
    if !withheld.is_empty() {
        loaded.warnings.push(withheld.join("\n"));
    }
    Ok(loaded)
}
