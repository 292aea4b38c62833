//! The store contract for the SQLite store.

use whimbrel_store_sqlite::SqliteStore;
use whimbrel_testkit::store_contract;

#[tokio::test]
async fn sqlite_store_fulfils_the_store_contract() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = 0;
    store_contract::check(|| {
        made += 1;
        SqliteStore::open(folder.path().join(format!("{made}.db"))).unwrap()
    })
    .await
    .unwrap();
}
