//! Carries `cd` over to the next command: a command that may change its directory records where it ended.

use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::process::CommandSpec;
use crate::workspace::Workspace;

/// Variable with the file in which the shell records its last directory.
const CWD_FILE_VARIABLE: &str = "WHIMBREL_CWD_FILE";

/// Prefix of a command: at exit the shell records its directory, if the file still exists.
const RECORD_CWD_TRAP: &str =
    r#"trap '{ [ -f "$WHIMBREL_CWD_FILE" ] && pwd -P >|"$WHIMBREL_CWD_FILE"; } 2>/dev/null' EXIT; "#;

/// The file in which a command will record its last directory.
pub(crate) struct CwdTracker(NamedTempFile);

impl CwdTracker {
    /// Prepares a command to record its last directory. Commands without `cd` are left unchanged.
    pub(crate) fn attach(order: &mut CommandSpec) -> Option<Self> {
        if !may_change_cwd(&order.command) {
            return None;
        }
        let file = NamedTempFile::new().ok()?;
        let path = file.path().to_str()?.to_owned();
        order.environment.insert(CWD_FILE_VARIABLE.into(), path);
        order.command.insert_str(0, RECORD_CWD_TRAP);
        Some(Self(file))
    }

    /// Sets the working directory of the workspace to where the command ended. If that is outside the workspace, resets
    /// it to the base directory and returns a note.
    pub(crate) fn apply(self, workspace: &Workspace) -> Option<String> {
        let folder = std::fs::read_to_string(self.0.path()).ok()?;
        let folder = PathBuf::from(folder.strip_suffix('\n')?);
        match path_in_workspace(workspace, &folder) {
            Some(folder) => {
                workspace.set_cwd(folder);
                None
            }
            None => {
                let base = workspace.base_dir();
                workspace.set_cwd(base.clone());
                Some(format!(
                    "({} is outside the workspace: the next command starts in {}.)",
                    folder.display(),
                    base.display()
                ))
            }
        }
    }
}

/// The directory as the workspace names it: the shell reports real paths, but the workspace may be named by a symlink.
fn path_in_workspace(workspace: &Workspace, folder: &Path) -> Option<PathBuf> {
    if workspace.contains(folder) {
        return Some(folder.to_path_buf());
    }
    let real = workspace.root().canonicalize().ok()?;
    folder.strip_prefix(real).ok().map(|rest| workspace.root().join(rest))
}

/// Returns whether the word `cd`, `pushd` or `popd` occurs in the command.
fn may_change_cwd(command: &str) -> bool {
    command
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')))
        .any(|word| matches!(word, "cd" | "pushd" | "popd"))
}

#[cfg(test)]
mod tests {
    use super::may_change_cwd;

    #[test]
    fn only_commands_with_cd_are_tracked() {
        for (command, expected) in [
            ("cd src", true),
            ("cd", true),
            ("make && cd x;ls", true),
            ("(pushd a)", true),
            ("if true; then\n\tcd a\nfi", true),
            ("true K", false),
            ("abcd; ls ./cd", false),
            ("echo cd-rom", false),
        ] {
            assert_eq!(may_change_cwd(command), expected, "{command}");
        }
    }
}
