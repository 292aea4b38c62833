//! Error messages for file operations: path, cause and remedy, written for the model.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use whimbrel_os::files::{self, FileKind, PathChangedError};

use super::ToolError;

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
            "{} was made by somebody else just now. Read it before you change it.",
            path.display()
        )),
        _ => ToolError::Failed(describe_error(path, FileOperation::Write, error)),
    }
}

/// The path, or a directory above it, was replaced after the permission check.
fn path_changed_error(path: &Path) -> ToolError {
    ToolError::Rejected(format!(
        "{} changed while the call was made: it, or a folder above it, leads elsewhere now. Nothing was read or written. \
         Look again what is there, then try again.",
        path.display()
    ))
}

/// Message for a missing path: names the working directory, a file used as a directory, or a dangling symlink.
pub(super) fn missing_file_message(path: &Path, cwd: &Path) -> String {
    let (shown, cwd) = (path.display(), cwd.display());
    if let Some(file) = files::non_directory_ancestor(path) {
        let file = file.display();
        return format!("{shown} does not exist: {file} is a file, not a folder. Correct the path.");
    }
    match files::link_target(path) {
        Some(target) => format!(
            "{shown} does not exist: it is a symbolic link to {}, where there is nothing. Mend or remove the link.",
            target.display()
        ),
        None => format!("{shown} does not exist. The current folder is {cwd}."),
    }
}

/// Message for a path that is not a regular file.
pub(super) fn not_a_file_message(path: &Path, kind: FileKind) -> String {
    let path = path.display();
    match kind {
        FileKind::Missing => format!("{path} does not exist."),
        FileKind::File(_) => format!("{path} is a file."),
        FileKind::Directory => format!("EISDIR: {path} is a folder, not a file. Name a file in it."),
        FileKind::Pipe => format!("{path} is a named pipe, not a file. Use it with a command."),
        FileKind::Socket => format!("{path} is a socket, not a file. Use it with a program."),
        FileKind::Device => format!("{path} is a device, not a file. Use it with a command."),
    }
}

fn describe_error(path: &Path, deed: FileOperation, error: &io::Error) -> String {
    let done = match deed {
        FileOperation::Read => "read",
        FileOperation::Write => "written",
    };
    let shown = path.display();
    if path.as_os_str().as_bytes().contains(&0) {
        return format!("{shown} cannot be {done}: the path has a NUL byte in it. Leave it out.");
    }
    let Some(code) = error.raw_os_error().map(Errno::from_raw) else {
        return format!("{shown} cannot be {done}: {}", describe_without_errno(error));
    };
    if let (Errno::ENOTDIR, Some(file)) = (code, files::non_directory_ancestor(path)) {
        let file = file.display();
        return format!(
            "{shown} cannot be {done}: {file} is a file, not a folder (ENOTDIR). Correct the path."
        );
    }
    let Some((cause, remedy)) = cause_and_remedy(deed, code) else {
        return format!("{shown} cannot be {done}: {error}.");
    };
    format!("{shown} cannot be {done}: {cause} ({code:?}). {remedy}")
}

/// Describes errors that were raised before a system call and so carry no errno.
fn describe_without_errno(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::FileTooLarge => "it is too large. Use a command on it.".into(),
        _ => format!("{error}."),
    }
}

fn cause_and_remedy(deed: FileOperation, code: Errno) -> Option<(&'static str, &'static str)> {
    let words = match (code, deed) {
        (Errno::ENOSPC, _) => ("the disk is full", "Free some space, then try again."),
        (Errno::EDQUOT, _) => ("the disk quota is used up", "Delete what is not needed, then try again."),
        (Errno::EFBIG, _) => ("it would grow larger than the file system allows", "Split it."),
        (Errno::EROFS, _) => ("its file system is read-only", "Use a place on another file system."),
        (Errno::EACCES, FileOperation::Read) => {
            ("permission is denied", "Ask the user for access to it or to the folders above it.")
        }
        (Errno::EACCES, FileOperation::Write) => (
            "permission is denied, for the file or its folder is read-only",
            "Use another place; or, if the user wants it changed, make it writable first (chmod u+w).",
        ),
        (Errno::EPERM, _) => (
            "the system does not allow it; it may be marked as unchangeable",
            "Use another place, or ask the user.",
        ),
        (Errno::EISDIR, _) => ("it is a folder", "Name a file."),
        (Errno::ENOTDIR, _) => ("a part of the path is a file, not a folder", "Correct the path."),
        (Errno::ELOOP, _) => {
            ("its symbolic links lead in a circle", "Name the file that is meant, or mend the link.")
        }
        (Errno::ENAMETOOLONG, _) => (
            "the name is too long (a name has at most 255 bytes, a path 4096)",
            "Use a shorter name or path.",
        ),
        (Errno::ENOENT, _) => ("it is not there any more", "Look what is there, then try again."),
        (Errno::ETXTBSY, _) => ("it is a program that is running", "End the program first."),
        (Errno::EMFILE | Errno::ENFILE, _) => ("too many files are open", "Try again later."),
        (Errno::EIO | Errno::ESTALE | Errno::ETIMEDOUT | Errno::ENOTCONN, _) => {
            ("the disk or the network share fails", "Tell the user; try again later or use another place.")
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
        for (code, words) in [
            (Errno::ENOSPC, "/no/where cannot be written: the disk is full (ENOSPC). Free some space"),
            (Errno::EDQUOT, "quota is used up (EDQUOT). Delete"),
            (Errno::EROFS, "read-only (EROFS). Use a place on another"),
            (Errno::EACCES, "read-only (EACCES). Use another place; or, if the user wants it changed"),
            (Errno::EPERM, "(EPERM). Use another place"),
            (Errno::EISDIR, "it is a folder (EISDIR). Name a file"),
            (Errno::ENOTDIR, "not a folder (ENOTDIR). Correct the path"),
            (Errno::ELOOP, "in a circle (ELOOP). Name the file"),
            (Errno::ENAMETOOLONG, "too long (a name has at most 255 bytes, a path 4096) (ENAMETOOLONG). Use"),
            (Errno::ESTALE, "network share fails (ESTALE). Tell the user"),
            (Errno::EXDEV, "/no/where cannot be written: Invalid cross-device link"),
        ] {
            let trouble = write_error(Path::new("/no/where"), &code.into());
            assert!(trouble.reason().contains(words), "{trouble:?}");
        }
        let denied = read_error(Path::new("/no/where"), &Errno::EACCES.into());
        assert_eq!(
            denied.reason(),
            "/no/where cannot be read: permission is denied (EACCES). Ask the user for access to it or to the folders above it."
        );
    }
}
