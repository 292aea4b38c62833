//! The directory that programs around the Kimi SDK share (`KIMI_SHARE_DIR`, or `~/.kimi`): sessions by working
//! directory, and which session was last in each.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::ids::new_short_id;

/// The key of our own entries in `state.json`.
const STATE_KEY: &str = "whimbrel";

/// The share directory.
#[derive(Debug, Clone)]
pub(crate) struct ShareDir {
    path: PathBuf,
}

/// The files of one session.
#[derive(Debug, Clone)]
pub(crate) struct SessionDir {
    path: PathBuf,
}

/// What is kept of a session beside its conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredState {
    /// Id of the engine's session that has the conversation.
    pub(crate) engine_session: Option<String>,
    /// Actions that the user has approved for the session.
    pub(crate) approved_actions: BTreeSet<String>,
    pub(crate) plan_mode: bool,
}

impl ShareDir {
    /// The directory that the environment names; `None` without a home directory.
    pub(crate) fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let named = env("KIMI_SHARE_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let path = named.or_else(|| Some(Path::new(&env("HOME")?).join(".kimi")))?;
        Some(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The files of a session of a working directory.
    pub(crate) fn session(&self, work_dir: &Path, id: &str) -> SessionDir {
        let digest = Md5::digest(work_dir.as_os_str().as_encoded_bytes());
        let key: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        SessionDir { path: self.path.join("sessions").join(key).join(id) }
    }

    /// The last session of a working directory.
    pub(crate) fn last_session(&self, work_dir: &Path) -> Option<String> {
        let list = read_json(&self.list_path());
        let entry =
            list.get("work_dirs")?.as_array()?.iter().find(|entry| entry["path"] == json!(work_dir))?;
        Some(entry["last_session_id"].as_str()?.to_owned())
    }

    /// Notes a session as the last one of its working directory. Entries of others stay as they are.
    pub(crate) fn record_last_session(&self, work_dir: &Path, id: &str) -> io::Result<()> {
        let path = self.list_path();
        let mut list = read_json(&path);
        let entries = list.entry("work_dirs").or_insert_with(|| json!([]));
        let Some(entries) = entries.as_array_mut() else { return Ok(()) };
        match entries.iter_mut().find(|entry| entry["path"] == json!(work_dir)) {
            Some(entry) if entry["last_session_id"] == id => return Ok(()),
            Some(entry) => entry["last_session_id"] = id.into(),
            None => entries.push(json!({"path": work_dir, "kaos": "local", "last_session_id": id})),
        }
        write_json(&path, &Value::Object(list))
    }

    fn list_path(&self) -> PathBuf {
        self.path.join("kimi.json")
    }
}

impl SessionDir {
    pub(crate) fn create(&self) -> io::Result<()> {
        fs::create_dir_all(&self.path)
    }

    /// The record of events.
    pub(crate) fn wire_log(&self) -> PathBuf {
        self.path.join("wire.jsonl")
    }

    /// The conversation.
    pub(crate) fn context(&self) -> PathBuf {
        self.path.join("context.jsonl")
    }

    fn state_path(&self) -> PathBuf {
        self.path.join("state.json")
    }

    pub(crate) fn read_state(&self) -> StoredState {
        let mut file = read_json(&self.state_path());
        file.remove(STATE_KEY).and_then(|state| serde_json::from_value(state).ok()).unwrap_or_default()
    }

    /// Writes the state. What other programs keep in the file stays.
    pub(crate) fn write_state(&self, state: &StoredState) -> io::Result<()> {
        let mut file = read_json(&self.state_path());
        file.insert(STATE_KEY.into(), serde_json::to_value(state)?);
        write_json(&self.state_path(), &Value::Object(file))
    }
}

/// Reads a JSON object; an empty one if there is no such file.
fn read_json(path: &Path) -> Map<String, Value> {
    fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Replaces a file, so that readers see the old or the new one.
fn write_json(path: &Path, value: &Value) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let temporary = dir.join(format!(".{}.tmp", new_short_id()));
    let mut file = fs::File::create(&temporary)?;
    let written = file.write_all(value.to_string().as_bytes()).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_found_by_working_directory() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().to_string_lossy().into_owned();
        let share = ShareDir::from_env(&|name| (name == "KIMI_SHARE_DIR").then(|| top.clone())).unwrap();
        assert_eq!(share.last_session(Path::new("/w")), None);
        share.record_last_session(Path::new("/w"), "a").unwrap();
        share.record_last_session(Path::new("/x"), "b").unwrap();
        share.record_last_session(Path::new("/w"), "c").unwrap();
        assert_eq!(share.last_session(Path::new("/w")).as_deref(), Some("c"));
        let session = share.session(Path::new("/w"), "id");
        assert!(session.path.ends_with("sessions/1cce3e60ac2d51100ef178d6509a4972/id"));
        session.create().unwrap();
        fs::write(session.state_path(), r#"{"title": "kept"}"#).unwrap();
        let state =
            StoredState { plan_mode: true, engine_session: Some("e".into()), ..StoredState::default() };
        session.write_state(&state).unwrap();
        assert_eq!(session.read_state(), state);
        assert_eq!(read_json(&session.state_path())["title"], "kept");
    }
}
