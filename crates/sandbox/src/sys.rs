//! System calls without a safe wrapper in rustix or nix. All `unsafe` of the crate is here.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::seccomp::Instruction;

/// Result of [`fork`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fork {
    Parent(rustix::process::Pid),
    Child,
}

/// Forks. The launcher has one thread, which the kernel checked when it made the namespaces, so that the child may call
/// anything.
#[expect(unsafe_code, reason = "fork has no safe wrapper")]
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the process has one thread, so no lock is held by a thread that does not exist in the child.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(rustix::process::Pid::from_raw(pid).ok_or(io::ErrorKind::Other)?)),
    }
}

/// Closes all descriptors from `first` on.
#[expect(unsafe_code, reason = "close_range has no safe wrapper")]
pub(crate) fn close_from(first: RawFd) -> io::Result<()> {
    // SAFETY: called before this process has made descriptors of its own, so no value owns one of them.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    check(result)
}

/// Attributes of mounts to set and to clear.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MountChange {
    pub(crate) set: u64,
    pub(crate) clear: u64,
    pub(crate) propagation: u64,
}

/// Changes the attributes of a mount and all mounts below it.
#[expect(unsafe_code, reason = "mount_setattr has no safe wrapper")]
pub(crate) fn change_mounts(mount: BorrowedFd<'_>, change: MountChange) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: change.set,
        attr_clr: change.clear,
        propagation: change.propagation,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the path is a string with its end, and the size is that of the attributes, which outlive the call.
    let result = unsafe {
        let size = size_of::<libc::mount_attr>();
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size,
        )
    };
    check(result)
}

/// Installs a filter of system calls for this process and its children. Needs `no_new_privs`.
#[expect(unsafe_code, reason = "seccomp has no safe wrapper")]
pub(crate) fn install_filter(filter: &[Instruction]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut().cast() };
    // SAFETY: `Instruction` has the layout of `sock_filter`, the length is that of the slice, and the kernel only reads.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    check(result)
}

/// Brings the loopback device of this network namespace up.
#[expect(unsafe_code, reason = "the request needs an ioctl with a C structure")]
pub(crate) fn bring_loopback_up(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: the structure is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l'.cast_signed() as libc::c_char;
    request.ifr_name[1] = b'o'.cast_signed() as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is the structure that this ioctl reads, and outlives the call.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    check(i64::from(result))
}

/// Gives a signal its default action, and unblocks all signals. Rust programs start with SIGPIPE ignored.
#[expect(unsafe_code, reason = "changing the action of a signal has no safe wrapper")]
pub(crate) fn reset_signals() {
    for signal in 1..libc::SIGRTMIN() {
        // SAFETY: the default action runs no code of this process. Signals that cannot be changed are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // Cannot fail with these arguments.
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
}

/// Kernel version of Landlock, 0 if there is none.
#[expect(unsafe_code, reason = "the version of Landlock has no safe wrapper")]
pub(crate) fn landlock_version() -> u32 {
    // SAFETY: with this flag the kernel reads neither pointer nor size and returns a number.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, 1_u32) };
    u32::try_from(version).unwrap_or(0)
}

/// Watches a descriptor in the runtime.
#[expect(unsafe_code, reason = "the runtime leaves it to the caller that the descriptor stays open")]
pub(crate) fn watch_readable(descriptor: BorrowedFd<'_>) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    // SAFETY: the borrow keeps the descriptor open for as long as the returned value lives.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    watched.map_err(io::Error::from)
}

fn check(result: i64) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
