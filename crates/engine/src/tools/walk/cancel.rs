//! Ending a search: when its caller is interrupted or goes away, and when it takes too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::tools::ToolError;

/// How long a search may take before it is answered with what was found so far.
const SEARCH_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a search that was told to stop may take to do so. It looks at that between any two steps, so that only a
/// disk that does not answer can hold it up.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Says that a search should end. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(in crate::tools) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Asks the search to end.
    pub(in crate::tools) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the search should end.
    pub(in crate::tools) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Ends the search when its caller goes away.
struct CancelSearchOnDrop(CancelFlag);

impl Drop for CancelSearchOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// What a search brought.
#[derive(Debug)]
pub(in crate::tools) struct SearchOutcome<T> {
    /// The findings.
    pub(in crate::tools) found: T,
    /// Whether it was ended for lack of time.
    pub(in crate::tools) timed_out: bool,
}

/// Runs a search off the async threads. It is told to stop when the call is cancelled, when the future is dropped, and
/// when it takes too long; in the last case what it found so far is the answer.
pub(in crate::tools) async fn run_search<T: Send + 'static>(
    cancel: &CancellationToken,
    search: impl FnOnce(&CancelFlag) -> Result<T, ToolError> + Send + 'static,
) -> Result<SearchOutcome<T>, ToolError> {
    let stop = CancelFlag::default();
    let _guard = CancelSearchOnDrop(stop.clone());
    let told = stop.clone();
    let mut job = tokio::task::spawn_blocking(move || search(&told));
    let wait = async {
        let in_time = timeout(SEARCH_TIMEOUT, &mut job).await;
        let out_of_time = in_time.is_err();
        stop.cancel();
        let ended = match in_time {
            Ok(ended) => ended,
            Err(_) => timeout(STOP_GRACE, &mut job).await.map_err(|_| stuck_error())?,
        };
        let found = ended.map_err(|error| ToolError::Failed(format!("The search broke off: {error}.")))?;
        found.map(|found| SearchOutcome { found, timed_out: out_of_time })
    };
    cancel
        .run_until_cancelled(wait)
        .await
        .unwrap_or_else(|| Err(ToolError::Failed("The search was interrupted.".into())))
}

fn stuck_error() -> ToolError {
    ToolError::Failed(format!(
        "The search did not end within {} s and cannot be stopped: a disk or network share does not answer. Search \
         a smaller folder that lies elsewhere, or tell the user.",
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
        let trouble = run_search(&cancel, |_| Ok(())).await.unwrap_err();
        assert_eq!(trouble, ToolError::Failed("The search was interrupted.".into()));
    }

    #[tokio::test]
    async fn a_search_that_nobody_waits_for_stops() {
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
    async fn an_interrupt_is_answered_at_once_even_if_the_disk_does_not_answer() {
        let (release, disk) = channel::<()>();
        let (started, mut seen) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let search = run_search(&cancel, move |_| {
            started.blocking_send(()).unwrap();
            let _ = disk.recv();
            Ok(())
        });
        let (answer, ()) = tokio::join!(search, async {
            seen.recv().await;
            cancel.cancel();
        });
        assert_eq!(answer.unwrap_err().reason(), "The search was interrupted.");
        drop(release);
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_that_takes_too_long_brings_what_it_has() {
        let cancel = CancellationToken::new();
        let search = run_search(&cancel, |stop| {
            while !stop.is_cancelled() {
                yield_now();
            }
            Ok("so far")
        });
        // Time stands still while a blocking thread works: here it is moved by hand.
        let (searched, ()) = tokio::join!(search, tokio::time::advance(SEARCH_TIMEOUT + Duration::from_secs(1)));
        let SearchOutcome { found, timed_out } = searched.unwrap();
        assert_eq!((found, timed_out), ("so far", true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_that_cannot_be_stopped_is_given_up() {
        let (release, disk) = channel::<()>();
        let cancel = CancellationToken::new();
        let search = run_search(&cancel, move |_| {
            let _ = disk.recv();
            Ok(())
        });
        let (answer, ()) = tokio::join!(search, async {
            tokio::time::advance(SEARCH_TIMEOUT + Duration::from_secs(1)).await;
            tokio::task::yield_now().await;
            tokio::time::advance(STOP_GRACE + Duration::from_secs(1)).await;
        });
        assert!(answer.unwrap_err().reason().contains("does not answer"));
        drop(release);
    }
}
