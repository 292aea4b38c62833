//! Processes, descriptors, sockets of the machine and system calls that lead out.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::{Child, Command};

use support::{World, confined_test, wait_until};
use whimbrel_sandbox::child::ExitStatus;
use whimbrel_sandbox::policy::NestedNamespaces;

/// A process of the machine, which ends with the test.
struct Victim(Child);

impl Victim {
    #[expect(clippy::disallowed_methods, reason = "a process that must not be reached")]
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").env("VICTIM_SECRET", "CANARY-ENV").spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Returns the processes of the machine whose command line has a text.
fn find_processes(text: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pid = |entry: std::fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        line.windows(text.len()).any(|window| window == text.as_bytes()).then_some(pid)
    };
    entries.filter_map(pid).collect()
}

/// A text that only this run of a test has in a command line.
fn marker(number: u32) -> String {
    format!("{number}.{:06}{}", std::process::id(), rustix::process::geteuid().as_raw())
}

confined_test! {
    /// S-10.
    fn no_descriptor_and_no_environment_is_inherited(world) {
        let leak = std::fs::File::create(world.path("outside/leak")).unwrap();
        // Inheritable, as a careless library leaves it.
        let inheritable = rustix::io::fcntl_dupfd_cloexec(leak.as_fd(), 50).unwrap();
        rustix::io::fcntl_setfd(&inheritable, rustix::io::FdFlags::empty()).unwrap();
        let text = world.run("ls /proc/self/fd | tr '\\n' ' '; cat /proc/1/environ /proc/1/maps; cat /proc/self/environ | tr '\\0' '\\n' | grep -c CARGO; for p in /proc/[0-9]*/fd/*; do readlink $p; done | grep leak");
        drop(inheritable);
        std::fs::remove_file(world.path("outside/leak")).unwrap();
        // 3 is the folder that ls reads.
        assert!(text.starts_with("0 1 2 3 ") && text.contains("\n0\n") && !text.contains("leak"), "{text}");
    }
}

confined_test! {
    /// S-11.
    fn processes_of_the_machine_cannot_be_reached(world) {
        let victim = Victim::start();
        let pid = victim.0.id();
        let text = world.run(&format!(
            "ls /proc | grep -c '^[0-9]' | sed 's/^/count=/'; cat /proc/{pid}/environ; kill -9 {pid} && echo BAD; kill -9 -1
             python3 -c 'import ctypes; print(\"attach\", ctypes.CDLL(None).ptrace(16, {pid}, 0, 0))'"
        ).replace("kill -9 -1", ""));
        let count: u32 = text.split("count=").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
        assert!(count < 10 && !text.contains("CANARY") && !text.contains("BAD") && !text.contains("attach 0"), "{text}");
    }
}

confined_test! {
    /// S-11.
    fn process_one_cannot_be_reached(world) {
        let text = world.run(
            "kill -9 1; kill -TERM 1; sleep 0.05; cat /proc/1/environ && echo BAD; cat /proc/1/mem && echo BAD; ls -l /proc/1/fd/ && echo BAD; ls /proc/1/root/ > /dev/null && echo BAD
             python3 -c 'import ctypes; print(\"attach\", ctypes.CDLL(None).ptrace(16, 1, 0, 0))'"
        );
        assert!(!text.contains("BAD") && !text.contains("attach 0"), "{text}");
    }
}

confined_test! {
    /// S-12.
    fn local_sockets_of_the_machine_cannot_be_reached(world) {
        let stream = UnixListener::bind(world.path("outside/s.sock")).unwrap();
        let datagram = UnixDatagram::bind(world.path("outside/d.sock")).unwrap();
        let name = marker(1);
        let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        datagram.set_nonblocking(true).unwrap();
        hidden.set_nonblocking(true).unwrap();
        let outside = world.path("outside").display().to_string();
        let script = format!("
import socket, ctypes
def attempt(f):
    try: f(); print('REACHED')
    except OSError as e: print(e)
attempt(lambda: socket.socket(1, 1).connect('{outside}/s.sock'))
attempt(lambda: socket.socket(1, 2).sendto(b'x', '{outside}/d.sock'))
attempt(lambda: socket.socket(1, 1).connect('\\0{name}'))
attempt(lambda: socket.socketpair(1, 2)[0].sendto(b'x', '{outside}/d.sock'))
for f, t, p in ((40, 1, 0), (38, 5, 0), (17, 3, 0), (31, 3, 0), (44, 3, 0), (16, 3, 12), (16, 3, 9)):
    attempt(lambda: socket.socket(f, t, p))
libc = ctypes.CDLL(None)
for n in (41 | 0x40000000, 425):
    if libc.syscall(n, 1, 1, 0) >= 0: print('REACHED')
socket.socketpair(); socket.socket(2, 1); socket.socket(10, 1); socket.socket(16, 3, 0); print('FINE')
");
        world.put("ws/p.py", &script);
        let text = world.run("python3 p.py");
        std::fs::remove_file(world.path("outside/s.sock")).unwrap();
        std::fs::remove_file(world.path("outside/d.sock")).unwrap();
        assert!(text.contains("FINE") && !text.contains("REACHED"), "{text}");
        assert!(stream.accept().is_err() && datagram.recv(&mut [0]).is_err() && hidden.accept().is_err());
    }
}

confined_test! {
    /// S-14.
    fn nothing_outlives_its_command(world) {
        let mark = marker(300);
        world.run(&format!("setsid sleep {mark} >/dev/null 2>&1 & disown; (nohup sleep {mark} >/dev/null 2>&1 &); python3 -c 'import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: os.execvp(\"sleep\", [\"sleep\", \"{mark}\"])' "));
        wait_until("the end of the daemons", || find_processes(&mark).is_empty());
    }
}

confined_test! {
    /// S-14: the caller drops the child, as at a time limit or an interrupt.
    fn dropped_command_ends_with_its_tree(world) {
        let mark = marker(400);
        let child = world.start(&format!("setsid sleep {mark} & trap '' TERM INT HUP; sleep {mark}; sleep {mark}"));
        wait_until("the start", || find_processes(&format!("sleep\0{mark}")).len() == 2);
        drop(child);
        wait_until("the end", || find_processes(&mark).is_empty());
    }
}

confined_test! {
    /// S-14: only the socket to the caller is closed, as when the caller is killed.
    fn command_ends_when_its_caller_is_gone(world) {
        let mark = marker(500);
        let mut prepared = world.session.prepare(&world.policy, world.spec(&format!("setsid sleep {mark} & sleep {mark}"))).unwrap();
        let mut launcher = prepared.command.spawn().unwrap();
        let control = prepared.into_control();
        wait_until("the start", || find_processes(&format!("sleep\0{mark}")).len() == 2);
        drop(control);
        launcher.wait().unwrap();
        wait_until("the end", || find_processes(&mark).is_empty());
    }
}

confined_test! {
    /// S-15.
    fn no_capability_is_left_and_the_filter_holds(world) {
        let text = world.run("grep -hE '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status /proc/1/status; hostname evil && echo RENAMED; ipcs -q | wc -l; readlink /proc/self/ns/ipc");
        assert_eq!(text.matches("0000000000000000").count(), 10, "{text}");
        assert_eq!(text.matches("NoNewPrivs:\t1").count(), 2, "{text}");
        assert_eq!(text.matches("Seccomp:\t2").count(), 2, "{text}");
        let own = std::fs::read_link("/proc/self/ns/ipc").unwrap();
        assert!(!text.contains("RENAMED") && !text.contains(own.to_str().unwrap()), "{text}");
    }
}

confined_test! {
    /// S-16.
    fn number_of_processes_is_limited(world) {
        world.policy.limits.processes = 400;
        let script = "
import os, time
n = 0
try:
    for n in range(2000):
        if os.fork() == 0: time.sleep(600)
except OSError as e: print('STOPPED', n, e)
";
        world.put("ws/p.py", script);
        let text = world.run("python3 p.py");
        assert!(text.contains("STOPPED"), "{text}");
        // The machine goes on.
        Victim::start();
    }
}

confined_test! {
    fn status_signal_and_output_are_those_of_the_command(world) {
        let status = |world: &mut World, script: &str| world.try_run(script).unwrap().status;
        assert_eq!(status(&mut world, "exit 7"), ExitStatus::Code(7));
        assert_eq!(status(&mut world, "kill -TERM $$"), ExitStatus::Signal(15));
        let output = world.try_run("head -c 3000000 /dev/zero | tr '\\0' y; cat; echo END; trap 'echo PIPE' PIPE; kill -PIPE $$").unwrap();
        assert!(output.text.len() > 3_000_000 && output.text.ends_with("END\nPIPE\n"));
        let missing = world.session.prepare(&world.policy, whimbrel_sandbox::session::CommandSpec { program: "/nonexistent".into(), ..world.spec("") });
        let error = missing.unwrap().spawn().unwrap().wait_blocking().unwrap_err();
        assert!(error.to_string().contains("/nonexistent: No such file"), "{error}");
    }
}

confined_test! {
    fn signals_reach_the_process_group_of_the_command(world) {
        let mut child = world.start("trap 'echo got > got; exit 3' USR1; touch ready; while :; do sleep 0.01; done");
        wait_until("the start", || world.read("ws/ready").is_some());
        child.send_signal(10).unwrap();
        assert_eq!(child.wait_blocking().unwrap(), ExitStatus::Code(3));
        assert_eq!(world.read("ws/got").as_deref(), Some("got\n"));
    }
}

confined_test! {
    /// S-06: root without capabilities may make a namespace, but not map its own number into it.
    fn namespaces_can_be_made_if_the_policy_allows(world) {
        world.policy.namespaces = NestedNamespaces::Allowed;
        let text = world.run("unshare -Ur sh -c 'echo INNER $(id -u)' || unshare -U sh -c 'echo INNER $(id -u)'");
        assert!(text.contains("INNER"), "{text}");
    }
}

/// No descriptor, process or mount is left after many commands.
#[test]
fn a_hundred_commands_leave_nothing() {
    let mut world = World::new();
    world.run("true");
    let count = |path: &str| std::fs::read_dir(path).unwrap().count();
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count();
    let before = (count("/proc/self/fd"), mounts());
    for _ in 0..100 {
        world.run("true");
    }
    assert_eq!((count("/proc/self/fd"), mounts()), before);
    let own = world.path("launcher").display().to_string();
    wait_until("the end of all launchers", || find_processes(&own).is_empty());
}
