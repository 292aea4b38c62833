//! Whether git tracks a file: then it came with the repository, whatever it is called.
//!
//! Git's index is read directly; no program of the repository's choosing is run for it. What cannot be understood is
//! taken for tracked, so that doubt never makes anything count for more.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::files::{self, FileKind};

/// The largest index that is read: that of a repository with some million files.
pub(crate) const MAX_INDEX_SIZE: u64 = 512 * 1024 * 1024;

/// Whether a repository that the file lies in tracks it.
pub fn is_tracked(file: &Path) -> bool {
    let Some((folder, name)) = file.parent().and_then(files::real_path).zip(file.file_name()) else {
        return false;
    };
    let file = folder.join(name);
    file.ancestors().skip(1).any(|root| match read_index(root) {
        Ok(Some(index)) => {
            file.strip_prefix(root).ok().and_then(git_path).is_none_or(|path| is_listed(&index, &path))
        }
        Ok(None) => false,
        Err(_) => true,
    })
}

/// The index of the repository whose work tree is at `root`. None if there is no repository, or nothing was ever added.
fn read_index(root: &Path) -> io::Result<Option<Vec<u8>>> {
    let git = root.join(".git");
    let folder = match files::file_kind(&git)? {
        FileKind::Directory => git,
        FileKind::File(_) => match git_dir_from_file(&git, root)? {
            Some(folder) => folder,
            None => return Ok(None),
        },
        FileKind::Missing => return Ok(None),
        FileKind::Pipe | FileKind::Socket | FileKind::Device => return Err(io::ErrorKind::InvalidInput.into()),
    };
    match files::read(&folder.join("index"), MAX_INDEX_SIZE) {
        Ok((bytes, _)) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where a `.git` that is a file says the repository is.
pub(crate) fn git_dir_from_file(git: &Path, root: &Path) -> io::Result<Option<PathBuf>> {
    const MAX_GIT_FILE_SIZE: u64 = 64 * 1024;
    let (bytes, _) = files::read(git, MAX_GIT_FILE_SIZE)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.trim_end().strip_prefix("gitdir:").map(|folder| root.join(folder.trim_start())))
}

/// A path as git writes it.
fn git_path(relative: &Path) -> Option<Vec<u8>> {
    let parts: Option<Vec<&str>> = relative
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    Some(parts?.join("/").into_bytes())
}

/// Whether an index lists a path. What is no index that we understand lists everything.
fn is_listed(index: &[u8], path: &[u8]) -> bool {
    // The index does not say how long its hashes are.
    [20, 32].iter().find_map(|hash| search_index(index, path, *hash)).unwrap_or(true)
}

/// None if the bytes are no index with hashes of this length.
fn search_index(index: &[u8], path: &[u8], hash: usize) -> Option<bool> {
    let mut found = false;
    let end = walk_entries(index, hash, |mode, name| {
        found |= name.eq_ignore_ascii_case(path) || mode == DIR_MODE && path.starts_with(name);
    })?;
    Some(found || is_split(index, end, hash))
}

/// The repositories that an index lists as parts of its own, by their paths. None if it is not understood.
pub(crate) fn submodule_paths(index: &[u8]) -> Option<Vec<PathBuf>> {
    [20, 32].iter().find_map(|hash| {
        let mut found = Vec::new();
        let end = walk_entries(index, *hash, |mode, name| {
            if mode >> 12 == 0o16 {
                found.push(PathBuf::from(OsStr::from_bytes(name)));
            }
        })?;
        (!is_split(index, end, *hash)).then_some(found)
    })
}

/// How a folder that is not taken apart stands in an index.
const DIR_MODE: u32 = 0o040_000;

/// Goes through the entries, each with its mode and name, and says where they end.
fn walk_entries(index: &[u8], hash: usize, mut each: impl FnMut(u32, &[u8])) -> Option<usize> {
    let version = read_u32(index, 4)?;
    if index.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut name = Vec::new();
    for _ in 0..read_u32(index, 8)? {
        let start = at;
        let mode = read_u32(index, at + 24)?;
        let flags = u16::from_be_bytes(index.get(at + 40 + hash..at + 42 + hash)?.try_into().ok()?);
        at += 42 + hash + if flags & 0x4000 != 0 { 2 } else { 0 };
        if version == 4 {
            let (cut, next) = read_varint(index, at)?;
            name.truncate(name.len().checked_sub(cut)?);
            at = next;
        } else {
            name.clear();
        }
        let rest = index.get(at..)?;
        let length = memchr::memchr(0, rest)?;
        name.extend_from_slice(&rest[..length]);
        at += length + 1;
        if version < 4 {
            at = start + (at - start).div_ceil(8) * 8;
        }
        let told = usize::from(flags & 0x0fff);
        let folder = mode == DIR_MODE;
        let sound =
            (told == 0x0fff || told == name.len()) && (folder || matches!(mode >> 12, 0o10 | 0o12 | 0o16));
        if !sound || name.is_empty() {
            return None;
        }
        each(mode, &name);
    }
    Some(at)
}

/// Whether more files are listed in another file.
fn is_split(index: &[u8], mut at: usize, hash: usize) -> bool {
    while at + 8 <= index.len().saturating_sub(hash) {
        match (index.get(at..at + 4), read_u32(index, at + 4)) {
            (Some(b"link"), _) | (None, _) | (_, None) => return true,
            (Some(_), Some(size)) => at += 8 + size as usize,
        }
    }
    false
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A number as git writes offsets: seven bits a byte. Also where the next thing begins.
fn read_varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests;
