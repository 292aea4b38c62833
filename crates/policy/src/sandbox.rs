//! Whether a shell command runs in the sandbox. Pure: from the settings and the text of the command.

use std::ffi::OsStr;
use std::path::Path;

use crate::rules::command_pattern::CommandPattern;
use crate::shell::{
    self, CheckScope, CommandAnalysis, QUOTED_BLANK, RequiredRule, ShellContext, SimpleCommand,
};
use crate::work_dirs::WorkDirs;

/// Field of the input by which the model asks to run a command outside of the sandbox.
pub const OVERRIDE_FIELD: &str = "dangerouslyDisableSandbox";

/// Settings of a sandbox that is available.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxRules {
    /// Confined commands need no approval.
    pub auto_allow: bool,
    /// The model may ask to run a command unconfined. Otherwise its flag is ignored.
    pub allow_unconfined: bool,
    /// Contents of Bash rules: commands that run outside of the sandbox.
    pub excluded: Vec<String>,
    /// What the sandbox keeps from changing; `None` if it does not protect files.
    pub files: Option<FileProtection>,
}

/// Files that confined commands cannot change, whatever they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileProtection {
    /// Names directly below writable directories.
    pub names: &'static [&'static str],
    /// Nothing outside of the working directories is writable.
    pub only_work_dirs: bool,
}

/// Files of a git repository that run programs, and how deep the sandbox finds repositories.
const GIT_FILES: [&str; 3] = ["hooks", "config", "config.worktree"];
const MAX_REPOSITORY_DEPTH: usize = 3;

impl FileProtection {
    /// Returns true if the sandbox refuses to change a file, so that nothing need be asked.
    pub(crate) fn covers(self, path: &Path, dirs: &WorkDirs) -> bool {
        if !path.is_absolute() {
            return false;
        }
        let mut below = dirs.all().filter_map(|dir| path.strip_prefix(&dir.physical).ok()).peekable();
        if below.peek().is_none() {
            return self.only_work_dirs;
        }
        below.all(|rest| self.covers_name(rest))
    }

    /// `rest` is relative to a writable directory.
    fn covers_name(self, rest: &Path) -> bool {
        let names: Vec<&str> = rest.iter().filter_map(OsStr::to_str).collect();
        let is_own = names.first().is_some_and(|name| self.names.contains(name));
        let is_worktree = matches!(names.as_slice(), [".claude", "worktrees", ..]);
        let of_git = names.iter().position(|name| *name == ".git").is_some_and(|at| {
            at <= MAX_REPOSITORY_DEPTH && names.get(at + 1).is_some_and(|name| GIT_FILES.contains(name))
        });
        (is_own && !is_worktree) || of_git
    }
}

/// How a shell command runs in a session with a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxState {
    Confined {
        /// It needs no approval, except in plan mode.
        auto_allow: bool,
        /// What it cannot change.
        files: Option<FileProtection>,
    },
    /// Unconfined, because the settings exclude it.
    Excluded,
    /// Unconfined, because the model asks for it.
    Overridden,
}

impl SandboxState {
    pub fn is_confined(self) -> bool {
        matches!(self, Self::Confined { .. })
    }
}

impl SandboxRules {
    /// Decides how a command runs. `is_override_requested` is the model's flag.
    pub fn state(&self, command: &str, is_override_requested: bool) -> SandboxState {
        if !self.excluded.is_empty() && self.excludes(command) {
            SandboxState::Excluded
        } else if is_override_requested && self.allow_unconfined {
            SandboxState::Overridden
        } else {
            SandboxState::Confined { auto_allow: self.auto_allow, files: self.files }
        }
    }

    /// Returns true if every part of the command is excluded and the text shows everything that it does.
    fn excludes(&self, command: &str) -> bool {
        let analysis = shell::analyze(command, &ShellContext { home: "" });
        let patterns: Vec<CommandPattern> =
            self.excluded.iter().map(|content| CommandPattern::new(content)).collect();
        is_plain(command, &analysis)
            && !analysis.commands.is_empty()
            && analysis.commands.iter().all(|simple_command| is_excluded(simple_command, &patterns))
    }
}

/// Returns true if a command has no change of directory, substitution, here-document or background process.
fn is_plain(command: &str, analysis: &CommandAnalysis) -> bool {
    analysis.unanalyzable.is_empty()
        && !analysis.truncated
        && !analysis.is_opaque()
        && !analysis.background
        && analysis.cd_targets.is_empty()
        && analysis.cd_directories.is_empty()
        && analysis.option_directories.is_empty()
        && !command.contains("<<")
}

fn is_excluded(simple_command: &SimpleCommand, patterns: &[CommandPattern]) -> bool {
    let matches = |pattern: &CommandPattern| {
        let texts = simple_command.allow_texts.iter();
        let texts = texts.filter(|allow_text| allow_text.required_rule == RequiredRule::AnyRule);
        texts.into_iter().any(|allow_text| pattern.matches(&allow_text.text.replace(QUOTED_BLANK, " ")))
            || pattern.is_exact() && pattern.matches(&simple_command.raw)
    };
    simple_command.check_scope == CheckScope::Full
        && simple_command.redirects.is_empty()
        && simple_command.assignments.is_empty()
        && patterns.iter().any(matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_and_exclusions_decide_how_a_command_runs() {
        let confined = SandboxState::Confined { auto_allow: false, files: None };
        let rows = [
            ("make", false, true, confined),
            ("make", true, true, SandboxState::Overridden),
            ("make", true, false, confined),
            ("docker ps", false, false, SandboxState::Excluded),
            ("docker ps", true, true, SandboxState::Excluded),
            ("docker ps && make", false, true, confined),
        ];
        for (command, flag, allow_unconfined, expected) in rows {
            let rules = SandboxRules {
                allow_unconfined,
                excluded: vec!["docker *".into()],
                ..SandboxRules::default()
            };
            assert_eq!(rules.state(command, flag), expected, "{command} {flag} {allow_unconfined}");
        }
    }

    #[test]
    fn every_part_must_be_excluded_and_visible() {
        let rules = SandboxRules {
            excluded: vec!["docker *".into(), "./tool.sh".into(), "echo *".into()],
            ..SandboxRules::default()
        };
        let rows = [
            ("docker", true),
            ("docker ps -a", true),
            ("docker ps | docker load", true),
            ("docker ps 2>&1", true),
            ("./tool.sh", true),
            ("./tool.sh now", false),
            ("docker ps > /etc/x", false),
            ("docker ps < /etc/x", false),
            ("cd /etc; docker ps", false),
            ("docker $(cat /etc/x)", false),
            ("docker `id`", false),
            ("docker <(id)", false),
            ("docker load <<E\nx\nE", false),
            ("docker load <<< x", false),
            ("PATH=. docker ps", false),
            ("docker ps; id", false),
            ("docker ps & id", false),
            ("docker ps &", false),
            ("sh -c 'docker ps'", false),
            ("env docker ps", false),
            ("eval docker ps", false),
            ("$X docker", false),
            ("dockers", false),
            ("echo x; id", false),
            ("", false),
        ];
        for (command, expected) in rows {
            assert_eq!(rules.excludes(command), expected, "{command}");
        }
    }

    #[test]
    fn a_pattern_for_everything_still_needs_a_plain_command() {
        let rules = SandboxRules { excluded: vec!["*".into()], ..SandboxRules::default() };
        assert!(rules.excludes("make all"));
        assert!(!rules.excludes("make all > out"));
    }
}
