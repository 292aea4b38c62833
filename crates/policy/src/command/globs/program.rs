//! Commands whose name is a glob. The shell runs the matching file, so the deny analysis expands the glob.

use crate::command::ShellCommand;
use crate::shell::{self, CheckScope, SimpleCommand, UnanalyzableCause, Word, WordValue};

/// Limits on expanded files and on the bytes of the resulting commands; beyond them the command cannot be searched.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: usize = 200_000;

impl ShellCommand<'_> {
    /// Adds the commands that a glob as program name would run, for the deny analysis.
    pub(crate) fn add_glob_programs(&mut self) {
        let Some(lines) = self.build_glob_program_lines() else {
            self.analysis.unanalyzable.push(UnanalyzableCause::TooDeep);
            return;
        };
        let home = self.disk.context.home.to_string_lossy();
        let context = shell::ShellContext { home: &home };
        for line in lines {
            let simple_commands = shell::analyze(&line, &context).commands.into_iter();
            self.analysis.commands.extend(
                simple_commands.map(|simple_command| SimpleCommand {
                    check_scope: CheckScope::DenyOnly,
                    ..simple_command
                }),
            );
        }
    }

    /// Builds commands with the glob replaced by each matching file; `None` if there are too many.
    fn build_glob_program_lines(&self) -> Option<Vec<String>> {
        let mut lines: Vec<String> = Vec::new();
        for simple_command in &self.analysis.commands {
            let Some((Word { value: WordValue::Glob(glob), .. }, arguments)) =
                simple_command.words.split_first()
            else {
                continue;
            };
            let arguments: String = arguments.iter().map(|word| format!(" {}", word_text(word))).collect();
            for directory in self.directories.all() {
                let found = self.expand_glob(glob, directory);
                let files = lines.len() + found.paths.len();
                if !found.complete || files > MAX_FILES || files * arguments.len() > MAX_BYTES {
                    return None;
                }
                let line =
                    |path: &std::path::PathBuf| format!("{}{arguments}", quote(&path.to_string_lossy()));
                lines.extend(found.paths.iter().map(line));
            }
        }
        Some(lines)
    }
}

fn word_text(word: &Word) -> String {
    word.value.as_literal().map_or_else(|| word.raw.clone(), quote)
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
