//! The store contract for the SQLite store.

use whimbrel_store_sqlite::SqliteStore;
use whimbrel_testkit::store_contract;

#[tokio::test]
async fn sqlite_store_fulfils_the_store_contract() {
    let dir = tempfile::tempdir().unwrap();
    let mut count = 0;
    store_contract::check(|| {
        count += 1;
        SqliteStore::open(dir.path().join(format!("{count}.db"))).unwrap()
    })
    .await
    .unwrap();
}
