//! Copies owner, mode and extended attributes (including ACLs) from a file to its replacement.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};

/// Attribute that the system sets on every file by its own rules.
const SYSTEM_ATTRIBUTE: &[u8] = b"security.selinux";
/// Kernel limit on attribute values and on the list of names.
const MAX_ATTRIBUTE_SIZE: usize = 64 * 1024;

/// Copies the metadata of the old file to the new one. False if the system does not permit all of it.
pub(super) fn copy_metadata(old: &File, facts: &Metadata, new: &File) -> io::Result<bool> {
    let now = new.metadata()?;
    let same_owner = (now.uid(), now.gid()) == (facts.uid(), facts.gid())
        || fchown(new, Some(facts.uid()), Some(facts.gid())).is_ok();
    let same_attributes = copy_attributes(old, new);
    // Without the same owner, setuid and setgid bits must not be copied.
    let mode = if same_owner { facts.mode() & 0o7777 } else { facts.mode() & 0o777 };
    new.set_permissions(Permissions::from_mode(mode))?;
    Ok(same_owner && same_attributes)
}

/// Copies the extended attributes; false if one could not be copied. A filesystem without attributes has none to copy.
fn copy_attributes(old: &File, new: &File) -> bool {
    let mut names = Vec::with_capacity(256);
    let names = match flistxattr(old, rustix::buffer::spare_capacity(&mut names)) {
        Ok(_) => names,
        Err(rustix::io::Errno::RANGE) => {
            let mut all = Vec::with_capacity(MAX_ATTRIBUTE_SIZE);
            match flistxattr(old, rustix::buffer::spare_capacity(&mut all)) {
                Ok(_) => all,
                Err(_) => return false,
            }
        }
        Err(_) => return true,
    };
    let mut names =
        names.split(|byte| *byte == 0).filter(|name| !name.is_empty() && *name != SYSTEM_ATTRIBUTE);
    names.all(|name| {
        let mut value = Vec::with_capacity(MAX_ATTRIBUTE_SIZE);
        fgetxattr(old, name, rustix::buffer::spare_capacity(&mut value)).is_ok()
            && fsetxattr(new, name, &value, XattrFlags::empty()).is_ok()
    })
}
