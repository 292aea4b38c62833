//! What a command puts into a directory: `cp a/x b` makes `b/x` if `b` is a directory. That file is written, so it is judged
//! like every other.

use std::path::Path;

use super::Command;
use crate::fs::EntryKind;
use crate::shell::{Class, Landing, Part, Value};

/// How many files are told apart for the whole command, in each place where it may be; after that, any may be written.
const MOST_AT_ALL: usize = 2_500;

impl Command<'_> {
    /// Adds the files that the parts put into directories to what they write.
    pub(super) fn note_landings(&mut self) {
        let (mut all, mut uncounted) = (0, false);
        let places = self.directories.all().count();
        for at in 0..self.script.parts.len() {
            let Some(part) = self.script.parts.get(at).filter(|part| !part.lands.is_empty()) else {
                continue;
            };
            let mut made = Vec::new();
            for landing in &part.lands {
                if (all + made.len()) * places > MOST_AT_ALL {
                    made.push(Value::Unknown { before: String::new(), after: String::new(), guarded: false });
                    uncounted = true;
                    break;
                }
                if self.may_be_directory(&landing.directory, at) {
                    let names = self.names(landing);
                    uncounted |= matches!(landing.from, Value::Glob(_)) && names.contains(&None);
                    made.extend(names.into_iter().filter_map(|name| below(&landing.directory, name)));
                }
            }
            all += made.len();
            if let Some(part) = self.script.parts.get_mut(at) {
                part.writes.extend(made);
            }
        }
        self.lands_uncounted = uncounted;
    }

    /// Whether a target is a directory when the part at this place runs, as far as can be told.
    fn may_be_directory(&self, target: &Value, at: usize) -> bool {
        let Value::Literal(text) = target else { return true };
        let named =
            text.is_empty() || text.ends_with('/') || matches!(text.rsplit('/').next(), Some("." | ".."));
        named
            || self.spell(text).iter().any(|path| match self.around.fs.lstat(&path.physical) {
                Some(EntryKind::Directory) => true,
                Some(EntryKind::File | EntryKind::Link | EntryKind::Special) => false,
                None => self.makes_directories(at),
            })
    }

    /// Whether some other part could make a directory.
    fn makes_directories(&self, except: usize) -> bool {
        let makes = |part: &Part| match part.class {
            Class::Nothing | Class::ReadOnly => false,
            Class::AcceptEdits => matches!(part.program.as_deref(), Some("mkdir" | "mv")),
            Class::NeverByStar | Class::Other => true,
        };
        self.script.parts.iter().enumerate().any(|(at, part)| at != except && makes(part))
    }

    /// The names that something has; none where one is not known.
    fn names(&self, landing: &Landing) -> Vec<Option<String>> {
        let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        match &landing.from {
            Value::Literal(text) => last(Path::new(text)).map(Some).into_iter().collect(),
            Value::Glob(glob) => {
                let mut names = Vec::new();
                for directory in self.directories.all() {
                    let expansion = self.expand(glob, directory);
                    names.extend(expansion.paths.iter().filter_map(|path| last(path)).map(Some));
                    names.extend((!expansion.complete).then_some(None));
                }
                names
            }
            Value::Unknown { .. } => vec![None],
        }
    }
}

/// An entry of a directory.
fn below(directory: &Value, name: Option<String>) -> Option<Value> {
    let unknown = |before: String, after: String| Value::Unknown { before, after, guarded: false };
    Some(match (directory, name) {
        (Value::Literal(text), Some(name)) if text.is_empty() => Value::Literal(name),
        (Value::Literal(text), Some(name)) => {
            Value::Literal(format!("{}/{name}", text.trim_end_matches('/')))
        }
        (Value::Literal(text), None) => unknown(format!("{text}/"), String::new()),
        (Value::Glob(glob), Some(name)) => Value::Glob(format!("{glob}/{}", escaped(&name))),
        (Value::Glob(_), None) => return None,
        (Value::Unknown { before, after, .. }, name) => {
            unknown(before.clone(), format!("{after}/{}", name.as_deref().map(escaped).unwrap_or_default()))
        }
    })
}

/// A name as it stands in a pattern.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out
}
