//! Directories in which a command may run: the shell's own, and the targets of `cd`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::globs::GlobCache;
use crate::paths::{PathContext, is_proc_path, normalize_lexically, resolve_absolute, resolve_physical_path};
use crate::shell::{CommandAnalysis, SimpleCommand, WordValue};

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
    pub(super) fn from_analysis(
        analysis: &CommandAnalysis,
        globs: &GlobCache,
        context: &PathContext<'_>,
    ) -> Self {
        let words: usize = analysis.commands.iter().map(count_weighted_words).sum();
        let mut dirs = Self {
            shell_dirs: vec![context.cwd.to_owned()],
            option_dirs: Vec::new(),
            may_be_anywhere: !analysis.cd_path.is_empty(),
            truncated: false,
            limit: (MAX_DIRECTORY_WORDS / words.max(1)).clamp(1, MAX_DIRECTORIES),
        };
        let search: Vec<&str> = analysis
            .cd_path
            .iter()
            .filter_map(WordValue::as_literal)
            .flat_map(|path| path.split(':'))
            .collect();
        for target in &analysis.cd_directories {
            if dirs.truncated {
                break;
            }
            if target.is_unknown() {
                dirs.may_be_anywhere = true;
                dirs.add(context.home.to_owned());
            }
            for next in dirs.resolve_target(target, &search, globs, context) {
                dirs.add(next);
            }
        }
        if analysis.may_repeat {
            dirs.follow_repeated_parents(analysis, context);
        }
        for target in &analysis.option_directories {
            dirs.may_be_anywhere |= target.is_unknown();
            for next in dirs.resolve_option_dir(target, globs, context) {
                if dirs.option_dirs.len() >= dirs.limit {
                    dirs.truncated = true;
                } else if !dirs.option_dirs.contains(&next) {
                    dirs.option_dirs.push(next);
                }
            }
        }
        dirs
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
    fn follow_repeated_parents(&mut self, analysis: &CommandAnalysis, context: &PathContext<'_>) {
        let targets: HashSet<&str> =
            analysis.cd_directories.iter().filter_map(WordValue::as_literal).collect();
        let parents: Vec<&str> =
            targets.into_iter().filter(|target| target.split('/').all(|part| part == "..")).collect();
        let mut index = 0;
        while let Some(from) = self.shell_dirs.get(index).filter(|_| !self.truncated).cloned() {
            for target in &parents {
                let path = from.join(target);
                self.add(normalize_lexically(&path));
                self.add(resolve_physical_path(&path, context.fs));
            }
            index += 1;
        }
    }

    /// Directories selected by an option, also relative to those selected by another option.
    fn resolve_option_dir(
        &mut self,
        target: &WordValue,
        globs: &GlobCache,
        context: &PathContext<'_>,
    ) -> Vec<PathBuf> {
        let mut dirs = self.resolve_target(target, &[], globs, context);
        let chained = self
            .option_dirs
            .iter()
            .filter_map(|from| Some(normalize_lexically(&from.join(target.as_literal()?))));
        dirs.extend(chained.filter(|path| context.fs.lstat(path).is_some()));
        dirs
    }

    /// Resolves a `cd` target from each tracked directory.
    fn resolve_target(
        &mut self,
        target: &WordValue,
        search: &[&str],
        globs: &GlobCache,
        context: &PathContext<'_>,
    ) -> Vec<PathBuf> {
        let mut starts = self.shell_dirs.clone();
        for prefix in search.iter().filter(|prefix| !prefix.is_empty()) {
            starts.extend(self.shell_dirs.iter().map(|directory| directory.join(prefix)));
        }
        let mut dirs = Vec::new();
        for start in &starts {
            let context = PathContext { cwd: start, ..*context };
            // A start below `/proc/self/cwd` would refer to itself once the shell is there, so it is not followed
            // again.
            let is_proc = is_proc_path(start);
            let proc_target = |path: &Path| {
                (!is_proc)
                    .then(|| resolve_absolute(path, &context))
                    .filter(|resolved| resolved.via_proc)
                    .map(|proc_target| proc_target.physical)
            };
            match target {
                WordValue::Literal(text) => {
                    let path = start.join(text);
                    // `..` behind a link depends on `cd -P` and `-L`, so both results count.
                    let physical = text
                        .split('/')
                        .any(|part| part == "..")
                        .then(|| resolve_physical_path(&path, context.fs));
                    dirs.push(normalize_lexically(&path));
                    dirs.extend(physical.into_iter().chain(proc_target(&path)));
                }
                WordValue::Glob(pattern) => {
                    let expansion = globs.expand(pattern, start, context.fs);
                    self.truncated |= !expansion.complete;
                    dirs.extend(expansion.paths.iter().cloned());
                    dirs.extend(expansion.paths.iter().filter_map(|path| proc_target(path)));
                }
                WordValue::Unknown { .. } => {}
            }
        }
        dirs
    }
}

/// Counts the words of a simple command; long words count as several.
fn count_weighted_words(simple_command: &SimpleCommand) -> usize {
    let words = simple_command.words.iter().map(|word| 1 + word.raw.len() / LONG_WORD_BYTES).sum::<usize>();
    words + simple_command.redirects.len()
}
