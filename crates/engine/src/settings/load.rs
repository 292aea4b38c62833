//! Gathering the layers: which files are read, whose word each is, and what to do with one that is broken.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use whimbrel_wire::options::SettingSource;

use super::error::{SettingsError, few, shown};
use super::flag;
use super::layer::{Layer, judge};
use super::own;
use super::read::{self, Document};
use super::sources::{self, Origin, Request, Scope, Source, Tolerance};
use super::tracked::is_tracked;
use super::trust::Trust;
use crate::files;

/// What stands in the files, before anything is judged.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The person's and the project's, the weakest first.
    own: Vec<(Origin, Document)>,
    /// The host's, as it was at the start.
    host: Option<(Origin, Document)>,
    /// The administrator's, the weakest first.
    managed: Vec<(Origin, Document)>,
    /// What could not be read, where that is tolerated.
    unread: Vec<String>,
}

/// The layers, the weakest first, and what the host should know about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gathered {
    /// The layers.
    pub layers: Vec<Layer>,
    /// What the host should know.
    pub warnings: Vec<String>,
}

/// Reads all that was asked for. Touches the disk.
pub fn find(request: &Request) -> Result<Found, SettingsError> {
    let mut found = Found { host: of_host(request)?, managed: managed(request)?, ..Found::default() };
    for (source, file, base) in request.files() {
        let read = read::text(&file)
            .and_then(|text| text.map(|text| Ok((read::document(&text, &shown(&file))?, text))).transpose());
        match read {
            Ok(Some((document, text))) => {
                let scope = scope(source, &file, &text, request);
                found.own.push((Origin { source, scope, file: Some(file), base }, document));
            }
            Ok(None) => {}
            Err(error) if request.tolerance == Tolerance::Tolerant => {
                found.unread.push(format!("{error} Nothing in it is in force."));
            }
            Err(error) => return Err(error),
        }
    }
    let passed_over = request.passed_over();
    if !passed_over.is_empty() {
        let files: Vec<String> = passed_over.iter().map(|file| shown(file)).collect();
        found.unread.push(format!(
            "Not read, because the session began in another folder: {}. Nothing in it is in force.",
            files.join(", ")
        ));
    }
    Ok(found)
}

/// Whose word a file is. A local file that came with the repository, or that a link leads away from, is the project's;
/// and so is one that nobody vouches for: it may have come with an archive.
fn scope(source: Source, file: &Path, text: &str, request: &Request) -> Scope {
    let came_along = match source {
        Source::User | Source::Flag | Source::Managed => false,
        Source::Project => true,
        Source::Local => {
            is_linked(file, &request.local) || is_tracked(file) || !is_vouched_for(file, text, request)
        }
    };
    if came_along { Scope::Project } else { Scope::Person }
}

/// Whether a local file is the person's: the project is trusted as far as is customary, the host asked for the file by
/// name, or the engine wrote it on the person's word.
fn is_vouched_for(file: &Path, text: &str, request: &Request) -> bool {
    request.trust >= Trust::Customary
        || request.named.contains(&SettingSource::Local)
        || own::is_own(request.config.as_deref(), file, text)
}

fn is_linked(file: &Path, root: &Path) -> bool {
    match (files::real_path(file), files::real_path(root), file.strip_prefix(root)) {
        (Some(real), Some(root), Ok(below)) => real != root.join(below),
        _ => true,
    }
}

fn host_origin(file: Option<PathBuf>, base: &Path) -> Origin {
    Origin { source: Source::Flag, scope: Scope::Person, file, base: base.into() }
}

/// What the host gave at the start.
fn of_host(request: &Request) -> Result<Option<(Origin, Document)>, SettingsError> {
    let Some(given) = &request.flag else { return Ok(None) };
    let Some(file) = sources::flag_file(given, &request.cwd) else {
        let document = read::document(given, "--settings")?;
        return Ok(Some((host_origin(None, &request.cwd), document)));
    };
    let document = read::file(&file)?.ok_or_else(|| {
        SettingsError::unreadable(&file, "there is no such file", "Give --settings another path, or JSON.")
    })?;
    let base = file.parent().unwrap_or(&request.cwd).to_path_buf();
    Ok(Some((host_origin(Some(file), &base), document)))
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

/// Judges what was found, with what the host changed since the start over it; pure. All that may have cost a guard is
/// told at once.
pub fn sift(
    request: &Request,
    found: &Found,
    overlay: &Map<String, Value>,
) -> Result<Gathered, SettingsError> {
    let start = found.host.clone().map(|(origin, mut document)| {
        document.values = flag::beneath(document.values, overlay);
        (origin, document)
    });
    let since =
        (!overlay.is_empty()).then(|| (host_origin(None, &request.cwd), Document::of(flag::above(overlay))));
    let documents = found.own.iter().cloned().chain(start).chain(since).chain(found.managed.iter().cloned());
    let mut gathered = Gathered { warnings: found.unread.clone(), ..Gathered::default() };
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
        if !slight.is_empty() {
            gathered.warnings.push(format!("These settings do not count.\n{}", few(&slight, "\n")));
        }
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
