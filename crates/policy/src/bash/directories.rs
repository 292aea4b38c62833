//! Where the parts of a command may run: where the shell is, and wherever `cd` may lead from there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::expand::Expansions;
use crate::paths::{Surroundings, is_process_path, lexical, physical, resolve_absolute};
use crate::shell::{Part, Script, Value};

/// How many directories are followed at most.
const MOST: usize = 64;

/// How many there may be, each with every word of the command in it; long words count as several.
const MOST_PATHS: usize = 12_000;

/// How long a word is that counts as two.
const LONG: usize = 16;

/// The directories that a command may be in.
#[derive(Debug)]
pub(super) struct Directories {
    /// Where the shell is, then where `cd` may lead.
    pub(super) known: Vec<PathBuf>,
    /// Where single commands are told to work.
    pub(super) elsewhere: Vec<PathBuf>,
    /// Whether `cd` may also lead where nobody knows.
    pub(super) lost: bool,
    /// Whether there are more than were followed.
    pub(super) uncounted: bool,
    /// How many of either sort are followed for this command.
    most: usize,
}

impl Directories {
    pub(super) fn of(script: &Script, globs: &Expansions, around: &Surroundings<'_>) -> Self {
        let words: usize = script.parts.iter().map(weight).sum();
        let mut found = Self {
            known: vec![around.cwd.to_owned()],
            elsewhere: Vec::new(),
            lost: !script.cd_path.is_empty(),
            uncounted: false,
            most: (MOST_PATHS / words.max(1)).clamp(1, MOST),
        };
        let search: Vec<&str> =
            script.cd_path.iter().filter_map(Value::literal).flat_map(|path| path.split(':')).collect();
        for target in &script.directories {
            if found.uncounted {
                break;
            }
            if target.is_unknown() {
                found.lost = true;
                found.add(around.home.to_owned());
            }
            for next in found.next(target, &search, globs, around) {
                found.add(next);
            }
        }
        if script.repeats {
            found.go_up_again(script, around);
        }
        for target in &script.elsewhere {
            found.lost |= target.is_unknown();
            for next in found.next_elsewhere(target, globs, around) {
                if found.elsewhere.len() >= found.most {
                    found.uncounted = true;
                } else if !found.elsewhere.contains(&next) {
                    found.elsewhere.push(next);
                }
            }
        }
        found
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        self.known.iter().chain(&self.elsewhere).map(PathBuf::as_path)
    }

    /// Whether a path may also be somewhere that was not looked at.
    pub(super) fn leave_open(&self, text: &str) -> bool {
        self.uncounted && !text.starts_with('/')
    }

    fn add(&mut self, directory: PathBuf) {
        if self.known.contains(&directory) {
            return;
        }
        if self.known.len() >= self.most {
            self.uncounted = true;
            return;
        }
        self.known.push(directory);
    }

    /// What runs more than once may go up more than once.
    fn go_up_again(&mut self, script: &Script, around: &Surroundings<'_>) {
        let targets: HashSet<&str> = script.directories.iter().filter_map(Value::literal).collect();
        let up: Vec<&str> =
            targets.into_iter().filter(|target| target.split('/').all(|part| part == "..")).collect();
        let mut at = 0;
        while let Some(from) = self.known.get(at).filter(|_| !self.uncounted).cloned() {
            for target in &up {
                let path = from.join(target);
                self.add(lexical(&path));
                self.add(physical(&path, around.fs));
            }
            at += 1;
        }
    }

    /// Where a command is told to work, also from where another one was told to.
    fn next_elsewhere(
        &mut self,
        target: &Value,
        globs: &Expansions,
        around: &Surroundings<'_>,
    ) -> Vec<PathBuf> {
        let mut found = self.next(target, &[], globs, around);
        let chained = self.elsewhere.iter().filter_map(|from| Some(lexical(&from.join(target.literal()?))));
        found.extend(chained.filter(|path| around.fs.lstat(path).is_some()));
        found
    }

    /// Where a target leads from each directory, one after the other.
    fn next(
        &mut self,
        target: &Value,
        search: &[&str],
        globs: &Expansions,
        around: &Surroundings<'_>,
    ) -> Vec<PathBuf> {
        let mut starts = self.known.clone();
        for prefix in search.iter().filter(|prefix| !prefix.is_empty()) {
            starts.extend(self.known.iter().map(|at| at.join(prefix)));
        }
        let mut found = Vec::new();
        for start in &starts {
            let around = Surroundings { cwd: start, ..*around };
            // By a name that stands for the shell's own directory, it would lead back to itself once it is there.
            let named_by_process = is_process_path(start);
            let own = |path: &Path| {
                (!named_by_process)
                    .then(|| resolve_absolute(path, &around))
                    .filter(|there| there.through_process)
                    .map(|own| own.physical)
            };
            match target {
                Value::Literal(text) => {
                    let path = start.join(text);
                    // Whether `..` goes back along a link is a matter of options.
                    let back = text.split('/').any(|part| part == "..").then(|| physical(&path, around.fs));
                    found.push(lexical(&path));
                    found.extend(back.into_iter().chain(own(&path)));
                }
                Value::Glob(pattern) => {
                    let expansion = globs.expand(pattern, start, around.fs);
                    self.uncounted |= !expansion.complete;
                    found.extend(expansion.paths.iter().cloned());
                    found.extend(expansion.paths.iter().filter_map(|path| own(path)));
                }
                Value::Unknown { .. } => {}
            }
        }
        found
    }
}

/// How many words a part has.
fn weight(part: &Part) -> usize {
    let words = part.words.iter().map(|word| 1 + word.raw.len() / LONG).sum::<usize>();
    words + part.redirects.len()
}
