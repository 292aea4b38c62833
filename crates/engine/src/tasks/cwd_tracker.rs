//! Follows `cd`: a command that may change its folder tells where it ended, and the next one begins there.

use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::process::CommandSpec;
use crate::workspace::Workspace;

/// The variable that tells the shell where to write its last folder.
const CWD_FILE_VARIABLE: &str = "WHIMBREL_CWD_FILE";

/// Written before a command: at its end the shell writes down its folder, if somebody still wants to know.
const RECORD_CWD_TRAP: &str =
    r#"trap '{ [ -f "$WHIMBREL_CWD_FILE" ] && pwd -P >|"$WHIMBREL_CWD_FILE"; } 2>/dev/null' EXIT; "#;

/// Where a command will write its last folder.
pub(crate) struct CwdTracker(NamedTempFile);

impl CwdTracker {
    /// Lets the command write down its last folder. Most commands cannot leave theirs and are not touched.
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

    /// Moves the workspace to where the command ended. If that is outside, it goes back to where the
    /// session works and says so.
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

/// The folder as the workspace names it. The shell tells real paths; the workspace may have been named by a link.
fn path_in_workspace(workspace: &Workspace, folder: &Path) -> Option<PathBuf> {
    if workspace.contains(folder) {
        return Some(folder.to_path_buf());
    }
    let real = workspace.root().canonicalize().ok()?;
    folder.strip_prefix(real).ok().map(|rest| workspace.root().join(rest))
}

/// Whether the word `cd`, `pushd` or `popd` stands somewhere in the command.
fn may_change_cwd(command: &str) -> bool {
    command
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')))
        .any(|word| matches!(word, "cd" | "pushd" | "popd"))
}

#[cfg(test)]
mod tests {
    use super::may_change_cwd;

    #[test]
    fn only_commands_that_change_the_folder_are_followed() {
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
