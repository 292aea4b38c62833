//! Paths that block an allow decision: those outside the working directories that no rule allows.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use whimbrel_wire::permission::PermissionMode;

use super::ShellCommand;
use super::globs::extract_literal_prefix;
use super::symlinks::follows_symlinks;
use crate::decision_input::DecisionInput;
use crate::dir_walk::{WalkResult, find_below};
use crate::file_access::{find_allow_rule_for_edit, find_allow_rule_for_read};
use crate::fs::FileType;
use crate::paths::{ResolvedPath, resolve_absolute};
use crate::shell::{CommandClass, Redirect, RedirectDirection, RedirectTargetKind, SimpleCommand, WordValue};

/// A path that blocks a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockingPath {
    /// A path that is not allowed.
    Known(PathBuf),
    /// A path that is not known.
    Unknown,
}

impl ShellCommand<'_> {
    /// Finds the first blocking path of a simple command, redirects included.
    pub(crate) fn find_blocking_path(
        &self,
        simple_command: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> Option<BlockingPath> {
        self.find_blocking_paths(simple_command, input).next()
    }

    /// Finds the blocking paths of a simple command, redirects included.
    pub(crate) fn find_blocking_paths<'p>(
        &'p self,
        simple_command: &'p SimpleCommand,
        input: &'p DecisionInput<'_>,
    ) -> impl Iterator<Item = BlockingPath> {
        let scoped = simple_command.restricts_paths
            || matches!(simple_command.class, CommandClass::ReadOnly | CommandClass::AcceptEdits);
        let operands =
            scoped.then(|| self.find_blocking_operands(simple_command, input)).into_iter().flatten();
        let redirects = simple_command
            .redirects
            .iter()
            .filter_map(move |redirect| self.find_blocking_redirect(redirect, simple_command, input));
        operands.chain(redirects)
    }

    /// Finds the first blocking operand.
    pub(super) fn find_blocking_operand(
        &self,
        simple_command: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> Option<BlockingPath> {
        self.find_blocking_operands(simple_command, input).next()
    }

    fn find_blocking_operands<'p>(
        &'p self,
        simple_command: &'p SimpleCommand,
        input: &'p DecisionInput<'_>,
    ) -> impl Iterator<Item = BlockingPath> {
        let through_links = follows_symlinks(simple_command);
        let mut seen = HashSet::new();
        let reads = super::read_operands(simple_command)
            .filter(move |value| seen.insert(*value))
            .filter_map(move |value| self.find_blocking_read(value, simple_command, through_links, input));
        reads.chain(
            simple_command
                .writes
                .iter()
                .filter_map(|value| self.find_blocking_write(value, simple_command, input)),
        )
    }

    fn find_blocking_read(
        &self,
        value: &WordValue,
        simple_command: &SimpleCommand,
        through_links: bool,
        input: &DecisionInput<'_>,
    ) -> Option<BlockingPath> {
        let readable = |path: &ResolvedPath| {
            input.dirs.contains(path) || find_allow_rule_for_read(input, path).is_some()
        };
        let blocked = |text: &str| {
            self.resolve_from_shell_dirs(text).iter().find_map(|path| match () {
                () if self.may_be_moved(path, simple_command) => Some(BlockingPath::Unknown),
                () if !readable(path) => Some(BlockingPath::Known(path.physical.clone())),
                () if through_links => self.disk.walk_cache.find_blocking_link(&path.physical, || {
                    self.find_blocking_link_below(&path.physical, &readable)
                }),
                () => None,
            })
        };
        match value {
            WordValue::Literal(text) => blocked(text),
            WordValue::Glob(glob) => {
                if let Some(blocking) = blocked(&extract_literal_prefix(glob).to_string_lossy()) {
                    return Some(blocking);
                }
                for directory in &self.directories.shell_dirs {
                    let expansion = self.expand_glob(glob, directory);
                    let mut paths = expansion.paths.iter().map(|path| path.to_string_lossy());
                    if let Some(blocking) = paths.find_map(|path| blocked(&path)) {
                        return Some(blocking);
                    }
                    if !expansion.complete {
                        return Some(BlockingPath::Unknown);
                    }
                }
                None
            }
            WordValue::Unknown { .. } => Some(BlockingPath::Unknown),
        }
    }

    fn find_blocking_write(
        &self,
        value: &WordValue,
        simple_command: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> Option<BlockingPath> {
        let WordValue::Literal(text) = value else { return Some(BlockingPath::Unknown) };
        let writable = |path: &ResolvedPath| {
            input.dirs.contains(path) || find_allow_rule_for_edit(input, path).is_some()
        };
        self.find_not_accepted(text, simple_command, writable)
    }

    pub(super) fn find_blocking_redirect(
        &self,
        redirect: &Redirect,
        simple_command: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> Option<BlockingPath> {
        match redirect.target_kind {
            RedirectTargetKind::Null => return None,
            RedirectTargetKind::Stream | RedirectTargetKind::Network => return Some(BlockingPath::Unknown),
            RedirectTargetKind::File => {}
        }
        let WordValue::Literal(text) = &redirect.target else { return Some(BlockingPath::Unknown) };
        if redirect.direction == RedirectDirection::Read {
            return self.find_blocking_read(&redirect.target, simple_command, false, input);
        }
        let accepted = |path: &ResolvedPath| {
            find_allow_rule_for_edit(input, path).is_some()
                || input.mode == PermissionMode::AcceptEdits && input.dirs.contains(path)
        };
        self.find_not_accepted(text, simple_command, accepted)
    }

    fn find_not_accepted(
        &self,
        text: &str,
        simple_command: &SimpleCommand,
        accepted: impl Fn(&ResolvedPath) -> bool,
    ) -> Option<BlockingPath> {
        self.resolve_from_shell_dirs(text).iter().find_map(|path| match () {
            () if self.may_be_moved(path, simple_command) => Some(BlockingPath::Unknown),
            () if !accepted(path) => Some(BlockingPath::Known(path.physical.clone())),
            () => None,
        })
    }

    /// Finds the target of a link below a directory, if it must not be read.
    fn find_blocking_link_below(
        &self,
        directory: &Path,
        readable: &impl Fn(&ResolvedPath) -> bool,
    ) -> Option<BlockingPath> {
        let mut target = None;
        let below = find_below(directory, self.disk.context.fs, |path, kind| {
            if kind == FileType::Link {
                target = Some(resolve_absolute(path, &self.disk.context)).filter(|path| !readable(path));
            }
            target.is_some()
        });
        match below {
            WalkResult::NotFound => None,
            WalkResult::LimitExceeded => Some(BlockingPath::Unknown),
            WalkResult::Found => {
                Some(target.map_or(BlockingPath::Unknown, |path| BlockingPath::Known(path.physical)))
            }
        }
    }
}

/// Returns true if a physical path lies in a working directory, so that its location does not block it.
pub(super) fn is_in_work_dirs(path: &Path, input: &DecisionInput<'_>) -> bool {
    input.dirs.all().any(|dir| dir.contains(path))
}
