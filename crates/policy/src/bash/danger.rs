//! Writes that are asked about whatever the rules allow.

use std::collections::HashSet;

use super::expand::static_prefix;
use super::{Command, static_directory};
use crate::below::Below;
use crate::decide::Case;
use crate::decision::Danger;
use crate::files::write_danger;
use crate::paths::Spellings;
use crate::protected::holds_one_of;
use crate::shell::{Part, Place, Value, Way};

impl Command<'_> {
    /// The first protected or suspicious path that the command writes.
    pub(crate) fn dangerous_write(&self, case: &Case<'_>) -> Option<(Danger, String)> {
        let parts = self.script.parts.iter();
        let writes = parts.clone().flat_map(|part| written(part).map(move |value| (value, takes_away(part))));
        // What is written twice is as dangerous as what is written once.
        let mut seen = HashSet::new();
        let mut writes = writes.filter(|write| seen.insert(*write));
        let written = writes.find_map(|(value, takes_away)| self.value_danger(value, takes_away, case));
        written.or_else(|| {
            let copied = parts.filter(|part| part.recursive && !part.lands.is_empty());
            copied.flat_map(|part| &part.reads).find_map(|value| self.copied_danger(value))
        })
    }

    /// What is copied with all that lies below it brings protected files along.
    fn copied_danger(&self, value: &Value) -> Option<(Danger, String)> {
        let Value::Literal(text) = value else { return None };
        let spelled = self.spell(text);
        let found = spelled.iter().find(|path| match self.walked.protected(&path.physical, self.around.fs) {
            Below::Found => true,
            Below::TooMuch => self.around.fs.gives_up(),
            Below::Nothing => false,
        });
        found.map(|path| (Danger::ProtectedPath, path.physical.display().to_string()))
    }

    fn value_danger(&self, value: &Value, takes_away: bool, case: &Case<'_>) -> Option<(Danger, String)> {
        let of_text = |text: &str| {
            if self.directories.leave_open(text) {
                return Some((Danger::ProtectedPath, text.to_owned()));
            }
            let spellings = self.spell(text);
            spellings.iter().find_map(|path| self.path_danger(path, takes_away, case))
        };
        match value {
            Value::Literal(text) => of_text(text),
            Value::Glob(glob) => {
                let prefix = static_prefix(glob);
                let prefix = prefix.to_string_lossy();
                let in_prefix = (!prefix.is_empty()).then(|| self.prefix_danger(&prefix, case)).flatten();
                in_prefix.or_else(|| {
                    let matches = self.directories.all().flat_map(|at| self.expand(glob, at).paths.clone());
                    let found = matches.into_iter().find_map(|path| of_text(&path.to_string_lossy()));
                    found.or_else(|| self.around.fs.gives_up().then(|| (Danger::ProtectedPath, glob.clone())))
                })
            }
            Value::Unknown { before, .. } => self.prefix_danger(static_directory(before), case),
        }
    }

    fn prefix_danger(&self, directory: &str, case: &Case<'_>) -> Option<(Danger, String)> {
        let spellings = self.spell(directory);
        let path = spellings
            .iter()
            .find(|path| path.all().any(|path| case.is_protected(path)))
            .filter(|_| !directory.is_empty())?;
        Some((Danger::ProtectedPath, path.physical.display().to_string()))
    }

    fn path_danger(&self, path: &Spellings, takes_away: bool, case: &Case<'_>) -> Option<(Danger, String)> {
        let shown = || path.physical.display().to_string();
        if let Some(danger) = write_danger(case, path) {
            return Some((danger, shown()));
        }
        (takes_away && self.holds_protected(path, case)).then(|| (Danger::ProtectedPath, shown()))
    }

    /// Whether something protected lies below a directory that is taken away.
    fn holds_protected(&self, directory: &Spellings, case: &Case<'_>) -> bool {
        directory.all().any(|directory| holds_one_of(directory, case.facts.protected))
            || self.walked.protected(&directory.lexical, self.around.fs) != Below::Nothing
    }
}

/// Everything that a part writes. What is linked may be changed through the link.
fn written(part: &Part) -> impl Iterator<Item = &Value> {
    let linked = part.reads.iter().filter(|_| part.program.as_deref() == Some("ln"));
    let redirects = part.redirects.iter();
    let redirects = redirects.filter(|redirect| redirect.way == Way::Write && redirect.place == Place::File);
    part.writes.iter().chain(linked).chain(redirects.map(|redirect| &redirect.target))
}

/// Whether a part removes or moves what it names, with all that lies below.
fn takes_away(part: &Part) -> bool {
    matches!(part.program.as_deref(), Some("rm" | "mv" | "rmdir"))
}
