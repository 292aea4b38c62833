//! Runs searches on a blocking thread, with cancellation and a timeout.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::api::ToolError;

/// Time limit of a search; after it the results so far are returned.
const SEARCH_TIMEOUT: Duration = Duration::from_mins(1);
/// Grace period for a cancelled search. It checks the flag between any two steps, so only an unresponsive disk can
/// delay it.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Cancellation flag of a search. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub(in crate::builtin) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub(in crate::builtin) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(in crate::builtin) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Cancels the search when its caller is dropped.
struct CancelSearchOnDrop(CancelFlag);

impl Drop for CancelSearchOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[derive(Debug)]
pub(in crate::builtin) struct SearchOutcome<T> {
    pub(in crate::builtin) found: T,
    pub(in crate::builtin) timed_out: bool,
}

/// Runs a search on a blocking thread. It is cancelled with the call, when the future is dropped, and after the
/// timeout; in the last case the results so far are returned.
pub(in crate::builtin) async fn run_search<T: Send + 'static>(
    cancel: &CancellationToken,
    search: impl FnOnce(&CancelFlag) -> Result<T, ToolError> + Send + 'static,
) -> Result<SearchOutcome<T>, ToolError> {
    let stop = CancelFlag::default();
    let _guard = CancelSearchOnDrop(stop.clone());
    let worker_stop = stop.clone();
    let mut job = tokio::task::spawn_blocking(move || search(&worker_stop));
    let wait = async {
        let result = timeout(SEARCH_TIMEOUT, &mut job).await;
        let timed_out = result.is_err();
        stop.cancel();
        let joined = match result {
            Ok(joined) => joined,
            Err(_) => timeout(STOP_GRACE, &mut job).await.map_err(|_| stuck_error())?,
        };
        let found = joined.map_err(|error| ToolError::Failed(format!("The search failed: {error}.")))?;
        found.map(|found| SearchOutcome { found, timed_out })
    };
    cancel
        .run_until_cancelled(wait)
        .await
        .unwrap_or_else(|| Err(ToolError::Failed("The search was interrupted.".into())))
}

fn stuck_error() -> ToolError {
    ToolError::Failed(format!(
        "The search did not finish within {} s and cannot be stopped: a disk or network share does not respond. Search \
         a smaller directory elsewhere, or tell the user.",
        SEARCH_TIMEOUT.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread::yield_now;

    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_cancelled_search_ends() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let error = run_search(&cancel, |_| Ok(())).await.unwrap_err();
        assert_eq!(error, ToolError::Failed("The search was interrupted.".into()));
    }

    #[tokio::test]
    async fn a_dropped_search_stops() {
        let (started, mut seen) = mpsc::channel(1);
        let (ended, mut end) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let search = run_search(&cancel, move |stop| {
            started.blocking_send(()).unwrap();
            while !stop.is_cancelled() {
                yield_now();
            }
            ended.blocking_send(()).unwrap();
            Ok(())
        });
        tokio::select! {
            _ = search => panic!("it waits for the stop"),
            began = seen.recv() => assert_eq!(began, Some(())),
        }
        assert_eq!(end.recv().await, Some(()));
    }

    #[tokio::test]
    async fn an_interrupt_returns_at_once_despite_a_stuck_disk() {
        let (release, disk) = channel::<()>();
        let (started, mut seen) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let search = run_search(&cancel, move |_| {
            started.blocking_send(()).unwrap();
            let _ = disk.recv();
            Ok(())
        });
        let (result, ()) = tokio::join!(search, async {
            seen.recv().await;
            cancel.cancel();
        });
        assert_eq!(result.unwrap_err().reason(), "The search was interrupted.");
        drop(release);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timed_out_search_returns_its_results_so_far() {
        let cancel = CancellationToken::new();
        let search = run_search(&cancel, |stop| {
            while !stop.is_cancelled() {
                yield_now();
            }
            Ok("so far")
        });
        // Tokio does not advance paused time while a blocking thread runs, so the test does.
        let (searched, ()) =
            tokio::join!(search, tokio::time::advance(SEARCH_TIMEOUT + Duration::from_secs(1)));
        let SearchOutcome { found, timed_out } = searched.unwrap();
        assert_eq!((found, timed_out), ("so far", true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_that_cannot_be_stopped_is_abandoned() {
        let (release, disk) = channel::<()>();
        let cancel = CancellationToken::new();
        let search = run_search(&cancel, move |_| {
            let _ = disk.recv();
            Ok(())
        });
        let (result, ()) = tokio::join!(search, async {
            tokio::time::advance(SEARCH_TIMEOUT + Duration::from_secs(1)).await;
            tokio::task::yield_now().await;
            tokio::time::advance(STOP_GRACE + Duration::from_secs(1)).await;
        });
        assert!(result.unwrap_err().reason().contains("does not respond"));
        drop(release);
    }
}
