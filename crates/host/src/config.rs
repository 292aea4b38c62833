//! Configuration of a host: what the command line and `--config FILE` say.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use whimbrel::Agent;

/// Configuration of a host.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Address to listen on; port 0 means any.
    pub listen: std::net::SocketAddr,
    /// Folder of the database.
    pub data: PathBuf,
    /// Folders below which sessions may work, without links.
    pub roots: Vec<PathBuf>,
    /// URL under which a proxy offers the host.
    pub public_url: Option<String>,
    /// File with a bearer key of the owner; written if it is missing.
    pub token_file: Option<PathBuf>,
    /// Time that running turns have to end when the host stops.
    pub drain: Duration,
    /// Prints the ready line as JSON.
    pub json: bool,
    /// Serves the page from this folder instead of the built-in files.
    pub page: Option<PathBuf>,
    /// Options of all sessions.
    pub agent: Agent,
    /// Limits of time.
    pub limits: Limits,
}

/// Limits, in seconds. Tests set small ones.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// A session that rests without a watcher is closed after this time.
    pub idle_s: u64,
    /// A bypass of permissions ends after this time.
    pub bypass_s: u64,
    /// Time that running turns have to end when the host stops.
    pub drain_s: u64,
    /// Interval of the beats of a socket.
    pub beat_s: u64,
    /// A login code is valid for this time.
    pub code_s: u64,
    /// A lease lasts this long without being renewed.
    pub lease_s: u64,
    /// A turn of a chat group ends after this time without progress. Sessions of people have no such limit.
    pub no_progress_s: u64,
    /// Time until a turn of a chat group is tried again.
    pub retry_s: u64,
    /// How often a turn of a chat group is tried again.
    pub retries: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle_s: 300,
            bypass_s: 3600,
            drain_s: 30,
            beat_s: 15,
            code_s: 600,
            lease_s: 15,
            no_progress_s: 1800,
            retry_s: 5,
            retries: 5,
        }
    }
}

/// The file of `--config`. The command line wins.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigFile {
    /// Folders below which sessions may work.
    pub roots: Vec<PathBuf>,
    /// Limits of time.
    pub limits: Option<Limits>,
    /// Turns of chat groups that run at a time.
    pub turns: Option<u32>,
    /// Where to tell of what waits, besides the page.
    pub notify: Option<serde_json::Value>,
}

impl ConfigFile {
    /// Reads the file.
    pub fn read(path: &std::path::Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| {
            format!("{}: {error}. See docs/host.md for the members of this file", path.display())
        })
    }
}
