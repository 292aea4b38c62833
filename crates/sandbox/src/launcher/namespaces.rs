//! Namespaces of a command: those of its session are joined, the others are made.

use std::fs::File;
use std::io;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use nix::sched::{CloneFlags, setns, unshare};

use super::{InLayer, LayerResult};
use crate::request::{NamespaceSource, NetworkSetup, RunRequest};

/// Joins and makes the namespaces. The process namespace holds from the next fork on.
pub(crate) fn enter(request: &RunRequest, shared: &[OwnedFd]) -> LayerResult<()> {
    let own = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    let network =
        if request.network == NetworkSetup::Shared { CloneFlags::empty() } else { CloneFlags::CLONE_NEWNET };
    match (request.namespaces, shared) {
        (NamespaceSource::New, _) => return enter_new_user_namespace(own | network),
        (NamespaceSource::SharedUser, [user, ..]) => join(user, CloneFlags::CLONE_NEWUSER)?,
        (NamespaceSource::SharedUserAndNetwork, [user, net, ..]) => {
            join(user, CloneFlags::CLONE_NEWUSER)?;
            join(net, CloneFlags::CLONE_NEWNET)?;
        }
        (NamespaceSource::SharedUser | NamespaceSource::SharedUserAndNetwork, _) => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a descriptor is missing"))
                .in_layer("namespaces of the session");
        }
    }
    unshare(own | network).in_layer("namespaces")
}

fn join(namespace: &OwnedFd, kind: CloneFlags) -> LayerResult<()> {
    setns(namespace, kind).in_layer("namespaces of the session")
}

/// Makes a user namespace and others in it. User and group keep their numbers; no other exists inside.
pub(crate) fn enter_new_user_namespace(others: CloneFlags) -> LayerResult<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | others).in_layer("user namespace")?;
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ];
    for (path, text) in maps {
        write_once(path, &text).in_layer("identity map")?;
    }
    Ok(())
}

/// Writes a file of the kernel in one call.
fn write_once(path: &str, text: &str) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(text.as_bytes())
}
