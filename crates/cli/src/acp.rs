//! `whimbrel acp`: an agent for editors, over the Agent Client Protocol.

use std::io;

use crate::environment::{Env, resolve_home};
use crate::stdio::{self, print_note, report_error};

const HELP_PAGE: &str = "\
whimbrel acp: an agent for editors that speak the Agent Client Protocol.

  whimbrel acp
      The editor starts it and talks to it over stdin and stdout. Keys,
      settings, instruction files, MCP servers and sessions are those of the
      terminal; variables of the editor's configuration win over settings.

docs/editors.md has configurations for Zed, JetBrains, Neovim and Emacs.
";

/// Help page of `whimbrel acp`.
pub(crate) fn help_page() -> &'static str {
    HELP_PAGE
}

/// Serves an editor until it closes the input or a signal comes, and returns the exit code.
pub(crate) fn main(argv: &[String], mut env: Env) -> i32 {
    match argv.first().map(String::as_str) {
        None => {}
        Some("help" | "-h" | "--help") => {
            return match stdio::print(HELP_PAGE) {
                Ok(()) => 0,
                Err(error) => report_error(&format!("Cannot write the output: {error}.")),
            };
        }
        Some(other) => {
            return report_error(&format!(
                "whimbrel acp takes no arguments, but got {other}. Use settings or variables instead."
            ));
        }
    }
    resolve_home(&mut env).iter().for_each(|warning| print_note(warning));
    // This process runs the engine: no process that a command leaves behind may outlive it.
    whimbrel_process::track_daemons();
    match serve(env) {
        Ok(()) => 0,
        Err(error) => report_error(&format!("The connection to the editor failed: {error}.")),
    }
}

#[cfg(feature = "acp")]
fn serve(env: Env) -> io::Result<()> {
    use tokio::runtime::Builder;
    use tokio_util::sync::CancellationToken;
    use whimbrel::Environment;

    use crate::shutdown::{Shutdown, watch_signals};

    let stop = CancellationToken::new();
    watch_signals(Shutdown::new(stop.clone()))?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // The runtime polls for I/O each time that its main future is woken, but not for each spawned task.
    let serving = runtime.spawn(whimbrel_acp::serve_stdio(Environment::from_iter(env), stop));
    let served = runtime.block_on(serving);
    // Remaining work must not delay the exit: it is dropped, and threads are not joined.
    runtime.shutdown_background();
    served.unwrap_or_else(|failed| Err(io::Error::other(failed)))
}

#[cfg(not(feature = "acp"))]
fn serve(_: Env) -> io::Result<()> {
    Err(io::Error::other(
        "this program was built without the feature `acp`; build it with the default features",
    ))
}
