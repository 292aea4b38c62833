//! `whimbrel mcp login` and `logout`: OAuth login to a remote server, with the user's own browser.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use whimbrel_engine::setup::Setup;
use whimbrel_mcp::oauth::{CredentialStore, LoginFlow};
use whimbrel_wire::options::RemoteServer;

use super::connect;
use crate::stdio;

/// Time the user has to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(15);

/// Logs in, and returns the file that stores the credentials.
pub(super) fn login(name: &str, server: &RemoteServer, setup: &Setup) -> Result<PathBuf, String> {
    let (runtime, deps) = (connect::build_runtime()?, connect::server_deps(setup));
    let login_result = runtime.block_on(async {
        let login = LoginFlow::start(server, &deps).await?;
        let page = format!(
            "To log in to {name}, open this address in a browser:\n\n  {}\n\nThe browser then reports back to this \
                program. If it runs on another machine, paste the address of its last page here.\n",
            login.authorization_url()
        );
        stdio::print(&page).map_err(|error| format!("Cannot write the output: {error}."))?;
        let timed_out = |_| format!("The login was not completed within {} minutes.", LOGIN_TIMEOUT.as_secs() / 60);
        timeout(LOGIN_TIMEOUT, login.finish(read_stdin_lines()?)).await.map_err(timed_out)?
    });
    runtime.shutdown_background();
    login_result.map_err(|error: String| format!("MCP server {name}: {error}"))?;
    Ok(credential_store(setup)?.file().to_path_buf())
}

/// Deletes the stored credentials of a server.
pub(super) fn logout(name: &str, server: &RemoteServer, setup: &Setup) -> Result<String, String> {
    Ok(match credential_store(setup)?.remove(&server.url)? {
        true => format!(
            "The credentials of {name} were deleted here. To revoke them, use the website of the server.\n"
        ),
        false => format!("There are no stored credentials of {name}.\n"),
    })
}

fn credential_store(setup: &Setup) -> Result<CredentialStore, String> {
    CredentialStore::from_env(&setup.session.workspace.environment())
        .ok_or_else(|| "The directory of the credentials is unknown. Set HOME.".into())
}

/// Returns the lines that the user pastes. The reading thread may block for ever; it ends with the program.
fn read_stdin_lines() -> Result<UnboundedReceiver<String>, String> {
    let (sender, lines) = unbounded_channel();
    let read = move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("pasted".into()).spawn(read);
    thread.map_err(|error| format!("Cannot start a thread: {error}."))?;
    Ok(lines)
}
