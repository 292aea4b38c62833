//! Where settings are read and transcripts are kept, or why nothing can be kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::{AccessFlags, access};

use crate::files::{self, FileKind};
use crate::session::ProjectDir;
use crate::settings::config_dir;
use crate::settings::sources::explicit_config_dir;

type Env = BTreeMap<String, String>;

/// The place for transcripts.
#[derive(Debug, Default)]
pub(super) struct TranscriptStorage {
    /// Where they are looked for; none if nobody said where.
    pub(super) project_dir: Option<ProjectDir>,
    /// Why nothing can be written there.
    pub(super) error: Option<Arc<str>>,
}

/// Finds the place for transcripts.
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

/// The temporary folder.
pub(super) fn temp_dir(env: &Env) -> PathBuf {
    env_path(env, "TMPDIR").filter(|folder| folder.is_absolute()).unwrap_or_else(|| "/tmp".into())
}

/// The path in a variable; an empty one is none.
fn env_path(env: &Env, variable: &str) -> Option<PathBuf> {
    env.get(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Why a home folder is none. It is never made, in contrast to what lies in it.
fn home_dir_error(home: &str) -> Option<String> {
    if home.is_empty() {
        return Some("HOME is empty".into());
    }
    if !Path::new(home).is_absolute() {
        return Some(format!("HOME is not an absolute path ({home})"));
    }
    match files::file_kind(Path::new(home)) {
        Ok(FileKind::Directory) => None,
        Ok(FileKind::Missing) => Some(format!("the home folder {home} does not exist")),
        Ok(_) => Some(format!("the home folder {home} is not a folder")),
        Err(error) => Some(format!("the home folder {home} cannot be looked at: {error}")),
    }
}

/// Why nothing can be written below a folder, whose last parts need not exist yet.
fn write_error(folder: &Path) -> Option<String> {
    for there in folder.ancestors() {
        match files::file_kind(there) {
            Ok(FileKind::Missing) => {}
            Ok(FileKind::Directory) => {
                let refused = access(there, AccessFlags::W_OK | AccessFlags::X_OK).err();
                return refused
                    .map(|error| format!("{} cannot be written: {}", there.display(), error.desc()));
            }
            Ok(_) => return Some(format!("{} is not a folder", there.display())),
            Err(error) => return Some(format!("{} cannot be looked at: {error}", there.display())),
        }
    }
    Some(format!("{} does not exist", folder.display()))
}

/// What the host is told where nothing can be written.
pub(super) fn render_warning(why: &str) -> String {
    format!(
        "Nothing of this session is kept on disk, so it cannot be resumed: {why}. Set HOME or CLAUDE_CONFIG_DIR to a folder that can be written."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn transcripts_have_a_place_or_it_is_said_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir_all(folder.path().join("spoilt")).unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        std::fs::write(folder.path().join("spoilt/.claude"), "").unwrap();
        let (home, file, spoilt, gone) = (path(""), path("file"), path("spoilt"), path("gone"));
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], Result<bool, &'a str>);
        let rows: [Row<'_>; 11] = [
            ("nobody says where", &[], Ok(false)),
            ("a home", &[("HOME", &home)], Ok(true)),
            ("an empty home", &[("HOME", "")], Err("HOME is empty")),
            ("a relative home", &[("HOME", "some/where")], Err("not an absolute path (some/where)")),
            ("a home that is gone", &[("HOME", &gone)], Err("does not exist")),
            ("a home that is a file", &[("HOME", &file)], Err("is not a folder")),
            ("a file where the settings should be", &[("HOME", &spoilt)], Err("is not a folder")),
            ("a folder that will be made", &[("CLAUDE_CONFIG_DIR", &gone), ("HOME", "")], Ok(true)),
            ("a folder that cannot be made", &[("CLAUDE_CONFIG_DIR", &file)], Err("is not a folder")),
            ("an empty name is no name", &[("CLAUDE_CONFIG_DIR", ""), ("HOME", &home)], Ok(true)),
            ("and leaves a bad home bad", &[("CLAUDE_CONFIG_DIR", ""), ("HOME", "x")], Err("absolute")),
        ];
        for (name, pairs, expected) in rows {
            let TranscriptStorage { project_dir: place, error: lost } = find_storage(&env(pairs), Path::new("/work"));
            let found = lost.map_or(Ok(place.is_some()), Err);
            match (&found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(*found, expected, "{name}"),
                (Err(text), Err(part)) => assert!(text.contains(part), "{name}: {text}"),
                _ => panic!("{name}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        if nix::unistd::Uid::effective().is_root() {
            return;
        }
        let TranscriptStorage { project_dir: place, error: lost } = find_storage(&env(&[("HOME", "/")]), Path::new("/work"));
        assert!(lost.unwrap().contains("/ cannot be written"));
        assert!(place.is_some(), "what lies there can be read");
    }

    #[test]
    fn nothing_depends_on_where_we_happen_to_be() {
        for home in ["", ".", "a/b"] {
            assert_eq!(config_dir(&env(&[("HOME", home)])), None, "{home:?}");
            assert_eq!(temp_dir(&env(&[("TMPDIR", home)])), Path::new("/tmp"), "{home:?}");
        }
        assert!(config_dir(&env(&[("CLAUDE_CONFIG_DIR", "here")])).unwrap().is_absolute());
    }
}
