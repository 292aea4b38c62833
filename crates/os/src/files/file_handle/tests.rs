//! File handles cannot be redirected by symlinks.

use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use super::*;
use crate::files::dir_handle::open_componentwise;

/// A directory with `inside/f` and `outside/f`; the latter must not be touched.
fn fixture() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for name in ["inside", "outside"] {
        fs::create_dir(root.join(name)).unwrap();
        fs::write(root.join(name).join("f"), name).unwrap();
    }
    (dir, root)
}

fn is_path_changed<T>(outcome: io::Result<T>) -> bool {
    outcome.is_err_and(|error| PathChangedError::is_source_of(&error))
}

/// Nothing outside has changed.
fn is_outside_untouched(root: &Path) -> bool {
    let outside = root.join("outside");
    fs::read_to_string(outside.join("f")).unwrap() == "outside" && fs::read_dir(outside).unwrap().count() == 1
}

#[test]
fn symlink_in_the_path_is_rejected() {
    let (_dir, root) = fixture();
    symlink("outside", root.join("link")).unwrap();
    for below in ["link/f", "link/new", "link/new/deep"] {
        assert!(is_path_changed(FileHandle::for_real_path(&root.join(below))), "{below}");
    }
}

#[test]
fn symlink_in_place_of_the_file_is_rejected() {
    let (_dir, root) = fixture();
    let handle = FileHandle::for_real_path(&root.join("inside/f")).unwrap();
    fs::remove_file(root.join("inside/f")).unwrap();
    symlink("../outside/f", root.join("inside/f")).unwrap();
    assert!(is_path_changed(handle.kind()));
    assert!(is_path_changed(handle.read(99)));
    assert!(is_path_changed(handle.replace(b"new")));
    assert_eq!(handle.create(b"new").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert!(is_outside_untouched(&root));
    assert_eq!(handle.sibling_names(9), ["f"]);
}

#[test]
fn open_directory_is_used_after_its_name_is_replaced() {
    let (_dir, root) = fixture();
    let [old, new] =
        ["inside/f", "inside/new"].map(|path| FileHandle::for_real_path(&root.join(path)).unwrap());
    fs::rename(root.join("inside"), root.join("aside")).unwrap();
    symlink("outside", root.join("inside")).unwrap();
    assert_eq!(old.read(99).unwrap().0, b"inside");
    old.replace(b"changed").unwrap();
    new.create(b"made").unwrap();
    assert_eq!(fs::read(root.join("aside/f")).unwrap(), b"changed");
    assert_eq!(fs::read(root.join("aside/new")).unwrap(), b"made");
    assert!(is_outside_untouched(&root));
}

#[test]
fn directories_are_not_created_through_a_symlink() {
    let (_dir, root) = fixture();
    let handle = FileHandle::for_real_path(&root.join("later/deep/f")).unwrap();
    assert_eq!(handle.kind().unwrap(), FileKind::Missing);
    symlink("outside", root.join("later")).unwrap();
    assert!(is_path_changed(handle.create(b"x")));
    assert!(is_outside_untouched(&root));
    fs::remove_file(root.join("later")).unwrap();
    handle.create(b"x").unwrap();
    assert_eq!(fs::read(root.join("later/deep/f")).unwrap(), b"x");
}

#[test]
fn symlink_cycle_is_reported_as_such() {
    let (_dir, root) = fixture();
    symlink("round", root.join("round")).unwrap();
    let cycle = Some(Errno::ELOOP as i32);
    assert_eq!(FileHandle::for_path(&root.join("round")).unwrap().kind().unwrap_err().raw_os_error(), cycle);
    assert_eq!(FileHandle::for_path(&root.join("round/f")).unwrap_err().raw_os_error(), cycle);
}

#[test]
fn componentwise_open_agrees_with_the_kernel() {
    let (_dir, root) = fixture();
    symlink("inside", root.join("link")).unwrap();
    symlink("nowhere", root.join("broken")).unwrap();
    fs::create_dir(root.join("link-free")).unwrap();
    let found = |opened: io::Result<DirHandle>| match opened {
        Ok(dir) => Ok(inode(&dir)),
        Err(error) => Err(error.raw_os_error()),
    };
    for below in
        ["", "inside", "link-free", "link", "link/x", "broken", "none", "none/x", "inside/f", "inside/f/x"]
    {
        let path = root.join(below);
        assert_eq!(found(open_componentwise(&path)), found(DirHandle::open(&path)), "{below:?}");
    }
    assert_eq!(found(open_componentwise(Path::new("/"))), found(DirHandle::open(Path::new("/"))));
    assert_eq!(found(open_componentwise(&root.join("inside/../x"))).unwrap_err(), Some(Errno::EINVAL as i32));
}

fn inode(dir: &DirHandle) -> u64 {
    File::from(dir.as_fd().try_clone_to_owned().unwrap()).metadata().unwrap().ino()
}

#[test]
fn open_never_escapes_while_symlink_is_swapped() {
    let (_dir, root) = fixture();
    let (inside, link) = (root.join("inside"), root.join("link"));
    symlink("outside", &link).unwrap();
    let outside = fs::metadata(root.join("outside")).unwrap().ino();
    let is_done = AtomicBool::new(false);
    let openers: [fn(&Path) -> io::Result<DirHandle>; 2] = [DirHandle::open, open_componentwise];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                renameat_with(CWD, &inside, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let opened = openers.map(|open| {
            let opened = (0..20_000).filter_map(|_| open(&inside).ok()).map(|dir| inode(&dir));
            opened.collect::<Vec<u64>>()
        });
        is_done.store(true, Ordering::Relaxed);
        for opened in opened {
            assert!(!opened.is_empty() && !opened.contains(&outside), "{} opened", opened.len());
        }
    });
}

#[test]
fn stat_and_open_file_have_the_same_stamp() {
    let (_dir, root) = fixture();
    let path = root.join("inside/f");
    let handle = FileHandle::for_real_path(&path).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let (epoch, offset) = (SystemTime::UNIX_EPOCH, Duration::new(1_000, 5));
    for modified in [epoch, epoch + offset, epoch - offset] {
        file.set_modified(modified).unwrap();
        let stamp = FileStamp { modified, size: 6 };
        assert_eq!((handle.kind().unwrap(), handle.open().unwrap().1), (FileKind::File(stamp), stamp));
    }
}

#[test]
fn root_is_a_directory() {
    assert_eq!(FileHandle::for_real_path(Path::new("/")).unwrap().kind().unwrap(), FileKind::Directory);
}

#[test]
fn physical_resolution_applies_dots_after_links() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    for (link, target) in [("link", "a/b"), ("dangling", "later"), ("outside", "/none"), ("loop", "loop")] {
        symlink(target, root.join(link)).unwrap();
    }
    let below = |path: &str| root.join(path);
    for (path, expected) in [
        ("link/new/f", below("a/b/new/f")),
        ("link/../f", below("a/f")),
        ("link/./f", below("a/b/f")),
        ("dangling/f", below("later/f")),
        ("outside/f", "/none/f".into()),
        ("none/../f", below("f")),
        ("loop/f", below("loop/f")),
    ] {
        assert_eq!(resolve_physical(&root.join(path)), expected, "{path}");
    }
    assert_eq!(resolve_physical(Path::new("/../..")), Path::new("/"));
}
