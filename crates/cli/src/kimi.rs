//! `whimbrel --wire`: the engine under a host of the Kimi Agent SDK, and `whimbrel info`, which such hosts ask first.

use crate::environment::{Env, resolve_home};
use crate::stdio::{self, print_note, report_error};

const HELP_PAGE: &str = "\
whimbrel --wire: the engine under a host of the Kimi Agent SDK.

  whimbrel --wire [--session ID] [--work-dir DIR] [--model NAME] ..
      The host starts it and talks to it over stdin and stdout. It reads the
      flags, variables and files of kimi-cli.
  whimbrel info [--json]
      Prints the version of kimi-cli whose behavior it has, and that of the
      wire.

docs/kimi.md describes flags, files and what is different.
";

/// Exit code for a wrong command line, as clients of this wire expect it.
const USAGE_ERROR: i32 = 2;

/// The flag that selects this wire, at any position.
pub(crate) const WIRE_FLAG: &str = "--wire";

/// Help page of `whimbrel info`.
pub(crate) fn help_page() -> &'static str {
    HELP_PAGE
}

/// Prints what a host asks before it starts a session.
pub(crate) fn info(argv: &[String]) -> i32 {
    let text = match argv.first().map(String::as_str) {
        Some("help" | "-h" | "--help") => HELP_PAGE.to_owned(),
        None | Some("--json") => match info_line() {
            Some(line) => line + "\n",
            None => return report_error(NOT_BUILT),
        },
        Some(other) => return report_error(&format!("whimbrel info takes only --json, but got {other}.")),
    };
    match stdio::print(&text) {
        Ok(()) => 0,
        Err(error) => report_error(&format!("Cannot write the output: {error}.")),
    }
}

const NOT_BUILT: &str =
    "this program was built without the feature `kimi`; build it with the default features.";

#[cfg(feature = "kimi")]
fn info_line() -> Option<String> {
    Some(whimbrel_kimi::info_line())
}

#[cfg(not(feature = "kimi"))]
fn info_line() -> Option<String> {
    None
}

/// Serves a host until it closes the input or a signal comes, and returns the exit code.
pub(crate) fn main(argv: &[String], mut env: Env) -> i32 {
    resolve_home(&mut env).iter().for_each(|warning| print_note(warning));
    // This process runs the engine: no process that a command leaves behind may outlive it.
    whimbrel_process::track_daemons();
    serve(argv, env)
}

#[cfg(feature = "kimi")]
fn serve(argv: &[String], env: Env) -> i32 {
    use tokio::runtime::Builder;
    use tokio_util::sync::CancellationToken;
    use whimbrel::Environment;
    use whimbrel_kimi::{KimiServer, StartError};

    use crate::shutdown::{AbortReason, Shutdown, watch_signals};

    let fail = |error: &StartError| {
        report_error(&error.to_string());
        match error {
            StartError::Usage(_) => USAGE_ERROR,
            _ => 1,
        }
    };
    let environment = Environment::from_iter(env);
    let server = std::env::current_dir()
        .map_err(StartError::from)
        .and_then(|cwd| KimiServer::new(argv, &environment, &cwd, print_note));
    let server = match server {
        Ok(server) => server,
        Err(error) => return fail(&error),
    };
    let stop = CancellationToken::new();
    let shutdown = Shutdown::new(stop.clone());
    let runtime =
        watch_signals(shutdown.clone()).and_then(|()| Builder::new_current_thread().enable_all().build());
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    // The runtime polls for I/O each time that its main future is woken, but not for each spawned task.
    let serving = runtime.spawn(server.serve_stdio(stop));
    let served = runtime.block_on(serving);
    // Remaining work must not delay the exit: it is dropped, and threads are not joined.
    runtime.shutdown_background();
    match (served, shutdown.reason()) {
        // A client that waits for an answer learns from the exit code that none will come.
        (Ok(Ok(())), Some(AbortReason::Signal(signal))) if signal != signal_hook::consts::SIGINT => {
            128 + signal
        }
        (Ok(Ok(())), _) => 0,
        (Ok(Err(error)), _) => fail(&error),
        (Err(failed), _) => report_error(&format!("The session has failed: {failed}.")),
    }
}

#[cfg(not(feature = "kimi"))]
fn serve(_: &[String], _: Env) -> i32 {
    report_error(NOT_BUILT);
    USAGE_ERROR
}
