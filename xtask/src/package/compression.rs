//! Compression and checksums by the programs of the system, which are fast however this program was built.

use anyhow::{Context, Result, ensure};

use crate::command::{filter, succeeds};

/// Bytes before and after the compressed data of a gzip file without a name.
const GZIP_HEADER_BYTES: usize = 10;
const GZIP_TRAILER_BYTES: usize = 8;

/// How much time compression may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// Small files, for releases.
    Best,
    /// Little time, for tests.
    Fast,
}

/// Data compressed by the deflate algorithm, without a header.
pub(super) struct Deflated {
    pub(super) body: Vec<u8>,
    /// Checksum of the uncompressed data.
    pub(super) crc32: u32,
}

impl Compression {
    /// Returns a gzip file without a name and a time.
    pub(super) fn gzip(self, content: &[u8]) -> Result<Vec<u8>> {
        let level = match self {
            Self::Best => "-9",
            Self::Fast => "-1",
        };
        filter(&["gzip", "-n", "-c", level], content)
    }

    /// Returns compressed data without the header of gzip.
    pub(super) fn deflate(self, content: &[u8]) -> Result<Deflated> {
        let file = self.gzip(content)?;
        let without_options = file.get(3) == Some(&0);
        ensure!(
            without_options && file.len() >= GZIP_HEADER_BYTES + GZIP_TRAILER_BYTES,
            "gzip wrote an unexpected header"
        );
        let (rest, trailer) = file.split_at(file.len() - GZIP_TRAILER_BYTES);
        let crc32 = trailer
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))
            .context("gzip wrote no checksum")?;
        Ok(Deflated { body: rest[GZIP_HEADER_BYTES..].to_vec(), crc32 })
    }
}

/// Returns the SHA-256 of some bytes in hexadecimal.
pub(super) fn sha256(content: &[u8]) -> Result<String> {
    if succeeds("sha256sum", &["--version"]) {
        run_checksum(&["sha256sum"], content)
    } else {
        run_checksum(&["shasum", "-a", "256"], content)
    }
}

/// Returns the MD5 of some bytes in hexadecimal. Debian packages list it to detect changed files.
pub(super) fn md5(content: &[u8]) -> Result<String> {
    run_checksum(&["md5sum"], content)
}

fn run_checksum(words: &[&str], content: &[u8]) -> Result<String> {
    let line = String::from_utf8(filter(words, content)?)?;
    line.split_whitespace().next().map(str::to_owned).with_context(|| format!("{} printed nothing", words[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_known_values() {
        assert_eq!(
            sha256(b"abc").unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(Compression::Fast.deflate(b"123456789").unwrap().crc32, 0xcbf4_3926);
    }
}
