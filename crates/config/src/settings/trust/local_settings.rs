//! Whether `.claude/settings.local.json` belongs to the user or came with the project. Records the files that this
//! engine wrote for the user, and detects later changes.
//!
//! The file may come from an archive. Nothing in the project directory can prove otherwise,
//! because an archive can contain git metadata too. So the proof is stored out of reach of projects, in the
//! configuration directory: for each file its real path and a hash of its content.

use std::path::Path;

use whimbrel_os::files;
use whimbrel_wire::options::SettingSource;

use crate::settings::SettingsChange;
use crate::settings::change::{FileOwnership, ReplacedText, change_file};
use crate::settings::document;
use crate::settings::error::SettingsError;
use crate::settings::sources::{LayerScope, LayerSource, SettingsRequest};
use crate::settings::trust::Trust;
use crate::settings::trust::git_index::is_tracked;

/// Name of the record in the configuration directory.
pub(in crate::settings) const RECORD_FILE: &str = "whimbrel-local-settings.json";

/// The scope of a file. A local file counts as the project's if git tracks it, if it is behind a symlink, or if it may
/// have come with an archive because neither the host nor a record vouches for it.
pub(in crate::settings) fn layer_scope(
    source: LayerSource,
    file: &Path,
    text: &str,
    request: &SettingsRequest,
) -> LayerScope {
    let is_from_project = match source {
        LayerSource::User | LayerSource::Flag | LayerSource::Managed => false,
        LayerSource::Project => true,
        LayerSource::Local => {
            is_behind_symlink(file, &request.local_root)
                || is_tracked(file)
                || !is_user_file(file, text, request)
        }
    };
    if is_from_project { LayerScope::Project } else { LayerScope::User }
}

/// Whether a local file belongs to the user: the project has at least limited trust, the host named the local source,
/// or this engine wrote the file for the user.
fn is_user_file(file: &Path, text: &str, request: &SettingsRequest) -> bool {
    request.trust >= Trust::Limited
        || request.named_sources.contains(&SettingSource::Local)
        || is_user_written(request.config_dir.as_deref(), file, text)
}

fn is_behind_symlink(file: &Path, root: &Path) -> bool {
    match (files::real_path(file), files::real_path(root), file.strip_prefix(root)) {
        (Some(real), Some(root), Ok(below)) => real != root.join(below),
        _ => true,
    }
}

/// Whether this engine wrote a file with this content for the user. An unreadable record proves nothing. Reads files.
fn is_user_written(config: Option<&Path>, file: &Path, text: &str) -> bool {
    let (Some(config), Some(file)) = (config, files::real_path(file)) else { return false };
    if file.parent().is_some_and(|dir| files::real_path(config).is_some_and(|config| config == dir)) {
        return true;
    }
    let record = document::read_file(&config.join(RECORD_FILE)).ok().flatten();
    let known = record.and_then(|record| record.values.get(&record_key(&file)).cloned());
    known.is_some_and(|known| known == content_hash(text))
}

/// Records a local file as written for the user, if it was before or did not exist. Adding to a foreign file does not
/// vouch for the rest of it.
pub(in crate::settings) fn record_written_file(
    request: &SettingsRequest,
    file: &Path,
    replaced: &ReplacedText,
) -> Option<String> {
    let config = request.config_dir.as_deref()?;
    let is_own = replaced.old.as_ref().is_none_or(|old| is_user_written(Some(config), file, old));
    let recorded = if is_own { record_user_file(config, file, &replaced.new) } else { Ok(()) };
    let error = recorded.err()?;
    Some(format!("{} applies in later sessions only if the directory is trusted. {error}", file.display()))
}

/// Records that a file with this content was written for the user. Writes the record.
fn record_user_file(config: &Path, file: &Path, text: &str) -> Result<(), SettingsError> {
    let key = record_key(&files::real_path(file).unwrap_or_else(|| file.to_path_buf()));
    let change = SettingsChange::Value { key, value: content_hash(text).into() };
    change_file(&config.join(RECORD_FILE), FileOwnership::User, &change).map(|_| ())
}

fn record_key(file: &Path) -> String {
    file.to_string_lossy().into_owned()
}

fn content_hash(text: &str) -> String {
    blake3::hash(text.strip_prefix('\u{feff}').unwrap_or(text).as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn file_is_users_until_changed_by_others() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (config, file) = (root.join("config"), root.join("settings.local.json"));
        fs::write(&file, "{}").unwrap();
        assert!(!is_user_written(Some(&config), &file, "{}"), "there is no record yet");
        record_user_file(&config, &file, "{}").unwrap();
        assert!(
            is_user_written(Some(&config), &file, "{}")
                && is_user_written(Some(&config), &file, "\u{feff}{}")
        );
        assert!(!is_user_written(Some(&config), &file, "{ }"), "another text");
        assert!(!is_user_written(None, &file, "{}"), "no configuration directory");
        fs::write(root.join("other.json"), "{}").unwrap();
        assert!(!is_user_written(Some(&config), &root.join("other.json"), "{}"), "the same text elsewhere");
        record_user_file(&config, &file, "{ }").unwrap();
        assert!(!is_user_written(Some(&config), &file, "{}") && is_user_written(Some(&config), &file, "{ }"));
        fs::write(config.join(RECORD_FILE), "broken").unwrap();
        assert!(!is_user_written(Some(&config), &file, "{ }"), "a record that cannot be read");
    }

    #[test]
    fn file_in_configuration_directory_needs_no_record() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.local.json");
        fs::write(&file, "{}").unwrap();
        assert!(is_user_written(Some(dir.path()), &file, "{}"));
    }
}
