//! Storage of transcripts: finds the project directory and checks that it is writable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::{AccessFlags, access};
use whimbrel_config::settings::config_dir;
use whimbrel_config::settings::sources::explicit_config_dir;
use whimbrel_os::files::{self, FileKind};
use whimbrel_session_store::ProjectDir;

type Env = BTreeMap<String, String>;

#[derive(Debug, Default)]
pub(super) struct TranscriptStorage {
    /// Directory of the project's sessions; none without `HOME` and configuration directory.
    pub(super) project_dir: Option<ProjectDir>,
    /// Reason why it is not writable.
    pub(super) error: Option<Arc<str>>,
}

pub(super) fn find_storage(env: &Env, root: &Path) -> TranscriptStorage {
    let by_home = explicit_config_dir(env).is_none();
    let wrong = match env.get("HOME") {
        None => None,
        Some(home) if by_home => home_dir_error(home),
        Some(_) => None,
    };
    let config = config_dir(env);
    let why = wrong.or_else(|| write_error(config.as_deref()?));
    let why = why.map(Into::into);
    TranscriptStorage { project_dir: config.map(|config| ProjectDir::new(&config, root)), error: why }
}

pub(super) fn temp_dir(env: &Env) -> PathBuf {
    env_path(env, "TMPDIR").filter(|dir| dir.is_absolute()).unwrap_or_else(|| "/tmp".into())
}

/// A path from an environment variable; empty counts as unset.
fn env_path(env: &Env, variable: &str) -> Option<PathBuf> {
    env.get(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The problem with `HOME`, if any. The home directory is never created, unlike directories below it.
fn home_dir_error(home: &str) -> Option<String> {
    if home.is_empty() {
        return Some("HOME is empty".into());
    }
    if !Path::new(home).is_absolute() {
        return Some(format!("HOME is not an absolute path ({home})"));
    }
    match files::file_kind(Path::new(home)) {
        Ok(FileKind::Directory) => None,
        Ok(FileKind::Missing) => Some(format!("the home directory {home} does not exist")),
        Ok(_) => Some(format!("the home directory {home} is not a directory")),
        Err(error) => Some(format!("the home directory {home} cannot be accessed: {error}")),
    }
}

/// Why a directory cannot be written. It and some of its parents may not exist yet.
fn write_error(dir: &Path) -> Option<String> {
    for there in dir.ancestors() {
        match files::file_kind(there) {
            Ok(FileKind::Missing) => {}
            Ok(FileKind::Directory) => {
                let refused = access(there, AccessFlags::W_OK | AccessFlags::X_OK).err();
                return refused
                    .map(|error| format!("{} cannot be written: {}", there.display(), error.desc()));
            }
            Ok(_) => return Some(format!("{} is not a directory", there.display())),
            Err(error) => return Some(format!("{} cannot be accessed: {error}", there.display())),
        }
    }
    Some(format!("{} does not exist", dir.display()))
}

/// Warning for the host that the session is not stored.
pub(super) fn render_warning(why: &str) -> String {
    format!(
        "This session is not saved and cannot be resumed: {why}. Set HOME or CLAUDE_CONFIG_DIR to a writable directory."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn storage_is_found_or_the_reason_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        std::fs::create_dir_all(dir.path().join("spoilt")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        std::fs::write(dir.path().join("spoilt/.claude"), "").unwrap();
        let (home, file, spoilt, gone) = (path(""), path("file"), path("spoilt"), path("gone"));
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], Result<bool, &'a str>);
        let rows: [Row<'_>; 11] = [
            ("no variables", &[], Ok(false)),
            ("a home", &[("HOME", &home)], Ok(true)),
            ("an empty home", &[("HOME", "")], Err("HOME is empty")),
            ("a relative home", &[("HOME", "some/where")], Err("not an absolute path (some/where)")),
            ("a home that is gone", &[("HOME", &gone)], Err("does not exist")),
            ("a home that is a file", &[("HOME", &file)], Err("is not a directory")),
            ("a file where the settings should be", &[("HOME", &spoilt)], Err("is not a directory")),
            ("a folder that will be made", &[("CLAUDE_CONFIG_DIR", &gone), ("HOME", "")], Ok(true)),
            ("a folder that cannot be made", &[("CLAUDE_CONFIG_DIR", &file)], Err("is not a directory")),
            ("an empty name is no name", &[("CLAUDE_CONFIG_DIR", ""), ("HOME", &home)], Ok(true)),
            ("and leaves a bad home bad", &[("CLAUDE_CONFIG_DIR", ""), ("HOME", "x")], Err("absolute")),
        ];
        for (name, pairs, expected) in rows {
            let TranscriptStorage { project_dir: place, error: lost } =
                find_storage(&env(pairs), Path::new("/work"));
            let found = lost.map_or(Ok(place.is_some()), Err);
            match (&found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(*found, expected, "{name}"),
                (Err(text), Err(part)) => assert!(text.contains(part), "{name}: {text}"),
                _ => panic!("{name}: {found:?}"),
            }
        }
    }

    #[test]
    fn unwritable_directory_is_reported() {
        if nix::unistd::Uid::effective().is_root() {
            return;
        }
        let TranscriptStorage { project_dir: place, error: lost } =
            find_storage(&env(&[("HOME", "/")]), Path::new("/work"));
        assert!(lost.unwrap().contains("/ cannot be written"));
        assert!(place.is_some(), "what lies there can be read");
    }

    #[test]
    fn relative_paths_in_variables_are_ignored() {
        for home in ["", ".", "a/b"] {
            assert_eq!(config_dir(&env(&[("HOME", home)])), None, "{home:?}");
            assert_eq!(temp_dir(&env(&[("TMPDIR", home)])), Path::new("/tmp"), "{home:?}");
        }
        assert!(config_dir(&env(&[("CLAUDE_CONFIG_DIR", "here")])).unwrap().is_absolute());
    }
}
