//! Commands that run another command. What a rule looks through, and in which form.

use super::{Value, Word};

/// One wrapper and its options, for finding the command behind it.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Letters without a value.
    flags: &'static str,
    /// Letters with a value.
    values: &'static str,
    /// Long options without a value, or with one after `=`.
    long: &'static [&'static str],
    /// Long options with a value in the next word.
    long_values: &'static [&'static str],
    /// How many words stand between the options and the command.
    operands: usize,
    /// Options whose value is the text of a command.
    texts: &'static [&'static str],
    /// Whether `NAME=value` may stand before the command.
    assigns: bool,
    /// Whether only an exact rule may allow it.
    never_by_star: bool,
}

const ROW: Wrapper = Wrapper {
    name: "",
    flags: "",
    values: "",
    long: &[],
    long_values: &[],
    operands: 0,
    texts: &[],
    assigns: false,
    never_by_star: false,
};

/// A wrapper that no rule with a star may allow.
const fn never(name: &'static str, flags: &'static str, values: &'static str) -> Wrapper {
    Wrapper { name, flags, values, never_by_star: true, ..ROW }
}

const WRAPPERS: &[Wrapper] = &[
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
        long: &["null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty", "show-limits"],
        long_values: &[
            "max-args",
            "replace",
            "max-lines",
            "max-procs",
            "max-chars",
            "delimiter",
            "eof",
            "arg-file",
            "process-slot-var",
        ],
        ..ROW
    },
    Wrapper {
        name: "env",
        flags: "i0v",
        values: "uC",
        long: &["ignore-environment", "null", "debug", "block-signal", "default-signal", "ignore-signal"],
        long_values: &["unset", "chdir"],
        texts: &["-S", "--split-string"],
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
        values: "ugGsw",
        long: &["login", "preserve-environment", "fast", "pty"],
        long_values: &["user", "group", "shell", "supp-group", "whitelist-environment"],
        operands: 1,
        texts: &["-c", "--command", "--session-command"],
        ..ROW
    },
    Wrapper {
        name: "runuser",
        flags: "lmpfP",
        values: "ugGsw",
        long: &["login", "preserve-environment", "fast", "pty"],
        long_values: &["user", "group", "shell", "supp-group", "whitelist-environment"],
        texts: &["-c", "--command", "--session-command"],
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
        ],
        long_values: &["target", "setuid", "setgid", "root", "wd"],
        ..never("nsenter", "amuinpUCTFZ", "tSGrw")
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
    never("valgrind", "", ""),
    never("perf", "", ""),
    never("gdb", "", ""),
    never("parallel", "", ""),
    never("busybox", "", ""),
    never("nocorrect", "", ""),
    never("exec", "cl", "a"),
    never("coproc", "", ""),
];

/// The shells that run text after `-c`, or what they read.
pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "rbash", "mksh", "fish"];

/// Programs that run code.
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "node",
    "nodejs",
    "deno",
    "bun",
    "perl",
    "ruby",
    "php",
    "lua",
    "tclsh",
    "osascript",
    "pwsh",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "ed",
    "ex",
    "vim",
    "vi",
    "make",
    "bc",
    "dc",
    "irb",
    "expect",
];

/// Commands of which no rule of the form `W1 W2 *` is suggested, besides shells and interpreters.
const EXACT_ONLY: &[&str] = &[
    "sudo", "doas", "env", "xargs", "timeout", "nice", "nohup", "time", "command", "find", "awk", "sed",
    "ssh", "scp", "rsync", "docker", "kubectl", "podman", "npx", "uvx", "curl", "wget", "rm", "mv", "cp",
    "touch", "mkdir", "ln", "chmod", "chown", "tee", "dd", "builtin", "noglob", "stdbuf", "pkexec", "su",
    "runuser", "setpriv",
];

/// Whether only an exact rule may allow the command.
pub(super) fn is_never_by_star(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name && wrapper.never_by_star)
}

/// Whether the command runs another one.
pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
}

/// Whether the command runs what it reads.
pub(super) fn is_interpreter(name: &str) -> bool {
    SHELLS.contains(&name) || (INTERPRETERS.contains(&name) && name != "make") || name.starts_with("python")
}

/// Whether only an exact rule is suggested for the command.
pub(super) fn is_exact_only(name: &str) -> bool {
    SHELLS.contains(&name)
        || EXACT_ONLY.contains(&name)
        || is_wrapper(name)
        || (INTERPRETERS.contains(&name) && name != "make")
        || name.starts_with("python")
}

/// How many words an allow rule drops to look through a wrapper in one of its plain forms, if it is one.
pub(super) fn allow_strips(words: &[Word]) -> Option<usize> {
    let texts: Vec<&str> = words.iter().take(16).map_while(|word| word.value.literal()).collect();
    let (name, arguments) = texts.split_first()?;
    let skipped = match *name {
        "timeout" => timeout(arguments)?,
        "nice" => match arguments {
            ["-n", number, ..] if is_integer(number) => 2,
            [number, ..]
                if number
                    .strip_prefix('-')
                    .is_some_and(|digits| !digits.is_empty() && is_integer(digits)) =>
            {
                1
            }
            _ => 0,
        },
        "stdbuf" => {
            let joined = |text: &&&str| {
                text.len() > 2
                    && ["-i", "-o", "-e"].iter().any(|option| text.starts_with(option))
                    && text.bytes().skip(2).all(|byte| byte.is_ascii_alphanumeric())
            };
            match arguments.iter().take_while(joined).count() {
                0 => return None,
                count => count,
            }
        }
        "command" => {
            arguments.iter().take_while(|text| matches!(**text, "-p")).count()
                + usize::from(arguments.iter().find(|text| **text != "-p") == Some(&"--"))
        }
        "time" | "nohup" | "builtin" | "noglob" | "xargs" => 0,
        _ => return None,
    };
    // What follows must be a command word, not another option.
    let next = arguments.get(skipped)?;
    (!next.starts_with('-') && !next.is_empty()).then_some(skipped + 1)
}

fn timeout(arguments: &[&str]) -> Option<usize> {
    let mut at = 0;
    loop {
        let text = *arguments.get(at)?;
        at += match text {
            "-v" | "--foreground" | "--preserve-status" => 1,
            "-k" if arguments.get(at + 1).is_some_and(|value| is_duration(value)) => 2,
            "-s" if arguments.get(at + 1).is_some_and(|value| is_signal(value)) => 2,
            _ if text.strip_prefix("--kill-after=").is_some_and(is_duration) => 1,
            _ if text.strip_prefix("--signal=").is_some_and(is_signal) => 1,
            _ if text.strip_prefix("-k").is_some_and(is_duration) => 1,
            _ => return is_duration(text).then_some(at + 1),
        };
    }
}

fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && number.matches('.').count() <= 1
}

fn is_signal(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'-')
        && !text.starts_with('-')
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What is behind a wrapper, for the wide reading.
#[derive(Debug, Default)]
pub(super) struct Behind {
    /// Where the command begins, if that is certain.
    pub(super) start: Option<usize>,
    /// Texts of commands that options carry.
    pub(super) texts: Vec<Value>,
    /// Whether every later word may be the command.
    pub(super) anywhere: bool,
}

/// Looks behind a wrapper, whatever its options are.
pub(super) fn behind(name: &str, words: &[Word]) -> Option<Behind> {
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    let mut behind = Behind {
        anywhere: matches!(name, "perf" | "gdb" | "parallel" | "valgrind" | "busybox"),
        ..Behind::default()
    };
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.value.literal() else { break };
        if text == "--" {
            at += 1;
            break;
        }
        let assigns = wrapper.assigns
            && text.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
        if !(text.starts_with('-') || assigns) {
            break;
        }
        if assigns && !text.starts_with('-') {
            at += 1;
            continue;
        }
        at += option(wrapper, text, words.get(at + 1), &mut behind);
    }
    if wrapper.assigns {
        while words.get(at).is_some_and(|word| is_assignment(&word.value)) {
            at += 1;
        }
    }
    let start = at + wrapper.operands;
    behind.start = (start < words.len()).then_some(start);
    // `flock FILE -c TEXT` and `su USER -c TEXT`: the text may come after the operand.
    for pair in words.get(at..).unwrap_or_default().windows(2) {
        if let [option, text] = pair
            && option.value.literal().is_some_and(|option| wrapper.texts.contains(&option))
        {
            behind.texts.push(text.value.clone());
        }
    }
    Some(behind)
}

fn is_assignment(value: &Value) -> bool {
    let text = match value {
        Value::Literal(text) | Value::Glob(text) => text.as_str(),
        Value::Unknown { before, .. } => before.as_str(),
    };
    let name = super::lexer::leading_name(text);
    !name.is_empty() && text.get(name.len()..).is_some_and(|rest| rest.starts_with('='))
}

/// How many words an option takes; one that is not known makes everything after it possible.
fn option(wrapper: &Wrapper, text: &str, next: Option<&Word>, behind: &mut Behind) -> usize {
    let (name, joined) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    if let Some(option) = wrapper.texts.iter().find(|option| {
        text == **option || name == **option || (option.len() == 2 && text.starts_with(**option))
    }) {
        let joined = joined
            .filter(|_| option.len() > 2)
            .or_else(|| text.get(2..).filter(|rest| option.len() == 2 && !rest.is_empty()));
        match joined {
            Some(value) => behind.texts.push(Value::Literal(value.to_owned())),
            None => behind.texts.extend(next.map(|word| word.value.clone())),
        }
        return if joined.is_some() { 1 } else { 2 };
    }
    if let Some(long) = name.strip_prefix("--") {
        let takes_next = joined.is_none() && wrapper.long_values.contains(&long);
        behind.anywhere |= !(wrapper.long.contains(&long) || wrapper.long_values.contains(&long));
        return if takes_next { 2 } else { 1 };
    }
    for (at, letter) in text.char_indices().skip(1) {
        if wrapper.values.contains(letter) {
            let last = at + letter.len_utf8() == text.len();
            return if last { 2 } else { 1 };
        }
        behind.anywhere |= !wrapper.flags.contains(letter);
    }
    1
}
