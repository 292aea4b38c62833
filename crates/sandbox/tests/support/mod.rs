//! A world for confined commands: a working directory, a home and a folder that nothing may touch, as root and, if the
//! tests run as root, as an unprivileged user. Commands run for real.

#![allow(
    dead_code,
    clippy::disallowed_methods,
    reason = "shared by several test programs that start processes"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use whimbrel_sandbox::Policy;
use whimbrel_sandbox::child::{ExitStatus, RunError};
use whimbrel_sandbox::ladder::{Sandbox, Tier, TierChoice, find_bwrap, probe};
use whimbrel_sandbox::policy::{FileLayer, FileRules};
use whimbrel_sandbox::program::LauncherProgram;
use whimbrel_sandbox::session::{CommandSpec, Session};

/// Name of each command, with characters that a URL does not have.
pub(crate) const CALL_ID: &str = "functions.Bash:0";
/// User of the second run of each test.
pub(crate) const USER: u32 = 12_345;

/// Names the launcher for a test program that runs as another user, which is also how such a program knows that it is one.
const LAUNCHER_VARIABLE: &str = "SANDBOX_TEST_LAUNCHER";

/// Defines a test that runs as the current user and, if that is root, as an unprivileged user and as root of a user
/// namespace. S-32.
#[allow(unused_macros, reason = "shared by several test programs")]
macro_rules! confined_test {
    ($(#[$attribute:meta])* fn $name:ident($world:ident) $body:block) => {
        $(#[$attribute])*
        #[test]
        fn $name() {
            support::as_each_user(stringify!($name), |mut $world: support::World| {
                let _ = &mut $world;
                $body
            });
        }
    };
}
#[allow(unused_imports, reason = "shared by several test programs")]
pub(crate) use confined_test;

/// Runs the body of a test as each user.
pub(crate) fn as_each_user(name: &str, body: impl FnOnce(World)) {
    body(World::new());
    if !rustix::process::geteuid().is_root() || std::env::var_os(LAUNCHER_VARIABLE).is_some() {
        return;
    }
    let folder = tempfile::Builder::new().prefix("sandbox-bin-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (program, launcher) = (folder.path().join("test"), folder.path().join("launcher"));
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_whimbrel-sandbox"), &launcher).unwrap();
    for wrapper in [&[][..], &["unshare", "-Ur"]] {
        let arguments: Vec<_> =
            wrapper.iter().map(OsString::from).chain([program.clone().into_os_string()]).collect();
        let mut command = std::process::Command::new(&arguments[0]);
        command
            .args(&arguments[1..])
            .args([name, "--exact", "--nocapture"])
            .env(LAUNCHER_VARIABLE, &launcher);
        let output = command.current_dir("/").uid(USER).gid(USER).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "as user {USER} {wrapper:?}: {text}");
    }
}

pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) sandbox: Sandbox,
    pub(crate) session: Session,
    pub(crate) policy: Policy,
    pub(crate) environment: BTreeMap<OsString, OsString>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) text: String,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::in_tier(Tier::Namespaces)
    }

    /// Fails if the kernel lacks what the tier needs: a test that cannot run shows nothing.
    pub(crate) fn in_tier(tier: Tier) -> Self {
        // Not below /tmp, which is fresh inside.
        let folder = tempfile::Builder::new().prefix("sandbox-").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["ws", "home", "outside", "scratch", "state"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        // Other users may not pass through the folder of the built programs.
        let launcher = folder.path().join("launcher");
        let built =
            std::env::var_os(LAUNCHER_VARIABLE).unwrap_or(env!("CARGO_BIN_EXE_whimbrel-sandbox").into());
        std::fs::copy(built, &launcher).unwrap();
        let base = folder.path().to_owned();
        let launcher = LauncherProgram::at(&launcher).unwrap();
        let sandbox = probe(&launcher, find_bwrap().as_deref(), TierChoice::Only(tier)).unwrap();
        let environment = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into()),
            ("HOME", base.join("home").into_os_string()),
            ("LANG", "C.UTF-8".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ];
        Self {
            session: Session::new(sandbox.clone(), base.join("state")),
            policy: Policy::new(base.join("ws"), base.join("scratch")),
            environment: environment.map(|(name, value)| (name.into(), value)).into(),
            sandbox,
            folder,
        }
        .with_files()
    }

    fn with_files(self) -> Self {
        self.put("home/.ssh/id_rsa", "CANARY-KEY\n");
        self.put("home/.bashrc", "# rc\n");
        self.put("outside/data.txt", "outside\n");
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn rules(&mut self) -> &mut FileRules {
        match &mut self.policy.files {
            FileLayer::Confined(rules) => rules,
            FileLayer::Open => panic!("the policy has no file layer"),
        }
    }

    /// Writes a file as the user of the commands.
    pub(crate) fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        self.own();
        path
    }

    /// Gives all files to the user that runs the tests, so that they are like those of that user.
    fn own(&self) {
        let user = rustix::process::geteuid().as_raw();
        walk(self.folder.path(), &mut |path| {
            let _ = chown(path, Some(user), Some(user));
        });
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    pub(crate) fn git_init(&self) {
        for arguments in [
            &["init", "-q", "-b", "main", "."][..],
            &["config", "user.name", "t"],
            &["config", "user.email", "t@t"],
        ] {
            let mut command = std::process::Command::new("git");
            command.args(arguments).current_dir(self.path("ws")).env_clear().envs(&self.environment);
            assert!(command.status().unwrap().success());
        }
        self.put("ws/notes.txt", "a\n");
    }

    pub(crate) fn spec(&self, script: &str) -> CommandSpec {
        CommandSpec {
            program: "/bin/bash".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: self.environment.clone(),
            directory: self.path("ws"),
            input: None,
            id: CALL_ID.into(),
        }
    }

    /// Runs a script and returns its whole output.
    pub(crate) fn try_run(&mut self, script: &str) -> Result<Output, RunError> {
        let mut prepared = self.session.prepare(&self.policy, self.spec(script)).unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        prepared.command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = prepared.spawn().unwrap();
        let mut text = Vec::new();
        reader.read_to_end(&mut text).unwrap();
        let status = child.wait_blocking()?;
        Ok(Output { status, text: String::from_utf8_lossy(&text).into_owned() })
    }

    /// Runs a script to its end, which it must reach: a script that did not run shows nothing.
    pub(crate) fn run(&mut self, script: &str) -> String {
        let output = self.try_run(&format!("{script}\necho alive-$((6*7))")).unwrap();
        assert!(output.text.contains("alive-42"), "the script did not reach its end: {output:?}");
        output.text
    }

    /// Starts a script with its output to nowhere.
    pub(crate) fn start(&mut self, script: &str) -> whimbrel_sandbox::child::ConfinedChild {
        let mut prepared = self.session.prepare(&self.policy, self.spec(script)).unwrap();
        prepared.command.stdout(Stdio::null()).stderr(Stdio::null());
        prepared.spawn().unwrap()
    }

    /// Asserts that nothing outside of the working directory has changed.
    pub(crate) fn assert_untouched(&self) {
        assert_eq!(self.read("home/.ssh/id_rsa").as_deref(), Some("CANARY-KEY\n"));
        assert_eq!(self.read("home/.bashrc").as_deref(), Some("# rc\n"));
        assert_eq!(self.read("outside/data.txt").as_deref(), Some("outside\n"));
        let names: Vec<_> = std::fs::read_dir(self.path("outside"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["data.txt"]);
    }
}

/// Waits for processes to begin or to end, with a limit that a test never reaches unless it fails.
pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..3000 {
        if condition() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what} did not happen");
}

fn walk(path: &Path, visit: &mut impl FnMut(&Path)) {
    visit(path);
    let Ok(metadata) = path.symlink_metadata() else { return };
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            walk(&entry.path(), visit);
        }
    }
}
