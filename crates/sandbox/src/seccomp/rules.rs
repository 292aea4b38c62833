//! Which system calls are refused. Each rule is a block of instructions that begins and ends with the number of the call
//! in the accumulator, so that blocks can follow each other in any order.

use super::arch::{AUDIT_ARCH, MODE_CALLS, OPEN_CALLS, REFUSED, SECOND_TABLE};
use super::bpf::{
    ARCHITECTURE, Instruction, JUMP_ANY_BIT, JUMP_EQUAL, JUMP_GREATER_EQUAL, NUMBER, RETURN_ALLOW,
    RETURN_ERROR, and, argument, finish, jump, load,
};
use crate::policy::NestedNamespaces;

/// Whether local sockets can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalSockets {
    Closed,
    Open,
}

/// Whether processes may be traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracing {
    /// The process namespace holds nothing but the command.
    Allowed,
    /// Processes of the machine are visible.
    Refused,
}

/// What differs between filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterOptions {
    pub(crate) local_sockets: LocalSockets,
    pub(crate) nested: NestedNamespaces,
    pub(crate) tracing: Tracing,
}

const EPERM: u32 = RETURN_ERROR | libc::EPERM as u32;
const ENOSYS: u32 = RETURN_ERROR | libc::ENOSYS as u32;

/// Refused whatever the options say.
const ALWAYS_REFUSED: &[libc::c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_fanotify_init,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
];

/// Refused unless commands may make namespaces.
const NAMESPACE_CALLS: &[libc::c_long] = &[
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
];

const TRACING_CALLS: &[libc::c_long] =
    &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];

/// Flags of `clone` that make a namespace.
const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | 0x80) as u32;

/// Calls with the mode of a file, and the argument that has it.
const COMMON_MODE_CALLS: &[(libc::c_long, u32)] =
    &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (SYS_FCHMODAT2, 2), (libc::SYS_mknodat, 2)];

/// Flags of `open` with which its mode counts. Without them the argument has any value.
const CREATION_FLAGS: u32 = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;

/// Not in `libc` for all systems.
const SYS_FCHMODAT2: libc::c_long = 452;

/// Builds a filter.
pub(crate) fn build_filter(options: FilterOptions) -> Vec<Instruction> {
    let mut filter = check_architecture();
    refuse(ALWAYS_REFUSED, EPERM, &mut filter);
    refuse(REFUSED, EPERM, &mut filter);
    if options.nested == NestedNamespaces::Refused {
        refuse(NAMESPACE_CALLS, EPERM, &mut filter);
        // Its flags are in memory, where a filter cannot look; programs fall back to `clone`.
        refuse(&[libc::SYS_clone3], ENOSYS, &mut filter);
        refuse_bits(libc::SYS_clone, 0, NAMESPACE_FLAGS, &mut filter);
    }
    if options.tracing == Tracing::Refused {
        refuse(TRACING_CALLS, EPERM, &mut filter);
    }
    restrict_sockets(options.local_sockets, &mut filter);
    refuse_values(libc::SYS_ioctl, 1, &[libc::TIOCSTI as u32, libc::TIOCLINUX as u32], &mut filter);
    for (call, index) in COMMON_MODE_CALLS.iter().chain(MODE_CALLS) {
        refuse_bits(*call, *index, libc::S_ISUID | libc::S_ISGID, &mut filter);
    }
    for (call, flags) in [(libc::SYS_openat, 2)].iter().chain(OPEN_CALLS) {
        refuse_mode_of_new_file(*call, *flags, &mut filter);
    }
    filter.push(finish(RETURN_ALLOW));
    filter
}

/// Refuses other tables of numbers, in which the rules below would not match, and loads the number.
fn check_architecture() -> Vec<Instruction> {
    vec![
        load(ARCHITECTURE),
        jump(JUMP_EQUAL, AUDIT_ARCH, 1, 0),
        finish(ENOSYS),
        load(NUMBER),
        jump(JUMP_GREATER_EQUAL, SECOND_TABLE, 0, 1),
        finish(ENOSYS),
    ]
}

fn refuse(calls: &[libc::c_long], answer: u32, filter: &mut Vec<Instruction>) {
    for call in calls {
        filter.push(jump(JUMP_EQUAL, *call as u32, 0, 1));
        filter.push(finish(answer));
    }
}

/// Refuses a call if any of the bits is set in an argument.
fn refuse_bits(call: libc::c_long, index: u32, bits: u32, filter: &mut Vec<Instruction>) {
    filter.extend([
        jump(JUMP_EQUAL, call as u32, 0, 4),
        load(argument(index)),
        jump(JUMP_ANY_BIT, bits, 0, 1),
        finish(EPERM),
        load(NUMBER),
    ]);
}

/// Refuses a setuid or setgid bit in a call that may create a file; the mode follows the flags.
fn refuse_mode_of_new_file(call: libc::c_long, flags: u32, filter: &mut Vec<Instruction>) {
    filter.extend([
        jump(JUMP_EQUAL, call as u32, 0, 6),
        load(argument(flags)),
        jump(JUMP_ANY_BIT, CREATION_FLAGS, 0, 3),
        load(argument(flags + 1)),
        jump(JUMP_ANY_BIT, libc::S_ISUID | libc::S_ISGID, 0, 1),
        finish(EPERM),
        load(NUMBER),
    ]);
}

/// Refuses a call if an argument has one of the values.
fn refuse_values(call: libc::c_long, index: u32, values: &[u32], filter: &mut Vec<Instruction>) {
    let length = values.len() as u8 * 2 + 2;
    filter.push(jump(JUMP_EQUAL, call as u32, 0, length));
    filter.push(load(argument(index)));
    for value in values {
        filter.push(jump(JUMP_EQUAL, *value, 0, 1));
        filter.push(finish(EPERM));
    }
    filter.push(load(NUMBER));
}

/// Leaves the families of the internet and the routing protocol, which programs ask for addresses of the machine, and
/// pairs of connected local sockets. A half of a pair for datagrams could send to any local socket of the machine.
fn restrict_sockets(local: LocalSockets, filter: &mut Vec<Instruction>) {
    let (inet, inet6, netlink, unix) =
        (libc::AF_INET as u32, libc::AF_INET6 as u32, libc::AF_NETLINK as u32, libc::AF_UNIX as u32);
    let unix_or_inet = if local == LocalSockets::Open { unix } else { inet };
    filter.extend([
        jump(JUMP_EQUAL, libc::SYS_socket as u32, 0, 9),
        load(argument(0)),
        jump(JUMP_EQUAL, inet, 6, 0),
        jump(JUMP_EQUAL, inet6, 5, 0),
        jump(JUMP_EQUAL, unix_or_inet, 4, 0),
        jump(JUMP_EQUAL, netlink, 0, 2),
        load(argument(2)),
        jump(JUMP_EQUAL, 0, 1, 0),
        finish(EPERM),
        load(NUMBER),
    ]);
    if local == LocalSockets::Open {
        return;
    }
    filter.extend([
        jump(JUMP_EQUAL, libc::SYS_socketpair as u32, 0, 8),
        load(argument(0)),
        jump(JUMP_EQUAL, unix, 0, 4),
        load(argument(1)),
        // Without the flags for blocking and inheritance.
        and(0xf),
        jump(JUMP_EQUAL, libc::SOCK_STREAM as u32, 2, 0),
        jump(JUMP_EQUAL, libc::SOCK_SEQPACKET as u32, 1, 0),
        finish(EPERM),
        load(NUMBER),
    ]);
}

#[cfg(test)]
mod tests {
    use super::super::interpreter::{Call, run};
    use super::*;

    const DEFAULT: FilterOptions = FilterOptions {
        local_sockets: LocalSockets::Closed,
        nested: NestedNamespaces::Refused,
        tracing: Tracing::Allowed,
    };

    fn call(number: libc::c_long, arguments: &[u64]) -> Call {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        Call { number: number as u32, architecture: AUDIT_ARCH, arguments: all }
    }

    fn assert_answers(options: FilterOptions, rows: &[(&str, Call, u32)]) {
        let filter = build_filter(options);
        for (name, call, expected) in rows {
            assert_eq!(run(&filter, *call), *expected, "{name}");
        }
    }

    /// S-09, S-12, S-13, S-15.
    #[test]
    fn default_filter_refuses_ways_past_other_layers() {
        let (unix, dgram, high) = (libc::AF_UNIX as u64, libc::SOCK_DGRAM as u64, 1_u64 << 32);
        let cloexec = libc::SOCK_CLOEXEC as u64;
        let other_architecture = Call { architecture: 0x4000_0003, ..call(libc::SYS_socket, &[unix, 1]) };
        let x32 = Call { number: libc::SYS_socket as u32 | SECOND_TABLE, ..call(0, &[unix, 1]) };
        assert_answers(
            DEFAULT,
            &[
                ("read", call(libc::SYS_read, &[]), RETURN_ALLOW),
                ("tcp", call(libc::SYS_socket, &[2, 1]), RETURN_ALLOW),
                ("tcp over v6", call(libc::SYS_socket, &[10, 1]), RETURN_ALLOW),
                ("route", call(libc::SYS_socket, &[16, 3, 0]), RETURN_ALLOW),
                ("other netlink", call(libc::SYS_socket, &[16, 3, 9]), EPERM),
                ("local", call(libc::SYS_socket, &[unix, 1]), EPERM),
                ("local with high bits", call(libc::SYS_socket, &[unix | high, 1]), EPERM),
                ("vsock", call(libc::SYS_socket, &[40, 1]), EPERM),
                ("packet", call(libc::SYS_socket, &[17, 3]), EPERM),
                ("pair", call(libc::SYS_socketpair, &[unix, 1 | cloexec]), RETURN_ALLOW),
                ("pair of packets", call(libc::SYS_socketpair, &[unix, 5]), RETURN_ALLOW),
                ("datagram pair", call(libc::SYS_socketpair, &[unix, dgram | cloexec]), EPERM),
                ("i386 gate", other_architecture, ENOSYS),
                ("x32 number", x32, ENOSYS),
                ("io_uring", call(libc::SYS_io_uring_setup, &[]), EPERM),
                ("thread", call(libc::SYS_clone, &[libc::CLONE_THREAD as u64]), RETURN_ALLOW),
                ("fork", call(libc::SYS_clone, &[17]), RETURN_ALLOW),
                ("namespace", call(libc::SYS_clone, &[libc::CLONE_NEWUSER as u64 | 17]), EPERM),
                ("time namespace", call(libc::SYS_unshare, &[0x80]), EPERM),
                ("clone3", call(libc::SYS_clone3, &[]), ENOSYS),
                ("mount", call(libc::SYS_mount, &[]), EPERM),
                ("TIOCSTI", call(libc::SYS_ioctl, &[0, 0x5412]), EPERM),
                ("TIOCSTI with high bits", call(libc::SYS_ioctl, &[0, 0x5412 | high]), EPERM),
                ("TIOCLINUX", call(libc::SYS_ioctl, &[0, 0x541c]), EPERM),
                ("window size", call(libc::SYS_ioctl, &[0, 0x5413]), RETURN_ALLOW),
                ("plain mode", call(libc::SYS_fchmod, &[3, 0o755]), RETURN_ALLOW),
                ("setuid", call(libc::SYS_fchmod, &[3, 0o4755]), EPERM),
                ("setgid at creation", call(libc::SYS_openat, &[0, 0, 0o102, 0o2755]), EPERM),
                ("setgid without creation", call(libc::SYS_openat, &[0, 0, 0, 0o2755]), RETURN_ALLOW),
                ("setuid in a nameless file", call(libc::SYS_openat, &[0, 0, 0o20200002, 0o4755]), EPERM),
                ("fchmodat2", call(SYS_FCHMODAT2, &[0, 0, 0o4755]), EPERM),
                ("ptrace", call(libc::SYS_ptrace, &[]), RETURN_ALLOW),
                ("keyring", call(libc::SYS_keyctl, &[]), EPERM),
            ],
        );
    }

    #[test]
    fn options_open_and_close_what_they_say() {
        let nested = FilterOptions { nested: NestedNamespaces::Allowed, ..DEFAULT };
        assert_answers(
            nested,
            &[
                ("namespace", call(libc::SYS_clone, &[libc::CLONE_NEWUSER as u64]), RETURN_ALLOW),
                ("clone3", call(libc::SYS_clone3, &[]), RETURN_ALLOW),
                ("mount", call(libc::SYS_mount, &[]), RETURN_ALLOW),
                ("local", call(libc::SYS_socket, &[1, 1]), EPERM),
            ],
        );
        let sockets = FilterOptions { local_sockets: LocalSockets::Open, ..DEFAULT };
        assert_answers(
            sockets,
            &[
                ("local", call(libc::SYS_socket, &[1, 1]), RETURN_ALLOW),
                ("tcp", call(libc::SYS_socket, &[2, 1]), RETURN_ALLOW),
                ("vsock", call(libc::SYS_socket, &[40, 1]), EPERM),
                ("datagram pair", call(libc::SYS_socketpair, &[1, 2]), RETURN_ALLOW),
            ],
        );
        let visible = FilterOptions { tracing: Tracing::Refused, ..DEFAULT };
        assert_answers(visible, &[("ptrace", call(libc::SYS_ptrace, &[]), EPERM)]);
    }

    #[test]
    fn every_refused_call_is_refused_and_no_jump_leaves() {
        let filter = build_filter(DEFAULT);
        for number in ALWAYS_REFUSED.iter().chain(NAMESPACE_CALLS).chain(REFUSED) {
            assert_eq!(run(&filter, call(*number, &[])), EPERM, "{number}");
        }
        // Any number ends in an answer; the interpreter panics on a jump past the end.
        for number in 0..600 {
            run(&filter, call(number, &[u64::MAX; 6]));
            run(&filter, call(number, &[0; 6]));
        }
    }
}
