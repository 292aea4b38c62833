//! Commands: what the shell's facts mean under the rules, in the working directories, on this disk.
//!
//! Rooms: `search` (deny and ask rules, wide), `allow` (grants part by part, narrow), `critical` (removals that are always
//! asked), `danger` (protected paths), `expand` (globs and walks on disk), `globbed` (globs as
//! command names), `repository` (which git repository is meant).

mod allow;
mod critical;
mod danger;
mod expand;
mod globbed;
mod repository;
mod search;

pub(crate) use allow::{Obstacle, Verdict};

use std::path::{Path, PathBuf};

use crate::command_pattern::tidy_blanks;
use crate::decide::Case;
use crate::paths::{Spellings, Surroundings, lexical, resolve_absolute};
use crate::shell::{self, Part, Script, Value};

/// How many directories a command may be in before we stop counting.
const MAX_DIRECTORIES: usize = 16;

/// A command and where its parts may run.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    pub(crate) script: Script,
    /// The whole text with single blanks, for rules that name the whole command.
    tidy_text: String,
    /// The directories that a part may run in: where the shell is, and where `cd` may lead.
    directories: Vec<PathBuf>,
    /// Whether `cd` may also lead where nobody knows.
    lost: bool,
    around: Surroundings<'a>,
}

impl<'a> Command<'a> {
    pub(crate) fn new(text: &str, case: &Case<'a>) -> Self {
        let around = case.facts.surroundings();
        let home = around.home.to_string_lossy();
        let script = shell::analyse(text, &shell::Surroundings { home: &home });
        let tidy_text = tidy_blanks(&script.text);
        let directories = vec![around.cwd.to_owned()];
        let mut command = Self { script, tidy_text, directories, lost: false, around };
        command.follow_directories();
        command.follow_globs();
        command
    }

    fn follow_directories(&mut self) {
        let pushed = self.script.parts.iter().filter(|part| part.program.as_deref() == Some("pushd"));
        let pushed = pushed.map(|part| part.words.last().map(|word| word.value.clone()));
        let wrapped = self.script.parts.iter().filter_map(chosen_directory);
        let changes = self.script.changes_dir.iter().cloned();
        let targets: Vec<Option<Value>> = changes.chain(pushed).chain(wrapped).collect();
        for target in targets {
            let Some(Value::Literal(target)) = target else {
                self.lost = true;
                self.directories.push(self.around.home.to_owned());
                continue;
            };
            let next: Vec<PathBuf> = self.directories.iter().map(|at| lexical(&at.join(&target))).collect();
            self.directories.extend(next);
            self.directories.sort();
            self.directories.dedup();
            if self.directories.len() > MAX_DIRECTORIES {
                self.directories.truncate(MAX_DIRECTORIES);
                self.lost = true;
            }
        }
    }

    /// A path that a command names, from each directory that it may be in.
    fn spell(&self, text: &str) -> Vec<Spellings> {
        let path = Path::new(text);
        if path.is_absolute() {
            return vec![resolve_absolute(path, &self.around)];
        }
        let from = |at: &PathBuf| {
            let around = Surroundings { cwd: at, ..self.around };
            resolve_absolute(&at.join(path), &around)
        };
        self.directories.iter().map(from).collect()
    }
}

/// The directory that a wrapper such as `env -C DIR` runs its command in, if one is chosen; none inside if not known.
fn chosen_directory(part: &Part) -> Option<Option<Value>> {
    let (first, options) = part.words.split_first()?;
    let program = first.value.literal()?.rsplit('/').next()?;
    if !matches!(program, "env" | "sudo" | "doas" | "systemd-run") {
        return None;
    }
    for (at, word) in options.iter().enumerate() {
        let Some(text) = word.value.literal() else { continue };
        if matches!(text, "-C" | "-D" | "--chdir" | "--working-directory") {
            return Some(options.get(at + 1).map(|word| word.value.clone()));
        }
        let joined = ["--chdir=", "--working-directory=", "-C", "-D"];
        if let Some(directory) = joined.iter().find_map(|flag| text.strip_prefix(flag)) {
            return Some(Some(Value::Literal(directory.to_owned())));
        }
    }
    None
}

/// The directory that a command is in.
static HERE: Value = Value::Literal(String::new());

/// What a part reads; a command that looks below directories without naming one looks below where it is.
fn reads(part: &Part) -> impl Iterator<Item = &Value> {
    let here = (part.recursive && part.reads.is_empty()).then_some(&HERE);
    part.reads.iter().chain(here)
}

/// The directory that stands before the first component with a wildcard or an unknown stretch.
fn static_directory(before: &str) -> &str {
    before.rfind('/').map_or("", |at| before.get(..=at).unwrap_or_default())
}

#[cfg(test)]
mod tests;
