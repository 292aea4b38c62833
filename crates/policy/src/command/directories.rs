//! Directories in which a command may run: the shell's own, and the targets of `cd`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::glob_expansion::GlobCache;
use crate::paths::{PathContext, is_proc_path, lexical_path, physical_path, resolve_absolute};
use crate::shell::{Script, SimpleCommand, WordValue};

/// Directories tracked per command.
const MAX_DIRECTORIES: usize = 64;

/// Limit on directories times words of the command; long words count as several.
const MAX_DIRECTORY_WORDS: usize = 12_000;

/// Length of a word that counts as two.
const LONG_WORD_BYTES: usize = 16;

/// Directories that a command may be in.
#[derive(Debug)]
pub(super) struct PossibleDirs {
    /// The shell's directory, then possible targets of `cd`.
    pub(super) shell_dirs: Vec<PathBuf>,
    /// Directories that options of single commands select, such as `env -C`.
    pub(super) option_dirs: Vec<PathBuf>,
    /// True if `cd` may also lead to an unknown directory.
    pub(super) may_be_anywhere: bool,
    /// True if there are more directories than are tracked.
    pub(super) truncated: bool,
    /// Limit for each of the two lists in this command.
    limit: usize,
}

impl PossibleDirs {
    pub(super) fn from_script(script: &Script, globs: &GlobCache, around: &PathContext<'_>) -> Self {
        let words: usize = script.commands.iter().map(word_weight).sum();
        let mut found = Self {
            shell_dirs: vec![around.cwd.to_owned()],
            option_dirs: Vec::new(),
            may_be_anywhere: !script.cd_path.is_empty(),
            truncated: false,
            limit: (MAX_DIRECTORY_WORDS / words.max(1)).clamp(1, MAX_DIRECTORIES),
        };
        let search: Vec<&str> = script
            .cd_path
            .iter()
            .filter_map(WordValue::as_literal)
            .flat_map(|path| path.split(':'))
            .collect();
        for target in &script.cd_directories {
            if found.truncated {
                break;
            }
            if target.is_unknown() {
                found.may_be_anywhere = true;
                found.add(around.home.to_owned());
            }
            for next in found.resolve_target(target, &search, globs, around) {
                found.add(next);
            }
        }
        if script.may_repeat {
            found.follow_repeated_parents(script, around);
        }
        for target in &script.option_directories {
            found.may_be_anywhere |= target.is_unknown();
            for next in found.resolve_option_dir(target, globs, around) {
                if found.option_dirs.len() >= found.limit {
                    found.truncated = true;
                } else if !found.option_dirs.contains(&next) {
                    found.option_dirs.push(next);
                }
            }
        }
        found
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        self.shell_dirs.iter().chain(&self.option_dirs).map(PathBuf::as_path)
    }

    /// Returns true if a relative path may also lie in a directory that is not tracked.
    pub(super) fn may_be_elsewhere(&self, text: &str) -> bool {
        self.truncated && !text.starts_with('/')
    }

    fn add(&mut self, directory: PathBuf) {
        if self.shell_dirs.contains(&directory) {
            return;
        }
        if self.shell_dirs.len() >= self.limit {
            self.truncated = true;
            return;
        }
        self.shell_dirs.push(directory);
    }

    /// A repeated command may move up several times, so parent targets are followed to the root.
    fn follow_repeated_parents(&mut self, script: &Script, around: &PathContext<'_>) {
        let targets: HashSet<&str> = script.cd_directories.iter().filter_map(WordValue::as_literal).collect();
        let up: Vec<&str> =
            targets.into_iter().filter(|target| target.split('/').all(|part| part == "..")).collect();
        let mut at = 0;
        while let Some(from) = self.shell_dirs.get(at).filter(|_| !self.truncated).cloned() {
            for target in &up {
                let path = from.join(target);
                self.add(lexical_path(&path));
                self.add(physical_path(&path, around.fs));
            }
            at += 1;
        }
    }

    /// Directories selected by an option, also relative to those selected by another option.
    fn resolve_option_dir(
        &mut self,
        target: &WordValue,
        globs: &GlobCache,
        around: &PathContext<'_>,
    ) -> Vec<PathBuf> {
        let mut found = self.resolve_target(target, &[], globs, around);
        let chained =
            self.option_dirs.iter().filter_map(|from| Some(lexical_path(&from.join(target.as_literal()?))));
        found.extend(chained.filter(|path| around.fs.lstat(path).is_some()));
        found
    }

    /// Resolves a `cd` target from each tracked directory.
    fn resolve_target(
        &mut self,
        target: &WordValue,
        search: &[&str],
        globs: &GlobCache,
        around: &PathContext<'_>,
    ) -> Vec<PathBuf> {
        let mut starts = self.shell_dirs.clone();
        for prefix in search.iter().filter(|prefix| !prefix.is_empty()) {
            starts.extend(self.shell_dirs.iter().map(|at| at.join(prefix)));
        }
        let mut found = Vec::new();
        for start in &starts {
            let around = PathContext { cwd: start, ..*around };
            // A start below `/proc/self/cwd` would refer to itself once the shell is there, so it is not followed
            // again.
            let named_by_process = is_proc_path(start);
            let own = |path: &Path| {
                (!named_by_process)
                    .then(|| resolve_absolute(path, &around))
                    .filter(|there| there.via_proc)
                    .map(|own| own.physical)
            };
            match target {
                WordValue::Literal(text) => {
                    let path = start.join(text);
                    // `..` behind a link depends on `cd -P` and `-L`, so both results count.
                    let back =
                        text.split('/').any(|part| part == "..").then(|| physical_path(&path, around.fs));
                    found.push(lexical_path(&path));
                    found.extend(back.into_iter().chain(own(&path)));
                }
                WordValue::Glob(pattern) => {
                    let expansion = globs.expand(pattern, start, around.fs);
                    self.truncated |= !expansion.complete;
                    found.extend(expansion.paths.iter().cloned());
                    found.extend(expansion.paths.iter().filter_map(|path| own(path)));
                }
                WordValue::Unknown { .. } => {}
            }
        }
        found
    }
}

/// Number of words of a simple command; long words count as several.
fn word_weight(part: &SimpleCommand) -> usize {
    let words = part.words.iter().map(|word| 1 + word.raw.len() / LONG_WORD_BYTES).sum::<usize>();
    words + part.redirects.len()
}
