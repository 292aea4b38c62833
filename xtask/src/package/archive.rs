//! Writers of archives: tar, zip, and the ar format of Debian packages. The same entries give the same bytes: times,
//! owners and order do not come from the file system.

use anyhow::{Context, Result, ensure};

use super::compression::Compression;

/// Modification time of all entries: the first one that zip can express, 1980-01-01.
pub(super) const MODIFICATION_TIME: u64 = 315_532_800;

/// The same time in the format of zip: date, then time of day.
const ZIP_MODIFICATION_TIME: (u16, u16) = ((1 << 5) | 1, 0);

/// Size of a tar block.
const TAR_BLOCK: usize = 512;

/// A file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Path with slashes, relative to the root of the archive.
    pub(super) path: String,
    pub(super) mode: FileMode,
    pub(super) content: Vec<u8>,
}

/// Permissions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileMode {
    Plain,
    Executable,
}

impl FileMode {
    fn bits(self) -> u32 {
        match self {
            Self::Plain => 0o644,
            Self::Executable => 0o755,
        }
    }
}

impl Entry {
    pub(super) fn plain(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), mode: FileMode::Plain, content: content.into() }
    }

    pub(super) fn executable(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), mode: FileMode::Executable, content: content.into() }
    }

    /// Returns the entry below a directory.
    pub(super) fn below(self, dir: &str) -> Self {
        Self { path: format!("{dir}/{}", self.path), ..self }
    }
}

/// Whether a tar archive has entries for directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TarDirectories {
    Listed,
    Implied,
}

/// Writes a tar archive in the ustar format.
pub(super) fn write_tar(entries: &[Entry], directories: TarDirectories) -> Result<Vec<u8>> {
    let mut archive = Vec::new();
    let mut listed: Vec<&str> = Vec::new();
    for entry in entries {
        if directories == TarDirectories::Listed {
            for dir in parent_dirs(&entry.path) {
                if !listed.contains(&dir) {
                    archive.extend(tar_header(dir, 0o755, 0, b'5')?);
                    listed.push(dir);
                }
            }
        }
        archive.extend(tar_header(&entry.path, entry.mode.bits(), entry.content.len(), b'0')?);
        archive.extend(&entry.content);
        archive.resize(archive.len().next_multiple_of(TAR_BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * TAR_BLOCK, 0);
    Ok(archive)
}

/// The directories above a path, the outermost first, each with a slash at its end.
fn parent_dirs(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(index, _)| &path[..=index])
}

fn tar_header(path: &str, mode: u32, size: usize, kind: u8) -> Result<[u8; TAR_BLOCK]> {
    ensure!(path.len() < 100, "{path} is too long for a tar archive; shorten the path");
    let mut header = [0; TAR_BLOCK];
    let mut put = |offset: usize, bytes: &[u8]| header[offset..offset + bytes.len()].copy_from_slice(bytes);
    put(0, path.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, format!("{MODIFICATION_TIME:011o}").as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(265, b"root");
    put(297, b"root");
    let checksum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{checksum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Writes a zip archive.
pub(super) fn write_zip(entries: &[Entry], compression: Compression) -> Result<Vec<u8>> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let offset = u32::try_from(archive.len()).context("the zip archive is too large")?;
        let deflated = compression.deflate(&entry.content)?;
        let common = zip_fields(entry, &deflated.body, deflated.crc32)?;
        archive.extend(b"PK\x03\x04\x14\x00");
        archive.extend(&common);
        archive.extend(entry.path.as_bytes());
        archive.extend(&deflated.body);
        // Made on Unix, so that the mode counts.
        directory.extend(b"PK\x01\x02\x14\x03\x14\x00");
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | entry.mode.bits()) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.path.as_bytes());
    }
    let count = u16::try_from(entries.len())?.to_le_bytes();
    let offset = u32::try_from(archive.len()).context("the zip archive is too large")?;
    let size = u32::try_from(directory.len())?;
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\x00\x00\x00\x00");
    archive.extend([count, count].concat());
    archive.extend([size.to_le_bytes(), offset.to_le_bytes()].concat());
    archive.extend([0, 0]);
    Ok(archive)
}

/// The fields that both headers of a zip entry have.
fn zip_fields(entry: &Entry, body: &[u8], crc32: u32) -> Result<Vec<u8>> {
    const DEFLATED: u16 = 8;
    let (date, time) = ZIP_MODIFICATION_TIME;
    let short = [0, DEFLATED, time, date].map(u16::to_le_bytes).concat();
    let long = [crc32, u32::try_from(body.len())?, u32::try_from(entry.content.len())?]
        .map(u32::to_le_bytes)
        .concat();
    let lengths = [u16::try_from(entry.path.len())?, 0].map(u16::to_le_bytes).concat();
    Ok([short, long, lengths].concat())
}

/// Writes an ar archive, the outer format of a Debian package.
pub(super) fn write_ar(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let header = format!(
            "{name:<16}{MODIFICATION_TIME:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            100_644,
            content.len()
        );
        archive.extend(header.into_bytes());
        archive.extend(content);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_listed_once_before_their_files() {
        let entries = [Entry::executable("./usr/bin/a", "x"), Entry::plain("./usr/share/b", "")];
        let archive = write_tar(&entries, TarDirectories::Listed).unwrap();
        let names: Vec<String> = (0..archive.len() / TAR_BLOCK)
            .map(|block| &archive[block * TAR_BLOCK..][..TAR_BLOCK])
            .filter(|block| &block[257..262] == b"ustar")
            .map(|header| {
                let end = header.iter().position(|byte| *byte == 0).unwrap();
                format!("{} {}", String::from_utf8_lossy(&header[..end]), header[156] - b'0')
            })
            .collect();
        assert_eq!(
            names,
            ["./ 5", "./usr/ 5", "./usr/bin/ 5", "./usr/bin/a 0", "./usr/share/ 5", "./usr/share/b 0"]
        );
    }

    #[test]
    fn path_that_does_not_fit_is_an_error() {
        let error = write_tar(&[Entry::plain("a".repeat(100), "")], TarDirectories::Implied).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
    }

    #[test]
    fn archives_can_be_read_by_other_programs() {
        let dir = tempfile::tempdir().unwrap();
        let entries =
            [Entry::executable("d/run", "#!/bin/sh\necho it runs\n"), Entry::plain("d/text", vec![7; 5000])];
        let archives = [
            ("a.tar", write_tar(&entries, TarDirectories::Implied).unwrap()),
            ("a.zip", write_zip(&entries, Compression::Fast).unwrap()),
            ("a.a", write_ar(&[("one", b"1".to_vec()), ("two", b"22".to_vec())])),
        ];
        for (name, bytes) in &archives {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let list = |words: &[&str], name: &str| {
            let file = dir.path().join(name).display().to_string();
            crate::command::stdout(&[words, &[file.as_str()]].concat()).unwrap()
        };
        assert_eq!(list(&["tar", "-tf"], "a.tar"), "d/run\nd/text\n");
        let python = "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; \
                      print([(i.filename, i.file_size, oct(i.external_attr >> 16)) for i in z.infolist()])";
        assert_eq!(
            list(&["python3", "-c", python], "a.zip"),
            "[('d/run', 23, '0o100755'), ('d/text', 5000, '0o100644')]\n"
        );
        assert_eq!(list(&["ar", "t"], "a.a"), "one\ntwo\n");
    }
}
