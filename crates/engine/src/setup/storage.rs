//! Storage of transcripts: finds the project directory and checks that it is writable.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::{AccessFlags, access};
use whimbrel_config::settings::config_dir;
use whimbrel_config::settings::sources::{env_path, explicit_config_dir};
use whimbrel_os::files::{self, FileKind};
use whimbrel_session_store::TranscriptDir;

use super::env::Env;

#[derive(Debug, Default)]
pub(super) struct TranscriptStorage {
    /// Directory of the project's sessions; `None` without `HOME` and configuration directory.
    pub(super) transcript_dir: Option<TranscriptDir>,
    /// Reason why it is not writable.
    pub(super) error: Option<Arc<str>>,
}

pub(super) fn find_storage(env: &Env, root: &Path) -> TranscriptStorage {
    let by_home = explicit_config_dir(env).is_none();
    let home_error = match env.get("HOME") {
        None => None,
        Some(home) if by_home => home_dir_error(home),
        Some(_) => None,
    };
    let config = config_dir(env);
    let error = home_error.or_else(|| write_error(config.as_deref()?));
    let error = error.map(Into::into);
    TranscriptStorage { transcript_dir: config.map(|config| TranscriptDir::new(&config, root)), error }
}

pub(super) fn temp_dir(env: &Env) -> PathBuf {
    env_path(env, "TMPDIR").filter(|dir| dir.is_absolute()).unwrap_or_else(|| "/tmp".into())
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
    for ancestor in dir.ancestors() {
        match files::file_kind(ancestor) {
            Ok(FileKind::Missing) => {}
            Ok(FileKind::Directory) => {
                let error = access(ancestor, AccessFlags::W_OK | AccessFlags::X_OK).err();
                return error
                    .map(|error| format!("{} cannot be written: {}", ancestor.display(), error.desc()));
            }
            Ok(_) => return Some(format!("{} is not a directory", ancestor.display())),
            Err(error) => return Some(format!("{} cannot be accessed: {error}", ancestor.display())),
        }
    }
    Some(format!("{} does not exist", dir.display()))
}

/// Warning for the host that the session is not stored.
pub(super) fn render_warning(reason: &str) -> String {
    format!(
        "This session is not saved and cannot be resumed: {reason}. Set HOME or CLAUDE_CONFIG_DIR to a writable directory."
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
        std::fs::create_dir_all(dir.path().join("invalid")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        std::fs::write(dir.path().join("invalid/.claude"), "").unwrap();
        let (home, file, invalid, missing) = (path(""), path("file"), path("invalid"), path("missing"));
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], Result<bool, &'a str>);
        let rows: [Row<'_>; 11] = [
            ("no variables", &[], Ok(false)),
            ("a home", &[("HOME", &home)], Ok(true)),
            ("an empty home", &[("HOME", "")], Err("HOME is empty")),
            ("a relative home", &[("HOME", "some/where")], Err("not an absolute path (some/where)")),
            ("a missing home", &[("HOME", &missing)], Err("does not exist")),
            ("a home that is a file", &[("HOME", &file)], Err("is not a directory")),
            (
                "a file in place of the configuration directory",
                &[("HOME", &invalid)],
                Err("is not a directory"),
            ),
            (
                "a configuration directory to be created",
                &[("CLAUDE_CONFIG_DIR", &missing), ("HOME", "")],
                Ok(true),
            ),
            (
                "a configuration directory that is a file",
                &[("CLAUDE_CONFIG_DIR", &file)],
                Err("is not a directory"),
            ),
            ("an empty variable counts as unset", &[("CLAUDE_CONFIG_DIR", ""), ("HOME", &home)], Ok(true)),
            (
                "an empty variable and a relative home",
                &[("CLAUDE_CONFIG_DIR", ""), ("HOME", "x")],
                Err("absolute"),
            ),
        ];
        for (name, pairs, expected) in rows {
            let TranscriptStorage { transcript_dir, error } = find_storage(&env(pairs), Path::new("/work"));
            let found = error.map_or(Ok(transcript_dir.is_some()), Err);
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
        let TranscriptStorage { transcript_dir, error } =
            find_storage(&env(&[("HOME", "/")]), Path::new("/work"));
        assert!(error.unwrap().contains("/ cannot be written"));
        assert!(transcript_dir.is_some(), "stored sessions can still be read");
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
