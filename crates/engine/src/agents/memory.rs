//! Agent memory: a directory of notes per agent definition that outlives the session. At its start, an agent is given
//! the path and the index file. The files are read and written with the usual tools under the usual permission rules.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use whimbrel_config::locations::ConfigLocations;
use whimbrel_os::files;

use super::{AgentSpawner, Definition};
use crate::agent::Agent;

/// Tools that are needed to maintain the memory.
pub(super) const MEMORY_TOOLS: [&str; 3] = ["Read", "Write", "Edit"];

/// Index file that is shown at the start, and the limits on what is shown of it.
const INDEX_FILE: &str = "MEMORY.md";
const MAX_INDEX_LINES: usize = 200;
const MAX_INDEX_BYTES: usize = 25_000;

/// Limit on the size of the index file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Scope of an agent memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryScope {
    /// Of the user, in all projects.
    User,
    /// Of the project, shared with others.
    Project,
    /// Of the user, for this project.
    Local,
}

impl MemoryScope {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name.trim() {
            "user" => Some(Self::User),
            "project" => Some(Self::Project),
            "local" => Some(Self::Local),
            _ => None,
        }
    }

    /// The memory directory of an agent type.
    fn dir(self, ground: &ConfigLocations, kind: &str) -> Option<PathBuf> {
        let shelf = match self {
            Self::User => ground.user_dir.as_ref()?.join("agent-memory"),
            Self::Project => ground.project_dir.join(".claude/agent-memory"),
            Self::Local => ground.project_dir.join(".claude/agent-memory-local"),
        };
        let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
        Some(shelf.join(kind.chars().map(plain).collect::<String>()))
    }
}

impl AgentSpawner {
    /// Adds the memory notice to the conversation of an agent, if its definition has a memory.
    pub(super) async fn inject_memory(&self, agent: &mut Agent, definition: &Definition) {
        let Some(keeper) = definition.memory.as_deref().and_then(MemoryScope::from_name) else { return };
        let Some(folder) = keeper.dir(&self.context.config_locations, &definition.name) else {
            let told =
                format!("The agent {} has no memory: there is no configuration folder.", definition.name);
            return self.context.frame_sender.warn(told).await;
        };
        match files::run_blocking(move || render_notice(&folder)).await {
            Ok(told) => agent.conversation.push_hidden(&told),
            Err(error) => {
                let told = format!("The agent {} begins without its memory: {error}.", definition.name);
                self.context.frame_sender.warn(told).await;
            }
        }
    }
}

/// The memory notice if the definition is applied to the session. Reads the disk.
pub(crate) fn session_notice(definition: &Definition, ground: &ConfigLocations) -> Option<String> {
    let keeper = definition.memory.as_deref().and_then(MemoryScope::from_name)?;
    Some(render_notice(&keeper.dir(ground, &definition.name)?))
}

/// Renders the notice with the path and the beginning of the index. Reads the disk.
fn render_notice(folder: &Path) -> String {
    let mut text = format!(
        "<system-reminder>\nYou have a memory of your own in {}: notes that you find again in later sessions. Look there for what you \
may have learned before. Before you end, write down what will help you next time, short and true: details in files of their own, and in {INDEX_FILE} \
one line for each of them. Only the first {MAX_INDEX_LINES} lines of {INDEX_FILE} are shown to you.",
        folder.display()
    );
    match files::read(&folder.join(INDEX_FILE), MAX_FILE_BYTES) {
        Ok((bytes, _)) => {
            let _ =
                write!(text, "\n\n{INDEX_FILE} says:\n{}", truncate_index(&String::from_utf8_lossy(&bytes)));
        }
        Err(_) => text.push_str(" There is nothing yet."),
    }
    text.push_str("\n</system-reminder>");
    text
}

/// Returns the first lines within the limits.
fn truncate_index(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take(MAX_INDEX_LINES).collect();
    let mut shown = lines.join("\n");
    shown.truncate(shown.floor_char_boundary(MAX_INDEX_BYTES));
    if shown.len() < text.trim_end().len() {
        shown.push_str("\n(There is more; make it shorter.)");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_dir_follows_scope_and_stays_inside() {
        let ground = ConfigLocations {
            user_dir: Some("/home/ann/.claude".into()),
            project_dir: "/code/app".into(),
            ..ConfigLocations::default()
        };
        let rows = [
            ("user", "rev", "/home/ann/.claude/agent-memory/rev"),
            ("project", "kit:rev", "/code/app/.claude/agent-memory/kit-rev"),
            ("local", "../../etc", "/code/app/.claude/agent-memory-local/------etc"),
        ];
        for (keeper, kind, expected) in rows {
            let folder = MemoryScope::from_name(keeper).unwrap().dir(&ground, kind).unwrap();
            assert_eq!(folder, Path::new(expected));
        }
        assert_eq!(MemoryScope::from_name("mine"), None);
        assert_eq!(MemoryScope::User.dir(&ConfigLocations::default(), "rev"), None);
    }

    #[test]
    fn long_index_is_truncated() {
        let folder = tempfile::tempdir().unwrap();
        assert!(render_notice(folder.path()).contains("nothing yet"));
        let index = folder.path().join(INDEX_FILE);
        std::fs::write(&index, "- one\n- two\n").unwrap();
        let text = render_notice(folder.path());
        assert!(text.contains("says:\n- one\n- two\n</system") && !text.contains("There is more"), "{text}");
        std::fs::write(&index, "line\n".repeat(300)).unwrap();
        let text = render_notice(folder.path());
        assert!(
            text.matches("line\n").count() == MAX_INDEX_LINES && text.contains("There is more"),
            "{text}"
        );
        std::fs::write(&index, "ü".repeat(20_000)).unwrap();
        assert!(render_notice(folder.path()).len() < MAX_INDEX_BYTES + 1_000);
    }
}
