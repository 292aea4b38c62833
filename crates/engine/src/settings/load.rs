//! Gathering the layers: which files are read, whose word each is, and what to do with one that is broken.

use std::path::Path;

use serde_json::{Map, Value};

use super::error::SettingsError;
use super::flag;
use super::layer::{Layer, judge};
use super::read::{self, Document};
use super::sources::{self, Origin, Request, Scope, Source, Tolerance};
use super::tracked::is_tracked;
use super::trust::Trust;
use crate::files;

/// The layers, the weakest first, and what the host should know about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gathered {
    /// The layers.
    pub layers: Vec<Layer>,
    /// What the host should know.
    pub warnings: Vec<String>,
}

/// Reads all that was asked for. `overlay` is what the host changed since the start.
pub fn gather(request: &Request, overlay: &Map<String, Value>) -> Result<Gathered, SettingsError> {
    let mut warnings = Vec::new();
    let mut documents = Vec::new();
    for (source, file, base) in request.files() {
        match read::file(&file) {
            Ok(Some(document)) => {
                let scope = scope(source, &file, request);
                documents.push((Origin { source, scope, file: Some(file), base }, document));
            }
            Ok(None) => {}
            Err(error) if request.tolerance == Tolerance::Tolerant => {
                warnings.push(format!("{error} Nothing in it is in force."));
            }
            Err(error) => return Err(error),
        }
    }
    documents.extend(of_host(request, overlay)?);
    documents.extend(managed(request)?);
    let mut gathered = sift(request, documents)?;
    warnings.append(&mut gathered.warnings);
    Ok(Gathered { warnings, ..gathered })
}

/// Whose word a file is. A local file that came with the repository, or that a link leads away from, is the project's.
fn scope(source: Source, file: &Path, request: &Request) -> Scope {
    let came_along = match source {
        Source::User | Source::Flag | Source::Managed => false,
        Source::Project => true,
        Source::Local => is_linked(file, &request.local) || is_tracked(file),
    };
    if came_along { Scope::Project } else { Scope::Person }
}

fn is_linked(file: &Path, root: &Path) -> bool {
    match (files::real_path(file), files::real_path(root), file.strip_prefix(root)) {
        (Some(real), Some(root), Ok(below)) => real != root.join(below),
        _ => true,
    }
}

/// What the host gave at the start, and what it changed since.
fn of_host(
    request: &Request,
    overlay: &Map<String, Value>,
) -> Result<Vec<(Origin, Document)>, SettingsError> {
    let origin =
        |file, base: &Path| Origin { source: Source::Flag, scope: Scope::Person, file, base: base.into() };
    let mut documents = Vec::new();
    if let Some(given) = &request.flag {
        let (origin, mut document) = match sources::flag_file(given, &request.cwd) {
            Some(file) => {
                let document = read::file(&file)?.ok_or_else(|| {
                    SettingsError::unreadable(
                        &file,
                        "there is no such file",
                        "Give --settings another path, or JSON.",
                    )
                })?;
                let base = file.parent().unwrap_or(&request.cwd).to_path_buf();
                (origin(Some(file), &base), document)
            }
            None => (origin(None, &request.cwd), read::document(given, "--settings")?),
        };
        document.values = flag::beneath(document.values, overlay);
        documents.push((origin, document));
    }
    if !overlay.is_empty() {
        documents.push((origin(None, &request.cwd), Document::of(flag::above(overlay))));
    }
    Ok(documents)
}

fn managed(request: &Request) -> Result<Vec<(Origin, Document)>, SettingsError> {
    let origin =
        |file, base: &Path| Origin { source: Source::Managed, scope: Scope::Person, file, base: base.into() };
    let mut documents = Vec::new();
    if let Some(values) = &request.managed {
        documents.push((origin(None, &request.cwd), Document::of(values.clone())));
    }
    for file in request.managed_files.iter().rev() {
        if let Some(document) = read::file(file)? {
            let base = file.parent().unwrap_or(Path::new("/"));
            documents.push((origin(Some(file.clone()), base), document));
        }
    }
    Ok(documents)
}

/// Judges each layer. All that may have cost a guard is told at once.
fn sift(request: &Request, documents: Vec<(Origin, Document)>) -> Result<Gathered, SettingsError> {
    let mut gathered = Gathered::default();
    let mut grave = Vec::new();
    let mut held = Vec::new();
    for (origin, document) in documents {
        let trust = if origin.scope == Scope::Project { request.trust } else { Trust::Full };
        let judged = judge(origin, document, trust);
        let mut slight = judged.slight;
        // What the host or an administrator says is never left out without a word.
        if request.tolerance == Tolerance::Tolerant && judged.layer.origin.source < Source::Flag {
            slight.extend(judged.grave);
        } else {
            grave.extend(judged.grave);
        }
        gathered.warnings.extend(slight.iter().map(|problem| format!("{problem} It does not count.")));
        held.extend(judged.held);
        gathered.layers.push(judged.layer);
    }
    if !grave.is_empty() {
        return Err(SettingsError::Keys(grave));
    }
    if !held.is_empty() {
        gathered.warnings.push(held.join("\n"));
    }
    Ok(gathered)
}
