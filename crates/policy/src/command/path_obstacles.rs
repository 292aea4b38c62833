//! Paths that block an allow decision: those outside the working directories that no rule allows.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use whimbrel_wire::permission::PermissionMode;

use super::ShellCommand;
use super::globs::literal_prefix;
use super::symlinks::follows_symlinks;
use crate::decision_input::DecisionInput;
use crate::dir_walk::{WalkResult, find_below};
use crate::file_access::{allow_rule_for_edit, allow_rule_for_read};
use crate::fs::EntryKind;
use crate::paths::{ResolvedPath, resolve_absolute};
use crate::shell::{
    CheckScope, CommandClass, Redirect, RedirectDirection, RedirectTargetKind, SimpleCommand, WordValue,
};

/// Reason why a path blocks a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathObstacle {
    /// A path that is not allowed.
    Path(PathBuf),
    /// A path that is not known.
    Unknown,
}

impl ShellCommand<'_> {
    /// The first blocking path of a simple command, redirects included.
    pub(crate) fn path_obstacle(
        &self,
        part: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> Option<PathObstacle> {
        self.path_obstacles(part, input).next()
    }

    /// The blocking paths of a simple command, redirects included.
    pub(crate) fn path_obstacles<'p>(
        &'p self,
        part: &'p SimpleCommand,
        input: &'p DecisionInput<'_>,
    ) -> impl Iterator<Item = PathObstacle> {
        let scoped =
            part.restricts_paths || matches!(part.class, CommandClass::ReadOnly | CommandClass::AcceptEdits);
        let operands = scoped.then(|| self.operand_obstacles(part, input)).into_iter().flatten();
        let redirects =
            part.redirects.iter().filter_map(move |redirect| self.redirect_obstacle(redirect, part, input));
        operands.chain(redirects)
    }

    /// The first blocking operand.
    pub(super) fn operand_obstacle(
        &self,
        part: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> Option<PathObstacle> {
        self.operand_obstacles(part, input).next()
    }

    fn operand_obstacles<'p>(
        &'p self,
        part: &'p SimpleCommand,
        input: &'p DecisionInput<'_>,
    ) -> impl Iterator<Item = PathObstacle> {
        let through_links = follows_symlinks(part);
        let mut seen = HashSet::new();
        let reads = super::read_operands(part)
            .filter(move |value| seen.insert(*value))
            .filter_map(move |value| self.read_obstacle(value, part, through_links, input));
        reads.chain(part.writes.iter().filter_map(|value| self.write_obstacle(value, part, input)))
    }

    fn read_obstacle(
        &self,
        value: &WordValue,
        part: &SimpleCommand,
        through_links: bool,
        input: &DecisionInput<'_>,
    ) -> Option<PathObstacle> {
        let readable =
            |path: &ResolvedPath| input.dirs.contains(path) || allow_rule_for_read(input, path).is_some();
        let blocked = |text: &str| {
            self.resolve_from_shell_dirs(text).iter().find_map(|path| match () {
                () if self.may_be_moved(path, part) => Some(PathObstacle::Unknown),
                () if !readable(path) => Some(PathObstacle::Path(path.physical.clone())),
                () if through_links => self
                    .disk
                    .walk_cache
                    .link_obstacle(&path.physical, || self.link_obstacle_below(&path.physical, &readable)),
                () => None,
            })
        };
        match value {
            WordValue::Literal(text) => blocked(text),
            WordValue::Glob(glob) => {
                if let Some(obstacle) = blocked(&literal_prefix(glob).to_string_lossy()) {
                    return Some(obstacle);
                }
                for directory in &self.directories.shell_dirs {
                    let expansion = self.expand_glob(glob, directory);
                    let mut paths = expansion.paths.iter().map(|path| path.to_string_lossy());
                    if let Some(obstacle) = paths.find_map(|path| blocked(&path)) {
                        return Some(obstacle);
                    }
                    if !expansion.complete {
                        return Some(PathObstacle::Unknown);
                    }
                }
                None
            }
            WordValue::Unknown { .. } => Some(PathObstacle::Unknown),
        }
    }

    fn write_obstacle(
        &self,
        value: &WordValue,
        part: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> Option<PathObstacle> {
        let WordValue::Literal(text) = value else { return Some(PathObstacle::Unknown) };
        let writable =
            |path: &ResolvedPath| input.dirs.contains(path) || allow_rule_for_edit(input, path).is_some();
        self.first_not_accepted(text, part, writable)
    }

    pub(super) fn redirect_obstacle(
        &self,
        redirect: &Redirect,
        part: &SimpleCommand,
        input: &DecisionInput<'_>,
    ) -> Option<PathObstacle> {
        match redirect.target_kind {
            RedirectTargetKind::Null => return None,
            RedirectTargetKind::Stream | RedirectTargetKind::Network => return Some(PathObstacle::Unknown),
            RedirectTargetKind::File => {}
        }
        let WordValue::Literal(text) = &redirect.target else { return Some(PathObstacle::Unknown) };
        if redirect.direction == RedirectDirection::Read {
            return self.read_obstacle(&redirect.target, part, false, input);
        }
        let accepted = |path: &ResolvedPath| {
            allow_rule_for_edit(input, path).is_some()
                || input.mode == PermissionMode::AcceptEdits && input.dirs.contains(path)
        };
        self.first_not_accepted(text, part, accepted)
    }

    fn first_not_accepted(
        &self,
        text: &str,
        part: &SimpleCommand,
        accepted: impl Fn(&ResolvedPath) -> bool,
    ) -> Option<PathObstacle> {
        self.resolve_from_shell_dirs(text).iter().find_map(|path| match () {
            () if self.may_be_moved(path, part) => Some(PathObstacle::Unknown),
            () if !accepted(path) => Some(PathObstacle::Path(path.physical.clone())),
            () => None,
        })
    }

    /// The target of a link below a directory, if it must not be read.
    fn link_obstacle_below(
        &self,
        directory: &Path,
        readable: &impl Fn(&ResolvedPath) -> bool,
    ) -> Option<PathObstacle> {
        let mut target = None;
        let below = find_below(directory, self.disk.context.fs, |path, kind| {
            if kind == EntryKind::Link {
                target = Some(resolve_absolute(path, &self.disk.context)).filter(|path| !readable(path));
            }
            target.is_some()
        });
        match below {
            WalkResult::NotFound => None,
            WalkResult::LimitExceeded => Some(PathObstacle::Unknown),
            WalkResult::Found => {
                Some(target.map_or(PathObstacle::Unknown, |path| PathObstacle::Path(path.physical)))
            }
        }
    }

    /// The obstacle of a directory change: its target, a second change, or a combination with writes or git.
    pub(crate) fn directory_obstacle(&self, input: &DecisionInput<'_>) -> Option<PathObstacle> {
        if self.directories.truncated {
            return Some(PathObstacle::Unknown);
        }
        let target = match self.script.cd_targets.as_slice() {
            [] => return None,
            [Some(WordValue::Literal(target))] => target,
            _ => return Some(PathObstacle::Unknown),
        };
        let context = self.disk.context;
        let path = resolve_absolute(&context.cwd.join(target), &context);
        if !input.dirs.contains(&path) {
            return Some(PathObstacle::Path(path.physical));
        }
        let stays = path.physical == crate::paths::physical_path(context.cwd, context.fs);
        let writes = |part: &SimpleCommand| {
            let mut redirects = part.redirects.iter();
            !part.writes.is_empty()
                || redirects.any(|redirect| {
                    redirect.direction == RedirectDirection::Write
                        && redirect.target_kind != RedirectTargetKind::Null
                })
        };
        let uses_git = |part: &SimpleCommand| part.program.as_deref() == Some("git");
        let mut parts = self.script.commands.iter().filter(|part| part.check_scope != CheckScope::Guess);
        parts.any(|part| writes(part) || !stays && uses_git(part)).then_some(PathObstacle::Unknown)
    }
}

/// Returns true if a physical path lies in a working directory, so that its location is not the obstacle.
pub(super) fn is_in_work_dirs(path: &Path, input: &DecisionInput<'_>) -> bool {
    input.dirs.all().any(|dir| dir.contains(path))
}
