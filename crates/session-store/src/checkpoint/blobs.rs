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

/// Saves a file. `None` if the path is not a regular file, which no tool changes.
pub(super) fn snapshot_file(dir: &Path, path: &Path, free_bytes: u64) -> Option<FileSnapshot> {
    let unknown = FileStamp { modified: std::time::SystemTime::UNIX_EPOCH, size: 0 };
    let stamp = match files::file_kind(path) {
        Ok(FileKind::Missing) => {
            let parent = path.parent();
            let exists = |dir: &&Path| !matches!(files::file_kind(dir), Ok(FileKind::Missing));
            let above = path.ancestors().skip(1).find(exists).filter(|above| Some(*above) != parent);
            let state = FileState::Missing { existing_ancestor: above.map(Path::to_owned) };
            return Some(FileSnapshot { state, stamp: None, added_bytes: 0 });
        }
        Ok(FileKind::File(stamp)) => stamp,
        Ok(FileKind::Directory | FileKind::Pipe | FileKind::Socket | FileKind::Device) => return None,
        Err(error) => return Some(without_copy(format!("its metadata could not be read: {error}"), unknown)),
    };
    Some(copy_file(dir, path, stamp, free_bytes).unwrap_or_else(|reason| without_copy(reason, stamp)))
}

fn copy_file(dir: &Path, path: &Path, stamp: FileStamp, free_bytes: u64) -> Result<FileSnapshot, String> {
    if stamp.size > MAX_FILE_SIZE {
        return Err(format!("it is larger than {} MB", MAX_FILE_SIZE / (1024 * 1024)));
    }
    let unreadable = |error: io::Error| format!("it could not be read: {error}");
    let (bytes, stamp) = files::read(path, MAX_FILE_SIZE).map_err(unreadable)?;
    let mode = files::file_mode(path).map_err(unreadable)?;
    let size = bytes.len() as u64;
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let exists = has_blob(dir, &hash, size);
    if size > free_bytes && !exists {
        return Err(format!(
            "the checkpoints of this session already take {} MB",
            MAX_TOTAL_SIZE / (1024 * 1024)
        ));
    }
    if !exists {
        write_blob(dir, &hash, &bytes).map_err(|error| format!("the copy could not be written: {error}"))?;
    }
    let added_bytes = if exists { 0 } else { size };
    Ok(FileSnapshot { state: FileState::Saved { hash, size, mode }, stamp: Some(stamp), added_bytes })
}

fn without_copy(reason: String, stamp: FileStamp) -> FileSnapshot {
    let state = FileState::NotSaved { reason, size: stamp.size, modified: modified_nanos(stamp) };
    FileSnapshot { state, stamp: None, added_bytes: 0 }
}

/// Checks for a saved content of this size. One of another size was truncated by a power failure.
fn has_blob(dir: &Path, hash: &str, size: u64) -> bool {
    matches!(files::file_kind(&blob_path(dir, hash)), Ok(FileKind::File(stamp)) if stamp.size == size)
}

fn write_blob(dir: &Path, hash: &str, bytes: &[u8]) -> io::Result<()> {
    let path = blob_path(dir, hash);
    files::create_private_dir(dir)?;
    files::remove_file(&path)?;
    match files::create_with_mode(&path, bytes, 0o600) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Reads a saved content. A hash mismatch is an error: damaged content must not be restored.
pub(super) fn read_blob(dir: &Path, hash: &str) -> io::Result<Vec<u8>> {
    // A manipulated log must not name a file outside the directory.
    if blake3::Hash::from_hex(hash).is_err() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the name of the copy is not a hash"));
    }
    let (bytes, _) = files::read(&blob_path(dir, hash), MAX_FILE_SIZE)?;
    if blake3::hash(&bytes).to_hex().as_str() != hash {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the copy is damaged"));
    }
    Ok(bytes)
}

fn blob_path(dir: &Path, hash: &str) -> PathBuf {
    dir.join(hash)
}
