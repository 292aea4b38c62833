//! Decides whether a change of directory prevents a command from being allowed, whatever its simple commands are.
//!
//! Paths are resolved from the shell's directory, so a command may contain at most one `cd`, with a known target in a
//! working directory. Even then it must not write files, and must not run git in another directory, where the
//! repository may configure programs to run.

use super::ShellCommand;
use super::blocking_paths::BlockingPath;
use crate::decision_input::DecisionInput;
use crate::paths::{resolve_absolute, resolve_physical_path};
use crate::shell::{CheckScope, RedirectDirection, RedirectTargetKind, SimpleCommand, WordValue};

impl ShellCommand<'_> {
    /// Finds the reason why a change of directory prevents the command from being allowed:
    ///
    /// 1. there are more possible directories than are tracked;
    /// 2. there is a second change, or the target is not known;
    /// 3. the target is outside the working directories;
    /// 4. the command also writes files, or runs git in a directory other than the current one.
    pub(crate) fn find_directory_change_block(&self, input: &DecisionInput<'_>) -> Option<BlockingPath> {
        if self.directories.truncated {
            return Some(BlockingPath::Unknown);
        }
        let target = match self.analysis.cd_targets.as_slice() {
            [] => return None,
            [Some(WordValue::Literal(target))] => target,
            _ => return Some(BlockingPath::Unknown),
        };
        let context = self.disk.context;
        let path = resolve_absolute(&context.cwd.join(target), &context);
        if !input.dirs.contains(&path) {
            return Some(BlockingPath::Known(path.physical));
        }
        let stays = path.physical == resolve_physical_path(context.cwd, context.fs);
        let mut simple_commands = self
            .analysis
            .commands
            .iter()
            .filter(|simple_command| simple_command.check_scope != CheckScope::Possible);
        simple_commands
            .any(|simple_command| writes_files(simple_command) || !stays && runs_git(simple_command))
            .then_some(BlockingPath::Unknown)
    }
}

fn writes_files(simple_command: &SimpleCommand) -> bool {
    let mut redirects = simple_command.redirects.iter();
    !simple_command.writes.is_empty()
        || redirects.any(|redirect| {
            redirect.direction == RedirectDirection::Write && redirect.target_kind != RedirectTargetKind::Null
        })
}

fn runs_git(simple_command: &SimpleCommand) -> bool {
    simple_command.program.as_deref() == Some("git")
}
