//! Checks whether git tracks a file, which then came with the repository.
//!
//! Reads the git index directly, because running git could run programs that the repository configures. An index that
//! cannot be parsed counts as tracking the file, so that no doubt increases trust.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use whimbrel_os::files::{self, FileKind};

/// Size limit for the index: a repository with some million files.
pub const MAX_INDEX_SIZE: u64 = 512 * 1024 * 1024;

/// Whether any repository around the file tracks it.
pub(crate) fn is_tracked(file: &Path) -> bool {
    let Some((dir, name)) = file.parent().and_then(files::real_path).zip(file.file_name()) else {
        return false;
    };
    let file = dir.join(name);
    file.ancestors().skip(1).any(|root| match read_index(root) {
        Ok(Some(index)) => {
            file.strip_prefix(root).ok().and_then(git_path).is_none_or(|path| is_listed(&index, &path))
        }
        Ok(None) => false,
        Err(_) => true,
    })
}

/// The index of the repository at `root`; `None` without a repository or index.
fn read_index(root: &Path) -> io::Result<Option<Vec<u8>>> {
    let git = root.join(".git");
    let dir = match files::file_kind(&git)? {
        FileKind::Directory => git,
        FileKind::File(_) => match git_dir_from_file(&git, root)? {
            Some(dir) => dir,
            None => return Ok(None),
        },
        FileKind::Missing => return Ok(None),
        FileKind::Pipe | FileKind::Socket | FileKind::Device => {
            return Err(io::ErrorKind::InvalidInput.into());
        }
    };
    match files::read(&dir.join("index"), MAX_INDEX_SIZE) {
        Ok((bytes, _)) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The git directory that a `.git` file names.
pub fn git_dir_from_file(git: &Path, root: &Path) -> io::Result<Option<PathBuf>> {
    const MAX_GIT_FILE_SIZE: u64 = 64 * 1024;
    let (bytes, _) = files::read(git, MAX_GIT_FILE_SIZE)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.trim_end().strip_prefix("gitdir:").map(|dir| root.join(dir.trim_start())))
}

/// A path in the form of the index.
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

/// Whether an index lists a path. True for an index that cannot be parsed.
fn is_listed(index: &[u8], path: &[u8]) -> bool {
    // The index does not record its hash length.
    [20, 32].iter().find_map(|hash| search_index(index, path, *hash)).unwrap_or(true)
}

/// `None` if the index cannot be parsed with this hash length.
fn search_index(index: &[u8], path: &[u8], hash: usize) -> Option<bool> {
    let mut found = false;
    let end = walk_entries(index, hash, |mode, name| {
        found |= name.eq_ignore_ascii_case(path) || mode == DIR_MODE && path.starts_with(name);
    })?;
    Some(found || is_split(index, end, hash))
}

/// Paths of submodules in an index; `None` if it cannot be parsed.
pub fn submodule_paths(index: &[u8]) -> Option<Vec<PathBuf>> {
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

/// Mode of a sparse directory entry.
const DIR_MODE: u32 = 0o040_000;

/// Calls `each` with mode and name of all entries; returns the offset after them.
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
            let (removed, next) = read_varint(index, at)?;
            name.truncate(name.len().checked_sub(removed)?);
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
        let text = usize::from(flags & 0x0fff);
        let is_dir = mode == DIR_MODE;
        let is_valid =
            (text == 0x0fff || text == name.len()) && (is_dir || matches!(mode >> 12, 0o10 | 0o12 | 0o16));
        if !is_valid || name.is_empty() {
            return None;
        }
        each(mode, &name);
    }
    Some(at)
}

/// Whether the index refers to a shared index with more entries.
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

/// Parses a variable-length offset (seven bits per byte); also returns the position after it.
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
