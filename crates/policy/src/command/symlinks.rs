//! Symbolic links: programs that follow them, and links that move while a command runs.
//!
//! Every simple command is checked against the disk before the whole command runs; after `mv dir elsewhere`, a link
//! from `dir` may point elsewhere.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::ShellCommand;
use crate::dir_walk::WalkResult;
use crate::paths::ResolvedPath;
use crate::shell::{SimpleCommand, WordValue};

/// Simple commands after which paths may resolve differently.
#[derive(Debug, Default)]
pub(super) struct MovedLinks {
    /// Indices of these commands, in order.
    movers: Vec<usize>,
    /// Paths at which links may appear, and the commands that put them there. Paths are kept as text, which hashes
    /// faster.
    targets: HashMap<OsString, MovedBy>,
}

/// Simple commands that may move something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MovedBy {
    Nothing,
    /// This command only.
    Command(usize),
    Several,
}

impl MovedBy {
    pub(super) fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, moved_by) | (moved_by, Self::Nothing) => moved_by,
            (Self::Command(one), Self::Command(two)) if one == two => self,
            (Self::Command(_) | Self::Several, Self::Command(_) | Self::Several) => Self::Several,
        }
    }
}

impl ShellCommand<'_> {
    /// Finds the simple commands that create or move links.
    pub(super) fn find_moved_links(&self) -> MovedLinks {
        let mut moved_links = MovedLinks::default();
        if self.analysis.commands.len() < 2 {
            return moved_links;
        }
        let moving = self
            .analysis
            .commands
            .iter()
            .enumerate()
            .filter(|(_, simple_command)| self.moves_links(simple_command));
        for (index, simple_command) in moving {
            moved_links.movers.push(index);
            for text in simple_command.writes.iter().filter_map(WordValue::as_literal) {
                for path in self.resolve(text).iter() {
                    for target in [&path.lexical, &path.physical] {
                        let moved_by =
                            moved_links.targets.entry(target.clone().into()).or_insert(MovedBy::Nothing);
                        *moved_by = moved_by.merge(MovedBy::Command(index));
                    }
                }
            }
        }
        moved_links
    }

    fn moves_links(&self, simple_command: &SimpleCommand) -> bool {
        match simple_command.program.as_deref() {
            Some("ln") => true,
            Some("mv") => simple_command.reads.iter().any(|from| self.may_contain_links(from)),
            // Without options, link targets are copied rather than links.
            Some("cp" | "rsync") => {
                has_options(simple_command)
                    && simple_command.reads.iter().any(|from| self.may_contain_links(from))
            }
            _ => false,
        }
    }

    /// Returns true if there is or may be a link at or below this path.
    fn may_contain_links(&self, from: &WordValue) -> bool {
        let linked = |path: PathBuf| {
            self.disk.walk_cache.find_links(&path, self.disk.context.fs) != WalkResult::NotFound
        };
        match from.as_literal() {
            Some(text) => self.directories.all().map(|directory| directory.join(text)).any(linked),
            None => true,
        }
    }

    /// Finds the commands that may change what a path resolves to.
    pub(super) fn find_moving_commands(&self, path: &ResolvedPath) -> MovedBy {
        let all = match self.moved_links.movers.as_slice() {
            [] => return MovedBy::Nothing,
            [one] => MovedBy::Command(*one),
            _ => MovedBy::Several,
        };
        if path.is_linked() {
            return all;
        }
        let mut moved_by = MovedBy::Nothing;
        for ancestor in path.forms().flat_map(Path::ancestors) {
            if let Some(moved) = self.moved_links.targets.get(ancestor.as_os_str()) {
                moved_by = moved_by.merge(*moved);
            }
            if moved_by == all {
                break;
            }
        }
        moved_by
    }

    /// Returns true if a command other than this one moves something.
    pub(super) fn is_moved_by_other(&self, moved_by: MovedBy, simple_command: &SimpleCommand) -> bool {
        match moved_by {
            MovedBy::Nothing => false,
            MovedBy::Command(one) => {
                !self.analysis.commands.get(one).is_some_and(|by| std::ptr::eq(by, simple_command))
            }
            MovedBy::Several => true,
        }
    }

    /// Returns true if a path may resolve differently by the time this command runs.
    pub(super) fn may_be_moved(&self, path: &ResolvedPath, simple_command: &SimpleCommand) -> bool {
        self.is_moved_by_other(self.find_moving_commands(path), simple_command)
    }
}

fn has_options(simple_command: &SimpleCommand) -> bool {
    simple_command.words.iter().any(|word| word.value.as_literal().is_none_or(|text| text.starts_with('-')))
}

/// Programs with the letters and long options that make them follow links; `*` if they always do.
const LINK_FOLLOWERS: &[(&str, &str, &[&str])] = &[
    ("diff", "*", &[]),
    ("grep", "R", &["--dereference-recursive"]),
    ("egrep", "R", &["--dereference-recursive"]),
    ("fgrep", "R", &["--dereference-recursive"]),
    ("rg", "L", &["--follow"]),
    ("find", "L", &["-follow"]),
    ("ls", "L", &["--dereference"]),
    ("du", "L", &["--dereference"]),
    ("tree", "l", &[]),
    ("cp", "LH", &["--dereference"]),
    ("tar", "h", &["--dereference"]),
    ("rsync", "Lk", &["--copy-links", "--copy-dirlinks", "--copy-unsafe-links"]),
];

/// Returns true if a simple command follows links below its directories.
pub(super) fn follows_symlinks(simple_command: &SimpleCommand) -> bool {
    if !simple_command.recursive {
        return false;
    }
    let program =
        simple_command.program.as_deref().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let Some((_, letters, long)) = LINK_FOLLOWERS.iter().find(|(listed, ..)| *listed == program) else {
        return false;
    };
    let asked = |text: &str| {
        long.contains(&text)
            || !text.starts_with("--")
                && text
                    .strip_prefix('-')
                    .is_some_and(|bundle| bundle.contains(|letter| letters.contains(letter)))
    };
    *letters == "*" || simple_command.words.iter().any(|word| word.value.as_literal().is_some_and(asked))
}
