//! Paths that are never read (devices, the engine's own process), and virtual file systems, which no search enters.

use std::path::Path;

use super::real_path;

/// Virtual file systems. Reading their files can block forever.
const VIRTUAL_FILE_SYSTEMS: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Returns whether a path, symlinks resolved, is a device or exposes the engine's own process (`/dev`, `/proc/self`,
/// ..).
pub fn is_special_path(path: &Path) -> bool {
    is_special_path_name(path) || real_path(path).is_some_and(|real| is_special_path_name(&real))
}

/// Like [`is_special_path`], for a path whose symlinks are resolved or do not matter.
pub fn is_special_path_name(path: &Path) -> bool {
    if let Ok(rest) = path.strip_prefix("/proc") {
        let first = rest.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let first = first.unwrap_or_default();
        return matches!(first.as_str(), "self" | "thread-self" | "kmsg" | "kcore")
            || first.bytes().all(|byte| byte.is_ascii_digit());
    }
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

/// Returns whether a directory is the root of a virtual file system.
pub fn is_virtual_file_system(dir: &Path) -> bool {
    VIRTUAL_FILE_SYSTEMS.iter().any(|name| dir == Path::new(name))
}
