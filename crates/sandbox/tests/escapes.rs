//! Random shell scripts that try to write, read, connect, signal and survive. The machine's view decides: files, sockets and
//! processes outside of the sandbox.
//!
//! The suite runs a few; `SANDBOX_SCRIPTS=20000 cargo test -p whimbrel-sandbox --test escapes` runs that many. A failure
//! names the number of its script, which `SANDBOX_FIRST_SCRIPT` runs again.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Child, Command};

use support::{World, wait_until};
use whimbrel_sandbox::policy::PathRule;

/// Number of scripts in the suite.
const SCRIPTS: u64 = 60;
/// Scripts that share a world; then it is made anew.
const SCRIPTS_PER_WORLD: u64 = 20;
/// A text in the command lines of processes that try to survive.
const SURVIVOR: &str = "sandbox-test-survivor";
const KEPT: &str = "kept\n";

/// Names in the working directory that must not change.
const PROTECTED: [&str; 7] = [
    ".mcp.json",
    ".claude/settings.json",
    ".git/config",
    ".git/hooks/pre-commit",
    ".vscode/tasks.json",
    "sub/.git/config",
    "sub/.git/hooks/pre-push",
];
/// Names there that must not appear.
const MISSING: [&str; 4] = [".bashrc", ".envrc", ".idea/x", ".githooks/pre-commit"];

/// Programs that do one thing with their argument.
const STUBS: [(&str, &str); 5] = [
    (
        "w",
        "echo evil >> \"$1\"; cp /bin/true \"$1\"; ln -sfn x \"$1\"; mv -f \"$0\" \"$1\" 2>/dev/null; cp \"$1\" \"$0\"",
    ),
    ("r", "cat \"$1\"; cp -r \"$1\" copied; head -c 100 < \"$1\"; ln \"$1\" linked; grep -r CANARY \"$1\""),
    ("c", "exec 3<>\"/dev/tcp/127.0.0.1/$1\" && echo evil >&3; echo evil > \"/dev/udp/127.0.0.1/$1\""),
    ("k", "kill -9 \"$1\"; kill -TERM \"-$1\"; kill -STOP \"$1\""),
    (
        "s",
        "exec >/dev/null 2>&1; (exec -a \"$SURVIVOR\" sleep 600) & setsid -f bash -c 'exec -a $SURVIVOR sleep 600'; (trap '' TERM HUP; exec -a \"$SURVIVOR\" sleep 600) & disown -a",
    ),
];

/// Pseudo-random numbers; the same for the same script.
struct Random(u64);

impl Random {
    fn next(&mut self, limit: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ (value >> 31)) % limit as u64) as usize
    }

    fn choose<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.next(items.len())]
    }
}

/// What scripts aim at.
struct Targets {
    world: World,
    tcp: TcpListener,
    stream: UnixListener,
    datagram: UnixDatagram,
    victim: Child,
}

impl Targets {
    #[expect(clippy::disallowed_methods, reason = "a process that must not be reached")]
    fn new() -> Self {
        let mut world = World::new();
        world.git_init();
        for name in PROTECTED {
            world.put(&format!("ws/{name}"), KEPT);
        }
        world.put("ws/.git/config", "[core]\nhooksPath = .githooks\n");
        for (name, text) in STUBS {
            let path = world.put(&format!("ws/{name}"), &format!("#!/bin/bash\n{text}\n"));
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let hidden = world.path("home/.ssh");
        world.rules().deny_read = vec![PathRule::Literal(hidden)];
        world.environment.insert("SURVIVOR".into(), SURVIVOR.into());
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let stream = UnixListener::bind(world.path("ws/stream.sock")).unwrap();
        stream.set_nonblocking(true).unwrap();
        let datagram = UnixDatagram::bind(world.path("ws/datagram.sock")).unwrap();
        datagram.set_nonblocking(true).unwrap();
        let victim = Command::new("sleep").arg("3600").spawn().unwrap();
        Self { world, tcp, stream, datagram, victim }
    }

    /// Checks everything that a script could have reached.
    fn check(&mut self, script: &str, output: &str) {
        self.world.assert_untouched();
        for name in PROTECTED {
            let expected = if name == ".git/config" { "[core]\nhooksPath = .githooks\n" } else { KEPT };
            assert_eq!(self.world.read(&format!("ws/{name}")).as_deref(), Some(expected), "{name}: {script}");
        }
        for name in MISSING {
            assert_eq!(self.world.read(&format!("ws/{name}")), None, "{name}: {script}");
        }
        assert!(!output.contains("CANARY"), "{script}\n{output}");
        assert!(self.tcp.accept().is_err() && self.stream.accept().is_err(), "{script}");
        assert!(self.datagram.recv(&mut [0; 16]).is_err(), "{script}");
        assert!(self.victim.try_wait().unwrap().is_none(), "{script}");
        let state = std::fs::read_to_string(format!("/proc/{}/stat", self.victim.id())).unwrap();
        assert!(state.contains(") S "), "stopped: {script}");
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        self.victim.kill().unwrap();
        self.victim.wait().unwrap();
    }
}

fn write_script(random: &mut Random, targets: &Targets) -> String {
    let lines = 2 + random.next(6);
    (0..lines).map(|_| write_line(random, targets)).collect::<Vec<_>>().join("\n")
}

fn write_line(random: &mut Random, targets: &Targets) -> String {
    let path = write_path(random, targets);
    let other = write_path(random, targets);
    let action = match random.next(16) {
        0 => format!("./w {path}"),
        1 => format!("./r {path}"),
        2 => format!("./c {}", targets.tcp.local_addr().unwrap().port()),
        3 => format!("./k {}", targets.victim.id()),
        4 => "./s".to_owned(),
        5 => format!("echo evil > {path}"),
        6 => format!("mv {path} {other}; mkdir -p {path}; echo evil > {path}/x"),
        7 => format!("rm -rf {path}; ln -s {other} {path}; echo evil > {path}"),
        8 => format!("ln {path} h$RANDOM; for f in h*; do echo evil >> $f; done"),
        9 => format!(
            "python3 -c 'import socket\nfor t in (1, 2):\n  s = socket.socket(1, t)\n  s.connect(\"{path}\")\n  s.send(b\"evil\")'"
        ),
        10 => format!("mount --bind {other} {path}; umount -l {path}; unshare -Urm ./w {path}"),
        11 => format!("cd {path} && echo evil > data.txt; echo evil > .mcp.json; cd - >/dev/null"),
        12 => format!("exec 9<>{path} && echo evil >&9; cat <&9; exec 9>&-"),
        13 => format!("cat {path} > {other}; tar cf - {path} | tar xf - -C {other}"),
        14 => format!("chmod -R 777 {path}; chown 0 {path}; truncate -s 0 {path}; touch {path}"),
        _ => format!("git config core.fsmonitor ./w; git -C {path} init -q; echo evil > .git/hooks/x"),
    };
    match random.next(7) {
        0 => format!("( {action} ) &"),
        1 => format!("for i in 1 2; do {action}; done"),
        2 => format!("env -i PATH=$PATH bash -c '{}'", action.replace('\'', "'\\''")),
        3 => format!("{{ {action}; }} | cat"),
        4 => format!("f() {{ {action}; }}; f"),
        5 => format!("setsid bash -c '{}' &", action.replace('\'', "'\\''")),
        _ => action,
    }
}

/// A path that must not be reached, by one of its names.
fn write_path(random: &mut Random, targets: &Targets) -> String {
    let names = [
        "outside",
        "outside/data.txt",
        "outside/new",
        "home/.bashrc",
        "home/.ssh/id_rsa",
        "home/.ssh",
        "state",
        "ws/stream.sock",
        "ws/datagram.sock",
        "ws/.git/hooks",
        "ws/.git",
        "ws/.claude",
        "ws/sub",
    ];
    let name = match random.next(3) {
        0 => format!("ws/{}", random.choose(&PROTECTED)),
        1 => format!("ws/{}", random.choose(&MISSING)),
        _ => random.choose(&names).to_owned(),
    };
    let absolute = targets.world.path(&name).display().to_string();
    match random.next(7) {
        0 => format!("/proc/self/root{absolute}"),
        1 => format!("/proc/1/root{absolute}"),
        2 => format!("../{name}"),
        3 => format!("$(ln -sfn {absolute} l; echo l)"),
        4 => format!("$(ln -sfn {} $TMPDIR/l; echo $TMPDIR/l/{name})", targets.world.path("").display()),
        5 => format!("/proc/$$/cwd/../{name}"),
        _ => absolute,
    }
}

/// Returns whether a process that a script started still runs.
fn has_survivor() -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.starts_with(SURVIVOR.as_bytes())
    })
}

/// S-01 to S-03, S-05, S-07, S-11, S-12, S-14, S-17.
#[test]
fn random_scripts_do_not_get_out() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let first = number("SANDBOX_FIRST_SCRIPT", 0);
    let count = number("SANDBOX_SCRIPTS", SCRIPTS);
    let mut targets = Targets::new();
    for index in first..first + count {
        if index % SCRIPTS_PER_WORLD == 0 {
            targets = Targets::new();
        }
        let script = write_script(&mut Random(index), &targets);
        let named = format!("script {index}:\n{script}");
        // The end of the script itself: what it has started in the background dies there.
        let output = targets.world.try_run(&format!("exec 2>&1; {script}\necho end")).expect(&named);
        targets.check(&named, &output.text);
        wait_until(&format!("the end of everything in {named}"), || !has_survivor());
    }
}
