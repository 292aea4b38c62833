//! Lock of the plugin directory: one process changes it at a time. The kernel releases it with the process.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use tokio::sync::oneshot;
use whimbrel_os::files;

use crate::error::InstallError;

const LOCK_FILE: &str = ".whimbrel.lock";

/// Time to wait for another process; it may be fetching a repository.
const LOCK_TIMEOUT: Duration = Duration::from_mins(2);

/// The held lock.
#[derive(Debug)]
pub(crate) struct DirLock {
    _file: File,
}

impl DirLock {
    /// Creates the directory if it is missing, and waits for the lock.
    pub(crate) async fn acquire(dir: &Path) -> Result<Self, InstallError> {
        files::create_private_dir(dir).map_err(InstallError::io(dir))?;
        let path = dir.join(LOCK_FILE);
        let file = File::options().create(true).append(true).open(&path).map_err(InstallError::io(&path))?;
        match file.try_lock() {
            Ok(()) => return Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(InstallError::Io { path, error }),
        }
        // A thread of its own: after a timeout nothing must wait for it.
        let (sender, receiver) = oneshot::channel();
        std::thread::Builder::new()
            .name("plugin-lock".into())
            .spawn(move || {
                let locked = file.lock().map(|()| file);
                let _ = sender.send(locked);
            })
            .map_err(InstallError::io(&path))?;
        match tokio::time::timeout(LOCK_TIMEOUT, receiver).await {
            Ok(Ok(Ok(file))) => Ok(Self { _file: file }),
            Ok(Ok(Err(error))) => Err(InstallError::Io { path, error }),
            Ok(Err(_)) | Err(_) => Err(InstallError::Busy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn second_process_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plugins");
        let first = DirLock::acquire(&path).await.unwrap();
        let mut second = Box::pin(DirLock::acquire(&path));
        // The first poll starts to wait; it cannot succeed while the lock is held.
        assert!(futures_pending(&mut second).await);
        drop(first);
        second.await.unwrap();
    }

    async fn futures_pending<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_pending())
        })
        .await
    }
}
