//! The wrappers, one row each.

use super::Wrapper;

const ROW: Wrapper = Wrapper {
    name: "",
    flags: "",
    values: "",
    long: &[],
    long_values: &[],
    operands: 0,
    texts: &[],
    splits: false,
    permutes: false,
    anywhere: false,
    assigns: false,
    never_by_star: false,
};

/// A wrapper of which only the name is known.
const fn named(name: &'static str) -> Wrapper {
    Wrapper { name, ..ROW }
}

/// A wrapper that no rule with a star may allow.
const fn never(name: &'static str, flags: &'static str, values: &'static str) -> Wrapper {
    Wrapper { name, flags, values, never_by_star: true, ..ROW }
}

pub(super) const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "timeout",
        flags: "v",
        values: "ks",
        long: &["foreground", "preserve-status", "verbose"],
        long_values: &["kill-after", "signal"],
        operands: 1,
        ..ROW
    },
    Wrapper {
        name: "time",
        flags: "pvaq",
        values: "fo",
        long: &["portability", "verbose", "append", "quiet"],
        long_values: &["format", "output"],
        assigns: true,
        ..ROW
    },
    Wrapper { name: "nice", flags: "0123456789", values: "n", long_values: &["adjustment"], ..ROW },
    Wrapper { name: "nohup", ..ROW },
    Wrapper { name: "stdbuf", values: "ioe", long_values: &["input", "output", "error"], ..ROW },
    Wrapper { name: "command", flags: "p", ..ROW },
    Wrapper { name: "builtin", ..ROW },
    Wrapper { name: "noglob", ..ROW },
    Wrapper {
        name: "xargs",
        flags: "0rtpxoeil",
        values: "nILPsdEa",
        long: &[
            "null",
            "no-run-if-empty",
            "verbose",
            "interactive",
            "exit",
            "open-tty",
            "show-limits",
            "replace",
            "max-lines",
            "eof",
        ],
        long_values: &["max-args", "max-procs", "max-chars", "delimiter", "arg-file", "process-slot-var"],
        ..ROW
    },
    Wrapper {
        name: "env",
        flags: "i0v",
        values: "uC",
        long: &["ignore-environment", "null", "debug", "block-signal", "default-signal", "ignore-signal"],
        long_values: &["unset", "chdir"],
        texts: &["-S", "--split-string"],
        splits: true,
        assigns: true,
        ..ROW
    },
    Wrapper {
        name: "sudo",
        flags: "AbBeEHiKklNnPSsVv",
        values: "aCcDghpRrTtUu",
        long: &[
            "background",
            "login",
            "shell",
            "non-interactive",
            "preserve-env",
            "set-home",
            "stdin",
            "reset-timestamp",
            "edit",
            "askpass",
            "preserve-groups",
            "list",
            "validate",
        ],
        long_values: &[
            "user",
            "group",
            "host",
            "prompt",
            "chdir",
            "chroot",
            "close-from",
            "role",
            "type",
            "command-timeout",
            "other-user",
        ],
        assigns: true,
        ..ROW
    },
    Wrapper { name: "doas", flags: "Lns", values: "aCu", assigns: true, ..ROW },
    Wrapper { name: "pkexec", long: &["disable-internal-agent", "keep-cwd"], long_values: &["user"], ..ROW },
    Wrapper {
        name: "su",
        flags: "lmpfP",
        values: "ugGw",
        long: &["login", "preserve-environment", "fast", "pty"],
        long_values: &["user", "group", "supp-group", "whitelist-environment"],
        operands: 1,
        texts: &["-c", "--command", "--session-command", "-s", "--shell"],
        permutes: true,
        ..ROW
    },
    Wrapper {
        name: "runuser",
        flags: "lmpfP",
        values: "ugGw",
        long: &["login", "preserve-environment", "fast", "pty"],
        long_values: &["user", "group", "supp-group", "whitelist-environment"],
        texts: &["-c", "--command", "--session-command", "-s", "--shell"],
        permutes: true,
        ..ROW
    },
    Wrapper {
        name: "setpriv",
        long: &["nnp", "no-new-privs", "init-groups", "keep-groups", "clear-groups", "reset-env"],
        long_values: &[
            "ambient-caps",
            "inh-caps",
            "bounding-set",
            "ruid",
            "euid",
            "rgid",
            "egid",
            "reuid",
            "regid",
            "groups",
            "securebits",
            "pdeathsig",
            "selinux-label",
            "apparmor-profile",
        ],
        ..ROW
    },
    Wrapper { anywhere: true, ..named("fakeroot") },
    Wrapper { anywhere: true, ..named("choom") },
    Wrapper { anywhere: true, ..named("setarch") },
    Wrapper { anywhere: true, ..named("linux32") },
    Wrapper { anywhere: true, ..named("linux64") },
    Wrapper { anywhere: true, ..named("i386") },
    Wrapper { anywhere: true, ..named("x86_64") },
    Wrapper { anywhere: true, ..named("dbus-run-session") },
    Wrapper { anywhere: true, ..named("ssh-agent") },
    Wrapper { anywhere: true, ..named("logsave") },
    Wrapper { anywhere: true, ..named("capsh") },
    Wrapper { texts: &["-c"], permutes: true, anywhere: true, ..named("sg") },
    Wrapper { long: &["ctty", "fork", "wait"], ..never("setsid", "cfw", "") },
    Wrapper {
        long: &["ignore"],
        long_values: &["class", "classdata", "pid"],
        ..never("ionice", "t", "cnpPu")
    },
    Wrapper {
        long: &["batch", "deadline", "fifo", "idle", "other", "rr", "reset-on-fork", "all-tasks", "verbose"],
        long_values: &["sched-runtime", "sched-period", "sched-deadline"],
        operands: 1,
        ..never("chrt", "bdfiorRavm", "TPDp")
    },
    Wrapper { long: &["all-tasks", "cpu-list", "pid"], operands: 1, ..never("taskset", "apc", "") },
    Wrapper {
        long: &["shared", "exclusive", "unlock", "nonblock", "close", "no-fork", "verbose", "nb"],
        long_values: &["wait", "timeout", "conflict-exit-code"],
        texts: &["-c", "--command"],
        permutes: true,
        operands: 1,
        ..never("flock", "sxeunoF", "wE")
    },
    Wrapper {
        long: &[
            "beep",
            "color",
            "no-color",
            "errexit",
            "chgexit",
            "no-title",
            "no-rerun",
            "precise",
            "exec",
            "no-wrap",
            "follow",
            "differences",
        ],
        long_values: &["interval", "equexit", "shotsdir"],
        ..never("watch", "bcCdegprtxwf", "nqs")
    },
    Wrapper {
        long: &["append", "flush", "force", "quiet", "return"],
        long_values: &["echo", "log-in", "log-out", "log-io", "logging-format", "log-timing", "output-limit"],
        texts: &["-c", "--command"],
        permutes: true,
        operands: 1,
        ..never("script", "aefqr", "EIOBmoT")
    },
    never("strace", "cCdfFhiknqrtTvVwxyYzZ", "abeEIoOpPsSuUX"),
    never("ltrace", "bcCfhiLrStTV", "aADeFlnopsuwx"),
    Wrapper {
        long: &[
            "mount",
            "uts",
            "ipc",
            "net",
            "pid",
            "user",
            "cgroup",
            "time",
            "fork",
            "map-root-user",
            "map-current-user",
            "mount-proc",
            "kill-child",
            "keep-caps",
        ],
        long_values: &[
            "propagation",
            "setgroups",
            "root",
            "wd",
            "setuid",
            "setgid",
            "map-user",
            "map-group",
            "monotonic",
            "boottime",
        ],
        ..never("unshare", "muinpUCTfrc", "RwSG")
    },
    Wrapper {
        long: &[
            "all",
            "mount",
            "uts",
            "ipc",
            "net",
            "pid",
            "user",
            "cgroup",
            "time",
            "preserve-credentials",
            "no-fork",
            "follow-context",
            "root",
            "wd",
        ],
        long_values: &["target", "setuid", "setgid"],
        ..never("nsenter", "amuinpUCTFZrw", "tSG")
    },
    Wrapper {
        long: &["skip-chdir"],
        long_values: &["groups", "userspec"],
        operands: 1,
        ..never("chroot", "", "")
    },
    Wrapper {
        long: &["noheadings", "raw", "verbose"],
        long_values: &["pid", "output"],
        ..never("prlimit", "cdefilmnqrstuvxy", "po")
    },
    Wrapper {
        long: &[
            "scope",
            "user",
            "system",
            "pty",
            "pipe",
            "wait",
            "collect",
            "quiet",
            "shell",
            "no-block",
            "remain-after-exit",
            "send-sighup",
            "same-dir",
        ],
        long_values: &[
            "unit",
            "property",
            "description",
            "slice",
            "uid",
            "gid",
            "nice",
            "working-directory",
            "setenv",
            "host",
            "machine",
            "service-type",
        ],
        ..never("systemd-run", "tPSqGrd", "puEHM")
    },
    never("unbuffer", "p", ""),
    Wrapper { anywhere: true, ..never("valgrind", "", "") },
    Wrapper { anywhere: true, ..never("perf", "", "") },
    Wrapper { anywhere: true, ..never("gdb", "", "") },
    Wrapper { anywhere: true, ..never("parallel", "", "") },
    Wrapper { anywhere: true, ..never("busybox", "", "") },
    never("nocorrect", "", ""),
    never("exec", "cl", "a"),
    never("coproc", "", ""),
];
