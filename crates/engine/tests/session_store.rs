//! The built-in session stores pass the store contract; the SQLite store has this test in its own crate.

use whimbrel_session_store::store::{FileStore, MemoryStore};
use whimbrel_testkit::store_contract;

#[tokio::test]
async fn memory_store_passes_the_contract() {
    store_contract::check(MemoryStore::default).await.unwrap();
}

#[tokio::test]
async fn file_store_passes_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = 0;
    store_contract::check(|| {
        made += 1;
        FileStore::new(folder.path().join(made.to_string()))
    })
    .await
    .unwrap();
}
