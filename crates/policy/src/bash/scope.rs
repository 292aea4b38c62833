//! Paths that stand in the way of allowing: those outside the working directories that no rule opens.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use whimbrel_wire::permission::PermissionMode;

use super::Command;
use super::expand::static_prefix;
use super::links::follows;
use crate::below::{Below, look_below};
use crate::decide::Case;
use crate::files::{edit_grant, read_grant};
use crate::fs::EntryKind;
use crate::paths::{Spellings, resolve_absolute};
use crate::shell::{Class, Part, Place, Reach, Redirect, Value, Way};

/// Why a part or its paths are not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// This path.
    Path(PathBuf),
    /// A name that is not known.
    Unknown,
}

impl Command<'_> {
    /// The first path of a part, redirects included, that stands in the way.
    pub(crate) fn path_obstacle(&self, part: &Part, case: &Case<'_>) -> Option<Obstacle> {
        self.path_obstacles(part, case).next()
    }

    /// The paths of a part, redirects included, that stand in the way.
    pub(crate) fn path_obstacles<'p>(
        &'p self,
        part: &'p Part,
        case: &'p Case<'_>,
    ) -> impl Iterator<Item = Obstacle> {
        let scoped = part.scoped || matches!(part.class, Class::ReadOnly | Class::AcceptEdits);
        let operands = scoped.then(|| self.operand_obstacles(part, case)).into_iter().flatten();
        let redirects =
            part.redirects.iter().filter_map(move |redirect| self.redirect_obstacle(redirect, part, case));
        operands.chain(redirects)
    }

    /// The first operand that may not be touched.
    pub(super) fn operand_obstacle(&self, part: &Part, case: &Case<'_>) -> Option<Obstacle> {
        self.operand_obstacles(part, case).next()
    }

    fn operand_obstacles<'p>(&'p self, part: &'p Part, case: &'p Case<'_>) -> impl Iterator<Item = Obstacle> {
        let through_links = follows(part);
        let mut seen = HashSet::new();
        let reads = super::reads(part)
            .filter(move |value| seen.insert(*value))
            .filter_map(move |value| self.read_obstacle(value, part, through_links, case));
        reads.chain(part.writes.iter().filter_map(|value| self.write_obstacle(value, part, case)))
    }

    fn read_obstacle(
        &self,
        value: &Value,
        part: &Part,
        through_links: bool,
        case: &Case<'_>,
    ) -> Option<Obstacle> {
        let readable = |path: &Spellings| case.dirs.hold(path) || read_grant(case, path).is_some();
        let blocked = |text: &str| {
            self.spell_plainly(text).iter().find_map(|path| match () {
                () if self.is_shifted(path, part) => Some(Obstacle::Unknown),
                () if !readable(path) => Some(Obstacle::Path(path.physical.clone())),
                () if through_links => {
                    self.walked.away(&path.physical, || self.leads_away(&path.physical, &readable))
                }
                () => None,
            })
        };
        match value {
            Value::Literal(text) => blocked(text),
            Value::Glob(glob) => {
                if let Some(obstacle) = blocked(&static_prefix(glob).to_string_lossy()) {
                    return Some(obstacle);
                }
                for directory in &self.directories.known {
                    let expansion = self.expand(glob, directory);
                    let mut paths = expansion.paths.iter().map(|path| path.to_string_lossy());
                    if let Some(obstacle) = paths.find_map(|path| blocked(&path)) {
                        return Some(obstacle);
                    }
                    if !expansion.complete {
                        return Some(Obstacle::Unknown);
                    }
                }
                None
            }
            Value::Unknown { .. } => Some(Obstacle::Unknown),
        }
    }

    fn write_obstacle(&self, value: &Value, part: &Part, case: &Case<'_>) -> Option<Obstacle> {
        let Value::Literal(text) = value else { return Some(Obstacle::Unknown) };
        let writable = |path: &Spellings| case.dirs.hold(path) || edit_grant(case, path).is_some();
        self.first_outside(text, part, writable)
    }

    pub(super) fn redirect_obstacle(
        &self,
        redirect: &Redirect,
        part: &Part,
        case: &Case<'_>,
    ) -> Option<Obstacle> {
        match redirect.place {
            Place::Null => return None,
            Place::Stream | Place::Network => return Some(Obstacle::Unknown),
            Place::File => {}
        }
        let Value::Literal(text) = &redirect.target else { return Some(Obstacle::Unknown) };
        if redirect.way == Way::Read {
            return self.read_obstacle(&redirect.target, part, false, case);
        }
        let accepted = |path: &Spellings| {
            edit_grant(case, path).is_some()
                || case.mode == PermissionMode::AcceptEdits && case.dirs.hold(path)
        };
        self.first_outside(text, part, accepted)
    }

    fn first_outside(
        &self,
        text: &str,
        part: &Part,
        accepted: impl Fn(&Spellings) -> bool,
    ) -> Option<Obstacle> {
        self.spell_plainly(text).iter().find_map(|path| match () {
            () if self.is_shifted(path, part) => Some(Obstacle::Unknown),
            () if !accepted(path) => Some(Obstacle::Path(path.physical.clone())),
            () => None,
        })
    }

    /// Where a link below a directory leads, if it leads out of what may be read.
    fn leads_away(&self, directory: &Path, readable: &impl Fn(&Spellings) -> bool) -> Option<Obstacle> {
        let mut away = None;
        let below = look_below(directory, self.around.fs, |path, kind| {
            if kind == EntryKind::Link {
                away = Some(resolve_absolute(path, &self.around)).filter(|path| !readable(path));
            }
            away.is_some()
        });
        match below {
            Below::Nothing => None,
            Below::TooMuch => Some(Obstacle::Unknown),
            Below::Found => Some(away.map_or(Obstacle::Unknown, |path| Obstacle::Path(path.physical))),
        }
    }

    /// What is wrong with going elsewhere: where to, twice, or together with writing or git.
    pub(crate) fn directory_obstacle(&self, case: &Case<'_>) -> Option<Obstacle> {
        if self.directories.uncounted {
            return Some(Obstacle::Unknown);
        }
        let target = match self.script.changes_dir.as_slice() {
            [] => return None,
            [Some(Value::Literal(target))] => target,
            _ => return Some(Obstacle::Unknown),
        };
        let around = self.around;
        let path = resolve_absolute(&around.cwd.join(target), &around);
        if !case.dirs.hold(&path) {
            return Some(Obstacle::Path(path.physical));
        }
        let stays = path.physical == crate::paths::physical(around.cwd, around.fs);
        let writes = |part: &Part| {
            let mut redirects = part.redirects.iter();
            !part.writes.is_empty() || redirects.any(|to| to.way == Way::Write && to.place != Place::Null)
        };
        let uses_git = |part: &Part| part.program.as_deref() == Some("git");
        let mut parts = self.script.parts.iter().filter(|part| part.reach != Reach::Guessed);
        parts.any(|part| writes(part) || !stays && uses_git(part)).then_some(Obstacle::Unknown)
    }
}

/// Whether a physical path lies in a working directory; what stands in the way is then not where it is.
pub(super) fn is_inside(path: &Path, case: &Case<'_>) -> bool {
    case.dirs.all().any(|dir| dir.holds(path))
}
