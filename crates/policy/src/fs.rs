//! View of the disk used by decisions: file types, link targets and directory listings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Type of a directory entry; a final link is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileType {
    File,
    Directory,
    Link,
    /// A pipe, socket or device.
    Special,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    pub name: OsString,
    /// Its type, if the directory listing includes it.
    pub kind: Option<FileType>,
}

/// A view of the disk. It is used only if a call names a path.
pub trait FsView: fmt::Debug {
    /// Type of the entry at a path; `None` if it does not exist.
    fn lstat(&self, path: &Path) -> Option<FileType>;
    /// Target of a link, as stored in the link.
    fn readlink(&self, path: &Path) -> Option<PathBuf>;
    /// Names in a directory, at most `limit`; `None` if it cannot be read.
    fn readdir(&self, path: &Path, limit: usize) -> Option<Vec<OsString>>;
    /// Entries of a directory, with their types where the listing includes them.
    fn read_entries(&self, path: &Path, limit: usize) -> Option<Rc<[DirEntry]>> {
        let names = self.readdir(path, limit)?;
        Some(names.into_iter().map(|name| DirEntry { name, kind: None }).collect())
    }
    /// Returns true if the read budget is used up and directories are no longer read. A failed search is then
    /// inconclusive.
    fn is_budget_exhausted(&self) -> bool {
        false
    }
}

/// The disk of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

impl FsView for RealFs {
    fn lstat(&self, path: &Path) -> Option<FileType> {
        Some(std::fs::symlink_metadata(path).ok()?.file_type().into())
    }

    fn readlink(&self, path: &Path) -> Option<PathBuf> {
        std::fs::read_link(path).ok()
    }

    fn readdir(&self, path: &Path, limit: usize) -> Option<Vec<OsString>> {
        let entries = std::fs::read_dir(path).ok()?;
        Some(entries.filter_map(Result::ok).take(limit).map(|entry| entry.file_name()).collect())
    }

    fn read_entries(&self, path: &Path, limit: usize) -> Option<Rc<[DirEntry]>> {
        let entries = std::fs::read_dir(path).ok()?.filter_map(Result::ok).take(limit);
        let listed = entries.map(|entry| DirEntry {
            name: entry.file_name(),
            kind: entry.file_type().ok().map(FileType::from),
        });
        Some(listed.collect())
    }
}

impl From<std::fs::FileType> for FileType {
    fn from(kind: std::fs::FileType) -> Self {
        match () {
            () if kind.is_symlink() => Self::Link,
            () if kind.is_dir() => Self::Directory,
            () if kind.is_file() => Self::File,
            () => Self::Special,
        }
    }
}

/// An in-memory disk, for tests and for decisions about another machine.
#[derive(Debug, Clone, Default)]
pub struct FakeFs {
    entries: BTreeMap<PathBuf, FakeEntry>,
}

#[derive(Debug, Clone)]
enum FakeEntry {
    Plain(FileType),
    Link(PathBuf),
}

impl FakeFs {
    /// Creates a disk with these files and their parent directories. A name that ends in `/` is an empty directory.
    pub fn with_files<'a>(files: impl IntoIterator<Item = &'a str>) -> Self {
        let mut fs = Self::default();
        for file in files {
            let kind = if file.ends_with('/') { FileType::Directory } else { FileType::File };
            fs.insert(Path::new(file), FakeEntry::Plain(kind));
        }
        fs
    }

    /// Adds a link.
    #[must_use]
    pub fn with_link(mut self, at: &str, target: &str) -> Self {
        self.insert(Path::new(at), FakeEntry::Link(target.into()));
        self
    }

    fn insert(&mut self, path: &Path, entry: FakeEntry) {
        for parent in path.ancestors().skip(1) {
            self.entries.entry(parent.to_owned()).or_insert(FakeEntry::Plain(FileType::Directory));
        }
        self.entries.insert(path.to_owned(), entry);
    }
}

impl FsView for FakeFs {
    fn lstat(&self, path: &Path) -> Option<FileType> {
        self.entries.get(path).map(|entry| match entry {
            FakeEntry::Plain(kind) => *kind,
            FakeEntry::Link(_) => FileType::Link,
        })
    }

    fn readlink(&self, path: &Path) -> Option<PathBuf> {
        match self.entries.get(path)? {
            FakeEntry::Link(target) => Some(target.clone()),
            FakeEntry::Plain(_) => None,
        }
    }

    fn readdir(&self, path: &Path, limit: usize) -> Option<Vec<OsString>> {
        (self.lstat(path)? == FileType::Directory).then_some(())?;
        let children = self.entries.keys().filter(|entry| entry.parent() == Some(path));
        Some(children.take(limit).filter_map(|entry| Some(entry.file_name()?.to_owned())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_and_fake_disk_agree() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::write(root.join("file"), "").unwrap();
        std::fs::create_dir(root.join("dir")).unwrap();
        std::os::unix::fs::symlink("file", root.join("link")).unwrap();
        let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let fake = FakeFs::with_files([at("file").as_str(), (at("dir") + "/").as_str()])
            .with_link(&at("link"), "file");
        for name in ["file", "dir", "link", "missing"] {
            let path = root.join(name);
            assert_eq!(RealFs.lstat(&path), fake.lstat(&path), "{name}");
            assert_eq!(RealFs.readlink(&path), fake.readlink(&path), "{name}");
        }
        let mut names = RealFs.readdir(root, 10).unwrap();
        names.sort();
        assert_eq!(Some(names), fake.readdir(root, 10));
        assert_eq!(RealFs.readdir(&root.join("file"), 10), None);
        for entry in RealFs.read_entries(root, 10).unwrap().iter() {
            assert_eq!(entry.kind, fake.lstat(&root.join(&entry.name)), "{entry:?}");
        }
        assert_eq!(RealFs.read_entries(&root.join("file"), 10), None);
    }
}
