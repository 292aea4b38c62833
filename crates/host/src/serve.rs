//! A host from start to end: the only module that knows all others.

use std::fs::{File, Permissions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::access;
use crate::api::{self, Api};
use crate::config::HostConfig;
use crate::host::Host;
use crate::log::report;
use crate::origin::SiteNames;
use crate::page::Page;
use crate::session_actor::Command;
use crate::session_actor::registry::ActorRegistry;
use crate::store::{Store, StoreError};

/// Why a host did not start or has failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The data folder is used by another host, or is of a newer one.
    #[error("{0}")]
    Data(String),
    /// The address cannot be listened on.
    #[error("{0}")]
    Address(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl ServeError {
    /// Exit code of the program.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Other(_) => 1,
            Self::Data(_) => 3,
            Self::Address(_) => 4,
        }
    }
}

/// Runs a host until it is told to stop. `print` writes the ready line.
pub async fn serve(config: HostConfig, print: impl FnOnce(&str)) -> Result<(), ServeError> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&config.data).map_err(|error| {
        ServeError::Data(format!("the data folder {} cannot be created: {error}", config.data.display()))
    })?;
    // A folder that was there already may be open to others.
    std::fs::set_permissions(&config.data, Permissions::from_mode(0o700)).map_err(|error| {
        ServeError::Data(format!(
            "the data folder {} cannot be closed to other users: {error}. Choose one of yours with --data",
            config.data.display()
        ))
    })?;
    let mut lock = lock_data(&config.data).await?;
    let store = Store::open(&config.data).map_err(|error| match error {
        StoreError::TooNew { .. } => ServeError::Data(error.to_string()),
        error => ServeError::Data(format!("{}: {error}", config.data.display())),
    })?;
    let listener = TcpListener::bind(config.listen).await.map_err(|error| {
        ServeError::Address(format!(
            "cannot listen on {}: {error}. Choose another address with --listen, or end the program that has it",
            config.listen
        ))
    })?;
    let address = listener.local_addr().map_err(|error| ServeError::Address(error.to_string()))?;
    let host = Host::new(&config, store).await.map_err(ServeError::Other)?;
    if let Some(file) = &config.token_file {
        access::load_token_file(&host.store, &host.owner.id, file).await.map_err(ServeError::Other)?;
    } else {
        host.store.delete_file_tokens().await.map_err(|error| ServeError::Other(error.to_string()))?;
    }
    let site = Arc::new(SiteNames::new(address, config.public_url.as_deref()));
    let actors: Arc<ActorRegistry> = Arc::default();
    let api = Api {
        host: Arc::clone(&host),
        actors: Arc::clone(&actors),
        site: Arc::clone(&site),
        page: Arc::new(Page::new(config.page.clone())),
        logins: Arc::default(),
    };
    write_owner(&mut lock, &site.url);
    let (_, code, _) = access::new_code(&host.store, &host.owner.id, host.limits.code_s)
        .await
        .map_err(|error| ServeError::Other(error.to_string()))?;
    let signals = Signals::new().map_err(|error| ServeError::Other(error.to_string()))?;
    print(&ready_line(&config, &site, &code));
    let server = axum::serve(listener, api::router(api));
    let stopped = host.stopped.clone();
    let server = server.with_graceful_shutdown(async move { stopped.cancelled().await });
    let server = tokio::spawn(async move { server.await });
    recover(&host, &actors).await;
    let following = tokio::spawn(crate::terminal_sessions::follow(Arc::clone(&host), Arc::clone(&actors)));
    wait_and_drain(&host, &actors, signals, config.drain).await;
    following.abort();
    host.stopped.cancel();
    host.sockets.close();
    // Connections that do not end are cut.
    let _ = tokio::time::timeout(Duration::from_secs(2), futures::future::join(host.sockets.wait(), server))
        .await;
    drop(lock);
    Ok(())
}

fn ready_line(config: &HostConfig, site: &SiteNames, code: &str) -> String {
    let login = format!("{}/login#{code}", site.url);
    if config.json {
        let line = json!({
            "type": "ready", "url": site.url, "login": login, "data": config.data, "pid": std::process::id(),
        });
        return format!("{line}\n");
    }
    format!("Open {login}\n")
}

/// One host per data folder. The kernel releases the lock when the process ends.
async fn lock_data(data: &Path) -> Result<File, ServeError> {
    // A child that a killed host was about to start holds the lock until it runs its own program.
    const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
    const RELEASE_INTERVAL: Duration = Duration::from_millis(20);
    let path = data.join("lock");
    let failed = |error: std::io::Error| ServeError::Data(format!("cannot lock {}: {error}", path.display()));
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    let deadline = tokio::time::Instant::now() + RELEASE_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let mut owner = String::new();
        // Without it the message is shorter.
        let _ = file.rewind().and_then(|()| file.read_to_string(&mut owner));
        let owner = owner.lines().next().unwrap_or("of another host").to_owned();
        if is_running(&owner) || tokio::time::Instant::now() >= deadline {
            return Err(ServeError::Data(format!(
                "the data folder {} is in use by process {owner}: end it, or choose another folder with --data",
                data.display()
            )));
        }
        tokio::time::sleep(RELEASE_INTERVAL).await;
    }
}

/// Whether a process runs. One that cannot be named may run.
fn is_running(pid: &str) -> bool {
    let Ok(pid) = pid.parse() else { return true };
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) != Err(nix::errno::Errno::ESRCH)
}

/// Notes process and address in the lock file, for `whimbrel serve login` and the second start.
fn write_owner(lock: &mut File, url: &str) {
    let write = |lock: &mut File| {
        lock.set_len(0)?;
        lock.rewind()?;
        write!(lock, "{}\n{url}\n", std::process::id())
    };
    if let Err(error) = write(lock) {
        report(&format!("the lock file cannot be written: {error}"));
    }
}

/// The URL of the host that runs on a data folder.
fn running_url(data: &Path) -> Result<String, String> {
    let none = || {
        format!(
            "no host runs on the data folder {}: start one with `whimbrel serve`, or name another with --data",
            data.display()
        )
    };
    let mut file = File::options().read(true).write(true).open(data.join("lock")).map_err(|_| none())?;
    if file.try_lock().is_ok() {
        return Err(none());
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|_| none())?;
    text.lines().nth(1).map(str::to_owned).ok_or_else(none)
}

/// Makes a new login link for a running host. The person who owns the data folder may always sign in.
pub async fn new_login_link(data: &Path, limits: &crate::config::Limits) -> Result<String, String> {
    let url = running_url(data)?;
    let store = Store::open(data).map_err(|error| error.to_string())?;
    let owner = store.owner("owner").await.map_err(|error| error.to_string())?;
    let (_, code, _) =
        access::new_code(&store, &owner.id, limits.code_s).await.map_err(|error| error.to_string())?;
    Ok(format!("{url}/login#{code}"))
}

/// Makes a new bearer key for a host, running or not.
pub async fn new_bearer_key(data: &Path, name: &str) -> Result<String, String> {
    if !data.join("host.sqlite").exists() {
        return Err(format!(
            "there is no host in {}: start one with `whimbrel serve`, or name another folder with --data",
            data.display()
        ));
    }
    let store = Store::open(data).map_err(|error| error.to_string())?;
    let owner = store.owner("owner").await.map_err(|error| error.to_string())?;
    let (_, key) = access::new_key(&store, &owner.id, name).await.map_err(|error| error.to_string())?;
    Ok(key)
}

/// Starts the sessions that were in use when the last host ended: turns go on or are told as interrupted, messages that
/// wait are given.
async fn recover(host: &Arc<Host>, actors: &Arc<ActorRegistry>) {
    let rows = match host.store.sessions_with_open_turns().await {
        Ok(rows) => rows,
        Err(error) => return report(&format!("sessions cannot be recovered: {error}")),
    };
    for row in rows {
        if let Err(error) = actors.get(host, &row.id).await {
            report(&format!("session {} cannot be recovered: {}", row.id, error.message));
        }
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Waits for a signal, lets running turns end, and stops what is left: it goes on at the next start. A second signal stops
/// at once.
async fn wait_and_drain(host: &Host, actors: &ActorRegistry, mut signals: Signals, drain: Duration) {
    signals.next().await;
    host.start_draining();
    let rest = async {
        for actor in actors.all() {
            // A session that cannot answer is stopped below.
            let _ = actor.call(|reply| Command::WaitForRest { reply }).await;
        }
    };
    tokio::select! {
        () = rest => {}
        () = tokio::time::sleep(drain) => {}
        () = signals.next() => {}
    }
    const STOP_TIMEOUT: Duration = Duration::from_secs(5);
    let stopping = actors.all().into_iter().map(|actor| async move {
        // The process ends anyway.
        let _ = tokio::time::timeout(STOP_TIMEOUT, actor.call(|reply| Command::Suspend { reply })).await;
    });
    futures::future::join_all(stopping).await;
}
