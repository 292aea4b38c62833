//! `/proc` of a command: its own processes, and no switch of the kernel that could be written.

use std::io;
use std::path::Path;

use rustix::mount::MountAttrFlags;

use super::mount_calls::{READ_ONLY, attach, copy_tree, make_file_system, open_path, restrict};
use super::{InLayer, LayerResult};
use crate::request::ProcMount;

const LAYER: &str = "/proc";

/// As root these can be written even without capabilities.
const SWITCHES: [&str; 7] = ["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"];

/// Mounts `/proc`. `setup` runs while `/proc/sys` is still writable; only a fresh `/proc` is ever that.
pub(crate) fn mount(kind: ProcMount, setup: impl FnOnce() -> LayerResult<()>) -> LayerResult<()> {
    if kind == ProcMount::Fresh {
        mount_fresh().in_layer(LAYER)?;
        setup()?;
    }
    SWITCHES.iter().try_for_each(|name| close_switch(&Path::new("/proc").join(name))).in_layer(LAYER)
}

fn mount_fresh() -> io::Result<()> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    attach(&make_file_system("proc", &[], attributes)?, open_path(Path::new("/proc"))?)
}

fn close_switch(path: &Path) -> io::Result<()> {
    let target = match open_path(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let copy = copy_tree(&target)?;
    restrict(&copy, READ_ONLY)?;
    attach(&copy, &target)
}
