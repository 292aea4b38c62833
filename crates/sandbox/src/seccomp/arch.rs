//! The architecture of this machine in the filter. The numbers of system calls are those of `libc`.

/// Value of the architecture in the kernel's data.
#[cfg(target_arch = "x86_64")]
pub(crate) const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(crate) const AUDIT_ARCH: u32 = 0xc000_00b7;

/// Smallest number of a second table of numbers for the same architecture (x32): bit 30.
pub(crate) const SECOND_TABLE: u32 = 0x4000_0000;

/// Calls that exist on x86_64 only, with the argument that has the mode of a new file.
#[cfg(target_arch = "x86_64")]
pub(crate) const MODE_CALLS: &[(libc::c_long, u32)] =
    &[(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
#[cfg(target_arch = "aarch64")]
pub(crate) const MODE_CALLS: &[(libc::c_long, u32)] = &[];

/// Calls that exist on x86_64 only, with the argument that has the flags; the mode of a new file follows.
#[cfg(target_arch = "x86_64")]
pub(crate) const OPEN_CALLS: &[(libc::c_long, u32)] = &[(libc::SYS_open, 1)];
#[cfg(target_arch = "aarch64")]
pub(crate) const OPEN_CALLS: &[(libc::c_long, u32)] = &[];

/// Refused calls that exist on x86_64 only.
#[cfg(target_arch = "x86_64")]
pub(crate) const REFUSED: &[libc::c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load];
#[cfg(target_arch = "aarch64")]
pub(crate) const REFUSED: &[libc::c_long] = &[libc::SYS_kexec_file_load];
