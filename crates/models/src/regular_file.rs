//! Bounded reads of files named by the user. Devices, pipes and sockets are rejected because reading them may not end.

use std::io::Read;
use std::path::Path;

/// Reads a regular file of at most `limit` bytes. The error text is a sentence with its full stop.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let to_text = |error: std::io::Error| format!("{error}.");
    let metadata = std::fs::metadata(path).map_err(to_text)?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { "a directory" } else { "a device, pipe or socket" };
        return Err(format!("it is {kind}; name a regular file."));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(to_text)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(to_text)?;
    if bytes.len() as u64 > limit {
        return Err(format!("it is larger than {} MB.", limit >> 20));
    }
    Ok(bytes)
}
