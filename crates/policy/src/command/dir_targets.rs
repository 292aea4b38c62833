//! Files written into a directory: `cp a/x b` writes `b/x` if `b` is a directory. They are checked like all other
//! written files.

use std::path::Path;

use super::ShellCommand;
use crate::fs::FileType;
use crate::shell::{CommandClass, DirTarget, SimpleCommand, WordValue};

/// Files recorded for the whole command times its possible directories; beyond the limit any file may be written.
const MAX_DIR_TARGETS: usize = 2_500;

impl ShellCommand<'_> {
    /// Adds the files that simple commands write into directories to their writes.
    pub(super) fn add_dir_targets(&mut self) {
        let (mut count, mut truncated) = (0, false);
        let dir_count = self.directories.all().count();
        for index in 0..self.analysis.commands.len() {
            let Some(simple_command) = self
                .analysis
                .commands
                .get(index)
                .filter(|simple_command| !simple_command.dir_targets.is_empty())
            else {
                continue;
            };
            let mut written = Vec::new();
            for dir_target in &simple_command.dir_targets {
                if (count + written.len()) * dir_count > MAX_DIR_TARGETS {
                    written.push(WordValue::FULLY_UNKNOWN);
                    truncated = true;
                    break;
                }
                if self.may_be_directory(&dir_target.directory, index) {
                    let names = self.list_file_names(dir_target);
                    truncated |= matches!(dir_target.source, WordValue::Glob(_)) && names.contains(&None);
                    written
                        .extend(names.into_iter().filter_map(|name| join_value(&dir_target.directory, name)));
                }
            }
            count += written.len();
            if let Some(simple_command) = self.analysis.commands.get_mut(index) {
                simple_command.writes.extend(written);
            }
        }
        self.dir_targets_truncated = truncated;
    }

    /// Returns true if a target may be a directory when the command at this index runs.
    fn may_be_directory(&self, target: &WordValue, index: usize) -> bool {
        let WordValue::Literal(text) = target else { return true };
        let named =
            text.is_empty() || text.ends_with('/') || matches!(text.rsplit('/').next(), Some("." | ".."));
        named
            || self.resolve(text).iter().any(|path| match self.disk.context.fs.lstat(&path.physical) {
                Some(FileType::Directory) => true,
                Some(FileType::File | FileType::Link | FileType::Special) => false,
                None => self.may_create_directory(index),
            })
    }

    /// Returns true if another simple command may create a directory.
    fn may_create_directory(&self, except: usize) -> bool {
        let makes = |simple_command: &SimpleCommand| match simple_command.class {
            CommandClass::NoCommand | CommandClass::ReadOnly => false,
            CommandClass::AcceptEdits => matches!(simple_command.program.as_deref(), Some("mkdir" | "mv")),
            CommandClass::ExactRuleOnly | CommandClass::Other => true,
        };
        self.analysis
            .commands
            .iter()
            .enumerate()
            .any(|(index, simple_command)| index != except && makes(simple_command))
    }

    /// Lists the names of the files written; `None` stands for an unknown name.
    fn list_file_names(&self, dir_target: &DirTarget) -> Vec<Option<String>> {
        let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        match &dir_target.source {
            WordValue::Literal(text) => last(Path::new(text)).map(Some).into_iter().collect(),
            WordValue::Glob(glob) => {
                let mut names = Vec::new();
                for directory in self.directories.all() {
                    let expansion = self.expand_glob(glob, directory);
                    names.extend(expansion.paths.iter().filter_map(|path| last(path)).map(Some));
                    names.extend((!expansion.complete).then_some(None));
                }
                names
            }
            WordValue::Unknown { .. } => vec![None],
        }
    }
}

/// Joins a directory and a name.
fn join_value(directory: &WordValue, name: Option<String>) -> Option<WordValue> {
    let unknown = |before: String, after: String| WordValue::Unknown { before, after, nonempty: false };
    Some(match (directory, name) {
        (WordValue::Literal(text), Some(name)) if text.is_empty() => WordValue::Literal(name),
        (WordValue::Literal(text), Some(name)) => {
            WordValue::Literal(format!("{}/{name}", text.trim_end_matches('/')))
        }
        (WordValue::Literal(text), None) => unknown(format!("{text}/"), String::new()),
        (WordValue::Glob(glob), Some(name)) => WordValue::Glob(format!("{glob}/{}", escape_glob(&name))),
        (WordValue::Glob(_), None) => return None,
        (WordValue::Unknown { before, after, .. }, name) => unknown(
            before.clone(),
            format!("{after}/{}", name.as_deref().map(escape_glob).unwrap_or_default()),
        ),
    })
}

/// Escapes a name for use in a glob.
fn escape_glob(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out
}
