//! Agent memory: a directory of notes per agent definition that outlives the session. At its start, an agent is given
//! the path and the index file. The files are read and written with the usual tools under the usual permission rules.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use whimbrel_config::locations::ConfigLocations;
use whimbrel_os::files;

use super::{AgentSpawner, ResolvedDefinition};
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
    fn dir(self, locations: &ConfigLocations, agent_type: &str) -> Option<PathBuf> {
        let subdir = match self {
            Self::User => locations.user_dir.as_ref()?.join("agent-memory"),
            Self::Project => locations.project_dir.join(".claude/agent-memory"),
            Self::Local => locations.project_dir.join(".claude/agent-memory-local"),
        };
        let sanitize = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
        Some(subdir.join(agent_type.chars().map(sanitize).collect::<String>()))
    }
}

impl AgentSpawner {
    /// Adds the memory reminder to the conversation of an agent, if its definition has a memory.
    pub(super) async fn inject_memory(&self, agent: &mut Agent, definition: &ResolvedDefinition) {
        let Some(scope) = definition.memory.as_deref().and_then(MemoryScope::from_name) else { return };
        let Some(dir) = scope.dir(&self.context.extensions.config_locations, &definition.name) else {
            let text = format!(
                "The agent {} starts without memory: there is no configuration directory.",
                definition.name
            );
            return self.context.frame_sender.warn(text).await;
        };
        match files::run_blocking(move || render_reminder(&dir)).await {
            Ok(text) => agent.conversation.push_hidden(&text),
            Err(error) => {
                let text = format!("The agent {} starts without memory: {error}.", definition.name);
                self.context.frame_sender.warn(text).await;
            }
        }
    }
}

/// The memory reminder if the definition is applied to the session. Reads the disk.
pub(crate) fn session_reminder(
    definition: &ResolvedDefinition,
    locations: &ConfigLocations,
) -> Option<String> {
    let scope = definition.memory.as_deref().and_then(MemoryScope::from_name)?;
    Some(render_reminder(&scope.dir(locations, &definition.name)?))
}

/// Renders the reminder with the path and the beginning of the index. Reads the disk.
fn render_reminder(dir: &Path) -> String {
    let mut text = format!(
        "<system-reminder>\nYour memory directory is {}; notes in it persist across sessions. Consult it for what you have learned before. \
Before you finish, save what will help you next time, short and accurate: details in separate files, and one line for each of them in {INDEX_FILE}. \
Only the first {MAX_INDEX_LINES} lines of {INDEX_FILE} are shown to you.",
        dir.display()
    );
    match files::read(&dir.join(INDEX_FILE), MAX_FILE_BYTES) {
        Ok((bytes, _)) => {
            let _ = write!(
                text,
                "\n\nContents of {INDEX_FILE}:\n{}",
                truncate_index(&String::from_utf8_lossy(&bytes))
            );
        }
        Err(_) => text.push_str(" There is no index yet."),
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
        shown.push_str("\n(Truncated; shorten it.)");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_dir_follows_scope_and_stays_inside() {
        let locations = ConfigLocations {
            user_dir: Some("/home/ann/.claude".into()),
            project_dir: "/code/app".into(),
            ..ConfigLocations::default()
        };
        let rows = [
            ("user", "rev", "/home/ann/.claude/agent-memory/rev"),
            ("project", "kit:rev", "/code/app/.claude/agent-memory/kit-rev"),
            ("local", "../../etc", "/code/app/.claude/agent-memory-local/------etc"),
        ];
        for (scope, agent_type, expected) in rows {
            let dir = MemoryScope::from_name(scope).unwrap().dir(&locations, agent_type).unwrap();
            assert_eq!(dir, Path::new(expected));
        }
        assert_eq!(MemoryScope::from_name("mine"), None);
        assert_eq!(MemoryScope::User.dir(&ConfigLocations::default(), "rev"), None);
    }

    #[test]
    fn long_index_is_truncated() {
        let dir = tempfile::tempdir().unwrap();
        assert!(render_reminder(dir.path()).contains("no index yet"));
        let index = dir.path().join(INDEX_FILE);
        std::fs::write(&index, "- one\n- two\n").unwrap();
        let text = render_reminder(dir.path());
        assert!(text.contains("MEMORY.md:\n- one\n- two\n</system") && !text.contains("Truncated"), "{text}");
        std::fs::write(&index, "line\n".repeat(300)).unwrap();
        let text = render_reminder(dir.path());
        assert!(text.matches("line\n").count() == MAX_INDEX_LINES && text.contains("Truncated"), "{text}");
        std::fs::write(&index, "ü".repeat(20_000)).unwrap();
        assert!(render_reminder(dir.path()).len() < MAX_INDEX_BYTES + 1_000);
    }
}
