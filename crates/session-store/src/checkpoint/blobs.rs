//! Saved file contents, named by their hash, so that equal contents are stored once.

use std::io;
use std::path::{Path, PathBuf};

use whimbrel_os::files::{self, FileKind, FileStamp};

use crate::checkpoint::history::{FileState, modified_nanos};

/// Larger files are not saved.
pub(super) const MAX_FILE_SIZE: u64 = 32 * 1024 * 1024;
/// Limit on the saved contents of one session.
pub(super) const MAX_TOTAL_SIZE: u64 = 1024 * 1024 * 1024;

/// Result of saving a file.
pub(super) struct FileSnapshot {
    pub(super) state: FileState,
    /// The stamp of a file whose content was saved.
    pub(super) stamp: Option<FileStamp>,
    /// Bytes added to the saved contents.
    pub(super) added_bytes: u64,
}

/// Saves a file. None if the path is not a regular file, which no tool changes.
pub(super) fn snapshot_file(folder: &Path, place: &Path, room: u64) -> Option<FileSnapshot> {
    let unknown = FileStamp { modified: std::time::SystemTime::UNIX_EPOCH, size: 0 };
    let stamp = match files::file_kind(place) {
        Ok(FileKind::Missing) => {
            let own = place.parent();
            let is_there = |folder: &&Path| !matches!(files::file_kind(folder), Ok(FileKind::Missing));
            let above = place.ancestors().skip(1).find(is_there).filter(|above| Some(*above) != own);
            let state = FileState::Missing { above: above.map(Path::to_owned) };
            return Some(FileSnapshot { state, stamp: None, added_bytes: 0 });
        }
        Ok(FileKind::File(stamp)) => stamp,
        Ok(FileKind::Directory | FileKind::Pipe | FileKind::Socket | FileKind::Device) => return None,
        Err(error) => return Some(without_copy(format!("it could not be looked at: {error}"), unknown)),
    };
    Some(copy_file(folder, place, stamp, room).unwrap_or_else(|why| without_copy(why, stamp)))
}

fn copy_file(folder: &Path, place: &Path, stamp: FileStamp, room: u64) -> Result<FileSnapshot, String> {
    if stamp.size > MAX_FILE_SIZE {
        return Err(format!("it is larger than {} MB", MAX_FILE_SIZE / (1024 * 1024)));
    }
    let unreadable = |error: io::Error| format!("it could not be read: {error}");
    let (bytes, stamp) = files::read(place, MAX_FILE_SIZE).map_err(unreadable)?;
    let mode = files::file_mode(place).map_err(unreadable)?;
    let size = bytes.len() as u64;
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let is_there = has_blob(folder, &hash, size);
    if size > room && !is_there {
        return Err(format!("the copies of this session take {} MB already", MAX_TOTAL_SIZE / (1024 * 1024)));
    }
    if !is_there {
        write_blob(folder, &hash, &bytes)
            .map_err(|error| format!("the copy could not be written: {error}"))?;
    }
    let grown = if is_there { 0 } else { size };
    Ok(FileSnapshot { state: FileState::Kept { hash, size, mode }, stamp: Some(stamp), added_bytes: grown })
}

fn without_copy(why: String, stamp: FileStamp) -> FileSnapshot {
    let state = FileState::NotKept { why, size: stamp.size, modified: modified_nanos(stamp) };
    FileSnapshot { state, stamp: None, added_bytes: 0 }
}

/// Checks for a saved content of this size. One of another size was truncated by a power failure.
fn has_blob(folder: &Path, hash: &str, size: u64) -> bool {
    matches!(files::file_kind(&blob_path(folder, hash)), Ok(FileKind::File(stamp)) if stamp.size == size)
}

fn write_blob(folder: &Path, hash: &str, bytes: &[u8]) -> io::Result<()> {
    let path = blob_path(folder, hash);
    files::create_private_dir(folder)?;
    files::remove_file(&path)?;
    match files::create_with_mode(&path, bytes, 0o600) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Reads a saved content. A hash mismatch is an error: damaged content must not be restored.
pub(super) fn read_blob(folder: &Path, hash: &str) -> io::Result<Vec<u8>> {
    // A manipulated log must not name a file outside the directory.
    if blake3::Hash::from_hex(hash).is_err() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the copy has no valid name"));
    }
    let (bytes, _) = files::read(&blob_path(folder, hash), MAX_FILE_SIZE)?;
    if blake3::hash(&bytes).to_hex().as_str() != hash {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the copy is damaged"));
    }
    Ok(bytes)
}

fn blob_path(folder: &Path, hash: &str) -> PathBuf {
    folder.join(hash)
}
