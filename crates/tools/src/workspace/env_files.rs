//! Shell files that a Bash command reads before it runs: the file of the user (`CLAUDE_ENV_FILE`), and a file to which
//! hooks add variables.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;
use whimbrel_process::quote_word;

/// Variable with the file of the user. Hooks find the path of their file in it.
pub const ENV_FILE_VARIABLE: &str = "CLAUDE_ENV_FILE";

/// Directory of the file for hooks. Its name makes the file a protected path: tools cannot write it without asking.
const PROTECTED_DIR: &str = ".whimbrel";

/// The file of a session to which hooks add variables. It is deleted with the session.
#[derive(Debug, Default)]
pub(super) struct HookEnvFile(OnceLock<Option<(TempDir, PathBuf)>>);

impl HookEnvFile {
    /// Returns the file, creating it on first use; `None` if that fails. Accesses the disk.
    pub(super) fn create(&self) -> Option<&Path> {
        let create = || {
            let dir = tempfile::Builder::new().prefix("whimbrel-env-").tempdir().ok()?;
            let file = dir.path().join(PROTECTED_DIR).join("session-env.sh");
            std::fs::create_dir(file.parent()?).ok()?;
            std::fs::write(&file, "").ok()?;
            Some((dir, file))
        };
        self.0.get_or_init(create).as_ref().map(|(_, file)| file.as_path())
    }

    /// The file, if hooks have written to it. Accesses the disk.
    pub(super) fn if_written(&self) -> Option<PathBuf> {
        let (_, file) = self.0.get()?.as_ref()?;
        let is_written = file.metadata().is_ok_and(|metadata| metadata.len() > 0);
        is_written.then(|| file.clone())
    }
}

/// Returns a command that reads the files first. What they print on stdout is dropped.
pub(crate) fn source_files(files: &[PathBuf], command: String) -> String {
    if files.is_empty() {
        return command;
    }
    let files = files.iter().filter_map(|file| file.to_str()).map(quote_word);
    let sources: String =
        files.map(|file| format!("if [ -r {file} ]; then . {file} >/dev/null; fi; ")).collect();
    // CDPATH would make `cd` go elsewhere than the permission check assumed.
    format!("{sources}unset CDPATH; {command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_in_order_before_the_command() {
        assert_eq!(source_files(&[], "ls".into()), "ls");
        let files = ["/a b".into(), "/c'd".into()];
        assert_eq!(
            source_files(&files, "ls".into()),
            r"if [ -r '/a b' ]; then . '/a b' >/dev/null; fi; if [ -r '/c'\''d' ]; then . '/c'\''d' >/dev/null; fi; unset CDPATH; ls"
        );
    }

    #[test]
    fn hook_file_counts_once_it_is_written() {
        let file = HookEnvFile::default();
        assert_eq!(file.if_written(), None, "not created");
        let path = file.create().unwrap().to_owned();
        assert!(whimbrel_policy::paths::protected::is_protected(&path), "{path:?}");
        assert_eq!(file.if_written(), None, "empty");
        std::fs::write(&path, "export A=1\n").unwrap();
        assert_eq!((file.if_written(), file.create()), (Some(path.clone()), Some(path.as_path())));
        drop(file);
        assert!(!path.exists());
    }
}
