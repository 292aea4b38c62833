//! Reading a small file that somebody named: never a device or a pipe, which may not come to an end, and never more
//! than a limit.

use std::io::Read;
use std::path::Path;

/// The bytes of a file; an error says why it cannot be read, and ends in a full stop.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{error}.");
    let about = std::fs::metadata(path).map_err(failed)?;
    if !about.is_file() {
        let what = if about.is_dir() { "a folder" } else { "a device, pipe or socket" };
        return Err(format!("it is {what}; name a plain file."));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(format!("it has more than {} MB.", limit >> 20));
    }
    Ok(bytes)
}
