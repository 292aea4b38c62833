//! Error messages for file operations: path, cause and remedy, written for the model.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use whimbrel_os::files::{self, FileKind, PathChangedError};

use crate::api::ToolError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileOperation {
    Read,
    Write,
}

pub(super) fn read_error(path: &Path, error: &io::Error) -> ToolError {
    if PathChangedError::is_source_of(error) {
        return path_changed_error(path);
    }
    ToolError::Failed(describe_error(path, FileOperation::Read, error))
}

pub(super) fn write_error(path: &Path, error: &io::Error) -> ToolError {
    if PathChangedError::is_source_of(error) {
        return path_changed_error(path);
    }
    match error.kind() {
        io::ErrorKind::AlreadyExists => ToolError::Rejected(format!(
            "{} was just created by another process. Read it before changing it.",
            path.display()
        )),
        _ => ToolError::Failed(describe_error(path, FileOperation::Write, error)),
    }
}

/// The path, or a directory above it, was replaced after the permission check.
fn path_changed_error(path: &Path) -> ToolError {
    ToolError::Rejected(format!(
        "{} changed during the call: it or a directory above it now points elsewhere. Nothing was read or written. \
         Look at it again, then retry.",
        path.display()
    ))
}

/// Message for a missing path: names the working directory, a file used as a directory, or a dangling symlink.
pub(super) fn missing_file_message(path: &Path, cwd: &Path) -> String {
    let (path_text, cwd) = (path.display(), cwd.display());
    if let Some(file) = files::non_directory_ancestor(path) {
        let file = file.display();
        return format!("{path_text} does not exist: {file} is a file, not a directory. Correct the path.");
    }
    match files::link_target(path) {
        Some(target) => format!(
            "{path_text} does not exist: it is a symbolic link to {}, which does not exist. Fix or remove the link.",
            target.display()
        ),
        None => format!("{path_text} does not exist. The current directory is {cwd}."),
    }
}

/// Message for a path that is not a regular file.
pub(super) fn not_a_file_message(path: &Path, kind: FileKind) -> String {
    let path = path.display();
    match kind {
        FileKind::Missing => format!("{path} does not exist."),
        FileKind::File(_) => format!("{path} is a file."),
        FileKind::Directory => format!("EISDIR: {path} is a directory, not a file. Name a file in it."),
        FileKind::Pipe => format!("{path} is a named pipe, not a file. Use a command instead."),
        FileKind::Socket => format!("{path} is a socket, not a file. Use a command instead."),
        FileKind::Device => format!("{path} is a device, not a file. Use a command instead."),
    }
}

fn describe_error(path: &Path, operation: FileOperation, error: &io::Error) -> String {
    let verb = match operation {
        FileOperation::Read => "read",
        FileOperation::Write => "written",
    };
    let path_text = path.display();
    if path.as_os_str().as_bytes().contains(&0) {
        return format!("{path_text} cannot be {verb}: the path contains a NUL byte. Remove it.");
    }
    let Some(code) = error.raw_os_error().map(Errno::from_raw) else {
        return format!("{path_text} cannot be {verb}: {}", describe_without_errno(error));
    };
    if let (Errno::ENOTDIR, Some(file)) = (code, files::non_directory_ancestor(path)) {
        let file = file.display();
        return format!(
            "{path_text} cannot be {verb}: {file} is a file, not a directory (ENOTDIR). Correct the path."
        );
    }
    let Some((cause, remedy)) = cause_and_remedy(operation, code) else {
        return format!("{path_text} cannot be {verb}: {error}.");
    };
    format!("{path_text} cannot be {verb}: {cause} ({code:?}). {remedy}")
}

/// Describes errors that were raised before a system call and so carry no errno.
fn describe_without_errno(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::FileTooLarge => "it is too large. Use a command instead.".into(),
        _ => format!("{error}."),
    }
}

fn cause_and_remedy(operation: FileOperation, code: Errno) -> Option<(&'static str, &'static str)> {
    let words = match (code, operation) {
        (Errno::ENOSPC, _) => ("the disk is full", "Free some space, then retry."),
        (Errno::EDQUOT, _) => ("the disk quota is used up", "Delete unneeded files, then retry."),
        (Errno::EFBIG, _) => ("it would grow larger than the file system allows", "Split it."),
        (Errno::EROFS, _) => ("its file system is read-only", "Write to another file system."),
        (Errno::EACCES, FileOperation::Read) => {
            ("permission denied", "Ask the user for access to it or to the directories above it.")
        }
        (Errno::EACCES, FileOperation::Write) => (
            "permission denied: the file or its directory is read-only",
            "Use another path or, if the user wants it changed, make it writable first (chmod u+w).",
        ),
        (Errno::EPERM, _) => {
            ("the system does not allow it; the file may be immutable", "Use another path or ask the user.")
        }
        (Errno::EISDIR, _) => ("it is a directory", "Name a file."),
        (Errno::ENOTDIR, _) => ("a part of the path is a file, not a directory", "Correct the path."),
        (Errno::ELOOP, _) => ("its symbolic links form a loop", "Name the target file or fix the link."),
        (Errno::ENAMETOOLONG, _) => (
            "the name is too long (at most 255 bytes per name, 4096 per path)",
            "Use a shorter name or path.",
        ),
        (Errno::ENOENT, _) => ("it no longer exists", "Check what is there, then retry."),
        (Errno::ETXTBSY, _) => ("it is a running program", "Stop the program first."),
        (Errno::EMFILE | Errno::ENFILE, _) => ("too many files are open", "Retry later."),
        (Errno::EIO | Errno::ESTALE | Errno::ETIMEDOUT | Errno::ENOTCONN, _) => {
            ("the disk or network share has failed", "Tell the user; retry later or use another path.")
        }
        _ => return None,
    };
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_cause_and_remedy() {
        for (code, expected) in [
            (Errno::ENOSPC, "/no/where cannot be written: the disk is full (ENOSPC). Free some space"),
            (Errno::EDQUOT, "quota is used up (EDQUOT). Delete"),
            (Errno::EROFS, "read-only (EROFS). Write to another"),
            (Errno::EACCES, "read-only (EACCES). Use another path or, if the user wants it changed"),
            (Errno::EPERM, "(EPERM). Use another path"),
            (Errno::EISDIR, "it is a directory (EISDIR). Name a file"),
            (Errno::ENOTDIR, "not a directory (ENOTDIR). Correct the path"),
            (Errno::ELOOP, "form a loop (ELOOP). Name the target file"),
            (Errno::ENAMETOOLONG, "too long (at most 255 bytes per name, 4096 per path) (ENAMETOOLONG). Use"),
            (Errno::ESTALE, "network share has failed (ESTALE). Tell the user"),
            (Errno::EXDEV, "/no/where cannot be written: Invalid cross-device link"),
        ] {
            let error = write_error(Path::new("/no/where"), &code.into());
            assert!(error.reason().contains(expected), "{error:?}");
        }
        let denied = read_error(Path::new("/no/where"), &Errno::EACCES.into());
        assert_eq!(
            denied.reason(),
            "/no/where cannot be read: permission denied (EACCES). Ask the user for access to it or to the directories \
             above it."
        );
    }
}
