//! The memory of a kind of agent: a folder of notes that outlives the session. An agent that begins is told where it is
//! and what stands in its index. Its files are read and written with the usual tools, and so by the usual rules.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::{Agents, Definition};
use crate::agent::Agent;
use crate::files;
use crate::ground::Ground;

/// The tools without which nobody could keep notes.
pub(super) const TOOLS: [&str; 3] = ["Read", "Write", "Edit"];

/// The file of which an agent is told at once, and how much of it.
const INDEX: &str = "MEMORY.md";
const LINES: usize = 200;
const BYTES: usize = 25_000;

/// How large that file may be at all.
const LARGEST: u64 = 1024 * 1024;

/// Whose notes they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeper {
    /// The person's, wherever the agent works.
    User,
    /// The project's, for everybody who works on it.
    Project,
    /// The person's for this project.
    Local,
}

impl Keeper {
    /// The keeper of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name.trim() {
            "user" => Some(Self::User),
            "project" => Some(Self::Project),
            "local" => Some(Self::Local),
            _ => None,
        }
    }

    /// The folder for the notes of a kind.
    fn folder(self, ground: &Ground, kind: &str) -> Option<PathBuf> {
        let shelf = match self {
            Self::User => ground.config.as_ref()?.join("agent-memory"),
            Self::Project => ground.project.join(".claude/agent-memory"),
            Self::Local => ground.project.join(".claude/agent-memory-local"),
        };
        let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
        Some(shelf.join(kind.chars().map(plain).collect::<String>()))
    }
}

impl Agents {
    /// Tells an agent that begins of the notes of its kind, if it keeps some.
    pub(super) async fn open_notes(&self, agent: &mut Agent, definition: &Definition) {
        let Some(keeper) = definition.memory.as_deref().and_then(Keeper::named) else { return };
        let Some(folder) = keeper.folder(&self.home.ground, &definition.name) else {
            let told =
                format!("The agent {} has no memory: there is no configuration folder.", definition.name);
            return self.home.outbox.warn(told).await;
        };
        match files::aside(move || told(&folder)).await {
            Ok(told) => agent.conversation.brief(&told),
            Err(error) => {
                let told = format!("The agent {} begins without its memory: {error}.", definition.name);
                self.home.outbox.warn(told).await;
            }
        }
    }
}

/// What a session is told that is of a kind which keeps notes. Touches the disk.
pub(crate) fn of_session(definition: &Definition, ground: &Ground) -> Option<String> {
    let keeper = definition.memory.as_deref().and_then(Keeper::named)?;
    Some(told(&keeper.folder(ground, &definition.name)?))
}

/// What an agent is told of its notes. Touches the disk.
fn told(folder: &Path) -> String {
    let mut text = format!(
        "<system-reminder>\nYou have a memory of your own in {}: notes that you find again in later sessions. Look there for what you \
may have learned before. Before you end, write down what will help you next time, short and true: details in files of their own, and in {INDEX} \
one line for each of them. Only the first {LINES} lines of {INDEX} are shown to you.",
        folder.display()
    );
    match files::read(&folder.join(INDEX), LARGEST) {
        Ok((bytes, _)) => {
            let _ = write!(text, "\n\n{INDEX} says:\n{}", beginning(&String::from_utf8_lossy(&bytes)));
        }
        Err(_) => text.push_str(" There is nothing yet."),
    }
    text.push_str("\n</system-reminder>");
    text
}

/// The first lines.
fn beginning(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take(LINES).collect();
    let mut shown = lines.join("\n");
    shown.truncate(shown.floor_char_boundary(BYTES));
    if shown.len() < text.trim_end().len() {
        shown.push_str("\n(There is more; make it shorter.)");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_lie_where_their_keeper_says_and_nowhere_else() {
        let ground = Ground {
            config: Some("/home/ann/.claude".into()),
            project: "/code/app".into(),
            ..Ground::default()
        };
        let rows = [
            ("user", "rev", "/home/ann/.claude/agent-memory/rev"),
            ("project", "kit:rev", "/code/app/.claude/agent-memory/kit-rev"),
            ("local", "../../etc", "/code/app/.claude/agent-memory-local/------etc"),
        ];
        for (keeper, kind, expected) in rows {
            let folder = Keeper::named(keeper).unwrap().folder(&ground, kind).unwrap();
            assert_eq!(folder, Path::new(expected));
        }
        assert_eq!(Keeper::named("mine"), None);
        assert_eq!(Keeper::User.folder(&Ground::default(), "rev"), None);
    }

    #[test]
    fn a_long_index_is_shown_in_part() {
        let folder = tempfile::tempdir().unwrap();
        assert!(told(folder.path()).contains("nothing yet"));
        let index = folder.path().join(INDEX);
        std::fs::write(&index, "- one\n- two\n").unwrap();
        let text = told(folder.path());
        assert!(text.contains("says:\n- one\n- two\n</system") && !text.contains("There is more"), "{text}");
        std::fs::write(&index, "line\n".repeat(300)).unwrap();
        let text = told(folder.path());
        assert!(text.matches("line\n").count() == LINES && text.contains("There is more"), "{text}");
        std::fs::write(&index, "ü".repeat(20_000)).unwrap();
        assert!(told(folder.path()).len() < BYTES + 1_000);
    }
}
