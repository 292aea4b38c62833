//! Temporary directory in which bash runs commands with stubs for all programs.
#![expect(clippy::disallowed_methods, reason = "the test runs real programs")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

const BASH: &str = "/bin/bash";

const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// Programs that exist.
const STUBS: &[&str] = &[
    "tool", "npm", "make", "evil", "curl", "fail", "git", "ls", "cat", "head", "wc", "grep", "sort", "find",
    "sed", "uniq", "date", "rm", "touch", "mkdir", "cp", "mv", "tee", "awk", "python3", "bash", "sh", "env",
    "sudo", "timeout", "nice", "nohup", "stdbuf", "time", "xargs", "watch", "setsid",
];

/// Stub: records its name, directory, first input line, ancestors and arguments; a wrapper then runs its command.
const STUB: &str = r#"#!/bin/sh
input=
case ${0##*/} in bash|sh|xargs|env|sudo|timeout|nice|nohup|stdbuf|time|setsid|watch) ;; *) read -r input;; esac
cd -P .
printf '%s\0' "$0" "$PWD" "$input" "$BEHIND" "$#" "$@" >> '@LOG'
export BEHIND="$BEHIND${0##*/} $*|||"
case ${0##*/} in
bash|sh) exec /bin/bash --norc --noprofile "$@";;
env) while :; do case $1 in -i|-0|-v) shift;; -u|-C) shift 2;; --) shift; break;; -*) exit;; *=*) shift;; *) break;; esac; done;;
sudo) while :; do case $1 in -u|-g) shift 2;; -*) shift;; *=*) shift;; *) break;; esac; done;;
timeout) while :; do case $1 in -k|-s) shift 2;; -*) shift;; *) break;; esac; done; shift;;
nice) case $1 in -n) shift 2;; -*) shift;; esac;;
stdbuf|nohup|setsid|time) while :; do case $1 in -*) shift;; *) break;; esac; done;;
watch) exec /bin/bash --norc --noprofile -c "$*";;
xargs)
    while :; do case $1 in -n|-I|-P|-d|-L) shift 2;; -*) shift;; *) break;; esac; done
    while read -r line; do set -- "$@" $line; done;;
find)
    while [ $# -gt 0 ]; do case $1 in -exec|-execdir|-ok|-okdir) break;; esac; shift; done
    [ $# -gt 0 ] && shift
    for word do shift; [ "$word" = ';' ] && break; set -- "$@" "$word"; done;;
fail) exit 1;;
*) exit 0;;
esac
[ $# -gt 0 ] && exec "$@"
exit 0
"#;

/// Sets resource limits, opens a trace, and holds a pipe that closes when the last descendant has ended. A
/// guard process kills the group if the test goes away.
const PRELUDE: &str = r#"ulimit -t 2; ulimit -f 64; ulimit -u 4096; ulimit -n 64; ulimit -c 0
exec 7<&0 8>&1 9>>"$1" </dev/null >/dev/null 2>&1
{ read -r -u 7; kill -KILL 0; } 8>&- 9>&- &
exec 7<&-; export BASH_XTRACEFD=9
exec /bin/bash --norc --noprofile -x -c "$2""#;

/// Files in the working directory and beside it, with their content.
const FILES: &[(&str, &str)] = &[
    ("work/a.txt", "plain"),
    ("work/x", "plain"),
    ("work/-o", "plain"),
    ("work/-exec", "plain"),
    ("work/a b", "plain"),
    ("work/src/b.txt", "plain"),
    ("work/out/keep.txt", "plain"),
    ("work/secret.txt", "MARK-secret"),
    ("work/.env", "MARK-secret"),
    ("work/.git/HEAD", "ref: refs/heads/main"),
    ("work/.git/config", ""),
    ("outside/data.txt", "MARK-outside"),
    ("home/.ssh/key", "MARK-outside"),
];

/// One run of a stub.
#[derive(Debug)]
pub(crate) struct ProgramRun {
    /// Its name if it was found in `PATH`, else its path.
    pub(crate) program: String,
    pub(crate) directory: PathBuf,
    /// First line of its input.
    pub(crate) input: String,
    pub(crate) arguments: Vec<String>,
    /// Programs that run it, with their arguments.
    pub(crate) ancestors: Vec<String>,
}

/// Observed behavior of a command.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) runs: Vec<ProgramRun>,
    /// Names that bash itself ran, programs included.
    pub(crate) builtins: Vec<String>,
    /// Files created, changed or removed.
    pub(crate) written: Vec<PathBuf>,
}

/// Directory with stubs, in which bash runs commands.
pub(crate) struct BashHarness {
    root: PathBuf,
    work: PathBuf,
    _dir: TempDir,
}

impl BashHarness {
    pub(crate) fn new() -> Self {
        assert!(
            Path::new(BASH).exists(),
            "this test runs commands with {BASH}, which does not exist; install bash"
        );
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let harness = Self { work: root.join("work"), root, _dir: dir };
        fs::create_dir(harness.path("bin")).unwrap();
        let first = harness.path("bin/stub");
        fs::write(&first, harness.stub_script()).unwrap();
        fs::set_permissions(&first, fs::Permissions::from_mode(0o755)).unwrap();
        for name in STUBS {
            fs::hard_link(&first, harness.path("bin").join(name)).unwrap();
        }
        harness.reset_files();
        harness
    }

    /// Script of every stub.
    fn stub_script(&self) -> String {
        STUB.replace("@LOG", self.path("log").to_str().unwrap())
    }

    /// A path below the directory.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Working directory of the commands.
    pub(crate) fn work_dir(&self) -> &Path {
        &self.work
    }

    /// Restores the initial files.
    fn reset_files(&self) {
        for dir in ["work", "outside", "home"] {
            if self.path(dir).exists() {
                fs::remove_dir_all(self.path(dir)).unwrap();
            }
        }
        for (path, text) in FILES {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir(self.path("work/.git/objects")).unwrap();
        fs::create_dir(self.path("work/.git/refs")).unwrap();
        symlink("../outside", self.path("work/link")).unwrap();
        // Programs with the same name that no rule covers; they are found if `PATH` is changed.
        fs::create_dir(self.path("work/0")).unwrap();
        for copy in ["work/tool", "work/0/tool", "work/src/tool"] {
            fs::copy(self.path("bin/stub"), self.path(copy)).unwrap();
        }
    }

    /// Runs a command and returns what it did.
    pub(crate) fn run_command(&self, command: &str) -> Observed {
        self.run_command_with_env(command, &[])
    }

    /// Like `run_command`, with additional environment variables.
    pub(crate) fn run_command_with_env(&self, command: &str, variables: &[(&str, &str)]) -> Observed {
        for log in ["log", "trace"] {
            fs::write(self.path(log), "").unwrap();
        }
        let before = self.snapshot_files();
        self.run_bash(command, variables);
        let after = self.snapshot_files();
        assert_eq!(
            fs::read_to_string(self.path("bin/stub")).unwrap(),
            self.stub_script(),
            "the command changed the stubs"
        );
        let runs = self.parse_log(&fs::read(self.path("log")).unwrap());
        let builtins = traced_commands(&String::from_utf8_lossy(&fs::read(self.path("trace")).unwrap()));
        let changed = after.iter().filter(|(path, text)| before.get(*path) != Some(text));
        let removed = before.iter().filter(|(path, _)| !after.contains_key(*path));
        let written: Vec<PathBuf> = changed.chain(removed).map(|(path, _)| path.clone()).collect();
        if !written.is_empty() {
            self.reset_files();
        }
        Observed { runs, builtins, written }
    }

    /// Runs bash until it and its descendants have ended, or kills them after a timeout.
    fn run_bash(&self, command: &str, variables: &[(&str, &str)]) {
        let mut bash = Command::new(BASH);
        bash.args(["--norc", "--noprofile", "-c", PRELUDE, "bash"])
            .args([self.path("trace").to_str().unwrap(), command])
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"))
            .env("LC_ALL", "C")
            .envs(variables.iter().copied())
            .current_dir(self.work_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
        let mut child = bash.spawn().unwrap_or_else(|error| panic!("{BASH} cannot be started: {error}"));
        let group = Pid::from_raw(child.id().try_into().unwrap());
        let guard_pipe = child.stdin.take().unwrap();
        let mut pipe = child.stdout.take().unwrap();
        let (ended, end) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            let _ = pipe.read_to_end(&mut Vec::new());
            let _ = ended.send(());
        });
        let _ = end.recv_timeout(COMMAND_TIMEOUT);
        let _ = killpg(group, Signal::SIGKILL);
        drop(guard_pipe);
        child.wait().unwrap();
        reader.join().unwrap();
    }

    /// Parses the log of the stubs.
    fn parse_log(&self, log: &[u8]) -> Vec<ProgramRun> {
        let text = String::from_utf8_lossy(log);
        let mut fields = text.split('\0').map(str::to_owned);
        let mut runs = Vec::new();
        while let (Some(path), Some(directory), Some(input), Some(ancestors), Some(count)) =
            (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
        {
            let count: usize =
                count.parse().unwrap_or_else(|_| panic!("the log of the stubs is corrupt: {text:?}"));
            let is_stub = Path::new(&path).parent() == Some(&self.path("bin"));
            let name = path.rsplit('/').next().unwrap().to_owned();
            let program = if is_stub { name } else { path };
            let arguments = fields.by_ref().take(count).collect();
            let ancestors = ancestors.split_terminator("|||").map(str::to_owned).collect();
            runs.push(ProgramRun { program, directory: directory.into(), input, arguments, ancestors });
        }
        runs
    }

    /// All files with their content, except those of the harness itself.
    fn snapshot_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let harness_files = ["bin", "log", "trace"].map(|name| self.path(name));
        let mut found = BTreeMap::new();
        let mut dirs = vec![self.root.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
                if harness_files.contains(&path) {
                    continue;
                }
                if kind.is_dir() {
                    dirs.push(path);
                } else {
                    let text = if kind.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                    found.insert(path, text);
                }
            }
        }
        found
    }
}

/// Command words in a trace, looking through `command` and `builtin`.
fn traced_commands(trace: &str) -> Vec<String> {
    let lines = trace.lines().filter(|line| line.starts_with('+'));
    let words = lines.filter_map(|line| {
        let line = line.trim_start_matches('+').strip_prefix(' ')?;
        line.split(' ').find(|word| !matches!(*word, "command" | "builtin" | "-p" | "--"))
    });
    words.map(str::to_owned).collect()
}
