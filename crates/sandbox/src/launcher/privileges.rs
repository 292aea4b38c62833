//! What a command gives up before it starts: processes and files beyond its limits, capabilities, new privileges, and
//! the system calls of the filter.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
};

use super::{InLayer, LayerResult};
use crate::policy::{Limits, UnixSockets};
use crate::request::{Backend, ProcMount, RunRequest};
use crate::seccomp::{FilterOptions, LocalSockets, Tracing, build_filter};
use crate::sys;

/// First kernel with a limit of processes per process namespace. In an older one the file is that of the machine.
const PID_LIMIT_KERNEL: (u32, u32) = (6, 14);

/// What limits the processes of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessLimit {
    /// Its process namespace.
    PerNamespace,
    /// Its user.
    PerUser,
}

impl ProcessLimit {
    /// A namespace has a limit that can be set if its `/proc` is fresh, and mounted by the launcher.
    pub(crate) fn for_request(request: &RunRequest) -> Self {
        let is_own = request.backend == Backend::Launcher && request.proc_mount == ProcMount::Fresh;
        if is_own && kernel_version() >= PID_LIMIT_KERNEL { Self::PerNamespace } else { Self::PerUser }
    }
}

/// Limits the processes of this process namespace.
pub(crate) fn limit_processes(limits: &Limits) -> LayerResult<()> {
    std::fs::write("/proc/sys/kernel/pid_max", limits.processes.to_string()).in_layer("limit of processes")
}

/// Sets the limits of the process. `processes` says whether its namespace has a limit of processes already.
pub(crate) fn set_limits(limits: &Limits, processes: ProcessLimit) -> LayerResult<()> {
    let set = || -> io::Result<()> {
        setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        let files = getrlimit(Resource::Nofile);
        let soft = files.maximum.map_or(limits.open_files, |hard| hard.min(limits.open_files));
        setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum: files.maximum })?;
        // The kernel does not count the root of the machine.
        if processes == ProcessLimit::PerUser {
            let hard = getrlimit(Resource::Nproc).maximum;
            let count = u64::from(limits.processes);
            let count = Some(hard.map_or(count, |hard| hard.min(count)));
            setrlimit(Resource::Nproc, Rlimit { current: count, maximum: count })?;
        }
        Ok(())
    };
    set().in_layer("limits")
}

/// Gives up all capabilities for good, also for programs that are started as root.
pub(crate) fn drop_capabilities() -> LayerResult<()> {
    let drop = || -> io::Result<()> {
        for bit in 0..u64::BITS {
            match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
                Ok(()) => {}
                // Past the last one that this kernel has.
                Err(rustix::io::Errno::INVAL) => break,
                Err(error) => return Err(error.into()),
            }
        }
        set_capabilities_secure_bits(
            CapabilitiesSecureBits::NO_ROOT
                | CapabilitiesSecureBits::NO_ROOT_LOCKED
                | CapabilitiesSecureBits::NO_SETUID_FIXUP
                | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
                | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
        )?;
        clear_ambient_capability_set()?;
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
        Ok(())
    };
    drop().in_layer("capabilities")
}

/// No program that is started gets more rights than this process has.
pub(crate) fn forbid_new_privileges() -> LayerResult<()> {
    rustix::thread::set_no_new_privs(true).in_layer("no new privileges")
}

/// Installs the filter of system calls.
pub(crate) fn install_filter(request: &RunRequest) -> LayerResult<()> {
    let local_sockets = match request.unix_sockets {
        UnixSockets::Closed => LocalSockets::Closed,
        UnixSockets::Paths(_) | UnixSockets::All => LocalSockets::Open,
    };
    let tracing = match request.proc_mount {
        ProcMount::Fresh => Tracing::Allowed,
        ProcMount::Machine => Tracing::Refused,
    };
    let options = FilterOptions { local_sockets, nested: request.nested, tracing };
    sys::install_filter(&build_filter(options)).in_layer("filter of system calls")
}

fn kernel_version() -> (u32, u32) {
    let release = rustix::system::uname();
    parse_version(&release.release().to_string_lossy())
}

fn parse_version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(['.', '-', '+']).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions_are_read() {
        assert_eq!(parse_version("6.18.44-fc-v595"), (6, 18));
        assert_eq!(parse_version("6.14-rc1"), (6, 14));
        assert_eq!(parse_version("5.4.0+"), (5, 4));
        assert_eq!(parse_version("unknown"), (0, 0));
    }
}
