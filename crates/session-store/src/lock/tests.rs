use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn busy_error(path: &Path) -> BusyError {
    match TranscriptLock::acquire(path).unwrap_err() {
        LockError::Busy(busy) => busy,
        LockError::Io(error) => panic!("{error}"),
    }
}

#[test]
fn second_engine_learns_the_lock_owner() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/session.jsonl");
    let lock = TranscriptLock::acquire_or_create(&path).unwrap();
    let owner = busy_error(&path).owner.unwrap();
    assert_eq!(owner.pid, std::process::id());
    let text = busy_error(&path).to_string();
    let program = owner.program.as_deref().unwrap();
    let expected =
        format!("process {} ({program}) on {}, started 2", owner.pid, owner.host.as_deref().unwrap());
    assert!(program.starts_with("whimbrel") && text.contains(&expected), "{text}");
    assert_eq!(inspect(&path), SessionLock::Held(Some(*owner)));
    drop(lock);
    assert_eq!(inspect(&path), SessionLock::Free);
    assert_eq!(inspect(&path.with_file_name("missing.jsonl")), SessionLock::Free);
    assert!(TranscriptLock::acquire(&path).is_ok());
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no second file");
}

#[test]
fn acquire_does_not_create_a_missing_transcript() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    assert!(
        matches!(TranscriptLock::acquire(&path), Err(LockError::Io(error)) if error.kind() == ErrorKind::NotFound)
    );
    assert!(!path.exists());
}

#[test]
fn symlink_and_directory_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("file"), dir.path().join("link.jsonl"));
    fs::write(&file, "").unwrap();
    symlink(&file, &link).unwrap();
    for (path, words) in [(link.as_path(), "symbolic link"), (dir.path(), "director")] {
        let error = TranscriptLock::acquire_or_create(path).unwrap_err();
        assert!(matches!(&error, LockError::Io(_)) && error.to_string().contains(words), "{error}");
    }
}

#[test]
fn claimed_id_leaves_no_file_unless_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    let mut lock = TranscriptLock::claim(&path).unwrap().unwrap();
    assert!(matches!(TranscriptLock::claim(&path), Err(LockError::Busy(_))));
    drop(lock);
    assert!(!path.exists());
    fs::write(&path, "").unwrap();
    lock = TranscriptLock::claim(&path).unwrap().expect("what a killed engine claimed is free");
    AppendFile::write(&mut lock, b"{}\n").unwrap();
    drop(lock);
    assert!(path.exists() && TranscriptLock::claim(&path).unwrap().is_none());
}

#[test]
fn lock_of_removed_file_does_not_remove_its_successor() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    let lock = TranscriptLock::claim(&path).unwrap().unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!lock.is_at_path());
    let next = TranscriptLock::acquire_or_create(&path).unwrap();
    drop(lock);
    assert!(next.is_at_path());
}

#[test]
fn read_only_transcript_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let lock = TranscriptLock::acquire(&path).unwrap();
    // Root can write to read-only files.
    assert_eq!(lock.can_write(), nix::unistd::geteuid().is_root());
    assert_eq!(busy_error(&path).path, path);
}

#[tokio::test]
async fn waiting_ends_when_the_lock_is_released() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    let lock = TranscriptLock::acquire_or_create(&path).unwrap();
    let busy = busy_error(&path);
    let waiting = tokio::spawn(async move { busy.wait(Duration::from_secs(60)).await });
    tokio::task::yield_now().await;
    drop(lock);
    waiting.await.unwrap();
    assert!(TranscriptLock::acquire(&path).is_ok());
}

#[test]
fn shared_lock_is_not_reported_as_engine() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    fs::write(&path, "").unwrap();
    let backup = File::open(&path).unwrap();
    backup.lock_shared().unwrap();
    let text = busy_error(&path).to_string();
    assert!(text.contains("a reader that is not an engine"), "{text}");
    assert!(!text.contains("in use by"), "{text}");
}

#[test]
fn reopened_transcript_stays_locked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    let mut lock = TranscriptLock::acquire_or_create(&path).unwrap();
    for _ in 0..2 {
        lock.reopen(&path).unwrap();
        assert_eq!(busy_error(&path).path, path, "the lock is still held");
        AppendFile::write(&mut lock, b"{}\n").unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n{}\n");
    fs::write(dir.path().join("other"), "x").unwrap();
    fs::rename(dir.path().join("other"), &path).unwrap();
    assert!(lock.reopen(&path).is_err(), "another file is none of ours");
    drop(lock);
    assert!(TranscriptLock::acquire(&path).is_ok());
}

#[tokio::test(start_paused = true)]
async fn timed_out_waits_leave_no_threads() {
    let threads = || fs::read_dir("/proc/self/task").unwrap().count();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    let _lock = TranscriptLock::acquire_or_create(&path).unwrap();
    let before = threads();
    for _ in 0..20 {
        busy_error(&path).wait(BUSY_TIMEOUT).await;
    }
    assert!(threads() < before + 10, "{before} threads before and {} now", threads());
    let total: Duration = poll_intervals(BUSY_TIMEOUT).sum();
    assert_eq!(total, BUSY_TIMEOUT);
}
