//! Failing, locked, damaged and foreign databases.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use tempfile::TempDir;

use super::*;

fn store() -> (SqliteStore, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store =
        SqliteStore::open_with_timeout(dir.path().join("new/s.db"), Duration::from_millis(20)).unwrap();
    (store, dir)
}

fn key() -> StoreKey {
    StoreKey::session("p", "s")
}

fn line(uuid: &str) -> RawJson {
    RawJson::from_value(&json!({"type": "user", "uuid": uuid, "message": {"content": "x".repeat(2_000)}}))
        .unwrap()
}

fn error_parts<T: std::fmt::Debug>(result: Result<T, StoreError>) -> (ErrorKind, String) {
    match result.unwrap_err() {
        StoreError::Io(error) => (error.kind(), error.to_string()),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn acknowledged_lines_are_durable_and_private() {
    let (store, _dir) = store();
    store.append(&key(), &[line("a"), line("b")]).await.unwrap();
    let mode = std::fs::metadata(store.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let reopened = SqliteStore::open(store.path()).unwrap();
    assert_eq!(reopened.load(&key()).await.unwrap().unwrap().len(), 2);
    drop(store);
    reopened.append(&key(), &[line("c")]).await.unwrap();
    assert_eq!(reopened.load(&key()).await.unwrap(), Some(vec![line("a"), line("b"), line("c")]));
}

#[tokio::test]
async fn full_database_rejects_the_whole_batch_and_recovers() {
    let (store, _dir) = store();
    store.append(&key(), &[line("a")]).await.unwrap();
    let limit = |pages: i64| {
        let connection = store.connection.lock().unwrap();
        connection.pragma_update(None, "max_page_count", pages).unwrap();
    };
    limit(12);
    let batch: Vec<RawJson> = (0..100).map(|number| line(&format!("n{number}"))).collect();
    let (kind, text) = error_parts(store.append(&key(), &batch).await);
    assert_eq!(kind, ErrorKind::StorageFull, "{text}");
    assert_eq!(store.load(&key()).await.unwrap().unwrap().len(), 1);
    limit(1 << 30);
    store.append(&key(), &batch).await.unwrap();
    assert_eq!(store.load(&key()).await.unwrap().unwrap().len(), 101);
}

#[tokio::test]
async fn locked_database_fails_without_loss() {
    let (store, _dir) = store();
    store.append(&key(), &[line("a")]).await.unwrap();
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (kind, text) = error_parts(store.append(&key(), &[line("b")]).await);
    assert!(kind == ErrorKind::ResourceBusy && text.contains("locked"), "{text}");
    // Readers are not blocked.
    assert_eq!(store.load(&key()).await.unwrap().unwrap().len(), 1);
    other.execute_batch("COMMIT").unwrap();
    store.append(&key(), &[line("b")]).await.unwrap();
    assert_eq!(store.load(&key()).await.unwrap().unwrap().len(), 2);
}

#[tokio::test]
async fn damaged_database_error_names_the_remedy() {
    let (store, _dir) = store();
    let path = store.path().to_owned();
    let batch: Vec<RawJson> = (0..100).map(|number| line(&format!("n{number}"))).collect();
    store.append(&key(), &batch).await.unwrap();
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    // All pages except the first, which identifies the file.
    for byte in &mut bytes[4096..] {
        *byte = 0xA5;
    }
    std::fs::write(&path, &bytes).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let (kind, text) = error_parts(store.load(&key()).await);
    assert!(kind == ErrorKind::InvalidData && text.contains(".recover"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "the file is unchanged");
}

#[test]
fn foreign_files_are_rejected_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("text"), "These are not the bytes you are looking for. ".repeat(50)).unwrap();
    let foreign = Connection::open(at("foreign")).unwrap();
    foreign.execute_batch("CREATE TABLE birds (name TEXT); PRAGMA user_version = 1").unwrap();
    let newer = SqliteStore::open(at("newer")).unwrap();
    newer.connection.lock().unwrap().pragma_update(None, "user_version", 99).unwrap();
    std::fs::create_dir(at("dir")).unwrap();
    for (name, expected, part) in [
        ("text", ErrorKind::InvalidData, "not a database"),
        ("foreign", ErrorKind::InvalidInput, "not a session database"),
        ("newer", ErrorKind::Unsupported, "version 99"),
        ("dir", ErrorKind::InvalidInput, "not a session database"),
        ("text/below", ErrorKind::AlreadyExists, "cannot be opened"),
    ] {
        let (kind, text) = error_parts(SqliteStore::open(at(name)));
        assert!(text.contains(part), "{name}: {text}");
        assert_eq!(kind, expected, "{name}");
    }
    assert!(std::fs::read_to_string(at("text")).unwrap().starts_with("These"));
}

#[tokio::test]
async fn concurrent_writers_lose_nothing() {
    let (first, _dir) = store();
    let stores: Vec<SqliteStore> = (0..4).map(|_| SqliteStore::open(first.path()).unwrap()).collect();
    let writing = stores.iter().enumerate().map(|(writer, store)| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..25 {
                store.append(&key(), &[line(&format!("{writer}-{number}"))]).await.unwrap();
            }
        })
    });
    for result in writing.collect::<Vec<_>>() {
        result.await.unwrap();
    }
    assert_eq!(first.load(&key()).await.unwrap().unwrap().len(), 100);
}
