//! What all parts of a host share: store, sessions, limits, folders, news.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use whimbrel::{Agent, Sessions};

use crate::config::{HostConfig, Limits};
use crate::error::{ApiError, ApiResult};
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::store::Store;
use crate::store::access::Person;

/// A running host. Shared by all its tasks.
pub(crate) struct Host {
    pub(crate) store: Store,
    pub(crate) hub: Hub,
    pub(crate) metrics: Metrics,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) data: PathBuf,
    pub(crate) limits: Limits,
    /// Name of this host in leases.
    pub(crate) node: String,
    /// Changes with each start.
    pub(crate) boot: String,
    pub(crate) owner: Person,
    /// Options of all sessions.
    pub(crate) agent: Agent,
    /// Stored transcripts.
    pub(crate) transcripts: Sessions,
    /// Time of the newest transcript that is listed.
    pub(crate) transcripts_seen: tokio::sync::Mutex<Option<u64>>,
    draining: AtomicBool,
    /// Cancelled when the host stops: connections end.
    pub(crate) stopped: CancellationToken,
    /// Open sockets: they say goodbye before the process ends.
    pub(crate) sockets: TaskTracker,
}

impl Host {
    pub(crate) async fn new(config: &HostConfig, store: Store) -> Result<Arc<Self>, String> {
        let node = store.meta("node", crate::clock::new_id()).await.map_err(|error| error.to_string())?;
        let owner = store.owner(&user_name()).await.map_err(|error| error.to_string())?;
        let transcripts = config.agent.sessions().map_err(|error| error.to_string())?;
        Ok(Arc::new(Self {
            store,
            hub: Hub::default(),
            metrics: Metrics::default(),
            roots: config.roots.clone(),
            data: config.data.clone(),
            limits: config.limits,
            node,
            boot: crate::clock::new_id(),
            owner,
            agent: config.agent.clone(),
            transcripts,
            transcripts_seen: tokio::sync::Mutex::default(),
            draining: AtomicBool::new(false),
            stopped: CancellationToken::new(),
            sockets: TaskTracker::new(),
        }))
    }

    /// Whether the host is about to stop: it takes no new work.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub(crate) fn start_draining(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn check_not_draining(&self) -> ApiResult<()> {
        if self.is_draining() {
            return Err(ApiError::draining("the host is stopping: try again after it has started")
                .with_retry_after(5));
        }
        Ok(())
    }

    /// Resolves a folder that a client names; it must exist below the roots, after links are followed.
    pub(crate) async fn resolve_folder(&self, folder: &str) -> ApiResult<PathBuf> {
        let outside = || {
            let roots = self.roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>();
            ApiError::outside_roots(format!(
                "the folder {folder} is not below the folders of this host ({}). Start it with --root to add one",
                roots.join(", ")
            ))
        };
        if !Path::new(folder).is_absolute() {
            return Err(ApiError::bad_request("`folder` must be an absolute path"));
        }
        let Ok(path) = tokio::fs::canonicalize(folder).await else {
            let is_inside = self.is_below_roots(Path::new(folder)) && !folder.contains("..");
            return Err(if is_inside {
                ApiError::bad_request(format!("the folder {folder} does not exist: create it first"))
            } else {
                outside()
            });
        };
        if !self.is_below_roots(&path) {
            return Err(outside());
        }
        if !path.is_dir() {
            return Err(ApiError::bad_request(format!("{folder} is not a folder")));
        }
        Ok(path)
    }

    /// Whether a path without links is below a root.
    pub(crate) fn is_below_roots(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }
}

/// Name of the user whose process this is.
fn user_name() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok().flatten();
    user.map_or_else(|| "owner".to_owned(), |user| user.name)
}
