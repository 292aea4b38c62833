//! A fresh `/dev` with the devices that every program expects, terminals and shared memory of the command's own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::Mode;
use rustix::mount::MountAttrFlags;

use super::mount_calls::{
    READ_ONLY, attach, copy_tree, make_file, make_file_system, make_folder, make_memory_folder, open_path,
    restrict,
};

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 6] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("core", "/proc/kcore"),
];

/// The devices of the machine, as mounts that are attached to nothing.
pub(crate) struct DeviceSources(Vec<(&'static str, OwnedFd)>);

/// Takes the devices before `/dev` is covered. One that the machine lacks is left out.
pub(crate) fn take_sources() -> io::Result<DeviceSources> {
    let mut sources = Vec::new();
    for name in DEVICES {
        match open_path(&Path::new("/dev").join(name)) {
            Ok(device) => sources.push((name, copy_tree(&device)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(DeviceSources(sources))
}

/// Mounts the fresh `/dev`.
pub(crate) fn mount(sources: DeviceSources) -> io::Result<()> {
    let folder = make_memory_folder("0755")?;
    for (name, _) in &sources.0 {
        make_file(&folder, Path::new(name), Mode::from_raw_mode(0o666))?;
    }
    for name in ["pts", "shm"] {
        make_folder(&folder, Path::new(name), Mode::from_raw_mode(0o755))?;
    }
    for (name, target) in LINKS {
        rustix::fs::symlinkat(target, folder.as_fd(), name)?;
    }
    restrict(&folder, READ_ONLY)?;
    attach(&folder, open_path(Path::new("/dev"))?)?;
    for (name, device) in sources.0 {
        attach(&device, open_path(&Path::new("/dev").join(name))?)?;
    }
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let terminals = make_file_system("devpts", &[("mode", "0620"), ("ptmxmode", "0666")], quiet)?;
    attach(&terminals, open_path(Path::new("/dev/pts"))?)?;
    attach(&make_memory_folder("1777")?, open_path(Path::new("/dev/shm"))?)
}
