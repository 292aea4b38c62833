//! Carries `cd` over to the next command: a command that may change its directory records where it ended.

use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::shell_command::CommandSpec;

/// Variable with the file in which the shell records its last directory.
const CWD_FILE_VARIABLE: &str = "WHIMBREL_CWD_FILE";

/// Longest path that is read.
const MAX_PATH_BYTES: u64 = 64 * 1024;

/// Prefix of a command: at exit the shell records its directory, if the file still exists.
const RECORD_CWD_TRAP: &str =
    r#"trap '{ [ -f "$WHIMBREL_CWD_FILE" ] && pwd -P >|"$WHIMBREL_CWD_FILE"; } 2>/dev/null' EXIT; "#;

/// The file in which a command will record its last directory.
pub struct CwdTracker(NamedTempFile);

impl CwdTracker {
    /// Prepares a command to record its last directory. Commands without `cd` are left unchanged.
    pub fn attach(spec: &mut CommandSpec) -> Option<Self> {
        Self::attach_in(spec, &std::env::temp_dir())
    }

    /// The same with the file in a folder that the command can write.
    pub fn attach_in(spec: &mut CommandSpec, folder: &Path) -> Option<Self> {
        if !may_change_cwd(&spec.command) {
            return None;
        }
        let file = NamedTempFile::new_in(folder).ok()?;
        let path = file.path().to_str()?.to_owned();
        spec.environment.insert(CWD_FILE_VARIABLE.into(), path);
        spec.command.insert_str(0, RECORD_CWD_TRAP);
        Some(Self(file))
    }

    /// The directory in which the shell ended, if it recorded one.
    pub fn last_dir(mut self) -> Option<PathBuf> {
        // By the open file: the command may have put a link in its place.
        let file = self.0.as_file_mut();
        file.rewind().ok()?;
        let mut dir = String::new();
        file.take(MAX_PATH_BYTES).read_to_string(&mut dir).ok()?;
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
