//! Tests specific to file stores. The contract of all stores is tested in the test kit.

use serde_json::json;

use super::*;

fn entry(name: &str) -> RawJson {
    RawJson::from_value(&json!({"type": "x", "uuid": name})).unwrap()
}

fn key() -> StoreKey {
    StoreKey::session("proj", "sess")
}

#[tokio::test]
async fn key_cannot_leave_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path().join("projects"));
    let keys = [
        StoreKey::session("..", "s"),
        StoreKey::session("p", "../s"),
        StoreKey::session("p", ""),
        StoreKey::session("p", "s").with_subpath("../../x"),
        StoreKey::session("p", "s").with_subpath("/etc/x"),
        StoreKey::session("p", "s").with_subpath(""),
    ];
    for key in keys {
        assert!(matches!(store.append(&key, &[entry("x")]).await, Err(StoreError::BadKey(_))), "{key:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn multi_line_entry_is_stored_on_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::new(dir.path());
    let entry = RawJson::parse("{\n  \"type\": \"x\"\n}").unwrap();
    store.append(&key(), std::slice::from_ref(&entry)).await.unwrap();
    assert_eq!(store.load(&key()).await.unwrap(), Some(vec![entry]));
}
