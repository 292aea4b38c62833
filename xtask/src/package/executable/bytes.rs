//! Numbers and texts in the headers of an executable, in little-endian order.

use anyhow::{Context, Result};

/// Error text for offsets beyond the end.
const TRUNCATED: &str = "the executable is truncated";

fn array<const N: usize>(file: &[u8], offset: usize) -> Result<[u8; N]> {
    file.get(offset..).and_then(<[u8]>::first_chunk).copied().context(TRUNCATED)
}

pub(super) fn u16_at(file: &[u8], offset: usize) -> Result<u16> {
    array(file, offset).map(u16::from_le_bytes)
}

pub(super) fn u32_at(file: &[u8], offset: usize) -> Result<u32> {
    array(file, offset).map(u32::from_le_bytes)
}

/// Reads a 32-bit offset or size.
pub(super) fn small_offset_at(file: &[u8], offset: usize) -> Result<usize> {
    usize::try_from(u32_at(file, offset)?).context(TRUNCATED)
}

/// Reads a 64-bit offset or size.
pub(super) fn offset_at(file: &[u8], offset: usize) -> Result<usize> {
    let value = array(file, offset).map(u64::from_le_bytes)?;
    usize::try_from(value).context(TRUNCATED)
}

/// Returns a part of a file.
pub(super) fn range(file: &[u8], offset: usize, size: usize) -> Result<&[u8]> {
    file.get(offset..).and_then(|rest| rest.get(..size)).context(TRUNCATED)
}

/// Reads the text that ends with a zero byte.
pub(super) fn text_at(table: &[u8], offset: usize) -> Result<String> {
    let text =
        table.get(offset..).and_then(|rest| rest.split(|byte| *byte == 0).next()).context(TRUNCATED)?;
    String::from_utf8(text.to_vec()).context("a name in the executable is not UTF-8")
}
