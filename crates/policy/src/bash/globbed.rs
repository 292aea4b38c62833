//! Commands whose name is a glob: the shell runs the file that it finds, so the search looks what that is.

use super::Command;
use crate::shell::{self, Kind, Part, Reach, Value, Word};

/// How many files are followed, and how many bytes of commands that makes; with more the command counts as one that
/// cannot be searched.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: usize = 200_000;

impl Command<'_> {
    /// Adds what commands with a glob for a name would run.
    pub(super) fn follow_globs(&mut self) {
        let Some(lines) = self.globbed_lines() else {
            self.script.unanalysable.push(Kind::TooDeep);
            return;
        };
        let home = self.around.home.to_string_lossy();
        let surroundings = shell::Surroundings { home: &home };
        for line in lines {
            let parts = shell::analyse(&line, &surroundings).parts.into_iter();
            self.script.parts.extend(parts.map(|part| Part { reach: Reach::Searched, ..part }));
        }
    }

    /// The commands that there would be with the names of files; nothing if these are too many.
    fn globbed_lines(&self) -> Option<Vec<String>> {
        let mut lines: Vec<String> = Vec::new();
        for part in &self.script.parts {
            let Some((Word { value: Value::Glob(glob), .. }, arguments)) = part.words.split_first() else {
                continue;
            };
            let arguments: String = arguments.iter().map(|word| format!(" {}", written(word))).collect();
            for directory in self.directories.all() {
                let found = self.expand(glob, directory);
                let files = lines.len() + found.paths.len();
                if !found.complete || files > MAX_FILES || files * arguments.len() > MAX_BYTES {
                    return None;
                }
                let line =
                    |path: &std::path::PathBuf| format!("{}{arguments}", quoted(&path.to_string_lossy()));
                lines.extend(found.paths.iter().map(line));
            }
        }
        Some(lines)
    }
}

fn written(word: &Word) -> String {
    word.value.literal().map_or_else(|| word.raw.clone(), quoted)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
