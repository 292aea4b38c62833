use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::files::dir_handle::DirHandle;
use crate::files::temp_file::{ReadAccess, TempFile};

fn temp_dir() -> TempDir {
    TempDir::new().unwrap()
}

/// Replaces the file that a path resolves to.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<FileStamp> {
    FileHandle::for_path(path)?.replace(bytes)
}

#[test]
fn file_kinds_are_distinguished() {
    let dir = temp_dir();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), "abc").unwrap();
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = UnixListener::bind(at("socket")).unwrap();
    symlink("pipe", at("link")).unwrap();
    assert!(matches!(file_kind(&at("file")).unwrap(), FileKind::File(stamp) if stamp.size == 3));
    assert_eq!(file_kind(dir.path()).unwrap(), FileKind::Directory);
    assert_eq!(file_kind(&at("pipe")).unwrap(), FileKind::Pipe);
    assert_eq!(file_kind(&at("link")).unwrap(), FileKind::Pipe);
    assert_eq!(file_kind(&at("socket")).unwrap(), FileKind::Socket);
    assert_eq!(file_kind(Path::new("/dev/zero")).unwrap(), FileKind::Device);
    assert_eq!(file_kind(&at("none")).unwrap(), FileKind::Missing);
    assert_eq!(file_kind(&at("file/below")).unwrap(), FileKind::Missing);
}

#[test]
fn pipe_is_rejected_without_blocking() {
    let dir = temp_dir();
    let pipe = dir.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(read(&pipe, 10).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(replace(&pipe, b"x").unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn read_enforces_its_limit() {
    let dir = temp_dir();
    let path = dir.path().join("f");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read(&path, 5).unwrap().0, b"12345");
    assert_eq!(read(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn replace_keeps_mode_and_leaves_no_temporary_file() {
    let dir = temp_dir();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
    let stamp = replace(&path, b"newer").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"newer");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
    assert_eq!(file_kind(&path).unwrap(), FileKind::File(stamp));
    assert_eq!(entry_names(dir.path(), 9), ["f"]);
}

#[test]
fn failed_write_keeps_the_old_file() {
    let dir = temp_dir();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    let handle = DirHandle::open(dir.path()).unwrap();
    drop(TempFile::write(&handle, dir.path(), b"new", ReadAccess::OwnerOnly).unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(entry_names(dir.path(), 9), ["f"]);
    fs::create_dir(dir.path().join("d")).unwrap();
    assert!(replace(&dir.path().join("d"), b"new").is_err());
    assert!(create(&dir.path().join("d"), b"new").is_err());
    assert_eq!(entry_names(dir.path(), 9).len(), 2);
}

#[test]
fn create_never_overwrites() {
    let dir = temp_dir();
    let path = dir.path().join("f");
    create(&path, b"first").unwrap();
    assert_eq!(create(&path, b"second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert_eq!(entry_names(dir.path(), 9), ["f"]);
}

#[test]
fn replace_and_create_follow_symlinks() {
    let dir = temp_dir();
    fs::write(dir.path().join("real"), "old").unwrap();
    let link = dir.path().join("link");
    symlink("real", &link).unwrap();
    replace(&link, b"new").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(dir.path().join("real")).unwrap(), b"new");
    let dangling = dir.path().join("dangling");
    symlink("later", &dangling).unwrap();
    create(&dangling, b"made").unwrap();
    assert_eq!(fs::read(dir.path().join("later")).unwrap(), b"made");
    symlink("round", dir.path().join("round")).unwrap();
    assert!(create(&dir.path().join("round"), b"x").is_err());
}

#[test]
fn dots_are_resolved_lexically() {
    assert_eq!(normalize_path(Path::new("/a/./b/../c")), Path::new("/a/c"));
    assert_eq!(normalize_path(Path::new("/../a")), Path::new("/a"));
}

#[test]
fn hard_links_see_the_new_content() {
    let dir = temp_dir();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    for (old, new) in [("old", "longer than before"), ("rather long", "short"), ("x", ""), ("", "x")] {
        fs::write(&one, old).unwrap();
        if !other.exists() {
            fs::hard_link(&one, &other).unwrap();
        }
        fs::set_permissions(&one, Permissions::from_mode(0o640)).unwrap();
        let stamp = replace(&one, new.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), new);
        assert_eq!(file_kind(&other).unwrap(), FileKind::File(stamp));
        assert_eq!(fs::metadata(&one).unwrap().ino(), fs::metadata(&other).unwrap().ino());
        assert_eq!(fs::metadata(&one).unwrap().mode() & 0o7777, 0o640);
    }
    assert_eq!(entry_names(dir.path(), 9).len(), 2);
}

#[test]
fn read_only_file_is_not_replaced() {
    let dir = temp_dir();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    assert_eq!(replace(&path, b"new").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(entry_names(dir.path(), 9), ["f"]);
}

#[test]
fn extended_attributes_are_kept() {
    let dir = temp_dir();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&path, "user.color", b"green", flags).is_err() {
        return; // This filesystem has no extended attributes.
    }
    replace(&path, b"new").unwrap();
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(&path, "user.color", &mut value).unwrap();
    assert_eq!(&value[..length], b"green");
}

#[test]
fn reader_of_a_replaced_file_sees_the_old_content() {
    let dir = temp_dir();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    let (mut reader, _) = open(&path).unwrap();
    replace(&path, b"new").unwrap();
    let mut read = String::new();
    reader.read_to_string(&mut read).unwrap();
    assert_eq!(read, "old");
}

/// Writes a file with a modification time in the past.
fn write_aged_file(path: &Path, age: Duration) {
    fs::write(path, "half").unwrap();
    let long_ago = fs::metadata(path).unwrap().modified().unwrap() - age;
    File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
}

#[test]
fn each_directory_is_swept_once() {
    let dirs = [temp_dir(), temp_dir()];
    for dir in &dirs {
        let stale = dir.path().join(".whimbrel-abcdefGHI012.part");
        for (name, is_removed) in [("first", true), ("second", false)] {
            write_aged_file(&stale, Duration::from_hours(24));
            create(&dir.path().join(name), b"x").unwrap();
            assert_eq!(!stale.exists(), is_removed, "{name}");
        }
    }
}

#[test]
fn stale_files_written_in_pieces_are_removed() {
    let dir = temp_dir();
    let left = new_temp_file_in(dir.path()).unwrap().into_temp_path().keep().unwrap();
    write_aged_file(&left, Duration::from_hours(24));
    let other = temp_dir();
    write_aged_file(&other.path().join(left.file_name().unwrap()), Duration::from_hours(24));
    drop(new_temp_file_in(other.path()).unwrap());
    assert_eq!(entry_names(other.path(), 9), [""; 0]);
}

#[test]
fn only_stale_temporary_files_are_removed() {
    let dir = temp_dir();
    let day = Duration::from_hours(24);
    for (name, old) in [
        (".whimbrel-abcdefGHI012.part", day),
        (".whimbrel-abcdefGHI013.part", Duration::ZERO),
        (".whimbrel-notes", day),
        (".whimbrel-abc.part", day),
        (".whimbrel-abcdefGHI_12.part", day),
    ] {
        write_aged_file(&dir.path().join(name), old);
    }
    symlink("elsewhere", dir.path().join(".whimbrel-abcdefGHI014.part")).unwrap();
    create(&dir.path().join("new"), b"x").unwrap();
    let mut left = entry_names(dir.path(), 9);
    left.sort();
    let expected = [
        ".whimbrel-abc.part",
        ".whimbrel-abcdefGHI013.part",
        ".whimbrel-abcdefGHI014.part",
        ".whimbrel-abcdefGHI_12.part",
        ".whimbrel-notes",
        "new",
    ];
    assert_eq!(left, expected);
}

#[test]
fn replacement_is_private_while_written() {
    let dir = temp_dir();
    let handle = DirHandle::open(dir.path()).unwrap();
    let mode = |reader| {
        let temp = TempFile::write(&handle, dir.path(), b"secret", reader).unwrap();
        temp.file().metadata().unwrap().mode() & 0o077
    };
    assert_eq!(mode(ReadAccess::OwnerOnly), 0);
    assert_ne!(mode(ReadAccess::Everyone), 0);
}

#[test]
fn non_directory_ancestor_is_reported() {
    let dir = temp_dir();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(non_directory_ancestor(&file.join("a/b")), Some(file.as_path()));
    assert_eq!(non_directory_ancestor(&dir.path().join("none/b")), None);
    assert_eq!(create(&file.join("a/b"), b"").unwrap_err().kind(), io::ErrorKind::NotADirectory);
}

/// Runs as an unprivileged user; without root the tests already do.
fn as_other_user<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // Affects this thread only, and drops root's privileges on files.
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65_534));
            work()
        });
        thread.join().unwrap()
    })
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn file_without_write_permission_is_not_replaced() {
    let dir = temp_dir();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    set_mode(&path, 0o444);
    set_mode(dir.path(), 0o777);
    assert_eq!(as_other_user(|| replace(&path, b"new")).unwrap_err().raw_os_error(), Some(13));
    set_mode(&path, 0o644);
    if nix::unistd::geteuid().is_root() {
        assert_eq!(as_other_user(|| replace(&path, b"new")).unwrap_err().raw_os_error(), Some(13));
    }
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(entry_names(dir.path(), 9), ["f"]);
}

#[test]
fn file_in_unwritable_directory_is_overwritten_in_place() {
    let dir = temp_dir();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    set_mode(&path, 0o666);
    set_mode(dir.path(), 0o555);
    let replaced = as_other_user(|| replace(&path, b"newer"));
    let created = as_other_user(|| create(&dir.path().join("g"), b"x"));
    set_mode(dir.path(), 0o755);
    assert_eq!(file_kind(&path).unwrap(), FileKind::File(replaced.unwrap()));
    assert_eq!(fs::read(&path).unwrap(), b"newer");
    assert_eq!(created.unwrap_err().raw_os_error(), Some(13));
}

#[test]
fn file_of_another_owner_keeps_its_owner() {
    if !nix::unistd::geteuid().is_root() {
        return; // Only root can create a file of another owner.
    }
    let dir = temp_dir();
    let path = dir.path().join("f");
    fs::write(&path, "old").unwrap();
    set_mode(&path, 0o666);
    set_mode(dir.path(), 0o777);
    let before = fs::metadata(&path).unwrap();
    as_other_user(|| replace(&path, b"new")).unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.uid(), after.mode(), after.ino()), (before.uid(), before.mode(), before.ino()));
    std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).unwrap();
    replace(&path, b"by root").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().uid(), 65_534);
    assert_eq!(fs::read(&path).unwrap(), b"by root");
    assert_eq!(entry_names(dir.path(), 9), ["f"]);
}
