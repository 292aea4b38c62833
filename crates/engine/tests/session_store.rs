//! The built-in session stores pass the store contract; the SQLite store has this test in its own crate.

use whimbrel_session_store::store::{FileStore, MemoryStore};
use whimbrel_testkit::store_contract;

#[tokio::test]
async fn memory_store_passes_the_contract() {
    store_contract::check(MemoryStore::default).await.unwrap();
}

#[tokio::test]
async fn file_store_passes_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let mut stores = 0;
    store_contract::check(|| {
        stores += 1;
        FileStore::new(dir.path().join(stores.to_string()))
    })
    .await
    .unwrap();
}
