//! The list on disk: a file for each task, named by its number, in a folder that is locked for each step. A process that
//! is killed loses its lock, and leaves whole files only.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use super::item::Item;
use super::plan::{Plan, Refusal};
use crate::files::{self, Kind};

/// Locked while somebody is at the list.
const LOCK: &str = ".lock";

/// Says the highest number that was ever given.
const HIGHEST: &str = ".highwatermark";

/// How many tasks are read, and how long one may be.
const MOST: usize = 10_000;
const LONGEST: u64 = 1024 * 1024;

/// Looks at the list. One that is not there is empty, and is not made.
pub(super) fn look<T>(folder: &Path, look: impl FnOnce(&Plan) -> T) -> io::Result<T> {
    if files::kind(folder)? == Kind::Missing {
        return Ok(look(&Plan::default()));
    }
    let _lock = lock(folder)?;
    read(folder).map(|plan| look(&plan))
}

/// Makes one step on the list.
pub(super) fn change<T>(
    folder: &Path,
    step: impl FnOnce(&mut Plan) -> Result<T, Refusal>,
) -> io::Result<Result<T, Refusal>> {
    files::private_folder(folder)?;
    let _lock = lock(folder)?;
    let before = read(folder)?;
    let mut plan = before.clone();
    let done = step(&mut plan);
    write(folder, &before, &plan)?;
    Ok(done)
}

fn lock(folder: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(folder.join(LOCK))?;
    file.lock()?;
    Ok(file)
}

/// What lies there. A file that is no task is left alone, and its number is not given again.
fn read(folder: &Path) -> io::Result<Plan> {
    let text = |name: &str| files::read(&folder.join(name), LONGEST).map(|(bytes, _)| bytes);
    let highest = text(HIGHEST).ok().and_then(|bytes| String::from_utf8(bytes).ok()?.trim().parse().ok());
    let mut highest: u64 = highest.unwrap_or(0);
    let mut items: Vec<Item> = Vec::new();
    for name in files::names(folder, MOST) {
        let Some(number) = name.strip_suffix(".json").and_then(|stem| stem.parse::<u64>().ok()) else {
            continue;
        };
        highest = highest.max(number);
        if let Some(item) = text(&name).ok().and_then(|bytes| serde_json::from_slice::<Item>(&bytes).ok()) {
            items.push(Item { id: number.to_string(), ..item });
        }
    }
    Ok(Plan::of(items, highest))
}

fn write(folder: &Path, before: &Plan, after: &Plan) -> io::Result<()> {
    if after.highest() != before.highest() {
        put(folder, HIGHEST, after.highest().to_string().as_bytes())?;
    }
    for item in after.items().filter(|item| before.get(&item.id) != Some(item)) {
        let json = serde_json::to_vec_pretty(item).map_err(io::Error::other)?;
        put(folder, &format!("{}.json", item.id), &json)?;
    }
    for gone in before.items().filter(|item| after.get(&item.id).is_none()) {
        files::remove(&folder.join(format!("{}.json", gone.id)))?;
    }
    Ok(())
}

/// Puts a file in its place at once.
fn put(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(folder.join(name)).map(drop).map_err(|error| error.error)
}
