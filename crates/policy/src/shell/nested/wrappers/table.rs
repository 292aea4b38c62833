//! The wrappers, one row each.

/// A wrapper and its options.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Letters without a value.
    pub(super) flags: &'static str,
    /// Letters with a value.
    pub(super) values: &'static str,
    /// Long options without a value, or with one after `=`.
    pub(super) long: &'static [&'static str],
    /// Long options with a value in the next word.
    pub(super) long_values: &'static [&'static str],
    /// Number of words between the options and the command.
    pub(super) operands: usize,
    /// Options whose value is the text of a command.
    pub(super) command_options: &'static [&'static str],
    /// True if such a text is split into further arguments of the wrapper.
    pub(super) splits_text: bool,
    /// True if options may follow operands.
    pub(super) permutes_options: bool,
    /// True if every later word may be the command.
    pub(super) may_start_anywhere: bool,
    /// True if `NAME=value` may precede the command.
    pub(super) takes_assignments: bool,
    /// True if only an exact rule may allow it.
    pub(super) requires_exact_rule: bool,
}

impl Wrapper {
    /// Returns true if a long option is listed by its full name.
    pub(super) fn knows_long_option(&self, long: &str) -> bool {
        self.long.contains(&long) || self.long_values.contains(&long)
    }
}

const ROW: Wrapper = Wrapper {
    name: "",
    flags: "",
    values: "",
    long: &[],
    long_values: &[],
    operands: 0,
    command_options: &[],
    splits_text: false,
    permutes_options: false,
    may_start_anywhere: false,
    takes_assignments: false,
    requires_exact_rule: false,
};

/// A wrapper without known options.
const fn wrapper(name: &'static str) -> Wrapper {
    Wrapper { name, ..ROW }
}

/// A wrapper that no rule with a star may allow.
const fn exact_rule_wrapper(name: &'static str, flags: &'static str, values: &'static str) -> Wrapper {
    Wrapper { name, flags, values, requires_exact_rule: true, ..ROW }
}

/// A wrapper with arbitrary options: every later word may be the command.
const fn unstructured_wrapper(name: &'static str) -> Wrapper {
    Wrapper { name, may_start_anywhere: true, ..ROW }
}

pub(crate) const WRAPPERS: &[Wrapper] = &[
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
        takes_assignments: true,
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
        command_options: &["-S", "--split-string"],
        splits_text: true,
        takes_assignments: true,
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
        takes_assignments: true,
        ..ROW
    },
    Wrapper { name: "doas", flags: "Lns", values: "aCu", takes_assignments: true, ..ROW },
    Wrapper { name: "pkexec", long: &["disable-internal-agent", "keep-cwd"], long_values: &["user"], ..ROW },
    Wrapper {
        name: "su",
        flags: "lmpfP",
        values: "ugGw",
        long: &["login", "preserve-environment", "fast", "pty"],
        long_values: &["user", "group", "supp-group", "whitelist-environment"],
        operands: 1,
        command_options: &["-c", "--command", "--session-command", "-s", "--shell"],
        permutes_options: true,
        ..ROW
    },
    Wrapper {
        name: "runuser",
        flags: "lmpfP",
        values: "ugGw",
        long: &["login", "preserve-environment", "fast", "pty"],
        long_values: &["user", "group", "supp-group", "whitelist-environment"],
        command_options: &["-c", "--command", "--session-command", "-s", "--shell"],
        permutes_options: true,
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
    Wrapper { may_start_anywhere: true, ..wrapper("fakeroot") },
    Wrapper { may_start_anywhere: true, ..wrapper("choom") },
    Wrapper { may_start_anywhere: true, ..wrapper("setarch") },
    Wrapper { may_start_anywhere: true, ..wrapper("linux32") },
    Wrapper { may_start_anywhere: true, ..wrapper("linux64") },
    Wrapper { may_start_anywhere: true, ..wrapper("i386") },
    Wrapper { may_start_anywhere: true, ..wrapper("x86_64") },
    Wrapper { may_start_anywhere: true, ..wrapper("dbus-run-session") },
    Wrapper { may_start_anywhere: true, ..wrapper("ssh-agent") },
    Wrapper { may_start_anywhere: true, ..wrapper("logsave") },
    Wrapper { may_start_anywhere: true, ..wrapper("capsh") },
    Wrapper { command_options: &["-c"], permutes_options: true, may_start_anywhere: true, ..wrapper("sg") },
    Wrapper { long: &["ctty", "fork", "wait"], ..exact_rule_wrapper("setsid", "cfw", "") },
    Wrapper {
        long: &["ignore"],
        long_values: &["class", "classdata", "pid"],
        ..exact_rule_wrapper("ionice", "t", "cnpPu")
    },
    Wrapper {
        long: &["batch", "deadline", "fifo", "idle", "other", "rr", "reset-on-fork", "all-tasks", "verbose"],
        long_values: &["sched-runtime", "sched-period", "sched-deadline"],
        operands: 1,
        ..exact_rule_wrapper("chrt", "bdfiorRavm", "TPDp")
    },
    Wrapper {
        long: &["all-tasks", "cpu-list", "pid"],
        operands: 1,
        ..exact_rule_wrapper("taskset", "apc", "")
    },
    Wrapper {
        long: &["shared", "exclusive", "unlock", "nonblock", "close", "no-fork", "verbose", "nb"],
        long_values: &["wait", "timeout", "conflict-exit-code"],
        command_options: &["-c", "--command"],
        permutes_options: true,
        operands: 1,
        ..exact_rule_wrapper("flock", "sxeunoF", "wE")
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
        ..exact_rule_wrapper("watch", "bcCdegprtxwf", "nqs")
    },
    Wrapper {
        long: &["append", "flush", "force", "quiet", "return"],
        long_values: &["echo", "log-in", "log-out", "log-io", "logging-format", "log-timing", "output-limit"],
        command_options: &["-c", "--command"],
        permutes_options: true,
        operands: 1,
        ..exact_rule_wrapper("script", "aefqr", "EIOBmoT")
    },
    exact_rule_wrapper("strace", "cCdfFhiknqrtTvVwxyYzZ", "abeEIoOpPsSuUX"),
    exact_rule_wrapper("ltrace", "bcCfhiLrStTV", "aADeFlnopsuwx"),
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
        ..exact_rule_wrapper("unshare", "muinpUCTfrc", "RwSG")
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
        ..exact_rule_wrapper("nsenter", "amuinpUCTFZrw", "tSG")
    },
    Wrapper {
        long: &["skip-chdir"],
        long_values: &["groups", "userspec"],
        operands: 1,
        ..exact_rule_wrapper("chroot", "", "")
    },
    Wrapper {
        long: &["noheadings", "raw", "verbose"],
        long_values: &["pid", "output"],
        ..exact_rule_wrapper("prlimit", "cdefilmnqrstuvxy", "po")
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
        ..exact_rule_wrapper("systemd-run", "tPSqGrd", "puEHM")
    },
    exact_rule_wrapper("unbuffer", "p", ""),
    Wrapper { may_start_anywhere: true, ..exact_rule_wrapper("valgrind", "", "") },
    Wrapper { may_start_anywhere: true, ..exact_rule_wrapper("perf", "", "") },
    Wrapper { may_start_anywhere: true, ..exact_rule_wrapper("gdb", "", "") },
    Wrapper { may_start_anywhere: true, ..exact_rule_wrapper("parallel", "", "") },
    Wrapper { may_start_anywhere: true, ..exact_rule_wrapper("busybox", "", "") },
    exact_rule_wrapper("nocorrect", "", ""),
    exact_rule_wrapper("exec", "cl", "a"),
    exact_rule_wrapper("coproc", "", ""),
    unstructured_wrapper("abduco"),
    unstructured_wrapper("bwrap"),
    unstructured_wrapper("catchsegv"),
    unstructured_wrapper("cgexec"),
    unstructured_wrapper("chpst"),
    unstructured_wrapper("chronic"),
    unstructured_wrapper("daemonize"),
    unstructured_wrapper("dbus-launch"),
    unstructured_wrapper("dtach"),
    unstructured_wrapper("dumb-init"),
    unstructured_wrapper("eatmydata"),
    unstructured_wrapper("entr"),
    unstructured_wrapper("envdir"),
    unstructured_wrapper("fakechroot"),
    unstructured_wrapper("faketime"),
    unstructured_wrapper("firejail"),
    unstructured_wrapper("gosu"),
    unstructured_wrapper("ifne"),
    unstructured_wrapper("ld-linux-aarch64.so.1"),
    unstructured_wrapper("ld-linux-x86-64.so.2"),
    unstructured_wrapper("ld-linux.so.2"),
    unstructured_wrapper("ld-musl-aarch64.so.1"),
    unstructured_wrapper("ld-musl-x86_64.so.1"),
    unstructured_wrapper("ld.so"),
    unstructured_wrapper("numactl"),
    unstructured_wrapper("proot"),
    unstructured_wrapper("rlwrap"),
    unstructured_wrapper("s6-setuidgid"),
    unstructured_wrapper("screen"),
    unstructured_wrapper("softlimit"),
    unstructured_wrapper("start-stop-daemon"),
    unstructured_wrapper("su-exec"),
    unstructured_wrapper("tini"),
    unstructured_wrapper("tmux"),
    unstructured_wrapper("toybox"),
    unstructured_wrapper("ts"),
    unstructured_wrapper("xvfb-run"),
];
