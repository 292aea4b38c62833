//! Start-up of a confined `true` over an unconfined one, next to bwrap with the same mounts, interleaved in one run:
//! `cargo bench -p whimbrel-sandbox`. `SANDBOX_LAUNCHER` names another launcher than this program, such as `whimbrel`.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    whimbrel_sandbox::launcher::run_if_requested();
    linux::run();
}

#[cfg(target_os = "linux")]
mod linux {
    #![expect(
        clippy::disallowed_methods,
        clippy::print_stdout,
        clippy::unwrap_used,
        reason = "a benchmark measures time and starts programs"
    )]

    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use whimbrel_sandbox::Policy;
    use whimbrel_sandbox::ladder::{Tier, TierChoice, find_bwrap, probe};
    use whimbrel_sandbox::policy::{LoopbackScope, Network};
    use whimbrel_sandbox::program::LauncherProgram;
    use whimbrel_sandbox::proxy::domains::{DomainLists, UnlistedHosts};
    use whimbrel_sandbox::proxy::{Proxy, ProxyRules, Route};
    use whimbrel_sandbox::session::{CommandSpec, Session};

    const ROUNDS: usize = 300;

    pub(crate) fn run() {
        let folder = tempfile::Builder::new().prefix("sandbox-bench-").tempdir_in("/var/tmp").unwrap();
        let (work, scratch) = (folder.path().join("ws"), folder.path().join("scratch"));
        std::fs::create_dir_all(work.join(".git/hooks")).unwrap();
        std::fs::write(work.join(".git/config"), "").unwrap();
        std::fs::create_dir(&scratch).unwrap();
        let launcher = std::env::var_os("SANDBOX_LAUNCHER").map_or_else(
            || LauncherProgram::this_program().unwrap(),
            |path| LauncherProgram::at(Path::new(&path)).unwrap(),
        );
        let started = Instant::now();
        let sandbox = probe(&launcher, None, TierChoice::Only(Tier::Namespaces)).unwrap();
        println!("probe {:.2} ms", milliseconds(started.elapsed()));
        let lists = DomainLists { allowed: Vec::new(), denied: Vec::new(), unlisted: UnlistedHosts::Refuse };
        let proxy = Proxy::new(ProxyRules { lists, approval: None, route: Route::default() }).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let mut session = Session::new(sandbox, folder.path().join("state")).with_proxy(proxy);
        let own = Policy::new(&work, &scratch);
        let shared = Policy { network: Network::Proxied(LoopbackScope::Session), ..own.clone() };
        let mut confined = |policy: &Policy| {
            let spec = CommandSpec {
                program: "/bin/true".into(),
                arguments: Vec::new(),
                environment: [("PATH".into(), "/usr/bin:/bin".into())].into(),
                directory: work.clone(),
                input: None,
                id: "bench".into(),
            };
            let mut prepared = session.prepare(policy, spec).unwrap();
            prepared.command.stdout(Stdio::null()).stderr(Stdio::null());
            prepared.spawn().unwrap().wait_blocking().unwrap();
        };
        // The session's namespaces and covers.
        let started = Instant::now();
        confined(&shared);
        println!("first command {:.2} ms", milliseconds(started.elapsed()));
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            times[0].push(measure(|| plain(&mut Command::new("/bin/true"))));
            times[1].push(measure(|| confined(&own)));
            times[2].push(measure(|| confined(&shared)));
            times[3].push(measure(|| plain(&mut bwrap(&work, &scratch))));
        }
        let names = ["unconfined", "confined, own network", "confined, network of the session", "bwrap"];
        let base = summarize(&mut times[0]);
        for (name, times) in names.iter().zip(&mut times) {
            let (p10, median) = summarize(times);
            println!(
                "{name:34} p10 {p10:6.2}  median {median:6.2}  over unconfined: p10 {:6.2}  median {:6.2} ms",
                p10 - base.0,
                median - base.1
            );
        }
    }

    fn measure(mut action: impl FnMut()) -> Duration {
        let start = Instant::now();
        action();
        start.elapsed()
    }

    fn plain(command: &mut Command) {
        assert!(command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
    }

    /// As much of the same confinement as bwrap can do by itself, without covers, pins and filter.
    fn bwrap(work: &Path, scratch: &Path) -> Command {
        let mut command = Command::new(find_bwrap().unwrap());
        command.args(
            "--unshare-all --unshare-user --cap-drop ALL --die-with-parent --new-session --clearenv"
                .split(' '),
        );
        command.args("--ro-bind / / --dev /dev --proc /proc --tmpfs /run --tmpfs /tmp".split(' '));
        for path in [work, scratch] {
            command.arg("--bind").arg(path).arg(path);
        }
        for name in [".git/hooks", ".git/config"] {
            command.arg("--ro-bind").arg(work.join(name)).arg(work.join(name));
        }
        // In place of the covers.
        for entry in std::fs::read_dir(work).unwrap().flatten().filter(|entry| entry.file_name() != ".git") {
            command.arg("--ro-bind").arg(entry.path()).arg(entry.path());
        }
        command.arg("--chdir").arg(work).arg("/bin/true");
        command
    }

    fn summarize(times: &mut [Duration]) -> (f64, f64) {
        times.sort();
        (milliseconds(times[times.len() / 10]), milliseconds(times[times.len() / 2]))
    }

    fn milliseconds(time: Duration) -> f64 {
        time.as_secs_f64() * 1000.0
    }
}
