//! Our stores do what every store must do; the one in SQLite is checked in its own crate.

use whimbrel_engine::session::store::{FileStore, MemoryStore};
use whimbrel_testkit::store_contract;

#[tokio::test]
async fn memory_does_what_every_store_must_do() {
    store_contract::check(MemoryStore::default).await.unwrap();
}

#[tokio::test]
async fn files_do_what_every_store_must_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = 0;
    store_contract::check(|| {
        made += 1;
        FileStore::new(folder.path().join(made.to_string()))
    })
    .await
    .unwrap();
}
