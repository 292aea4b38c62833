//! The copies of files: each is named by the hash of its bytes, so that the same bytes are kept once.

use std::io;
use std::path::{Path, PathBuf};

use super::history::{State, nanoseconds};
use crate::files::{self, Kind, Stamp};

/// The largest file that is copied.
pub(super) const LARGEST: u64 = 32 * 1024 * 1024;
/// How much the copies of one session may take.
pub(super) const ROOM: u64 = 1024 * 1024 * 1024;

/// What was found when a file was looked at.
pub(super) struct Found {
    /// How it is.
    pub(super) state: State,
    /// The stamp of a file that is there and kept.
    pub(super) stamp: Option<Stamp>,
    /// How many bytes the copies have grown by.
    pub(super) grown: u64,
}

/// Looks at a file and keeps a copy. None if something stands there that is no file: no tool changes that.
pub(super) fn keep(folder: &Path, place: &Path, room: u64) -> Option<Found> {
    let unknown = Stamp { modified: std::time::SystemTime::UNIX_EPOCH, size: 0 };
    let stamp = match files::kind(place) {
        Ok(Kind::Missing) => {
            let own = place.parent();
            let is_there = |folder: &&Path| !matches!(files::kind(folder), Ok(Kind::Missing));
            let above = place.ancestors().skip(1).find(is_there).filter(|above| Some(*above) != own);
            let state = State::Missing { above: above.map(Path::to_owned) };
            return Some(Found { state, stamp: None, grown: 0 });
        }
        Ok(Kind::File(stamp)) => stamp,
        Ok(Kind::Folder | Kind::Pipe | Kind::Socket | Kind::Device) => return None,
        Err(error) => return Some(not_kept(format!("it could not be looked at: {error}"), unknown)),
    };
    Some(copy(folder, place, stamp, room).unwrap_or_else(|why| not_kept(why, stamp)))
}

fn copy(folder: &Path, place: &Path, stamp: Stamp, room: u64) -> Result<Found, String> {
    if stamp.size > LARGEST {
        return Err(format!("it is larger than {} MB", LARGEST / (1024 * 1024)));
    }
    let unreadable = |error: io::Error| format!("it could not be read: {error}");
    let (bytes, stamp) = files::read(place, LARGEST).map_err(unreadable)?;
    let mode = files::mode(place).map_err(unreadable)?;
    let size = bytes.len() as u64;
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let is_there = has(folder, &hash, size);
    if size > room && !is_there {
        return Err(format!("the copies of this session take {} MB already", ROOM / (1024 * 1024)));
    }
    if !is_there {
        store(folder, &hash, &bytes).map_err(|error| format!("the copy could not be written: {error}"))?;
    }
    let grown = if is_there { 0 } else { size };
    Ok(Found { state: State::Kept { hash, size, mode }, stamp: Some(stamp), grown })
}

fn not_kept(why: String, stamp: Stamp) -> Found {
    let state = State::NotKept { why, size: stamp.size, modified: nanoseconds(stamp) };
    Found { state, stamp: None, grown: 0 }
}

/// Whether there is such a copy. One of another size was cut short by a power failure.
fn has(folder: &Path, hash: &str, size: u64) -> bool {
    matches!(files::kind(&path(folder, hash)), Ok(Kind::File(stamp)) if stamp.size == size)
}

fn store(folder: &Path, hash: &str, bytes: &[u8]) -> io::Result<()> {
    let path = path(folder, hash);
    files::private_folder(folder)?;
    files::remove(&path)?;
    match files::create_with_mode(&path, bytes, 0o600) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The bytes of a copy. One that is not what it was is an error: it must not be put anywhere.
pub(super) fn fetch(folder: &Path, hash: &str) -> io::Result<Vec<u8>> {
    // A name from a journal that somebody has tampered with must not lead out of the folder.
    if blake3::Hash::from_hex(hash).is_err() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the copy has no valid name"));
    }
    let (bytes, _) = files::read(&path(folder, hash), LARGEST)?;
    if blake3::hash(&bytes).to_hex().as_str() != hash {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the copy is damaged"));
    }
    Ok(bytes)
}

fn path(folder: &Path, hash: &str) -> PathBuf {
    folder.join(hash)
}
