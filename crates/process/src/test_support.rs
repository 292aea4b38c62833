//! Waiting for processes in tests.
#![expect(clippy::unwrap_used, reason = "test support fails as a test does")]

use std::path::Path;
use std::time::Duration;

use whimbrel_os::clock;

/// Polls a condition; returns whether it became true in time.
pub async fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = clock::monotonic() + Duration::from_secs(15);
    while !condition() {
        if clock::monotonic() > deadline {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}

/// Reads the process id that a command writes into a file.
pub async fn read_pid(path: &Path) -> i32 {
    let read = || std::fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'));
    assert!(eventually(|| read().is_some()).await, "{} was not written", path.display());
    read().unwrap().trim().parse().unwrap()
}

/// Returns whether a process ends in time.
pub async fn exits(id: i32) -> bool {
    eventually(|| process_state(id).is_none_or(|state| state == 'Z')).await
}

pub fn process_state(id: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
