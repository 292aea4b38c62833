//! Carries `cd` over to the next command: a command that may change its directory records where it ended.

use std::path::PathBuf;

use tempfile::NamedTempFile;

use crate::shell_command::CommandSpec;

/// Variable with the file in which the shell records its last directory.
const CWD_FILE_VARIABLE: &str = "WHIMBREL_CWD_FILE";

/// Prefix of a command: at exit the shell records its directory, if the file still exists.
const RECORD_CWD_TRAP: &str =
    r#"trap '{ [ -f "$WHIMBREL_CWD_FILE" ] && pwd -P >|"$WHIMBREL_CWD_FILE"; } 2>/dev/null' EXIT; "#;

/// The file in which a command will record its last directory.
pub struct CwdTracker(NamedTempFile);

impl CwdTracker {
    /// Prepares a command to record its last directory. Commands without `cd` are left unchanged.
    pub fn attach(spec: &mut CommandSpec) -> Option<Self> {
        if !may_change_cwd(&spec.command) {
            return None;
        }
        let file = NamedTempFile::new().ok()?;
        let path = file.path().to_str()?.to_owned();
        spec.environment.insert(CWD_FILE_VARIABLE.into(), path);
        spec.command.insert_str(0, RECORD_CWD_TRAP);
        Some(Self(file))
    }

    /// The directory in which the shell ended, if it recorded one.
    pub fn last_dir(self) -> Option<PathBuf> {
        let dir = std::fs::read_to_string(self.0.path()).ok()?;
        Some(PathBuf::from(dir.strip_suffix('\n')?))
    }
}

/// Returns whether the word `cd`, `pushd` or `popd` occurs in the command.
fn may_change_cwd(command: &str) -> bool {
    command
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')))
        .any(|word| matches!(word, "cd" | "pushd" | "popd"))
}

#[cfg(test)]
mod tests {
    use crate::cwd_tracker::may_change_cwd;

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
