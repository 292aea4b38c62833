//! Task list on disk: one file per task, named by its number, in a directory that is locked for each operation. Files
//! are replaced atomically, and the lock is released when its process dies.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tempfile::NamedTempFile;
use whimbrel_os::files::{self, FileKind};

use super::item::TaskItem;
use super::state::{TaskListState, TaskRuleError};

/// Lock file, held during each operation.
const LOCK_FILE: &str = ".lock";

/// File with the highest id ever assigned.
const HIGHEST_ID_FILE: &str = ".highwatermark";

/// Limits for the number of tasks and the size of one.
const MAX_ITEMS: usize = 10_000;
const MAX_ITEM_BYTES: u64 = 1024 * 1024;

/// Reads the list. A missing list is empty and is not created.
pub(super) fn read_list<T>(dir: &Path, read: impl FnOnce(&TaskListState) -> T) -> io::Result<T> {
    if files::file_kind(dir)? == FileKind::Missing {
        return Ok(read(&TaskListState::default()));
    }
    let _lock = lock_dir(dir)?;
    load(dir).map(|state| read(&state))
}

/// Applies one change to the list under the lock.
pub(super) fn modify_list<T>(
    dir: &Path,
    change: impl FnOnce(&mut TaskListState) -> Result<T, TaskRuleError>,
) -> io::Result<Result<T, TaskRuleError>> {
    files::create_private_dir(dir)?;
    let _lock = lock_dir(dir)?;
    let before = load(dir)?;
    let mut state = before.clone();
    let result = change(&mut state);
    save_changes(dir, &before, &state)?;
    Ok(result)
}

fn lock_dir(dir: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(dir.join(LOCK_FILE))?;
    file.lock()?;
    Ok(file)
}

/// Loads all tasks. An invalid file is left alone, and its id is not assigned again.
fn load(dir: &Path) -> io::Result<TaskListState> {
    let text = |name: &str| files::read(&dir.join(name), MAX_ITEM_BYTES).map(|(bytes, _)| bytes);
    let highest =
        text(HIGHEST_ID_FILE).ok().and_then(|bytes| String::from_utf8(bytes).ok()?.trim().parse().ok());
    let mut highest: u64 = highest.unwrap_or(0);
    let mut items: Vec<TaskItem> = Vec::new();
    for name in files::entry_names(dir, MAX_ITEMS) {
        let Some(number) = name.strip_suffix(".json").and_then(|stem| stem.parse::<u64>().ok()) else {
            continue;
        };
        highest = highest.max(number);
        if let Some(item) = text(&name).ok().and_then(|bytes| serde_json::from_slice::<TaskItem>(&bytes).ok())
        {
            items.push(TaskItem { id: number.to_string(), ..item });
        }
    }
    Ok(TaskListState::from_items(items, highest))
}

fn save_changes(dir: &Path, before: &TaskListState, after: &TaskListState) -> io::Result<()> {
    if after.highest_id() != before.highest_id() {
        write_atomically(dir, HIGHEST_ID_FILE, after.highest_id().to_string().as_bytes())?;
    }
    for item in after.items().filter(|item| before.get(&item.id) != Some(item)) {
        let json = serde_json::to_vec_pretty(item).map_err(io::Error::other)?;
        write_atomically(dir, &format!("{}.json", item.id), &json)?;
    }
    for removed in before.items().filter(|item| after.get(&item.id).is_none()) {
        files::remove_file(&dir.join(format!("{}.json", removed.id)))?;
    }
    Ok(())
}

/// Replaces a file atomically.
fn write_atomically(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(dir)?;
    file.write_all(bytes)?;
    file.persist(dir.join(name)).map(drop).map_err(|error| error.error)
}
